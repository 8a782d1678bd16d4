"""What operations return gives datetimes and timedeltas: no attribute that people read is a bare number of time."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints

import horae
from horae import App, Config, Context
from horae.app import ScopedOperations
from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.runs import Runs
from horae.app.schedules import Schedules
from horae.app.why import Why
from horae.app.workflows import Workflows
from horae.model import AUTOMATIC, Instant, Overlap, Run, ScheduleKey, Span, State, Status
from horae.testing import TimeMachine
from tests.support.cases import each_of

OPERATIONS = (App, ScopedOperations, Schedules, Runs, Backfills, Calendars, Why, Grants, Workflows, Flows)
TIME = re.compile(r"_ms$|_s$|seconds|delay|timeout|duration|late$|lateness|_off$|_age$|_at$|since|until|took")
ASIDE = (Config,)  # settings, whose names say their unit


def types_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for each in get_args(annotation):
        yield from types_in(each)


def collect(annotation: Any, found: set[type]) -> None:
    for each in types_in(annotation):
        if each in found or not each.__module__.startswith("horae.") or each in ASIDE:
            continue
        found.add(each)
        if hasattr(each, "__struct_fields__"):
            for hint in get_type_hints(each).values():
                collect(hint, found)


def returned_types() -> list[type]:
    """The types of everything that an operation returns, and of what is in it; and the public names of the package."""
    found: set[type] = set()
    for operations in OPERATIONS:
        for name, method in inspect.getmembers(operations, inspect.isfunction):
            if not name.startswith("_") and name not in {"transaction", "reading"}:  # these are for faces
                collect(get_type_hints(method).get("return"), found)
    for name in dir(horae):
        collect(getattr(horae, name), found)
    return sorted(found, key=lambda each: each.__qualname__)


def is_number(annotation: Any) -> bool:
    return bool({int, float} & set(types_in(annotation)))


@each_of("kind", returned_types())
def test_no_public_attribute_is_a_bare_number_of_time(kind: type):
    for name in getattr(kind, "__struct_fields__", ()):
        if TIME.search(name) and is_number(get_type_hints(kind)[name]):
            assert name.endswith("_ms"), f"{kind.__name__}.{name} is a bare number"
            typed = inspect.getattr_static(kind, name.removesuffix("_ms"), None)
            assert isinstance(typed, Instant | Span | property), f"{kind.__name__}.{name} has no typed form"
    for name, value in inspect.getmembers_static(kind, lambda each: isinstance(each, property)):
        if TIME.search(name) and not name.startswith("_"):
            assert not is_number(get_type_hints(value.fget).get("return")), f"{kind.__name__}.{name}"


def test_there_is_something_to_look_at():
    names = {each.__name__ for each in returned_types()}
    assert {
        "Run",
        "Schedule",
        "State",
        "Description",
        "Explanation",
        "Backfill",
        "Readiness",
        "Slots",
    } <= names


def test_a_run_says_how_late_it_was_and_how_long_it_took():
    run = Run(
        id="r", schedule_key=ScheduleKey("s"), generation=1, nominal_ms=1000, origin=AUTOMATIC, overlap=Overlap.SKIP,
        status=Status.SUCCEEDED, fire_ms=1000, start_at_ms=1000, started_at_ms=1250, ended_at_ms=3250,
    )  # fmt: skip
    assert (run.late, run.duration) == (timedelta(milliseconds=250), timedelta(seconds=2))
    assert (
        Run(**{name: getattr(run, name) for name in run.__struct_fields__} | {"ended_at_ms": None}).duration
        is None
    )
    assert (State().spec_since, State(spec_since_ms=1000).spec_since) == (
        None,
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    )


async def test_what_an_app_returns(machine: TimeMachine):
    @machine.app.action("work")
    async def work(_: Context) -> None:
        await machine.sleep(seconds=2)

    await machine.app.schedules.create("s", "* * * * *", "work")
    begun = machine.now
    await machine.advance(minutes=1, seconds=5)
    (run,) = await machine.app.runs.list("s")
    assert (run.late, run.duration) == (timedelta(0), timedelta(seconds=2))
    found = await machine.app.why.explain("s", run.nominal)
    assert found.late == timedelta(0)
    described = await machine.app.schedules.describe("s")
    assert described.schedule.cursor == run.nominal
    assert described.next_times[0] - begun == timedelta(minutes=2)
    assert (await machine.app.readiness()).clock_off is None
