"""Real processes, to be asked, interrupted and killed. They run this tree, whatever is installed, without HORAE_ settings."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import httpx

from tests.support.forked import ForkServer
from tests.support.wait import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
StartServer = Callable[..., "Server"]


def environment(**settings: str) -> dict[str, str]:
    """The environment of a process that has the default settings, and some others. It writes at once what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return kept | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"} | settings


class Process(Protocol):
    """What tests do with a process, begun anew or forked."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | Any: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@functools.cache
def fork_server() -> ForkServer:
    """What forks the processes of this tree, once for all tests of this process."""
    return ForkServer(sys.executable, environment())


def run_program(
    *arguments: str, settings: Mapping[str, str] | None = None, forks: ForkServer | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` in a fork, to its end. What it starts with ``sys.executable`` is forked too."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = (forks or fork_server()).start(
            arguments, ROOT, environment(**settings or {}), output=output.fileno(), errors=errors.fileno()
        )
        try:
            code = process.wait(PATIENCE)
        finally:
            process.terminate()  # not killed: it may have a server of its own to stop
        for written in (output, errors):
            written.seek(0)
        return subprocess.CompletedProcess(arguments, code, output.read(), errors.read())


def printed_by(code: str) -> str:
    """The output of some code in a new interpreter."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout


def kill(*processes: Process) -> None:
    """End processes at once, also those that are stopped or have ended."""
    for process in processes:
        process.kill()
        process.wait()


class Programs:
    """Processes of a Python program that write to one log file; they end with the test."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder, self._program = folder, program
        self.file = folder / "log"
        self.database = f"sqlite:///{folder / 'horae.db'}"
        self._started: list[Process] = []

    def launch(self, *arguments: str) -> Process:
        process = fork_server().start([str(self._program), *arguments], ROOT, environment())
        self._started.append(process)
        return process

    def text(self) -> str:
        """The whole lines that all of them wrote so far: without one that is only partly written."""
        written = self.file.read_text() if self.file.exists() else ""
        return written[: written.rfind("\n") + 1]

    def end(self) -> None:
        kill(*self._started)


class Listener:
    """A process that serves; its log is read as it comes, and it is there once it says where it listens.

    It runs ``python ARGUMENTS``; an ``interpreter`` starts anew, and without one the process is forked.
    """

    def __init__(
        self, arguments: Sequence[str], folder: Path, environment: dict[str, str], interpreter: str = ""
    ) -> None:
        if interpreter:
            started = subprocess.Popen(
                [interpreter, *arguments], cwd=folder, env=environment, text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
            self.process: Process = started
            self._written: IO[str] | None = started.stderr
        else:
            self.process, self._written = fork_server().start_piped(arguments, folder, environment)
        self.lines: list[str] = []
        self.url = ""
        self._told = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._told.wait(PATIENCE), self.log
        assert self.url, self.log

    def _read(self) -> None:
        assert self._written is not None
        with self._written as lines:
            for line in lines:
                self.lines.append(line)
                if found := re.search(r"listens on (https?://[^\s:]+:\d+)", line):
                    self.url = found[1]
                    self._told.set()
        self._told.set()

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the process, and wait for it; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self._reader.join(10)
        return code


class Server(Listener):
    """``horae serve`` on a free port, with a client of it. It is forked, unless an ``interpreter`` is to start anew."""

    def __init__(
        self,
        database: str,
        *arguments: str,
        app: str = "tests.face.service.actions",
        interpreter: str = "",
        **settings: str,
    ) -> None:
        self.database = database
        command = [
            "-m",
            "horae",
            "serve",
            "--port",
            "0",
            "--database",
            database,
            "--app",
            app,
        ]
        super().__init__(
            [*command, *arguments],
            ROOT,
            environment(**settings),
            interpreter,
        )
        self.client = httpx.Client(base_url=self.url, timeout=120)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        code = super().end(how)
        self.client.close()
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
