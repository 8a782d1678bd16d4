"""Starts by hand, ids that are known ahead, and completion that releases what waited. On a virtual clock."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from horae import Context
from horae.errors import InvalidInputError
from horae.model import Overlap, Policies, Status
from horae.spec import slot_key
from horae.testing import TimeMachine
from tests.support.machine import Recorder, at


@pytest.mark.contract("SCHD-18")
async def test_a_trigger_has_its_own_input_note_and_author(machine: TimeMachine):
    seen: list[Any] = []

    @machine.app.action("note")
    async def note(context: Context) -> None:
        seen.append((context.run_id, context.key, context.origin.kind, context.input))

    await machine.app.schedules.create("s", {}, "note", input={"usual": True})
    plain = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    own = await machine.app.schedules.trigger("s", input=None, author="ann", note="by hand")
    await machine.advance(seconds=1)
    assert seen == [(plain, plain, "trigger", {"usual": True}), (own, own, "trigger", None)]
    run = await machine.app.runs.get(own)
    assert (run.author, run.note, run.status, run.input) == ("ann", "by hand", Status.SUCCEEDED, None)
    assert str(uuid.UUID(own)) == own


@pytest.mark.contract("SCHD-18", "SCHD-22")
async def test_two_triggers_in_one_second_are_two_runs_and_change_nothing_else(
    machine: TimeMachine, hello: Recorder
):
    created = await machine.app.schedules.create("s", "0 * * * *", "hello")
    ids = [await machine.app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL) for _ in range(2)]
    await machine.advance(seconds=1)
    assert {run.id for run in await machine.app.runs.list("s")} == set(ids)
    assert len(set(ids)) == len(hello.called) == 2
    schedule = await machine.app.schedules.get("s")
    assert (schedule.version, schedule.cursor_ms // 1000) == (created.version, created.cursor_ms // 1000)
    await machine.advance(hours=1)
    assert hello.nominal[-1] == at(60)


@pytest.mark.contract("SCHD-18", "SCHD-10")
@pytest.mark.parametrize(
    ("overlap", "became", "running"),
    [
        (None, "skipped", "running"),  # the schedule's own
        ("skip", "skipped", "running"),
        ("buffer_one", "pending", "running"),
        ("buffer_all", "pending", "running"),
        ("allow_all", "running", "running"),
        ("cancel_other", "running", "cancelled"),
        ("terminate_other", "running", "terminated"),
    ],
)
async def test_a_trigger_has_its_own_overlap_policy(
    machine: TimeMachine, overlap: str | None, became: str, running: str
):
    machine.app.action("slow")(Recorder(machine, 600))
    await machine.app.schedules.create("s", "* * * * *", "slow")
    await machine.advance(minutes=1)
    own = None if overlap is None else Overlap(overlap)
    run = await machine.app.schedules.trigger("s", overlap=own)
    await machine.advance(seconds=1)
    assert (await machine.app.runs.get(run)).status == became
    (automatic,) = [each for each in await machine.app.runs.list("s") if each.is_automatic]
    assert automatic.status == running


@pytest.mark.contract("SCHD-10")
async def test_manual_starts_are_never_dropped(machine: TimeMachine):
    """A thousand may wait, of those that come by themselves."""
    machine.app.action("slow")(Recorder(machine, 600))
    policies = Policies(overlap=Overlap.BUFFER_ALL, max_buffer_size=2)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=4)
    ids = [await machine.app.schedules.trigger("s") for _ in range(5)]
    await machine.advance(minutes=1)
    runs = {run.id: run.status for run in await machine.app.runs.list("s")}
    assert {runs[each] for each in ids} == {Status.PENDING}
    assert (await machine.app.schedules.counts("s")).dropped == 2


@pytest.mark.contract("SCHD-20")
async def test_action_ids_are_known_ahead_and_their_format_may_be_chosen(machine: TimeMachine):
    seen: list[str] = []

    @machine.app.action("note")
    async def note(context: Context) -> None:
        seen.append(context.action_id)

    create = machine.app.schedules.create
    await create("plain", "0 1 * * *", "note")
    await create("based", "0 2 * * *", {"name": "note", "id": "report"})
    await create("formed", "0 3 * * *", {"name": "note", "id": "r", "id_format": "%Y%m%d/{id}"})
    await machine.advance(hours=4)
    assert seen == ["plain-2026-03-01T01:00:00Z", "report-2026-03-01T02:00:00Z", "20260301/r"]
    await machine.app.schedules.update("based", action={"name": "note", "id": "other"})
    await machine.advance(hours=24)
    assert seen[-2] == "other-2026-03-02T02:00:00Z"


@pytest.mark.contract("CRON-06", "GRNT-07")
async def test_an_automatic_slot_has_the_key_of_its_schedule_and_second(machine: TimeMachine):
    seen: list[str] = []

    @machine.app.action("note")
    async def note(context: Context) -> None:
        seen.append(context.key)

    await machine.app.schedules.create("s", "* * * * *", "note")
    await machine.advance(minutes=2)
    assert seen == [slot_key("s", int(at(m).timestamp())) for m in (1, 2)]
    assert len(seen[0]) == 64


@pytest.mark.contract("SCHD-27", "SCHD-26")
@pytest.mark.parametrize("fails", [0, 1])
async def test_completion_releases_what_waited_in_the_same_step(machine: TimeMachine, fails: int):
    slow = machine.app.action("slow")(Recorder(machine, 90, fails=fails))
    await machine.app.schedules.create(
        "s", "* * * * *", "slow", policies=Policies(overlap=Overlap.BUFFER_ALL)
    )
    await machine.advance(minutes=2)
    machine.clock.move_to(at(2.5))
    await asyncio.wait(machine.app.worker.tasks)  # the first has ended, and nothing knows that yet
    assert len(slow.called) == 1
    await machine.app.engine.step(machine.app.now())
    newest, oldest = await machine.app.runs.list("s")
    assert (newest.status, oldest.status) == (Status.RUNNING, Status.FAILED if fails else Status.SUCCEEDED)
    assert newest.started_at_ms == oldest.ended_at_ms


@pytest.mark.contract("SCHD-27")
async def test_the_end_of_an_action_wakes_the_driver(machine: TimeMachine):
    machine.app.action("slow")(Recorder(machine, 90))
    await machine.app.schedules.create("s", "* * * * *", "slow")
    await machine.advance(minutes=1)
    machine.app._driver._woken.clear()
    machine.clock.move_to(at(2.5))
    await asyncio.wait(machine.app.worker.tasks)
    assert machine.app._driver._woken.is_set()


@pytest.mark.contract("SCHD-10", "SCHD-11")
@pytest.mark.parametrize(
    ("overlap", "started"),
    [
        ("allow_all", [1, 2, 3, 4]),
        ("buffer_all", [1, 2, 3, 4]),
        ("buffer_one", [1, 2, 3, 6]),
        ("skip", [1, 2, 6]),
    ],
)
async def test_at_most_so_many_run_and_the_rest_wait_or_skip(
    machine: TimeMachine, overlap: str, started: list[int]
):
    """Two at once, each nearly five minutes long; a slot a minute."""
    slow = machine.app.action("slow")(Recorder(machine, 290))
    policies = Policies(overlap=Overlap(overlap), max_concurrent=2)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=6, seconds=55)
    assert slow.nominal == [at(m) for m in started]
    running = [run for run in await machine.app.runs.list("s") if run.status is Status.RUNNING]
    assert 1 <= len(running) <= 2


@pytest.mark.contract("SCHD-18", "SCHD-19")
async def test_an_overlap_policy_that_there_is_not_is_refused_by_name(machine: TimeMachine):
    machine.app.action("work")(Recorder(machine))
    await machine.app.schedules.create("s", "* * * * *", "work")
    unknown: Any = "sometimes"
    with pytest.raises(InvalidInputError, match=r'overlap is "sometimes", and must be one of skip, .*'):
        await machine.app.schedules.trigger("s", overlap=unknown)
    with pytest.raises(InvalidInputError, match="overlap"):
        await machine.app.backfills.start("s", at(0), at(1), overlap=unknown)
    assert await machine.app.runs.list("s") == []
