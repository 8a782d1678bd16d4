"""Pause and resume, skip the next, limits, pause on failure: on a virtual clock."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from horae import Context, Filter, NewSchedule
from horae.errors import InvalidInputError, NaiveTimeError
from horae.model import (
    CatchUp,
    CatchUpPolicy,
    Counts,
    OnResume,
    Overlap,
    Policies,
    Reason,
    RetryPolicy,
    Status,
    Timeouts,
    WhenFull,
)
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, accounted, at

ALLOW = Policies(overlap=Overlap.ALLOW_ALL)


async def unstarted(
    machine: TimeMachine, schedule_id: str = "s"
) -> list[tuple[datetime, datetime, int, str]]:
    """The ranges of a schedule, oldest first."""
    return [
        (at((each.start_ms // 1000 - START.timestamp()) / 60), at((each.end_ms // 1000 - START.timestamp()) / 60), each.count, each.reason)
        for each in reversed(await machine.app.runs.unstarted_ranges(schedule_id))
    ]  # fmt: skip


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize(("on_resume", "expected"), [("catch_up", [1, 2, 3, 4, 5, 6]), ("skip", [1, 2, 6])])
async def test_a_pause_until_a_date_ends_by_itself(
    machine: TimeMachine, hello: Recorder, on_resume: str, expected: list[int]
):
    policies = Policies(overlap=Overlap.ALLOW_ALL, on_resume=OnResume(on_resume))
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    await machine.advance(minutes=2)
    paused = await machine.app.schedules.pause("s", "until later", until=at(5.5))
    assert (paused.state.paused, paused.state.note) == (True, "until later")
    await machine.advance(minutes=3)
    assert hello.nominal == [at(1), at(2)]
    await machine.advance(minutes=1)
    assert hello.nominal == [at(m) for m in expected]
    schedule = await machine.app.schedules.get("s")
    assert (schedule.state.paused, schedule.state.paused_until_ms) == (False, None)
    assert await unstarted(machine) == ([] if on_resume == "catch_up" else [(at(3), at(5), 3, "paused")])


@pytest.mark.contract("SCHD-13")
async def test_a_pause_ends_at_its_date_also_if_no_node_decided(machine: TimeMachine, hello: Recorder):
    """What fell due after it is late, and not paused."""
    policies = Policies(overlap=Overlap.ALLOW_ALL, on_resume=OnResume.SKIP)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    await machine.app.schedules.pause("s", until=at(5.5))
    machine.clock.move_to(at(8))
    await machine.advance(seconds=0)
    assert hello.nominal == [at(6), at(7), at(8)]
    assert await unstarted(machine) == [(at(1), at(5), 5, "paused")]


@pytest.mark.contract("SCHD-13")
async def test_a_pause_until_a_date_needs_a_zone(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    with pytest.raises(NaiveTimeError):
        await machine.app.schedules.pause("s", until=datetime(2026, 3, 2))
    assert not (await machine.app.schedules.get("s")).state.paused


async def paused_over_a_buffer(machine: TimeMachine, on_resume: OnResume) -> Recorder:
    """A schedule that was paused while one run was running and another waited for it."""
    slow = machine.app.action("slow")(Recorder(machine, 150))
    policies = Policies(overlap=Overlap.BUFFER_ALL, on_resume=on_resume)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=2, seconds=1)
    await machine.app.schedules.pause("s")
    return slow


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize(
    ("on_resume", "waits"), [("catch_up", (Status.PENDING, "")), ("skip", (Status.SKIPPED, "paused"))]
)
async def test_what_runs_continues_in_a_pause_and_what_waits_does_not(
    machine: TimeMachine, on_resume: str, waits: tuple[Status, str]
):
    slow = await paused_over_a_buffer(machine, OnResume(on_resume))
    await machine.advance(minutes=10)
    newest, oldest = await machine.app.runs.list("s")
    assert oldest.status is Status.SUCCEEDED
    assert (newest.status, newest.reason) == waits
    assert slow.nominal == [at(1)]
    described = await machine.app.schedules.describe("s")
    assert (described.pending, described.running) == (int(on_resume == "catch_up"), 0)
    report = await machine.app.engine.renew_and_maintain(machine.app.now())
    assert report.repaired == 0  # a start that a pause holds is not forgotten


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize("pauses", [1, 3])
@pytest.mark.parametrize("between", [0, 1, 200])
@pytest.mark.parametrize(("on_resume", "second"), [("catch_up", 2), ("skip", None)])
async def test_what_waited_when_a_pause_began_stays_waiting_or_is_skipped_however_short_it_was(
    machine: TimeMachine, pauses: int, between: int, on_resume: str, second: int | None
):
    """Also if no node decides anything between pause and resume."""
    slow = await paused_over_a_buffer(machine, OnResume(on_resume))
    for number in range(pauses):
        if number:
            await machine.app.schedules.pause("s")
        machine.clock.move_to(machine.clock.now() + timedelta(seconds=between))
        if between:
            await machine.advance(seconds=0)
        await machine.app.schedules.resume("s")
    first_after = 3 if between < 200 else 1 + (machine.clock.now() - START).seconds // 60
    await machine.advance(minutes=30)
    expected = [at(1), at(first_after)] if second is None else [at(1), at(second), at(3)]
    assert slow.nominal[: len(expected)] == expected
    run = (await machine.app.runs.list("s", 100))[-2]
    assert (run.nominal_ms // 1000, run.reason) == (int(at(2).timestamp()), "" if second else "paused")


@pytest.mark.contract("SCHD-13")
async def test_a_pause_until_a_date_keeps_what_waited(machine: TimeMachine):
    slow = await paused_over_a_buffer(machine, OnResume.CATCH_UP)
    await machine.app.schedules.pause("s", until=at(10))
    await machine.advance(minutes=7, seconds=58)
    assert slow.nominal == [at(1)]
    await machine.advance(seconds=1)
    assert slow.nominal == [at(1), at(2)]
    assert slow.called[-1] == (at(2), at(10))


@pytest.mark.contract("SCHD-13")
async def test_a_bulk_pause_keeps_what_waited(machine: TimeMachine):
    slow = await paused_over_a_buffer(machine, OnResume.CATCH_UP)
    await machine.app.schedules.resume_all(Filter())
    await machine.app.schedules.pause_all(Filter())
    await machine.advance(minutes=10)
    await machine.app.schedules.resume_all(Filter())
    await machine.advance(seconds=1)
    assert slow.nominal == [at(1), at(2)]


@pytest.mark.contract("SCHD-13", "SCHD-14")
async def test_a_pause_on_failure_keeps_what_waited(machine: TimeMachine):
    work = machine.app.action("work")(Recorder(machine, 90, fails=1))
    policies = Policies(overlap=Overlap.BUFFER_ALL, pause_on_failure=True)
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    await machine.advance(minutes=10)
    assert (await machine.app.schedules.get("s")).state.paused
    assert (await machine.app.schedules.describe("s")).pending == 1
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=2)
    assert work.nominal[:3] == [at(1), at(2), at(3)]


@pytest.mark.contract("SCHD-10", "SCHD-13")
async def test_what_a_pause_holds_keeps_its_place_in_the_buffer(machine: TimeMachine):
    """A manual start that finds it there is judged like any other, and none that was taken up is lost later."""
    machine.app.action("slow")(Recorder(machine, 150))
    policies = Policies(overlap=Overlap.BUFFER_ONE)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=2, seconds=1)
    await machine.app.schedules.pause("s")
    over, beside = [
        await machine.app.schedules.trigger("s", overlap=each)
        for each in (Overlap.BUFFER_ONE, Overlap.BUFFER_ALL)
    ]
    await machine.advance(minutes=5)
    found = {run.id: (run.status, run.reason) for run in await machine.app.runs.list("s")}
    assert found[over] == (Status.SKIPPED, "overlap")
    assert found[beside] == (Status.SUCCEEDED, "")


@pytest.mark.contract("SCHD-13", "SCHD-28")
@pytest.mark.parametrize("until", [None, 10])
async def test_explain_says_that_a_start_waits_for_the_end_of_a_pause(
    machine: TimeMachine, until: int | None
):
    await paused_over_a_buffer(machine, OnResume.CATCH_UP)
    await machine.app.schedules.pause("s", until=None if until is None else at(until))
    found = await machine.app.why.explain("s", at(2))
    end = "is resumed" if until is None else "resumes at 2026-03-01T00:10:00Z"
    assert found.verdict == "waiting"
    assert found.sentence.endswith(f"is due and waits until the schedule {end}.")


@pytest.mark.contract("SCHD-13", "SCHD-12")
async def test_what_fell_due_in_a_pause_goes_through_catch_up_and_overlap(
    machine: TimeMachine, hello: Recorder
):
    policies = Policies(catch_up=CatchUpPolicy(window="2m30s"))  # and skip
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=10)
    await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert hello.nominal == [at(8)]
    late, *others = await unstarted(machine)
    assert late == (at(1), at(7), 7, "late")
    assert {reason for *_, reason in others} == {"overlap"}
    assert await accounted(machine, "s") == 10


@pytest.mark.contract("SCHD-12", "SCHD-13")
async def test_slots_that_a_long_pause_left_to_overlap_are_one_range_a_pass(
    machine: TimeMachine, hello: Recorder
):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=100)
    await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert hello.nominal == [at(1)]
    assert await unstarted(machine) == [(at(2), at(100), 99, "overlap")]


@pytest.mark.contract("SCHD-13")
async def test_the_next_so_many_are_skipped(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=ALLOW)
    await machine.advance(minutes=1)
    await machine.app.schedules.skip_next("s", 3)
    await machine.advance(minutes=2)
    assert (await machine.app.schedules.get("s")).state.skip_next == 1
    await machine.app.schedules.trigger("s")  # is not one of them
    await machine.advance(minutes=3)
    assert hello.nominal == [at(1), at(3), at(5), at(6)]
    assert await unstarted(machine) == [(at(2), at(4), 3, "skip_next")]
    assert (await machine.app.schedules.counts("s")) == Counts(started=4, unstarted={Reason.SKIP_NEXT: 3})
    with pytest.raises(InvalidInputError, match="number"):
        await machine.app.schedules.skip_next("s", -1)


@pytest.mark.contract("SCHD-13")
async def test_skipping_the_next_can_be_taken_back(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    await machine.app.schedules.skip_next("s", 5)
    await machine.advance(minutes=2)
    await machine.app.schedules.skip_next("s", 0)
    await machine.advance(minutes=2)
    assert hello.nominal == [at(3), at(4)]


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize(
    ("only", "chosen"),
    [
        (Filter(tag="nightly"), {"a1", "b1"}),
        (Filter(prefix="a"), {"a1", "a2"}),
        (Filter(owner="ann"), {"a1", "a2"}),
        (Filter(action="other"), {"c1"}),
        (Filter(owner="ann", tag="nightly"), {"a1"}),
        (Filter(), {"a1", "a2", "b1", "c1"}),
    ],
)
async def test_many_are_paused_and_resumed_by_a_filter(
    machine: TimeMachine, hello: Recorder, only: Filter, chosen: set[str]
):
    machine.app.action("other")(hello)
    await machine.app.schedules.create_many(
        [
            NewSchedule(id="a1", spec="* * * * *", action="hello", owner="ann", tags=("nightly",)),
            NewSchedule(id="a2", spec="* * * * *", action="hello", owner="ann"),
            NewSchedule(id="b1", spec="* * * * *", action="hello", owner="bob", tags=("nightly", "x")),
            NewSchedule(id="c1", spec="* * * * *", action="other"),
        ]
    )
    assert await machine.app.schedules.pause_all(only, "storm") == len(chosen)
    paused = await machine.app.schedules.list(Filter(paused=True))
    assert {each.id for each in paused} == chosen
    assert {(each.state.note, each.version) for each in paused} == {("storm", 2)}
    await machine.advance(minutes=1)
    assert len(hello.called) == 4 - len(chosen)
    assert await machine.app.schedules.resume_all(Filter(paused=True), "over") == len(chosen)
    await machine.advance(seconds=1)
    assert len(hello.called) == 4
    assert await machine.app.schedules.list(Filter(paused=True)) == []


@pytest.mark.contract("SCHD-13")
async def test_more_than_a_page_are_paused_at_once(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create_many(
        NewSchedule(id=f"s{number:04}", spec="0 0 1 1 *", action="hello") for number in range(1005)
    )
    assert await machine.app.schedules.pause_all(Filter(paused=False)) == 1005
    assert await machine.app.schedules.resume_all(Filter(paused=True)) == 1005


@pytest.mark.contract("CRON-10", "GRNT-14")
@pytest.mark.parametrize("how", ["pause", "delete"])
async def test_a_slot_that_is_due_and_not_decided_does_not_start_any_more(
    machine: TimeMachine, hello: Recorder, how: str
):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    machine.clock.move_to(at(1))  # it is due and is not decided yet
    await (machine.app.schedules.pause("s") if how == "pause" else machine.app.schedules.delete("s"))
    await machine.advance(minutes=5)
    assert hello.called == []


@pytest.mark.contract("GRNT-14", "SCHD-28")
async def test_a_slot_that_was_due_when_its_schedule_was_deleted_is_recorded(
    machine: TimeMachine, hello: Recorder
):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    machine.clock.move_to(at(2))
    await machine.app.schedules.delete("s")
    assert await unstarted(machine) == [(at(1), at(2), 2, "deleted")]


@pytest.mark.contract("CRON-10", "GRNT-14")
@pytest.mark.parametrize(
    ("how", "on_resume", "ended"),
    [
        ("pause", "skip", ("skipped", "paused")),
        ("pause", "catch_up", ("pending", "")),
        ("delete", "skip", ("dropped", "deleted")),
    ],
)
async def test_a_slot_that_was_released_and_not_launched_does_not_run(
    machine: TimeMachine, how: str, on_resume: str, ended: tuple[str, str]
):
    """Its action is known to no living node, so that it waits, released; a node that can run it comes too late."""
    machine.app.action("elsewhere")(Recorder(machine))
    policies = Policies(on_resume=OnResume(on_resume))
    await machine.app.schedules.create("s", "* * * * *", "elsewhere", policies=policies)
    machine.app.functions.unregister("elsewhere")
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    assert run.status is Status.STARTING
    await (machine.app.schedules.pause("s") if how == "pause" else machine.app.schedules.delete("s"))
    late = machine.app.action("elsewhere")(Recorder(machine))
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.reason) == ended
    assert late.called == []
    if on_resume == "catch_up":
        await machine.app.schedules.resume("s")
        await machine.advance(seconds=1)
        assert late.nominal == [at(1)]  # the second slot found it running


@pytest.mark.contract("CRON-10", "SCHD-28")
@pytest.mark.parametrize("mode", CatchUp)
async def test_a_pause_while_the_queue_is_full_loses_no_slot_in_silence(machine: TimeMachine, mode: CatchUp):
    """What waits stays waiting; what stayed due goes through catch-up when the pause is over."""
    slow = machine.app.action("slow")(Recorder(machine, 130))
    policies = Policies(
        overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(mode=mode), max_buffer_size=2, when_full=WhenFull.WAIT,
        expire_waiting=False,
    )  # fmt: skip
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=8)
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=4)
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=4)
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=30)
    schedule = await machine.app.schedules.get("s")
    assert await accounted(machine, "s") == (schedule.cursor_ms // 1000 - START.timestamp()) // 60
    assert slow.nominal == sorted(set(slow.nominal))


@pytest.mark.contract("CRON-10", "GRNT-11", "GRNT-14")
async def test_without_catch_up_a_schedule_resumes_with_the_next_future_slot(
    machine: TimeMachine, hello: Recorder
):
    policies = Policies(catch_up=CatchUpPolicy(mode=CatchUp.NONE), on_resume=OnResume.SKIP)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=5)
    await machine.app.schedules.resume("s")  # at the very second of a slot
    await machine.advance(minutes=1)
    assert hello.nominal == [at(6)]
    assert await unstarted(machine) == [(at(1), at(5), 5, "paused")]


@pytest.mark.contract("SCHD-13", "SCHD-28")
@pytest.mark.parametrize("by_hand", [False, True])
async def test_what_a_pause_left_unstarted_is_counted(machine: TimeMachine, hello: Recorder, by_hand: bool):
    policies = Policies(on_resume=OnResume.SKIP)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    await machine.app.schedules.pause("s", until=None if by_hand else at(5))
    await machine.advance(minutes=5)
    if by_hand:
        await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert await unstarted(machine) == [(at(1), at(5), 5, "paused")]
    assert await machine.app.schedules.counts("s") == Counts(unstarted={Reason.PAUSED: 5})


@pytest.mark.contract("SCHD-14")
@pytest.mark.parametrize("kind", ["fails", "times out"])
async def test_a_run_with_no_attempt_left_pauses_its_schedule(machine: TimeMachine, kind: str):
    work = machine.app.action("work")(Recorder(machine, 0 if kind == "fails" else 600, fails=99))
    policies = Policies(
        pause_on_failure=True,
        timeouts=Timeouts(run="10s"),
        retry=RetryPolicy(attempts=2),
        overlap=Overlap.ALLOW_ALL,
    )
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    await machine.advance(minutes=1)
    assert not (await machine.app.schedules.get("s")).state.paused  # another attempt is to come
    await machine.advance(minutes=10)
    (run,) = await machine.app.runs.list("s")
    assert run.status == ("failed" if kind == "fails" else "timed_out")
    state = (await machine.app.schedules.get("s")).state
    assert state.paused
    assert run.id in state.note
    assert len(work.called) == 2


@pytest.mark.contract("SCHD-14")
async def test_what_was_cancelled_or_refused_pauses_nothing(machine: TimeMachine):
    machine.app.action("slow")(Recorder(machine, 600))
    await machine.app.schedules.create("s", {}, "slow", policies=Policies(pause_on_failure=True))
    for stop in (machine.app.runs.cancel, machine.app.runs.terminate):
        run = await machine.app.schedules.trigger("s")
        await machine.advance(seconds=1)
        await stop(run)
        await machine.advance(seconds=1)
    assert [run.status for run in await machine.app.runs.list("s")] == [Status.TERMINATED, Status.CANCELLED]
    assert not (await machine.app.schedules.get("s")).state.paused


@pytest.mark.contract("SCHD-15")
async def test_skips_triggers_backfills_and_retries_use_up_nothing(machine: TimeMachine):
    machine.app.action("slow")(Recorder(machine, 90, fails=1))
    policies = Policies(retry=RetryPolicy(attempts=3))
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies, remaining_actions=2)
    await machine.advance(minutes=4, seconds=30)  # a run of two attempts, and what it stood in the way of
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 1
    await machine.app.backfills.start("s", at(-2), at(-1), overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL)
    await machine.advance(seconds=1)
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 1
    await machine.advance(minutes=1)
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 0


@pytest.mark.contract("SCHD-15")
@pytest.mark.parametrize("overlap", ["buffer_all", "buffer_one", "allow_all", "skip"])
async def test_starts_that_wait_for_each_other_use_up_the_limit_one_by_one(
    machine: TimeMachine, overlap: str
):
    slow = machine.app.action("slow")(Recorder(machine, 150))
    policies = Policies(overlap=Overlap(overlap))
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies, remaining_actions=2)
    await machine.advance(minutes=20)
    assert slow.nominal == [at(1), at(4 if overlap == "skip" else 2)]
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 0
    assert await accounted(machine, "s") == 20


@pytest.mark.contract("SCHD-15")
async def test_time_passed_at_the_limit_is_gone(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=ALLOW, remaining_actions=1)
    await machine.advance(minutes=5)
    await machine.app.schedules.update("s", remaining_actions=2)
    await machine.advance(minutes=5)
    assert hello.nominal == [at(1), at(6), at(7)]
    assert await accounted(machine, "s") == 10


@pytest.mark.contract("SCHD-15")
async def test_slots_passed_at_the_limit_are_gone_also_if_no_node_decided(
    machine: TimeMachine, hello: Recorder
):
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=ALLOW, remaining_actions=1)
    await machine.advance(minutes=1)
    machine.clock.move_to(at(5))
    await machine.app.schedules.update("s", remaining_actions=9)
    await machine.advance(minutes=1)
    assert hello.nominal == [at(1), at(6)]


@pytest.mark.contract("SCHD-15")
async def test_a_limit_below_nothing_is_refused(machine: TimeMachine, hello: Recorder):
    with pytest.raises(InvalidInputError, match="remaining_actions"):
        await machine.app.schedules.create("s", "* * * * *", "hello", remaining_actions=-1)


@pytest.mark.contract("SCHD-15")
async def test_a_limit_below_nothing_is_refused_by_an_update(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    with pytest.raises(InvalidInputError, match="remaining_actions"):
        await machine.app.schedules.update("s", remaining_actions=-1)


@pytest.mark.contract("SCHD-15", "SCHD-13")
async def test_a_schedule_at_its_limit_takes_triggers_and_is_kept(machine: TimeMachine, hello: Recorder):
    seen: list[str] = []

    @machine.app.action("note")
    async def note(context: Context) -> None:
        seen.append(context.origin.kind)

    await machine.app.schedules.create("s", "*/10 * * * *", "note", remaining_actions=0)
    await machine.advance(days=2)
    await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    assert seen == ["trigger"]
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 0
    assert (await unstarted(machine)) == [(at(10), at(2 * 1440), 2 * 144, "limit_reached")]
