"""What all tests share: how many examples a property is tried with, a real PostgreSQL, and processes to be killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from horae.testing import TimeMachine
from tests.support.machine import START, Recorder
from tests.support.postgres import FragileServer, new_postgres_server, remove_postgres_server

# `make soak` asks for many; the default keeps a run of all tests within a few minutes.
settings.register_profile(
    "horae",
    max_examples=int(os.environ.get("HORAE_EXAMPLES", "100")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("horae")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, for many tests wait for processes, leases and seconds to pass."""
    return (os.cpu_count() or 1) + 1


PROGRAM = Path(__file__).parent / "engine" / "program.py"


@pytest.fixture(scope="session", autouse=True)
def littered_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where all tests run: with a ``horae.db`` that is no database, and with settings that cannot be.

    So a test that depends on the working folder, or on the developer's environment, fails always and everywhere.
    """
    folder = tmp_path_factory.mktemp("littered")
    (folder / "horae.db").write_text("what another program left here\n" * 100)
    noise = {
        "HORAE_DATABASE_URL": "litter",
        "HORAE_URL": "litter",
        "HORAE_PORT": "litter",
        "HORAE_TOKEN": "litter",
    }
    with contextlib.chdir(folder), mock.patch.dict(os.environ, noise):
        yield folder


def without_settings() -> dict[str, str]:
    """The environment for a process that is to have the default settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}


@pytest.fixture
async def machine(request: pytest.FixtureRequest) -> AsyncIterator[TimeMachine]:
    """An app on a virtual clock that begins at the module's ``START``, with the module's ``CONFIG``, if it has them."""
    start, config = getattr(request.module, "START", START), getattr(request.module, "CONFIG", None)
    async with TimeMachine(start, config) as machine:
        yield machine


@pytest.fixture
def hello(machine: TimeMachine) -> Recorder:
    """The action ``hello``, which remembers its calls."""
    recorder = Recorder(machine)
    machine.app.action("hello")(recorder)
    return recorder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server of our own, from a wheel, ended with the tests."""
    server = new_postgres_server()
    yield server
    remove_postgres_server(server)


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The address of a fresh database."""
    name = f"t{uuid.uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    address: str = postgres_server.get_uri(database=name)
    return address


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
