"""A decider from outside, with its own table, on both stores: what every decider gets from the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from horae import App, Config, Context, Run
from horae.engine.decider import CONTENTION_WAIT_MS, Batch, Decider
from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import AUTOMATIC, AttemptEnd, AttemptResult, Overlap, ScheduleKey, Status
from horae.store.port import Transaction
from horae.testing import TimeMachine
from tests.support.machine import START
from tests.support.nodes import end_leases, keeping_time, step, waits_for_lock
from tests.support.postgres import commits_wait
from tests.support.wait import wait_until

TABLE = """CREATE TABLE reminder (
    id text PRIMARY KEY, due_at bigint, status text, attempt integer, epoch bigint, result text
)"""
QUICK = Config(lease_ms=60_000, housekeeping_ms=500, terminate_ms=200, drain_ms=1000)
SHORT = msgspec.structs.replace(QUICK, lease_ms=5000)
DUE = "SELECT id, attempt, epoch FROM reminder WHERE status = 'waiting' AND due_at <= :now"


class Reminders(Decider):
    """Does what each reminder is for when it is due, again if that fails."""

    name = "reminders"

    async def decide(self, batch: Batch) -> int | None:
        lock = " FOR UPDATE SKIP LOCKED" if self.node.store.lease else ""  # SQLite has one writer at a time
        for row in await batch.transaction.execute(DUE + lock, now=batch.now):
            if (run := batch.claim(run_of(*row))) is not None:
                await batch.transaction.execute(
                    "UPDATE reminder SET status = 'running', attempt = :attempt, epoch = :epoch WHERE id = :id",
                    id=run.id, attempt=run.attempt, epoch=run.epoch,
                )  # fmt: skip
        next_due = await batch.transaction.execute(
            "SELECT min(due_at) FROM reminder WHERE status = 'waiting'"
        )
        return next_due[0][0]  # type: ignore[no-any-return]

    async def record(self, transaction: Transaction, results: Sequence[AttemptResult], now: int) -> None:
        for each in results:
            await transaction.execute(
                "UPDATE reminder SET status = :status, result = :result"
                " WHERE id = :id AND epoch = :epoch AND attempt = :attempt AND status = 'running'",
                id=each.run.id, epoch=each.run.epoch, attempt=each.run.attempt, result=each.result,
                status="done" if each.ending is AttemptEnd.RETURNED else "waiting",
            )  # fmt: skip

    async def claimed(self, transaction: Transaction, epochs: Sequence[int], limit: int) -> list[Run]:
        claims = (
            "SELECT id, attempt, epoch FROM reminder WHERE status = 'running' AND epoch = :epoch LIMIT :limit"
        )
        return [
            run_of(*row)
            for epoch in epochs
            for row in await transaction.execute(claims, epoch=epoch, limit=limit)
        ]


def run_of(name: str, attempt: int, epoch: int) -> Run:
    return Run(
        id=name, schedule_key=ScheduleKey(name), generation=1, nominal_ms=0, origin=AUTOMATIC, overlap=Overlap.SKIP,
        status=Status.STARTING, fire_ms=0, start_at_ms=0, action="remind", action_id=name, attempt=attempt, epoch=epoch,
    )  # fmt: skip


class Node(App):
    """An app with reminders, which notes what they do."""

    def __init__(
        self, database: str, *, deciders: Sequence[type[Decider]] = (Reminders,), **more: Any
    ) -> None:
        super().__init__(database, **more)
        self.done: list[tuple[str, int]] = []
        for decider in deciders:
            self.add_decider(decider)
        self.action("remind")(self._remind)

    async def _remind(self, context: Context) -> str:
        self.done.append((context.run_id, context.attempt))
        return f"{context.run_id} was done"

    async def create(self, *names: str, due_in: int = 0) -> int:
        due_at = self.now() + due_in
        async with self.transaction() as transaction:
            for name in names:
                await transaction.execute(
                    "INSERT INTO reminder VALUES (:id, :due_at, 'waiting', 0, 0, NULL)",
                    id=name,
                    due_at=due_at,
                )
        self.wake()
        return due_at

    async def reminders(self) -> list[tuple[Any, ...]]:
        async with self.reading() as transaction:
            found = await transaction.execute("SELECT id, status, attempt, result FROM reminder ORDER BY id")
        return [tuple(row) for row in found]

    async def step(self) -> int | None:
        return await step(self)

    async def step_to_the_end(self) -> None:
        async def is_done() -> bool:
            await self.step()
            return all(status == "done" for _, status, *_ in await self.reminders())

        await wait_until(is_done)


@pytest.fixture
async def database(database: str) -> str:
    """A database that has the table of the decider."""
    async with App(database) as app, app.transaction() as transaction:
        await transaction.execute(TABLE)
    return database


async def test_what_is_due_is_claimed_and_run_once_and_its_result_comes_back(database: str):
    async with Node(database) as node:
        await node.create("a", "b")
        later = await node.create("c", due_in=3_600_000)
        await node.step()
        assert [row[:3] for row in await node.reminders()] == [
            ("a", "running", 1), ("b", "running", 1), ("c", "waiting", 0),
        ]  # fmt: skip
        await wait_until(lambda: len(node.worker.results("reminders")) == 2)
        assert node.worker.results("schedules") == []
        assert await node.step() == later
        assert await node.reminders() == [
            ("a", "done", 1, '"a was done"'), ("b", "done", 1, '"b was done"'), ("c", "waiting", 0, None),
        ]  # fmt: skip
        assert sorted(node.done) == [("a", 1), ("b", 1)]


async def test_the_driver_sleeps_until_a_decider_wants_to_be_woken(database: str):
    async with Node(database, config=Config(tick_ms=3_600_000)) as node, keeping_time(node):
        due_at = await node.create("a", due_in=700)
        await wait_until(lambda: node.engine.wake_at == due_at)
        assert node.done == []
        await wait_until(lambda: node.done)
        assert node.now() >= due_at
    async with Node(database) as again:  # what had ended was recorded, at the latest when the first one ended
        assert await again.reminders() == [("a", "done", 1, '"a was done"')]
        assert [each.epoch for each in await again.nodes()] == [again.engine.epoch]


async def test_a_virtual_clock_stops_at_what_a_decider_waits_for():
    async with TimeMachine(START) as machine:
        seen = []

        class Hourly(Reminders):
            """Has nothing to run, and wants to be woken each hour."""

            async def decide(self, batch: Batch) -> int | None:
                hour = 3_600_000
                seen.append(batch.now % hour)
                return (batch.now // hour + 1) * hour

        machine.app.add_decider(Hourly)
        await machine.advance(hours=3)
        assert seen.count(0) >= 3


async def test_two_nodes_run_each_thing_once(database: str):
    async with Node(database) as one, Node(database) as other:
        names = [f"{number:02}" for number in range(40)]
        await one.create(*names)
        await asyncio.gather(one.step_to_the_end(), other.step_to_the_end())
        assert sorted(one.done + other.done) == [(name, 1) for name in names]


async def test_a_failure_is_recorded_by_the_decider_that_launched_it(database: str):
    async with Node(database) as node:
        begun: list[int] = []

        async def fail_once(context: Context) -> str:
            begun.append(context.attempt)
            if context.attempt == 1:
                raise RuntimeError("not yet")
            return "then"

        node.functions.register("remind", fail_once, replace=True)

        await node.create("a")
        await node.step_to_the_end()
        assert begun == [1, 2]
        assert await node.reminders() == [("a", "done", 2, '"then"')]


async def test_what_a_node_cannot_run_waits_for_one_that_can(database: str):
    unable = App(database)
    unable.add_decider(Reminders)
    async with unable, Node(database) as able:
        await able.create("a", due_in=-500)  # due by the clocks of both, which may differ a little
        now = unable.now()
        wake = await unable.engine.step(now)
        assert wake is not None
        assert wake >= now + CONTENTION_WAIT_MS
        assert [row[1] for row in await able.reminders()] == ["waiting"]
        await able.step_to_the_end()
        assert able.done == [("a", 1)]


async def test_a_node_that_has_lost_its_lease_launches_nothing_and_gives_back_what_it_claimed(database: str):
    async with Node(database) as node:
        await node.create("a")
        lease = node.engine._membership._lease  # it has run out, as far as this node can know
        lease.term = msgspec.structs.replace(lease.term, until=0.0, ends_at=0.0)
        await node.step()
        assert [row[:3] for row in await node.reminders()] == [("a", "running", 1)]
        await asyncio.sleep(0.05)
        assert node.done == []
        await node.engine.renew(node.now())
        await node.step_to_the_end()
        assert node.done == [("a", 2)]


async def test_a_node_that_others_have_forgotten_claims_nothing(database: str):
    async with Node(database) as node:
        await node.create("a")
        async with node.transaction() as transaction:
            await transaction.execute("DELETE FROM node")
        with pytest.raises(StoreUnavailableError, match="taken it for dead"):
            await node.step()
        assert [row[:3] for row in await node.reminders()] == [("a", "waiting", 0)]
        assert node.done == []


async def test_a_node_whose_clock_is_off_claims_nothing(postgres: str):
    async with Node(postgres) as node:
        async with node.transaction() as transaction:
            await transaction.execute(TABLE)
        await node.create("a", due_in=3_000_000)
        with pytest.raises(ClockOffError):
            await node.engine.step(node.now() + 3_600_000)
        assert [row[:3] for row in await node.reminders()] == [("a", "waiting", 0)]
        assert node.done == []


async def test_a_node_whose_steps_take_long_claims_nonetheless(
    postgres: str, monkeypatch: pytest.MonkeyPatch
):
    """The database's time is compared with the node's as it is then, not with when the step began."""
    async with Node(postgres) as node:
        async with node.transaction() as transaction:
            await transaction.execute(TABLE)
        await node.create("a")
        plain = node._store.transaction

        @asynccontextmanager
        async def slow() -> AsyncIterator[Transaction]:
            async with plain() as transaction:
                await transaction.execute("SELECT pg_sleep(1.2)")
                yield transaction

        with monkeypatch.context() as patch:
            patch.setattr(node._store, "transaction", slow)
            await node.step()
        await node.step_to_the_end()
        assert node.done == [("a", 1)]


async def test_what_a_lost_commit_claimed_is_launched_once(database: str, monkeypatch: pytest.MonkeyPatch):
    async with Node(database) as node:
        await node.create("a")
        with monkeypatch.context() as patch:
            patch.setattr(node._store, "transaction", answers_lost(node))
            with pytest.raises(StoreUnavailableError):
                await node.step()
        assert [row[1] for row in await node.reminders()] == ["running"]
        assert node.done == []
        await node.step_to_the_end()
        assert node.done == [("a", 1)]


def answers_lost(node: App) -> Any:
    plain = node._store.transaction

    @asynccontextmanager
    async def transaction() -> AsyncIterator[Transaction]:
        async with plain() as transaction:
            yield transaction
        raise StoreUnavailableError("the answer to the commit was lost")

    return transaction


async def test_another_node_takes_over_from_a_dead_one(database: str):
    dead = await Node(database, config=QUICK).__aenter__()
    dead.worker.launch = lambda *_: None  # type: ignore[method-assign]
    await dead.create("a")
    await dead.step()
    await dead.close()  # it dies between its commit and the launch
    await end_leases(database, dead.engine.epoch)
    async with Node(database, config=QUICK) as other:
        await wait_until(lambda: is_alone(other))
        assert [row[:3] for row in await other.reminders()] == [("a", "waiting", 1)]
        await other.step_to_the_end()
        assert other.done == [("a", 2)]


async def is_alone(node: App) -> bool:
    await node.engine.renew_and_maintain(node.now())
    return len(await node.nodes()) == 1


async def test_a_node_that_is_taken_for_dead_while_it_claims_is_not_forgotten_before_its_claim(postgres: str):
    async with App(postgres) as app, app.transaction() as transaction:
        await transaction.execute(TABLE)
    async with Node(postgres, config=SHORT) as other:
        late = await Node(postgres, config=SHORT).__aenter__()
        await late.create("a")
        async with commits_wait("reminder", postgres):  # all is written and checked when its lease ends
            step = asyncio.create_task(late.step())
            await asyncio.sleep(SHORT.lease_ms / 1000)
            await other.engine.renew(other.now())
            taking_over = asyncio.create_task(other.engine.maintain(other.now()))
            await wait_until(lambda: taking_over.done() or waits_for_lock(postgres, 2))
        await step
        await late.close()
        await taking_over
        await wait_until(lambda: is_alone(other))
        await other.step_to_the_end()
        assert other.done == [("a", 2)]


async def test_a_node_that_ends_records_what_still_runs_and_leaves_nothing_behind(database: str):
    async with Node(database) as node:
        go_on = asyncio.Event()

        async def wait(context: Context) -> str:
            await go_on.wait()
            return "at last"

        node.functions.register("remind", wait, replace=True)

        await node.create("a")
        await node.step()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
    async with Node(database) as again:
        assert await again.reminders() == [("a", "done", 1, '"at last"')]
        assert len(await again.nodes()) == 1


class Broken(Reminders):
    """Cannot decide anything."""

    name = "broken"

    async def decide(self, batch: Batch) -> int | None:
        raise RuntimeError("a mistake")


async def test_a_decider_that_raises_keeps_no_other_from_its_step(database: str):
    async with Node(database, deciders=(Broken, Reminders)) as node:
        await node.create("a")
        later = await node.create("b", due_in=3_600_000)
        with pytest.raises(RuntimeError, match="a mistake"):
            await node.step()
        await wait_until(lambda: node.done == [("a", 1)])
        assert node.engine.wake_at == later  # the driver is in time for the others
        wake = await node.step()  # it pauses for tick_ms
        assert wake is not None
        assert wake <= node.now() + node.config.tick_ms


async def test_an_app_continues_beside_a_decider_that_raises(database: str, caplog: pytest.LogCaptureFixture):
    config = Config(tick_ms=3_600_000)
    async with Node(database, deciders=(Broken, Reminders), config=config) as node, keeping_time(node):
        await node.create("a", due_in=300)
        await node.create("b", due_in=600)
        await wait_until(lambda: sorted(node.done) == [("a", 1), ("b", 1)])
        assert "the last step failed" in (await node.readiness()).status
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert told == ["a step failed, and is tried again"]  # once every tick_ms


async def test_a_node_whose_schema_is_too_old_records_results_and_claims_nothing(database: str):
    async with Node(database) as node:
        await node.create("a")
        await node.step()
        await wait_until(node.worker.ended)
        await node.create("b")
        node.engine._membership.superseded = True
        assert await node.step() is None
        assert [row[1] for row in await node.reminders()] == ["done", "waiting"]


async def test_two_deciders_of_one_name_are_refused():
    app = App(":memory:")
    app.add_decider(Reminders)
    with pytest.raises(ValueError, match='a decider "reminders" already'):
        app.add_decider(Reminders)
