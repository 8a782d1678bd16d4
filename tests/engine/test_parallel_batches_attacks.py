"""What a step of several transactions must survive: lost answers, a lease that ends in between, a shutdown in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from horae import App, Config, Context, Overlap, Policies
from horae.errors import StoreUnavailableError
from horae.store.port import Transaction
from horae.store.postgres import PostgresStore
from tests.support.nodes import fetch, step, waits_for_lock
from tests.support.wait import wait_until


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is due is a herd."""
    monkeypatch.setattr(PostgresStore, "batch", 1)


class Line:
    """An app's connection to its database, which can be cut at a bad moment.

    A transaction that decides is known by its query for what is due, one that records results by the schedules that it locks first.
    """

    def __init__(self, app: App) -> None:
        self._plain = app._store.transaction
        self.decisions_answered = True
        """Whether this node gets the answer to commits of decisions."""
        self.records = True
        """Whether results can be recorded."""
        self.numbers = True
        """Whether a node can get a number."""
        app._store.transaction = self._transaction  # type: ignore[method-assign]

    def cut(self) -> None:
        self.decisions_answered = self.records = False

    def mend(self) -> None:
        self.decisions_answered = self.records = True

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Transaction]:
        asked: list[str] = []
        async with self._plain() as transaction:
            _listen_in(transaction, asked)
            yield transaction
            if ("lock" in asked and not self.records) or ("next_number" in asked and not self.numbers):
                raise StoreUnavailableError("cut before the commit")
        if "due" in asked and not self.decisions_answered:
            raise StoreUnavailableError("cut before the answer")


def _listen_in(transaction: Transaction, asked: list[str]) -> None:
    plain = transaction.rows

    async def rows(name: str, /, **values: Any) -> Any:
        asked.append(name)
        return await plain(name, **values)

    transaction.rows = rows  # type: ignore[method-assign]


@asynccontextmanager
async def locked(database: str, schedule_id: str) -> AsyncIterator[None]:
    """Another transaction has locked a schedule."""
    connection = await asyncpg.connect(database)
    try:
        async with connection.transaction():
            await connection.execute("SELECT 1 FROM due WHERE schedule_key = $1 FOR UPDATE", schedule_id)
            yield
    finally:
        await connection.close()


def app_of(database: str, begun: list[tuple[str, int]], **more: Any) -> App:
    """A node whose runs end at once."""
    app = App(database, config=Config(**more))

    @app.action("work")
    async def work(context: Context) -> None:
        begun.append((context.schedule_id, context.attempt))

    return app


async def create(app: App, *names: str) -> None:
    for name in names:
        policies = Policies(overlap=Overlap.ALLOW_ALL)
        await app.schedules.create(name, "0 0 1 1 *", "work", policies=policies)


async def test_what_a_lost_commit_claimed_is_launched_however_many_ends_wait_to_be_recorded(postgres: str):
    begun: list[tuple[str, int]] = []
    async with app_of(postgres, begun, concurrency=1) as app:
        line = Line(app)
        await create(app, "a", "b")
        await app.schedules.trigger("a")
        await step(app)
        await wait_until(lambda: len(app.worker.ended()) == 1)
        await app.schedules.trigger("b")
        line.cut()  # the end of one is not recorded, and another is claimed without the node knowing it
        with pytest.raises(StoreUnavailableError):
            await step(app)
        line.mend()
        for _ in range(3):
            await step(app)
        assert begun == [("a", 1), ("b", 1)]


async def test_what_a_lost_commit_claimed_is_not_launched_by_a_node_that_has_joined_anew(postgres: str):
    begun: list[tuple[str, int]] = []
    async with app_of(postgres, begun) as app:
        line = Line(app)
        await create(app, "s")
        await app.schedules.trigger("s")
        line.cut()
        with pytest.raises(StoreUnavailableError):
            await step(app)
        line.mend()
        async with locked(postgres, "s"):
            stepping = asyncio.create_task(app.engine.step(app.now()))
            await wait_until(lambda: waits_for_lock(postgres))  # it knows what it has to launch
            await fetch(postgres, "UPDATE node SET deadline = clock_timestamp() - interval '1 second'")
            house = asyncio.create_task(app.engine.renew_and_maintain(app.now()))
            await wait_until(
                lambda: waits_for_lock(postgres, 2)
            )  # joined anew, and takes it from the old one
        await asyncio.gather(stepping, house)
        for _ in range(3):
            await step(app)
            await asyncio.sleep(0.01)
        assert begun == [("s", 2)]


async def test_a_lease_that_is_known_to_be_lost_is_not_believed_any_more(postgres: str):
    async with app_of(postgres, []) as app:
        await fetch(postgres, "UPDATE node SET deadline = clock_timestamp() - interval '1 second'")
        Line(app).numbers = False  # and it cannot join anew
        with pytest.raises(StoreUnavailableError):
            await app.engine.renew_and_maintain(app.now())
        assert not app.engine.holds_lease


async def test_a_context_that_is_left_while_it_runs_waits_for_the_step_that_is_under_way(
    postgres: str, caplog: pytest.LogCaptureFixture
):
    begun, go_on = asyncio.Event(), asyncio.Event()
    app = App(postgres)

    @app.action("work")
    async def work(context: Context) -> None:
        begun.set()
        await go_on.wait()

    await app.__aenter__()
    running = asyncio.create_task(app.serve())
    await create(app, "s")
    await app.schedules.trigger("s")
    await begun.wait()
    async with locked(postgres, "s"):
        go_on.set()
        await wait_until(lambda: waits_for_lock(postgres))  # its end is being recorded
        leaving = asyncio.create_task(app.__aexit__(None, None, None))
        await asyncio.sleep(0.1)
    await leaving
    assert running.done()
    assert running.exception() is None
    assert app.worker.ended() == []
    assert await fetch(postgres, "SELECT status, attempt FROM run") == [("succeeded", 1)]
    assert await fetch(postgres, "SELECT count(*) FROM node") == [(0,)]
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_what_a_commit_claimed_that_came_through_late_is_launched_as_well(postgres: str):
    begun: list[tuple[str, int]] = []
    async with app_of(postgres, begun) as app:
        await create(app, "s")
        await app.schedules.trigger("s")
        plain, landed = app._store.transaction, asyncio.Event()
        late: list[asyncio.Task[Any]] = []

        @asynccontextmanager
        async def lost_sight_of() -> AsyncIterator[Transaction]:
            async def land() -> None:
                await landed.wait()
                await manager.__aexit__(None, None, None)

            manager = plain()
            yield await manager.__aenter__()
            late.append(asyncio.create_task(land()))
            raise StoreUnavailableError("the connection was lost in the middle of the commit")

        app._store.transaction = lost_sight_of  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailableError):
            await step(app)
        app._store.transaction = plain  # type: ignore[method-assign]
        await step(app)  # it reads what was claimed, and finds nothing yet
        landed.set()
        await asyncio.gather(*late)
        assert begun == []
        await step(app)
        await wait_until(lambda: begun == [("s", 1)])
