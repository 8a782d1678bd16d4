"""Backfills on a virtual clock: what they make up, in which order, and what they ignore."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config, Context
from horae.errors import BackfillLimitError, BackfillNotFoundError, InvalidInputError, NaiveTimeError
from horae.model import (
    AUTOMATIC,
    BackfillStatus,
    CatchUp,
    CatchUpPolicy,
    Origin,
    OriginKind,
    Overlap,
    Policies,
    RetryPolicy,
    Status,
)
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, at

HOUR = 60
ALLOW = Policies(overlap=Overlap.ALLOW_ALL)


CONFIG = Config(max_buffer_size=20)


@pytest.mark.contract("SCHD-19")
@pytest.mark.parametrize("begin", [-2 * HOUR, 2 * HOUR], ids=["past", "future"])
async def test_a_range_is_made_up_with_both_ends_ascending(machine: TimeMachine, hello: Recorder, begin: int):
    await machine.app.schedules.create("s", "*/10 * * * *", "hello")
    backfill = await machine.app.backfills.start("s", at(begin), at(begin + 40), overlap=Overlap.BUFFER_ALL)
    await machine.advance(minutes=1)
    assert hello.called == [(at(begin + m), START) for m in (0, 10, 20, 30, 40)]
    done = await machine.app.backfills.get(backfill.id)
    assert (done.status, done.made, done.total) == (BackfillStatus.DONE, 5, 5)
    assert done.ended_at_ms == int(START.timestamp() * 1000)
    assert {run.origin for run in await machine.app.runs.list("s")} == {
        Origin(OriginKind.BACKFILL, backfill.id)
    }


@pytest.mark.contract("SCHD-19")
async def test_pause_limits_and_catch_up_do_not_hold_it_up(machine: TimeMachine, hello: Recorder):
    policies = Policies(overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(mode=CatchUp.NONE))
    await machine.app.schedules.create(
        "s", "* * * * *", "hello", policies=policies, paused=True, remaining_actions=0
    )
    await machine.app.backfills.start("s", at(-HOUR), at(-1))
    await machine.advance(minutes=1)
    assert hello.nominal == [at(m) for m in range(-HOUR, 0)]


@pytest.mark.contract("SCHD-19")
async def test_exclusions_and_the_window_hold(machine: TimeMachine, hello: Recorder):
    spec = {
        "crons": ["*/10 * * * *"],
        "exclude": [{"minute": "20-40", "hour": "*"}],
        "start_at": at(-55).isoformat(),
        "end_at": at(-5).isoformat(),
    }
    await machine.app.schedules.create("s", spec, "hello")
    preview = await machine.app.backfills.preview("s", at(-10 * HOUR), at(10 * HOUR))
    assert (preview.slots, preview.first, preview.last) == (2, at(-50), at(-10))
    assert hello.called == []  # a dry run
    assert await machine.app.backfills.list("s") == []
    await machine.app.backfills.start("s", at(-10 * HOUR), at(10 * HOUR), overlap=Overlap.ALLOW_ALL)
    await machine.advance(minutes=1)
    assert hello.nominal == [at(-50), at(-10)]


@pytest.mark.contract("SCHD-19")
async def test_a_slot_may_be_made_up_that_ran_already_and_again(machine: TimeMachine, hello: Recorder):
    """A slot is unique per origin: automatic, or this backfill."""
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=ALLOW)
    await machine.advance(minutes=1)
    for _ in range(2):
        await machine.app.backfills.start("s", at(1), at(1))
    await machine.advance(seconds=1)
    assert hello.nominal == [at(1)] * 3
    runs = await machine.app.runs.list("s")
    assert len({run.id for run in runs}) == len({run.origin for run in runs}) == 3


@pytest.mark.contract("SCHD-19")
async def test_it_has_its_own_overlap_input_author_and_note(machine: TimeMachine):
    seen: list[Any] = []

    @machine.app.action("note")
    async def note(context: Context) -> None:
        seen.append((context.input, context.key == context.run_id))
        await machine.sleep(seconds=1000)

    await machine.app.schedules.create("s", {"intervals": [{"every": "1m"}]}, "note", input="usual")
    await machine.app.backfills.start("s", at(-3), at(-1), input={"own": 1}, author="ann", note="again")
    await machine.app.backfills.start("s", at(-9), at(-8), overlap=Overlap.ALLOW_ALL)
    await machine.advance(seconds=1)
    assert seen == [({"own": 1}, True), ("usual", True), ("usual", True)]
    runs = [run for run in await machine.app.runs.list("s") if run.author == "ann"]
    assert [(run.status, run.reason, run.note) for run in reversed(runs)] == [
        (Status.RUNNING, "", "again"),
        (Status.SKIPPED, "overlap", "again"),  # the schedule's own policy, as it gave none
        (Status.SKIPPED, "overlap", "again"),
    ]


@pytest.mark.contract("SCHD-19", "SCHD-26")
async def test_it_makes_way_for_automatic_starts_and_loses_nothing(machine: TimeMachine):
    """The buffer takes twenty, so a backfill has ten places; automatic starts always find a free place."""
    slow = machine.app.action("slow")(Recorder(machine, 20))
    policies = Policies(overlap=Overlap.BUFFER_ALL)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    backfill = await machine.app.backfills.start("s", at(-HOUR), at(-1))
    most = 0
    for _ in range(90):
        await machine.advance(seconds=20)
        waiting = [run for run in await machine.app.runs.list("s", 100) if run.status is Status.PENDING]
        most = max(most, sum(run.origin != AUTOMATIC for run in waiting))
    assert 0 < most <= 10
    assert (await machine.app.backfills.get(backfill.id)).status is BackfillStatus.DONE
    made = [nominal for nominal in slow.nominal if nominal < START]
    assert made == [at(m) for m in range(-HOUR, 0)]
    automatic = [nominal for nominal in slow.nominal if nominal > START]
    assert automatic == [at(m) for m in range(1, len(automatic) + 1)]
    assert await machine.app.runs.unstarted_ranges("s") == []


@pytest.mark.contract("SCHD-19", "SCHD-32")
async def test_a_pass_takes_at_most_ten_of_each(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=ALLOW)
    first = await machine.app.backfills.start("s", at(-HOUR), at(-1))
    second = await machine.app.backfills.start("s", at(-2 * HOUR), at(-HOUR))
    await machine.app.engine.step(machine.app.now())
    made = [(await machine.app.backfills.get(each.id)).made for each in (first, second)]
    assert made == [5, 5]  # ten places for both
    await machine.advance(seconds=1)
    assert Counter(hello.nominal) == Counter(
        [at(m) for m in range(-HOUR, 0)] + [at(m) for m in range(-2 * HOUR, -HOUR + 1)]
    )
    assert [each.id for each in await machine.app.backfills.list("s")] == [second.id, first.id]


@pytest.mark.contract("SCHD-19")
async def test_it_continues_after_a_crash_where_it_was(tmp_path: Path):
    """Two processes, one after the other; the first lets go of the database in the middle, and says nothing."""
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    before = TimeMachine(START)
    before.app = App(database, clock=before.clock)
    async with before:
        before.app.action("hello")(Recorder(before))
        await before.app.schedules.create("s", "* * * * *", "hello", policies=ALLOW)
        backfill = await before.app.backfills.start("s", at(-HOUR), at(-1))
        for _ in range(3):
            await before.app.engine.step(before.app.now())
        assert (await before.app.backfills.get(backfill.id)).made == 30
    after = TimeMachine(START)
    after.app = App(database, clock=after.clock)
    hello = after.app.action("hello")(Recorder(after))
    async with after:
        await after.advance(seconds=1)
        assert (await after.app.backfills.get(backfill.id)).status is BackfillStatus.DONE
        runs = await after.app.runs.list("s", 100)
        assert [run.nominal_ms // 1000 for run in reversed(runs)] == [
            at(m).timestamp() for m in range(-HOUR, 0)
        ]
        assert {run.status for run in runs} == {Status.SUCCEEDED}
        assert set(hello.nominal) >= {at(m) for m in range(-30, 0)}


@pytest.mark.contract("SCHD-19")
async def test_it_can_be_cancelled(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 600))
    await machine.app.schedules.create(
        "s", "0 0 1 1 *", "slow", policies=Policies(overlap=Overlap.BUFFER_ALL)
    )
    await machine.app.schedules.update("s", "* * * * *")
    backfill = await machine.app.backfills.start("s", at(-HOUR), at(-1))
    await machine.advance(seconds=1)
    cancelled = await machine.app.backfills.cancel(backfill.id)
    assert (cancelled.status, cancelled.total) == (BackfillStatus.CANCELLED, HOUR)
    await machine.app.schedules.pause("s")
    await machine.advance(hours=1)
    assert slow.nominal == [at(-HOUR)]
    runs = [run for run in await machine.app.runs.list("s", 100) if run.origin != AUTOMATIC]
    became = Counter((run.status, run.reason) for run in runs)
    assert became == Counter(
        {(Status.SUCCEEDED, ""): 1, (Status.DROPPED, "backfill_cancelled"): cancelled.made - 1}
    )
    assert await machine.app.backfills.cancel(backfill.id) == await machine.app.backfills.get(backfill.id)


async def test_a_run_that_began_and_waits_for_its_next_attempt_is_cancelled_with_it(machine: TimeMachine):
    machine.app.action("flaky")(Recorder(machine, fails=1))
    policies = Policies(retry=RetryPolicy(attempts=2, initial_delay="1h"))
    await machine.app.schedules.create("s", "0 * * * *", "flaky", paused=True, policies=policies)
    backfill = await machine.app.backfills.start("s", at(-HOUR), at(-1))
    await machine.advance(seconds=1)
    (run,) = await machine.app.runs.list("s")
    assert run.status is Status.RETRYING
    await machine.app.backfills.cancel(backfill.id)
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.reason) == (Status.CANCELLED, "backfill_cancelled")


@pytest.mark.contract("SCHD-19")
async def test_a_finished_one_is_kept_for_the_retention(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "0 0 1 1 *", "hello")
    backfill = await machine.app.backfills.start("s", at(-3 * 365 * 1440), at(-1), overlap=Overlap.ALLOW_ALL)
    await machine.advance(days=89)
    assert (await machine.app.backfills.get(backfill.id)).made == 3
    await machine.advance(days=2)
    with pytest.raises(BackfillNotFoundError):
        await machine.app.backfills.get(backfill.id)


@pytest.mark.contract("SCHD-19")
async def test_what_cannot_be_a_range_is_refused(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    with pytest.raises(InvalidInputError, match="end is before start"):
        await machine.app.backfills.start("s", at(2), at(1))
    with pytest.raises(NaiveTimeError):
        await machine.app.backfills.start("s", at(1).replace(tzinfo=None), at(2))


@pytest.mark.contract("SCHD-19")
async def test_it_ends_with_its_schedule(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 600))
    await machine.app.schedules.create(
        "s", "* * * * *", "slow", policies=Policies(overlap=Overlap.BUFFER_ALL)
    )
    backfill = await machine.app.backfills.start("s", at(-HOUR), at(-1))
    await machine.advance(seconds=1)
    await machine.app.schedules.delete("s")
    await machine.advance(hours=1)
    assert (await machine.app.backfills.get(backfill.id)).status is BackfillStatus.CANCELLED
    assert slow.nominal == [at(-HOUR)]
    statuses = Counter(run.status for run in await machine.app.runs.list("s", 100))
    assert set(statuses) == {Status.SUCCEEDED, Status.DROPPED}


@pytest.mark.contract("GRNT-11")
@pytest.mark.parametrize(("limit", "made_up"), [(0, []), (2, [4, 5]), (9, [1, 2, 3, 4, 5])])
async def test_consent_bounds_catch_up_and_backfill(
    machine: TimeMachine, hello: Recorder, limit: int, made_up: list[int]
):
    policies = Policies(overlap=Overlap.ALLOW_ALL, backfill_limit=limit)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    machine.clock.move_to(at(5.5))  # no decision was made for a while
    await machine.advance(seconds=1)
    assert hello.nominal == [at(m) for m in made_up]
    refused = sum(each.count for each in await machine.app.runs.unstarted_ranges("s"))
    assert refused == 5 - len(made_up)
    with pytest.raises(BackfillLimitError):
        await machine.app.backfills.start("s", at(-limit - 1), at(-1))
    if limit:
        await machine.app.backfills.start("s", at(-limit), at(-1))
    await machine.advance(seconds=1)
    assert len(hello.called) == len(made_up) + limit


@pytest.mark.contract("GRNT-11")
async def test_a_slot_that_is_on_time_needs_no_consent(machine: TimeMachine, hello: Recorder):
    policies = Policies(catch_up=CatchUpPolicy(mode=CatchUp.NONE), backfill_limit=0)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    machine.clock.move_to(at(3))  # the first two were overtaken
    await machine.advance(seconds=0)
    machine.clock.move_to(at(4 + 10 / 60))  # ten seconds late is on time
    await machine.advance(seconds=0)
    assert hello.nominal == [at(3), at(4)]
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.status, unstarted.reason) == (2, Status.MISSED, "late")
