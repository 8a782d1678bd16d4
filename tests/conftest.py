"""Fixtures of all tests: a virtual clock, a real PostgreSQL, a littered working folder. Harnesses are in ``tests/support``."""

import contextlib
import gc
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from horae.testing import TimeMachine
from tests.support.installed import unpacked_wheel
from tests.support.machine import START, Recorder
from tests.support.memory import copied_tables
from tests.support.postgres import (
    FragileServer,
    new_postgres_database,
    new_postgres_server,
    remove_postgres_server,
)
from tests.support.temporal_cluster import ABSENT, COMMAND, TemporalCluster
from tests.support.tls import shared_trust

# `make soak` asks for many, and other ones each time. By default they are few and the same: a run of all tests takes minutes,
# and whether it fails depends on the code alone.
settings.register_profile(
    "horae",
    max_examples=int(os.environ.get("HORAE_EXAMPLES", "30")),
    derandomize="HORAE_EXAMPLES" not in os.environ,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("horae")

# A shell lets programs that it starts in the background ignore interruptions, and their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


# What is imported and collected stays until the end: looking for garbage among it would take a fifth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # what tests leave in cycles is little, and each is over soon
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Three more than there are cores: many tests wait for processes, leases and seconds, in which others can run."""
    return (os.cpu_count() or 1) + 3


def digest(*texts: str) -> bytes:
    return hashlib.sha256("\n".join(texts).encode()).digest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by ``HORAE_TEST_ORDER``, if it is set: files, and the tests of each. And let one process begin with the heavy tests, and the others with the long ones; each is first given a part of the list.

    What a process has not begun others may take over, the last first: so heavy tests run one after another.
    """
    if order := os.environ.get("HORAE_TEST_ORDER"):
        items.sort(key=lambda each: (digest(order, each.path.name), digest(order, each.nodeid)))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    marked: dict[str, list[pytest.Item]] = {"heavy": [], "long": [], "": []}
    for each in items:
        marked[next(filter(each.get_closest_marker, ("heavy", "long")), "")].append(each)
    heavy, long, others = marked.values()
    beginnings = (
        [heavy, *(long[place :: workers - 1] for place in range(workers - 1))]
        if workers > 1
        else [heavy + long]
    )
    ordered: list[pytest.Item] = []
    for place, beginning in enumerate(beginnings):
        size = (len(items) - len(ordered)) // (workers - place)  # as many as the process is first given
        room = max(size - len(beginning), 0)
        ordered += [*beginning, *others[:room]]
        others = others[room:]
    items[:] = [*ordered, *others]


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


@pytest.fixture(scope="session", autouse=True)
def loaded_once() -> Iterator[None]:
    """What would take most of the time of short tests."""
    with copied_tables(), shared_trust():
        yield


@pytest.fixture
async def machine(request: pytest.FixtureRequest) -> AsyncIterator[TimeMachine]:
    """An app on a virtual clock that begins at the module's ``START``, with the module's ``CONFIG``, if it has them."""
    start, config = getattr(request.module, "START", START), getattr(request.module, "CONFIG", None)
    async with TimeMachine(start, config) as machine:
        yield machine


@pytest.fixture
def hello(machine: TimeMachine) -> Recorder:
    """The action ``hello``, which remembers its calls."""
    return machine.app.action("hello")(Recorder(machine))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the unpacked wheel of this tree, built once for all workers."""
    base = tmp_path_factory.getbasetemp()
    return unpacked_wheel(base.parent if base.name.startswith("popen-") else base)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server of our own, from a wheel, ended with the tests."""
    server = new_postgres_server()
    yield server
    remove_postgres_server(server)


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The address of a database in which Horae's tables are made, and empty."""
    return new_postgres_database(postgres_server)


@pytest.fixture
def empty_postgres(postgres_server: Any) -> str:
    """The address of a database without tables."""
    return new_postgres_database(postgres_server, empty=True)


@pytest.fixture(scope="session")
def temporal_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalCluster]:
    """Temporal's own server and a worker, ended with the tests."""
    if not COMMAND:
        pytest.skip(ABSENT)
    cluster = TemporalCluster(tmp_path_factory.mktemp("temporal"))
    yield cluster
    cluster.end()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a fresh database, once of each kind."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'horae.db'}"


@pytest.fixture
def fragile_server() -> Iterator[FragileServer]:
    server = FragileServer()
    yield server
    server.end()
