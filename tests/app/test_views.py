"""What readers see of a thing is made from its model, field by field, and complete."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from horae.app import schedule_views, views
from horae.app.view_base import View, view_of
from horae.executor.attempt_context import Context
from horae.model import Action, Node, Policies, RetryPolicy, Schedule, State
from horae.testing import TimeMachine

START = datetime(2026, 3, 1, tzinfo=UTC)
INSIDE = {"generation", "cursor_ms", "permitted_by", "request_id"}
"""What of a schedule no reader needs: where the engine is, which creation this was, and by which scope its action was stored."""


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


async def test_every_field_of_a_schedule_is_shown():
    shown = set(schedule_views.ScheduleView.__struct_fields__)
    assert {name.removesuffix("_ms") for name in Schedule.__struct_fields__ if name not in INSIDE} <= shown
    async with TimeMachine(START) as machine:
        machine.app.action("a")(lambda context: None)
        policies = Policies(retry=RetryPolicy(attempts=3))
        made = await machine.app.schedules.create(
            "s", "* * * * *", "a", policies=policies, note="why", tags=("t",)
        )
        view = view_of(schedule_views.ScheduleView, made)
    assert (view.id, view.note, view.tags, view.state) == ("s", "why", ("t",), "running")
    assert (view.created_at, view.next_time, view.paused_until) == (START, minute(1), None)
    assert view.policies["retry"]["attempts"] == 3
    assert view.policies.keys() == set(Policies.__struct_fields__)  # also those that have their default


async def test_a_schedule_says_when_it_fires_next_and_its_spec_in_words():
    async with TimeMachine(START) as machine:
        schedules = machine.app.schedules
        machine.app.action("a")(lambda context: None)
        sentence = "At minute 5 of every hour, UTC time"
        made = await schedules.create("s", "5 * * * *", "a")
        await schedules.create("t", {"crons": ["05 * * * *"]}, "a", paused=True)
        await schedules.create("u", {"times": ["2026-02-01T00:00Z"]}, "a")
        listed = await schedules.list()
        described = (await schedules.describe("s")).schedule
        put = (await schedules.put("s", "5 * * * *", "a")).schedule
        for each in (made, listed[0], described, put, await schedules.get("s")):
            assert (each.next_time, each.sentence) == (minute(5), sentence)
        assert [each.next_time for each in listed] == [minute(5), None, None]
        assert listed[0].sentence is listed[1].sentence  # kept with the compiled spec, which they share
        for each in listed:
            view = view_of(schedule_views.ScheduleView, each)
            assert (view.next_time, view.sentence) == (each.next_time, each.sentence)
        await schedules.skip_next("s", 1)
        assert (await schedules.get("s")).next_time == minute(65)
        await machine.advance(minutes=70)
        assert (await schedules.get("s")).next_time == minute(125)


def test_a_schedule_that_cannot_be_read_says_so():
    state, policies = State(), Policies()
    broken = Schedule(
        id="s", generation=1, spec='{"crons": ["no"]}', action=Action(name="a"), policies=policies, state=state,
        version=1, cursor_ms=0, created_at_ms=0, updated_at_ms=0,
    )  # fmt: skip
    assert broken.next_time is None
    assert broken.sentence.startswith("cannot be read: ")
    damaged = msgspec.structs.replace(broken, spec='{"crons": ["* * * * *"]}', unreadable={"policies": "no"})
    assert (damaged.next_time, damaged.sentence) == (None, "Every minute, UTC time")


async def test_times_are_those_of_the_ledger_in_either_unit():
    async with TimeMachine(START) as machine:

        @machine.app.action("a")
        async def work(context: Context) -> str:
            return "done"

        await machine.app.schedules.create("s", "* * * * *", "a")
        await machine.advance(minutes=3)
        (run, *_) = await machine.app.runs.list("s")
        view = view_of(views.RunView, run)
        assert (view.nominal, view.fire, view.ended_at) == (minute(3), minute(3), minute(3))
        assert (view.status, view.result, view.sentence) == ("succeeded", "done", "")
        backfill = await machine.app.backfills.start("s", minute(0), minute(1))
        shown = view_of(views.BackfillView, backfill)
        assert (shown.start, shown.end, shown.created_at) == (minute(0), minute(1), minute(3))
        explained = view_of(views.ExplanationView, await machine.app.why.explain("s", minute(2)))
        assert (explained.nominal, explained.before, explained.after) == (minute(2), minute(1), minute(3))
        assert [(each.fire, each.status) for each in explained.runs] == [(minute(2), "succeeded")]
        forecast = view_of(views.ForecastView, await machine.app.why.forecast(minutes=2))
        assert [(each.minute, each.starts) for each in forecast.minutes] == [(minute(4), 1)]


async def test_a_spec_that_was_spoiled_is_shown_as_such():
    async with TimeMachine(START) as machine:
        machine.app.action("a")(lambda context: None)
        made = await machine.app.schedules.create("s", "* * * * *", "a")
    view = view_of(schedule_views.ScheduleView, msgspec.structs.replace(made, spec="{"))
    assert (view.spec, view.next_time) == ({}, None)
    assert view.sentence.startswith("cannot be read")


def test_what_a_model_lacks_must_be_computed():
    class Odd(View, frozen=True):
        name: str
        age: int

    node = Node(epoch=1, name="n", actions=(), tzdata="x", started_at_ms=0)
    assert view_of(Odd, node, age=7) == Odd(name="n", age=7)
    with pytest.raises(AttributeError):
        view_of(Odd, node)


async def test_python_reads_instants_as_datetimes(machine: TimeMachine):
    machine.app.action("a")(lambda context: None)
    made = await machine.app.schedules.create("s", "* * * * *", "a")
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    begun = minute(1)
    assert (made.created_at, made.state.paused_until) == (START, None)
    assert (run.nominal, run.fire, run.started_at, run.ended_at) == (begun, begun, begun, begun)
