"""A server for the tests of a file, and the same database asked directly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import Server


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The database of the server."""
    folder: Path = tmp_path_factory.mktemp("cli")
    return f"sqlite:///{folder / 'horae.db'}"


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[Server]:
    """A server without authentication, for this machine."""
    # Commands that work on its database directly cannot notify it: it looks often.
    server = Server(database, app="tests.face.cli.actions", HORAE_DRAIN_MS="0", HORAE_TICK_MS="100")
    yield server
    server.end()


@pytest.fixture
def target(request: pytest.FixtureRequest, server: Server, database: str) -> list[str]:
    """Where commands work: on the server, or where a test asks for both, also on its database directly."""
    directly = getattr(request, "param", "url") == "database"
    return ["--database", database] if directly else ["--url", server.url]
