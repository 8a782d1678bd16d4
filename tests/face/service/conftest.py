"""A real service in its own process."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import Server, StartServer


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """Start services; what still lives when a test ends is killed."""
    started: list[Server] = []

    def start(database: str | None = None, *arguments: str, interpreter: str = "", **settings: str) -> Server:
        server = Server(
            database or f"sqlite:///{tmp_path}/horae.db", *arguments, interpreter=interpreter, **settings
        )
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One service for the tests of a module; they keep out of each other's schedules."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('service')}/horae.db")
    yield server
    server.end(signal.SIGKILL)
