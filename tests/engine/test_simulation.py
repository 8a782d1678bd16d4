"""The real engine, with crashes between any two calls of the store, and a checker of its own.

Every example is a history: schedules with some policies, time that passes, pauses, triggers, edits, and nodes that die in the
middle of a step. Whatever happened, the ledger must add up: each slot decided exactly once, each with an outcome.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.app import Schedules
from horae.engine.engine import Engine
from horae.executor.function import Context, FunctionExecutor
from horae.model import (
    AUTOMATIC,
    OPEN,
    CatchUp,
    CatchUpPolicy,
    OnResume,
    Overlap,
    Policies,
    RetryPolicy,
    Run,
    Status,
)
from horae.policy.lifecycle import ENDED
from horae.spec import Spec
from horae.store.port import Transaction
from horae.store.sqlite import SqliteStore
from horae.testing import VirtualClock

START = datetime(2026, 3, 1, tzinfo=UTC)


class Crash(Exception):  # noqa: N818 - it is no error, it is fate
    """The node is gone."""


class FragileStore(SqliteStore):
    """A store whose caller dies at the n-th call from now."""

    calls_left: int | None = None

    async def work(self, work: Any) -> Any:
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                self.calls_left = None
                raise Crash
        return await super().work(work)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with super().transaction() as transaction:
            yield transaction


class World:
    """One store, one clock, and a node that may die and be followed by another."""

    def __init__(self, seconds: float, failing: int) -> None:
        self.clock = VirtualClock(START)
        self.store = FragileStore(":memory:", inline=True)
        self.seconds, self.failing = seconds, failing
        self.called: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.schedules = Schedules(self.store, self.now, {"work": self.work}, lambda: None)
        self.begin()

    def now(self) -> int:
        return int(self.clock.now().timestamp() * 1000)

    def begin(self) -> None:
        self.running.clear()
        self.executor = FunctionExecutor({"work": self.work}, lambda: None)
        self.engine = Engine(self.store, self.executor)

    async def work(self, context: Context) -> int:
        name = context.schedule_id
        self.called[context.run_id] += 1
        self.running[name] += 1
        self.most[name] = max(self.most[name], self.running[name])
        try:
            if self.seconds:
                await self.clock.sleep(self.seconds)
            if self.failing and context.nominal.minute % self.failing == 0 and context.attempt == 1:
                raise RuntimeError("as planned")
        finally:
            self.running[name] -= 1
        return context.attempt

    async def restart(self) -> None:
        """The node is gone with everything it was doing; another one joins."""
        tasks = self.executor.tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.begin()
        try:
            await self.engine.join(self.now())
        except Crash:
            await self.restart()

    async def settle(self) -> int | None:
        while True:
            now = self.now()
            try:
                wake = await self.engine.step(now)
            except Crash:
                await self.restart()
                continue
            for _ in range(3):
                await asyncio.sleep(0)
            if (wake is None or wake > now) and not self.executor.finished():
                return wake

    async def pass_time(self, seconds: float) -> None:
        target = self.clock.now() + timedelta(seconds=seconds)
        while True:
            wake = await self.settle()
            at = None if wake is None else datetime.fromtimestamp(wake / 1000, UTC)
            following = [t for t in (at, self.clock.next_sleeper()) if t is not None and t <= target]
            if not following:
                break
            self.clock.move_to(min(following))
        self.clock.move_to(target)
        await self.settle()


POLICIES = st.builds(
    Policies,
    overlap=st.sampled_from(list(Overlap)),
    max_concurrent=st.integers(1, 2),
    catch_up=st.builds(CatchUpPolicy, mode=st.sampled_from(list(CatchUp)), window=st.sampled_from([None, 0, 90_000])),
    on_resume=st.sampled_from(list(OnResume)),
    retry=st.builds(RetryPolicy, attempts=st.integers(1, 3), first_delay=st.sampled_from([0, 5000, 70_000])),
    max_pending=st.sampled_from([1, 3, 1000]),
    at_most_once=st.booleans(),
)  # fmt: skip
SPECS = st.sampled_from(
    [
        {"crons": ["* * * * *"]},
        {"crons": ["*/3 * * * *"], "jitter": "2m"},
        {"intervals": [{"every": "40s"}], "jitter": {"span": "15s", "centred": True}},
        {"crons": ["* * * * *"], "exclude": [{"minute": "*/2", "hour": "*"}]},
    ]
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(1, 400)),
        st.tuples(st.just("outage"), st.integers(1, 2000)),
        st.tuples(st.just("crash"), st.integers(0, 25)),
        st.tuples(st.just("pause"), st.just(0)),
        st.tuples(st.just("resume"), st.just(0)),
        st.tuples(st.just("trigger"), st.just(0)),
    ),
    min_size=3,
    max_size=15,
)


async def live(
    world: World, events: list[tuple[str, int]], policies: Policies, document: dict[str, Any]
) -> None:
    await world.store.open(lambda: None)
    await world.engine.join(world.now())
    await world.schedules.create("s", document, "work", policies=policies)
    for event, number in events:
        if event == "pass":
            await world.pass_time(number)
        elif event == "outage":  # nobody is there while time goes by
            await world.restart()
            world.clock.move_to(world.clock.now() + timedelta(seconds=number))
        elif event == "crash":
            world.store.calls_left = number
        else:
            world.store.calls_left = None
            await getattr(world.schedules, event)("s")
    world.store.calls_left = None
    await world.schedules.resume("s")
    await world.pass_time(4000)


async def ledger(world: World) -> tuple[list[Run], list[int], int, int]:
    async with world.store.transaction() as transaction:
        runs = await transaction.runs("s", 100_000)
        ranges = await transaction.passed_over("s", 100_000)
        (schedule,) = await transaction.schedules(["s"])
    spec = Spec.parse(schedule.spec)
    passed = [n for each in ranges for n in spec.instants(each.first - 1, each.last, 100_000)]
    assert len(passed) == sum(each.count for each in ranges)
    return runs, passed, schedule.created_at // 1000, schedule.cursor


@pytest.mark.contract("CRON-06", "GRNT-07", "SCHD-26")
@given(
    SPECS,
    POLICIES,
    st.sampled_from([0, 30, 100, 700]),
    st.sampled_from([0, 2]),
    EVENTS,
)
def test_the_ledger_adds_up_whatever_happens(
    document: dict[str, Any], policies: Policies, seconds: float, failing: int, events: list[tuple[str, int]]
):
    async def story() -> None:
        world = World(seconds, failing)
        await live(world, events, policies, document)
        runs, passed, created, cursor = await ledger(world)
        automatic = [run.nominal for run in runs if run.origin == AUTOMATIC]
        spec = Spec.parse(document)
        # Each slot is decided exactly once, and none is forgotten.
        assert sorted(automatic + passed) == spec.instants(created, cursor, 100_000)
        # What started has an outcome or is still open; what never started has none.
        assert all(run.status in ENDED or run.status in OPEN for run in runs)
        for run in runs:
            assert world.called[run.id] == run.attempt
            assert run.attempt == 0 or run.status not in {Status.SKIPPED, Status.DROPPED}
            if policies.at_most_once and run.status is Status.SUCCEEDED:
                assert run.attempt <= policies.retry.attempts
        # A schedule never overlaps itself unless it was allowed to.
        if policies.overlap is not Overlap.ALLOW_ALL:
            assert world.most["s"] <= policies.max_concurrent
        tasks = world.executor.tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await world.store.close()

    asyncio.run(story())
