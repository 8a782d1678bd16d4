"""Maintenance: what is broken is repaired and reported; what is finished is kept, and then removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from horae import App, Filter
from horae.engine.maintenance import MaintenanceReport
from horae.errors import ScheduleNotFoundError
from horae.model import Overlap, Policies, Retention, RetryPolicy, Status
from horae.store.sqlite import SqliteStore
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, at

WEEK = 7 * 24 * 60


async def edit(machine: TimeMachine, statement: str) -> None:
    """Change the database by hand, which no program should do."""
    store = machine.app._store
    assert isinstance(store, SqliteStore)
    await store.work(lambda c: c.execute(statement))


async def renew_and_maintain(machine: TimeMachine, minutes: float) -> MaintenanceReport:
    """A round of maintenance so many minutes after the beginning, with nothing else happening on the way."""
    machine.clock.move_to(at(minutes))
    return await machine.app.engine.renew_and_maintain(machine.app.now())


@pytest.mark.contract("GRNT-12")
async def test_a_schedule_that_lost_its_next_time_is_repaired_and_reported(
    machine: TimeMachine, hello: Recorder
):
    for name in ("broken", "fine", "paused"):
        await machine.app.schedules.create(name, "*/10 * * * *", "hello", paused=name == "paused")
    await machine.advance(seconds=1)
    await edit(machine, "UPDATE due SET next_at_ms = NULL WHERE schedule_key = 'broken'")
    assert (await renew_and_maintain(machine, 4.9)).repaired == 0  # it looks every five minutes
    assert (await renew_and_maintain(machine, 5)).repaired == 1
    assert (await renew_and_maintain(machine, 10)).repaired == 0
    await machine.advance(minutes=1)
    assert hello.nominal == [at(10), at(10)]


@pytest.mark.contract("GRNT-12")
async def test_it_is_repaired_at_the_start_too(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    for minute in (0, 15):
        machine = TimeMachine(at(minute))
        machine.app = App(database, clock=machine.clock)
        hello = machine.app.action("hello")(Recorder(machine))
        async with machine:
            if minute == 0:
                await machine.app.schedules.create("s", "*/10 * * * *", "hello")
                await edit(machine, "UPDATE due SET next_at_ms = NULL")
            else:
                await machine.advance(minutes=5)
                assert hello.called == [(at(10), at(15)), (at(20), at(20))]


@pytest.mark.contract("GRNT-12")
async def test_a_next_time_that_is_long_past_is_no_obstacle(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "*/10 * * * *", "hello")
    await edit(machine, "UPDATE due SET next_at_ms = 1")
    await machine.advance(minutes=10)
    assert hello.nominal == [at(10)]


@pytest.mark.contract("GRNT-12")
@pytest.mark.parametrize("what", ["trigger", "retry", "backfill"])
async def test_a_start_that_waits_behind_nothing_is_found(machine: TimeMachine, what: str):
    work = machine.app.action("work")(Recorder(machine, fails=1))
    spec = {"times": [at(1).isoformat()]}
    policies = Policies(retry=RetryPolicy(attempts=2, initial_delay="1m"), overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.create("s", spec, "work", policies=policies)
    await machine.advance(minutes=1 if what == "retry" else 5)
    begun = len(work.called)
    if what == "trigger":
        await machine.app.schedules.trigger("s")
    if what == "backfill":
        await machine.app.backfills.start("s", at(0), at(2))
    await edit(machine, "UPDATE due SET next_at_ms = NULL")
    assert (await renew_and_maintain(machine, 10)).repaired == 1
    await machine.advance(minutes=1)
    assert len(work.called) == begun + 1


@pytest.mark.contract("SCHD-25")
async def test_a_finished_schedule_is_kept_for_a_week_after_the_last_event(
    machine: TimeMachine, hello: Recorder
):
    await machine.app.schedules.create("s", {"times": [at(60).isoformat()]}, "hello")
    await machine.advance(minutes=60)
    completed = (await machine.app.schedules.get("s")).state.completed_at_ms
    assert completed == int(at(60).timestamp() * 1000)
    await machine.advance(minutes=WEEK - 10)
    await machine.app.schedules.trigger("s")  # something happens: its week begins anew
    await machine.advance(minutes=WEEK - 1)
    assert (await machine.app.schedules.get("s")).state.completed_at_ms is not None
    await machine.advance(minutes=1)
    with pytest.raises(ScheduleNotFoundError):
        await machine.app.schedules.get("s")
    assert len(await machine.app.runs.list("s")) == 2  # the ledger stays


@pytest.mark.contract("SCHD-25")
@pytest.mark.parametrize("why", ["paused", "empty", "for ever", "paused at its limit", "running"])
async def test_what_is_not_finished_is_kept(machine: TimeMachine, why: str):
    machine.app.action("work")(Recorder(machine, 60 * 60 * 24 * 365 if why == "running" else 0))
    spec = {} if why == "empty" else {"times": [at(60).isoformat()]}
    await machine.app.schedules.create(
        "s", spec, "work", paused=why.startswith("paused"), remaining_actions=0 if "limit" in why else None,
        policies=Policies(finished_ttl=None) if why == "for ever" else Policies(),
    )  # fmt: skip
    await machine.advance(days=60)
    assert (await machine.app.schedules.get("s")).id == "s"


@pytest.mark.contract("SCHD-15", "SCHD-25")
@pytest.mark.parametrize("limit", [0, 2])
async def test_a_schedule_at_its_limit_is_finished_when_nothing_is_open(machine: TimeMachine, limit: int):
    machine.app.action("slow")(Recorder(machine, 90))
    await machine.app.schedules.create("s", "*/10 * * * *", "slow", remaining_actions=limit)
    await machine.advance(minutes=10 * limit, seconds=80)
    if limit:  # the last one is running
        assert (await machine.app.schedules.get("s")).state.completed_at_ms is None
        assert (await renew_and_maintain(machine, 10 * limit + 1.4)).repaired == 0
    await machine.advance(minutes=1)
    ended = at(10 * limit + 1.5) if limit else START
    assert (await machine.app.schedules.get("s")).state.completed_at_ms == int(ended.timestamp() * 1000)
    assert (await machine.app.schedules.describe("s")).next_times == ()
    machine.clock.move_to(ended + (at(WEEK - 1) - START))
    await machine.advance(seconds=30)
    assert (await machine.app.schedules.get("s")).state.completed_at_ms is not None
    await machine.advance(minutes=1)
    with pytest.raises(ScheduleNotFoundError):
        await machine.app.schedules.get("s")
    (gone,) = await machine.app.runs.unstarted_ranges("s")  # what went by at the limit is on record
    assert (gone.reason, gone.end_ms // 1000 - gone.start_ms // 1000) == (
        "limit_reached",
        600 * (gone.count - 1),
    )


@pytest.mark.contract("SCHD-15", "SCHD-25")
@pytest.mark.parametrize("to", [3, None])
async def test_raising_the_limit_takes_a_finished_schedule_back(
    machine: TimeMachine, hello: Recorder, to: int | None
):
    """What went by at the limit is gone."""
    await machine.app.schedules.create("s", "0 */4 * * *", "hello", remaining_actions=1)
    await machine.advance(days=6)
    assert (await machine.app.schedules.get("s")).state.completed_at_ms is not None
    raised = await machine.app.schedules.update("s", remaining_actions=to)
    assert raised.state.completed_at_ms is None
    day = 6 * 1440
    assert (await machine.app.schedules.describe("s")).next_times[:3] == (
        at(day + 240),
        at(day + 480),
        at(day + 720),
    )
    await machine.advance(minutes=721)
    assert hello.nominal == [at(240), at(day + 240), at(day + 480), at(day + 720)]
    assert ((await machine.app.schedules.get("s")).state.completed_at_ms is None) is (to is None)


@pytest.mark.contract("SCHD-25")
async def test_an_edit_brings_a_finished_schedule_back(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", {"times": [at(60).isoformat()]}, "hello")
    await machine.advance(days=6)
    await machine.app.schedules.update("s", "0 0 * * *")
    await machine.advance(days=6)
    assert len(hello.called) == 7
    assert (await machine.app.schedules.get("s")).state.completed_at_ms is None


async def test_a_schedule_whose_action_no_node_knows_needs_attention(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "0 * * * *", "hello")
    machine.app.functions.unregister("hello")
    await machine.advance(minutes=60, seconds=59)
    assert await machine.app.schedules.list(Filter(attention=True)) == []
    await machine.advance(minutes=2)
    (needy,) = await machine.app.schedules.list(Filter(attention=True))
    assert needy.state.attention == 'no living node can run the action "hello"'
    machine.app.action("hello")(hello)
    await machine.advance(minutes=1)
    assert hello.nominal == [at(60)]
    assert await machine.app.schedules.list(Filter(attention=True)) == []


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize(
    ("retention", "kept"), [(Retention(count=3), 3), (Retention(age="5m"), 5), (Retention(), 30)]
)
async def test_the_ledger_is_kept_for_its_retention(
    machine: TimeMachine, hello: Recorder, retention: Retention, kept: int
):
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=Policies(retention=retention))
    await machine.advance(minutes=30)
    runs = await machine.app.runs.list("s", 100)
    assert kept <= len(runs) <= kept + 1
    assert {run.status for run in runs} == {Status.SUCCEEDED}
    assert (await machine.app.schedules.counts("s")).started == 30  # what was counted stays counted
