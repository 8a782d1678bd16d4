"""What is done between a slot's nominal and its fire time loses no run: on a virtual clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horae import Filter
from horae.app import BackfillRequest, Trigger
from horae.model import CatchUpPolicy, OnResume, Overlap, Policies
from horae.spec import Spec
from horae.testing import TimeMachine
from tests.support.machine import Recorder, at

HOURLY: dict[str, Any] = {"crons": ["0 * * * *"], "jitter": "59m"}
STRICT = Policies(overlap=Overlap.ALLOW_ALL, catch_up=CatchUpPolicy(window="0s", grace="0s"))
NOMINAL = at(60)
Act = Callable[[TimeMachine], Awaitable[object]]


async def create(machine: TimeMachine, spec: dict[str, Any] = HOURLY, **more: Any) -> Recorder:
    """A schedule in the middle between the nominal and the fire time of its first slot."""
    work = machine.app.action("work")(Recorder(machine))
    await machine.app.calendars.put("days", {"dates": ["2027-01-01"]})
    await machine.app.schedules.create("s", spec, "work", **{"policies": STRICT} | more)
    fires = Spec.parse(HOURLY).fire_time(NOMINAL, "s")
    assert fires > NOMINAL + timedelta(minutes=1)
    await machine.advance(minutes=60.5)
    assert work.called == []
    return work


def update(spec: dict[str, Any]) -> Act:
    return lambda machine: machine.app.schedules.update("s", spec)


async def pause_and_resume(machine: TimeMachine) -> None:
    await machine.app.schedules.pause("s")
    await machine.advance(seconds=1)
    await machine.app.schedules.resume("s")


async def pause_and_resume_all(machine: TimeMachine) -> None:
    await machine.app.schedules.pause_all(Filter())
    await machine.app.schedules.resume_all(Filter())


async def pause_until(machine: TimeMachine) -> None:
    await machine.app.schedules.pause("s", until=machine.now + timedelta(seconds=20))
    await machine.advance(seconds=30)


async def edit_twice(machine: TimeMachine) -> None:
    await machine.app.schedules.update("s", {"crons": ["*/30 * * * *"], "jitter": "29m"})
    await machine.advance(seconds=1)
    await machine.app.schedules.update("s", {"crons": ["*/20 * * * *"]})


async def trigger_and_backfill(machine: TimeMachine) -> None:
    backfill = BackfillRequest(start=at(-60), end=at(-60))
    await machine.app.schedules.patch("s", trigger=Trigger(), backfills=[backfill], pause="")
    await machine.app.schedules.patch("s", resume="")


ACTS: dict[str, Act] = {
    "another spec": update({"crons": ["*/30 * * * *"], "jitter": "29m"}),
    "no jitter": update({"crons": ["0 * * * *"]}),
    "another spec without jitter": update({"crons": ["*/20 * * * *"]}),
    "less jitter": update({"crons": ["0 * * * *"], "jitter": "1s"}),
    "centred jitter": update({"crons": ["0 * * * *"], "jitter": {"span": "10s", "centred": True}}),
    "another zone": update(HOURLY | {"timezone": "Europe/Rome"}),
    "two edits": edit_twice,
    "policies": lambda machine: machine.app.schedules.update("s", policies=STRICT, tags=["x"]),
    "pause": pause_and_resume,
    "bulk pause": pause_and_resume_all,
    "pause until": pause_until,
    "trigger and backfill": trigger_and_backfill,
    "skip none": lambda machine: machine.app.schedules.skip_next("s", 0),
    "another limit": lambda machine: machine.app.schedules.update("s", remaining_actions=7),
}


async def of_the_slot(machine: TimeMachine) -> list[tuple[str, datetime]]:
    """What became of the slot in the ledger, and when it was to fire."""
    return [
        (str(run.status), datetime.fromtimestamp(run.fire_ms / 1000, UTC))
        for run in await machine.app.runs.list("s", 100)
        if run.is_automatic and run.nominal_ms // 1000 == NOMINAL.timestamp()
    ]


@pytest.mark.contract("SCHD-07")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("on_resume", OnResume)
async def test_nothing_done_between_nominal_and_fire_time_loses_a_run(
    machine: TimeMachine, act: str, on_resume: OnResume
):
    policies = Policies(overlap=STRICT.overlap, catch_up=STRICT.catch_up, on_resume=on_resume)
    work = await create(machine, policies=policies)
    moment = machine.now
    await ACTS[act](machine)
    described = await machine.app.schedules.describe("s")
    explained = await machine.app.why.explain("s", NOMINAL)
    if not work.called:
        assert explained.verdict in {"will_fire", "undecided"}, explained
    await machine.advance(minutes=60)
    ((status, fires),) = await of_the_slot(machine)
    assert (status, fires >= moment) == ("succeeded", True)
    if explained.verdict == "will_fire":
        assert described.next_times[0] == fires
        assert explained.fire_ms == fires.timestamp() * 1000
    assert (await machine.app.why.explain("s", NOMINAL)).verdict == "fired"
    assert (await machine.app.schedules.get("s")).state.carried == ()


@pytest.mark.contract("SCHD-05", "SCHD-07")
@pytest.mark.parametrize(("dates", "fires"), [(["2027-01-02"], True), (["2026-03-01"], False)])
async def test_a_change_of_a_calendar_loses_no_slot_that_it_leaves(
    machine: TimeMachine, dates: list[str], fires: bool
):
    await create(machine, HOURLY | {"exclude": [{"calendar": "days"}]})
    await machine.app.calendars.put("days", {"dates": dates})
    await machine.advance(minutes=60)
    assert bool(await of_the_slot(machine)) is fires
    assert (await machine.app.why.explain("s", NOMINAL)).verdict == ("fired" if fires else "skipped")


@pytest.mark.contract("SCHD-07", "SCHD-15")
@pytest.mark.parametrize("spec", [None, {"crons": ["*/30 * * * *"]}])
async def test_a_limit_that_is_raised_between_them_loses_no_run(
    machine: TimeMachine, spec: dict[str, Any] | None
):
    """What fired at the limit is gone, and what has not fired yet is not."""
    await create(machine, remaining_actions=0)
    await machine.app.schedules.update("s", spec, remaining_actions=5)
    await machine.advance(minutes=60)
    assert len(await of_the_slot(machine)) == 1


@pytest.mark.contract("SCHD-15")
async def test_an_edit_brings_nothing_back_that_fired_at_the_limit(machine: TimeMachine):
    work = await create(machine, {"crons": ["*/30 * * * *"]}, remaining_actions=0)
    await machine.app.schedules.update("s", {"crons": ["*/15 * * * *"]}, remaining_actions=5)
    await machine.advance(minutes=20)
    assert work.nominal == [at(75)]


@pytest.mark.contract("SCHD-23", "SCHD-28")
async def test_a_slot_that_the_new_spec_lacks_is_skipped(machine: TimeMachine):
    work = await create(machine)
    await machine.app.schedules.update("s", "30 * * * *")
    assert (await machine.app.why.explain("s", NOMINAL)).reason == "edited"
    await machine.advance(minutes=60)
    assert work.nominal == [at(90)]


@pytest.mark.contract("SCHD-13", "SCHD-23")
async def test_what_fell_due_in_a_pause_stays_due_if_the_new_spec_has_it_too(machine: TimeMachine):
    """What only one of the two has does not come: an edit is not retroactive."""
    work = machine.app.action("work")(Recorder(machine))
    await machine.app.schedules.create(
        "s", "*/20 * * * *", "work", policies=Policies(overlap=Overlap.ALLOW_ALL)
    )
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=65)
    await machine.app.schedules.update("s", "*/30 * * * *")
    found = [(await machine.app.why.explain("s", at(minute))).verdict for minute in (20, 30, 40, 60, 90)]
    assert found == ["skipped", "not_scheduled", "skipped", "paused", "paused"]
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=30)
    assert work.nominal == [at(60), at(90)]


@pytest.mark.contract("GRNT-14", "SCHD-28")
async def test_what_an_edit_left_due_is_recorded_if_its_schedule_is_deleted(machine: TimeMachine):
    await create(machine)
    await machine.app.schedules.update("s", {"crons": ["*/30 * * * *"], "jitter": "29m"})
    await machine.app.schedules.delete("s")
    (gone,) = await machine.app.runs.unstarted_ranges("s")
    assert (gone.start_ms // 1000, gone.count, gone.reason) == (NOMINAL.timestamp(), 1, "deleted")
