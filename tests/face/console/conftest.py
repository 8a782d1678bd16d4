"""One server for all tests of the console in a worker, and one browser a module; they keep out of each other's schedules."""

import signal
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from horae.face.documents.crontab_parser import read_crontab
from tests.face.console.ledger import CRONTAB
from tests.support.browser import Window, launched
from tests.support.process import Server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a module: while it is open its event loop runs, and tests of other modules have their own."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without authentication, whose user is ``local``."""
    server = Server(
        f"sqlite:///{tmp_path_factory.mktemp('console')}/horae.db", "--flows", "tests.face.console.flows",
        app="tests.face.console.actions", HORAE_COMMANDS=_commands(tmp_path_factory), HORAE_SECRET_KEY="seal " * 10,
    )  # fmt: skip
    yield server
    server.end(signal.SIGKILL)


def _commands(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that names the command of one line of the crontab that is imported."""
    file = tmp_path_factory.mktemp("commands") / "commands.json"
    (entry,) = read_crontab(CRONTAB.splitlines()[0], timezone="UTC").entries
    file.write_bytes(msgspec.json.encode({entry.id: entry.command}))
    return str(file)


@pytest.fixture
def open_window(browser: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Window]]:
    """Open windows on a server, by default the shared one; at the end none may have complained."""
    windows: list[Window] = []

    def open_window(url: str | None = None, **options: Any) -> Window:
        windows.append(Window(browser, url or request.getfixturevalue("server").url, **options))
        return windows[-1]

    yield open_window
    complaints = [each for window in windows for each in window.complaints]
    for window in windows:
        window.close()
    assert complaints == []


@pytest.fixture
def window(open_window: Callable[..., Window]) -> Window:
    return open_window(viewport={"width": 1280, "height": 900})
