"""Event loops that are blocked, for a while or for ever: what becomes of the lease, and of the runs under it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config, SyncApp
from tests.support import process
from tests.support.network import Network
from tests.support.nodes import fetch, running, soon
from tests.support.postgres import FragileServer
from tests.support.wait import PATIENCE, wait_for, wait_until

LEASE = 2500
QUICK: dict[str, Any] = {
    "lease_ms": LEASE,
    "housekeeping_ms": 500,
    "tick_ms": 100,
    "terminate_ms": 200,
    "drain_ms": 500,
}


class Blocked(process.Programs):
    """Nodes on one database whose actions block their event loops; each line of their log is a key, a word and a process."""

    def __init__(self, folder: Path, database: str) -> None:
        super().__init__(folder, Path(__file__).parent / "blocking_program.py")
        self.database = database

    def start(self, seconds: float, nodes: int = 2, **config: Any) -> None:
        """Start nodes, and a schedule of one run, whose first attempt blocks for some seconds."""
        for _ in range(nodes):
            self.launch(self.database, str(self.file), str(seconds), json.dumps(QUICK | config))
        able = "SELECT count(*) FROM node WHERE actions LIKE '%block%'"
        wait_for(lambda: self.rows(able)[0][0] == nodes)
        asyncio.run(self._create())

    async def _create(self) -> None:
        app = App(self.database)
        await app.open()
        await app.schedules.create("s", soon(app), "block")
        await app.close()

    def rows(self, query: str) -> list[Any]:
        return asyncio.run(fetch(self.database, query))

    def lines(self) -> list[tuple[str, str]]:
        """What was written: the number of an attempt that begins, or ``done``; and the process."""
        return [(word, pid) for _, word, pid in map(str.split, self.text().splitlines())]

    def run(self) -> tuple[str, int]:
        """The status of the one run, and the number of its attempt."""
        found = self.rows("SELECT status, attempt FROM run")
        return (found[0][0], found[0][1]) if found else ("", 0)

    def said(self, pid: str) -> str:
        """What a node has logged."""
        return Path(f"{self.file}.{pid}").read_text()


@pytest.fixture
def blocked(tmp_path: Path, postgres: str) -> Iterator[Blocked]:
    nodes = Blocked(tmp_path, postgres)
    yield nodes
    nodes.end()


@pytest.mark.long
def test_a_coroutine_that_blocks_its_loop_for_three_leases_is_one_attempt_that_succeeds(blocked: Blocked):
    blocked.start(3 * LEASE / 1000)
    wait_for(lambda: blocked.run()[0] == "succeeded")
    (_, pid), *_ = blocked.lines()
    assert blocked.lines() == [("1", pid), ("done", pid)]
    assert blocked.run() == ("succeeded", 1)
    told = blocked.said(pid)
    assert "the event loop was blocked" in told
    assert not re.search("cannot be reached|process died", told), told


@pytest.mark.long
def test_the_runs_of_a_node_whose_loop_hangs_are_done_elsewhere_and_what_it_does_later_counts_no_more(
    blocked: Blocked,
):
    blocked.start(5 * LEASE / 1000, hung_ms=LEASE)
    wait_for(lambda: blocked.run()[0] == "succeeded")
    (_, hung), *_ = blocked.lines()
    (other,) = {pid for _, pid in blocked.lines()} - {hung}
    assert blocked.lines() == [("1", hung), ("2", other), ("done", other)]  # it still hangs
    said = blocked.said(hung)
    assert "no longer renews its lease" in said
    assert "time.sleep(seconds)" in said  # where it is
    wait_for(lambda: ("done", hung) in blocked.lines())
    wait_for(lambda: "answers again" in blocked.said(hung))
    joined = "SELECT count(*) FROM node WHERE deadline > clock_timestamp()"
    wait_for(lambda: blocked.rows(joined)[0][0] == 2)  # it has joined again
    assert blocked.run() == ("succeeded", 2)
    ends = blocked.rows("SELECT attempt, reason FROM attempt ORDER BY attempt")
    assert [tuple(row) for row in ends] == [(1, "crashed")]
    assert "cannot be reached" not in blocked.said(hung)


# Connections: each node has an event loop of its own in a thread, so that it may be blocked while the network goes on


class InThread:
    """An app that runs in an event loop of its own."""

    def __init__(self, database: str) -> None:
        self.app = App(database, config=Config(**QUICK))
        self._ending = asyncio.Event()
        self._freed = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with running(self.app):
            await self._ending.wait()

    def block(self) -> None:
        """Block the loop of the app."""
        self._freed = threading.Event()
        self._loop.call_soon_threadsafe(self._freed.wait, PATIENCE)

    def free(self) -> None:
        """Let the loop go on."""
        self._freed.set()

    def start_ending(self) -> None:
        self.free()
        self._loop.call_soon_threadsafe(self._ending.set)

    async def end(self) -> None:
        self.start_ending()
        await asyncio.to_thread(self._thread.join, PATIENCE)
        assert not self._thread.is_alive()


def lease_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "horae:lease"]


@asynccontextmanager
async def behind_network(database: str) -> AsyncIterator[tuple[Network, InThread]]:
    """A node, and its way to the database."""
    name, _, socket = database.partition("?host=")
    network = await Network(f"{socket}/.s.PGSQL.5432").open()
    node = InThread(
        f"postgresql://postgres@127.0.0.1:{network.port}/{name.rpartition('/')[2]}?sslmode=disable"
    )
    try:
        await wait_until(lambda: node.app.engine.holds_lease and lease_threads())
        yield network, node
    finally:
        network.release()
        network.mend()
        await node.end()
        await network.close()


async def held_for(node: InThread, seconds: float) -> None:
    """Wait for some seconds, in which the lease holds throughout."""
    clock = asyncio.get_running_loop()
    until = clock.time() + seconds
    while clock.time() < until:
        assert node.app.engine.holds_lease
        await asyncio.sleep(0.02)


async def deadline(database: str) -> float:
    """In how many seconds the lease ends, by the database."""
    found = await fetch(
        database, "SELECT max(extract(epoch FROM deadline - clock_timestamp())::float8) FROM node"
    )
    return float(found[0][0])


@pytest.mark.parametrize("blocked", [False, True])
async def test_a_lease_that_cannot_be_renewed_ends_before_the_database_says_so(postgres: str, blocked: bool):
    async with behind_network(postgres) as (network, node):
        epoch = node.app.engine.epoch
        if blocked:
            node.block()
            await held_for(node, 2 * LEASE / 1000)
        network.hold()
        await wait_until(lambda: not node.app.engine.holds_lease)
        assert await deadline(postgres) > 0
        await asyncio.sleep(await deadline(postgres) + 0.1)
        network.release()
        node.free()
        await wait_until(lambda: node.app.engine.holds_lease and node.app.engine.epoch > epoch)


async def test_a_connection_that_is_cut_while_the_loop_is_blocked_is_made_again(postgres: str):
    async with behind_network(postgres) as (network, node):
        epoch = node.app.engine.epoch
        node.block()
        made = len(network.connections)
        network.cut()
        network.mend()
        await held_for(node, 3 * LEASE / 1000)
        assert len(network.connections) > made
        node.free()
        await held_for(node, 0.5)
        assert node.app.engine.epoch == epoch


async def test_a_lease_is_renewed_again_after_the_server_was_started_again(fragile_server: FragileServer):
    async with behind_network(fragile_server.address) as (_, node):
        node.block()
        await asyncio.to_thread(fragile_server.stop)
        await wait_until(lambda: not node.app.engine.holds_lease)
        await asyncio.to_thread(fragile_server.start)
        node.free()
        await wait_until(lambda: node.app.engine.holds_lease)
        node.block()
        await held_for(node, 2 * LEASE / 1000)


# The end


async def connections(database: str) -> int:
    """How many connections the database has, but this one."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    found: int = (await fetch(database, query))[0][0]
    return found


async def test_an_app_that_is_closed_leaves_neither_a_thread_nor_a_connection(postgres: str):
    app = App(postgres, config=Config(**QUICK))
    for _ in range(2):
        async with running(app):
            await wait_until(lambda: lease_threads() == ["horae:lease"])
        assert lease_threads() == []

    async def is_alone() -> bool:
        return await connections(postgres) == 0

    await wait_until(is_alone)


def test_an_app_without_an_event_loop_leaves_no_thread_either(postgres: str):
    with SyncApp(postgres, config=Config(**QUICK)) as app:
        app.start()
        wait_for(lambda: lease_threads() == ["horae:lease"])
    assert lease_threads() == []


async def test_an_app_can_be_closed_while_the_database_does_not_answer(postgres: str):
    async with behind_network(postgres) as (network, node):
        await wait_until(lambda: lease_threads() == ["horae:lease"])
        network.hold()
        node.start_ending()
        await wait_until(lambda: lease_threads() == [])


async def test_an_app_on_sqlite_renews_nothing_in_a_thread(tmp_path: Path):
    async with running(App(f"sqlite:///{tmp_path / 'horae.db'}")) as app:
        await wait_until(lambda: app.program.running)
        await asyncio.sleep(0)
        assert lease_threads() == []
