"""A real service in a process of its own, and a real client."""

import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.exceptions import LitestarDeprecationWarning

from horae.app import App
from horae.config import Config
from horae.face.service import Service, make_service

ROOT = Path(__file__).resolve().parents[3]
StartServer = Callable[..., "Server"]


class Server:
    """``horae serve`` as a process; its log is read as it comes."""

    def __init__(self, database: str, settings: dict[str, str], arguments: list[str]) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HORAE_")}
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # this tree, whatever is installed
        environment |= {"PYTHONPATH": path, "HORAE_TICK_MS": "100", **settings}
        command = [sys.executable, "-m", "horae", "serve", "--port", "0", "--database", database]
        command += ["--app", "tests.face.service.actions", *arguments]
        self.process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._listening = threading.Event()
        self.address = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._listening.wait(30), "".join(self.lines)
        assert self.address, "".join(self.lines)
        self.client = httpx.Client(base_url=self.address, timeout=30)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"listens on (https?://[^\s:]+:\d+)", line):
                self.address = found[1]
                self._listening.set()
        self._listening.set()

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the process, and wait for it."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join(10)
        self.client.close()
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """A request below /api/v1."""
        if body is not None:
            more["json"] = body
        return self.client.request(method, f"/api/v1{path}", **more)

    def get(self, path: str, **more: Any) -> Any:
        answer = self.ask("GET", path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()


def service_of(app: App, config: Config | None = None) -> Service:
    """The service of an app in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LitestarDeprecationWarning)
        return make_service(app, config or Config())


def client_of(app: App, config: Config | None = None) -> httpx.AsyncClient:
    """A client of the service of an app, both in this process."""
    transport = httpx.ASGITransport(app=service_of(app, config), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """Start services; what still lives when a test ends is killed."""
    started: list[Server] = []

    def start(database: str | None = None, *arguments: str, **settings: str) -> Server:
        server = Server(database or f"sqlite:///{tmp_path}/horae.db", settings, list(arguments))
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One service for the tests of a module; they keep out of each other's schedules."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('service')}/horae.db", {}, [])
    yield server
    server.end(signal.SIGKILL)
