"""Two methods, four values a registration, and everything that is wrong said as it is called."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from datetime import timedelta
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import pytest

import horae.errors
from horae import Scheduler
from horae.errors import (
    CronExpressionInvalidError,
    FieldParseError,
    HoraeError,
    InvalidCronExpressionError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
    UnknownTimezoneError,
)
from tests.face.declarative import DELAY, NOON, Story, at

SHAPE = "Invalid registration shape: expected [string, string, function, Duration]"


async def good() -> None: ...


def plain() -> None: ...


async def generates() -> Any:
    yield 1


class Callable:
    """An object with an async call."""

    def __init__(self) -> None:
        self.called = 0

    async def __call__(self, *numbers: int) -> None:
        self.called += 1

    async def method(self) -> None:
        self.called += 1

    both = partialmethod(__call__, 1)


GOOD = ("good", "* * * * *", good, DELAY)


@pytest.mark.contract("DECL-01")
def test_a_scheduler_has_two_public_methods_and_everything_else_is_given_by_keyword():
    assert [name for name in dir(Scheduler) if not name.startswith("_")] == ["initialize", "stop"]
    parameters = list(inspect.signature(Scheduler).parameters.values())
    assert {each.name: each.default for each in parameters} == {
        "database": "sqlite:///horae.db", "clock": None, "timezone": None, "name": "default", "listener": None,
    }  # fmt: skip
    assert {each.kind for each in parameters} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.contract("DECL-01")
async def test_both_methods_are_awaitable_and_the_default_database_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    scheduler = Scheduler()
    begun, ended = scheduler.initialize([GOOD]), None
    assert inspect.isawaitable(begun)
    await begun
    ended = scheduler.stop()
    assert inspect.isawaitable(ended)
    await ended
    assert (tmp_path / "horae.db").exists()


@pytest.mark.contract("DECL-01", "DECL-05")
@pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "America/New_York"])
def test_the_default_zone_is_the_hosts(zone: str, tmp_path: Path):
    program = """
import asyncio
from datetime import datetime, timedelta, UTC
from horae import Scheduler
from horae.testing import VirtualClock
async def call(): print(clock.now().isoformat(), flush=True)
clock = VirtualClock(datetime(2026, 6, 1, tzinfo=UTC))
async def main():
    scheduler = Scheduler(database=":memory:", clock=clock)
    await scheduler.initialize([("noon", "0 12 * * *", call, timedelta())])
    await clock.advance(hours=24)
    await scheduler.stop()
asyncio.run(main())
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"TZ": zone, "PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, timeout=60, check=True, cwd=tmp_path,
    )  # fmt: skip
    noon = {
        "Australia/Lord_Howe": "2026-06-01T01:30:00+00:00",
        "America/New_York": "2026-06-01T16:00:00+00:00",
    }
    assert ran.stdout.split() == [noon[zone]]


def test_an_unknown_zone_is_refused_by_the_constructor():
    with pytest.raises(UnknownTimezoneError):
        Scheduler(timezone="Europe/Nowhere")


@pytest.mark.contract("DECL-01")
async def test_schedulers_of_different_names_share_a_file_and_do_not_see_each_others_tasks(story: Story):
    one, two = await story.begin(story.task("a")), await story.begin(story.task("b"), name="other")
    assert story.counts() == {"new": 1}  # and none forgotten
    await one.stop()
    await two.stop()
    again = await story.begin(name="other")
    assert story.counts() == {"forgotten": 1}
    await again.stop()
    await (await story.begin(story.task("a"))).stop()
    assert story.counts() == {"preserved": 1}


@pytest.mark.contract("DECL-01")
async def test_tasks_of_one_name_in_schedulers_of_two_names_are_two_tasks(story: Story):
    calls: list[str] = []

    def registration(scheduler: str, cron: str) -> Any:
        async def call() -> None:
            calls.append(f"{scheduler} {story.clock.now():%H:%M:%S}")

        return ("a", cron, call, DELAY)

    await (await story.begin(registration("one", "0 12 * * *"), name="one")).stop()
    calls.clear()
    two = await story.begin(registration("two", "1 12 * * *"), name="two")
    await story.clock.advance(minutes=2)
    await two.stop()
    assert calls == ["two 12:01:00"]
    one = await story.begin(registration("one", "0,2 12 * * *"), name="one")
    await one.stop()
    assert calls == ["two 12:01:00", "one 12:02:30"]


@pytest.mark.contract("DECL-02")
@pytest.mark.parametrize("shape", [tuple, list], ids=["tuples", "lists"])
@pytest.mark.parametrize("outer", [tuple, list], ids=["in a tuple", "in a list"])
async def test_registrations_are_tuples_or_lists(shape: type, outer: type, story: Story):
    scheduler = story.scheduler()
    await scheduler.initialize(outer([shape(story.task("a")), shape(story.task("b"))]))
    await story.clock.settle()
    await scheduler.stop()
    assert sorted(story.starts) == ["a", "b"]


@pytest.mark.contract("DECL-02")
async def test_names_are_compared_letter_by_letter(story: Story):
    names = [
        "a",
        "A",
        " a",
        "a ",
        "a\t",
        "ä",
        "a\u0308",
        "\n",
        "{id}",
        "%H",
        "'",
        '"',
        "a\x00",
        "😀",
        "x" * 10_000,
    ]
    scheduler = await story.begin(*(story.task(name) for name in names))
    await scheduler.stop()
    assert {name: len(times) for name, times in story.starts.items()} == dict.fromkeys(names, 1)
    again = await story.begin(*(story.task(name) for name in names))
    await again.stop()
    assert story.counts() == {"preserved": len(names)}


@pytest.mark.contract("DECL-02")
async def test_a_coroutine_function_in_any_form_is_a_callback(story: Story):
    thing = Callable()
    forms = {
        "object": thing, "method": thing.method, "call": thing.__call__, "partial": partial(thing.method),
        "partial of a function": partial(asyncio.sleep, 0), "partial of partial": partial(partial(thing.method)),
        "partial method": thing.both,
    }  # fmt: skip
    scheduler = await story.begin(*((name, "* * * * *", form, DELAY) for name, form in forms.items()))
    await scheduler.stop()
    assert story.names().count("TaskRunCompleted") == len(forms)
    assert thing.called == 6


@pytest.mark.contract("DECL-02")
async def test_a_partial_of_an_object_with_an_async_call_is_a_callback(story: Story):
    thing = Callable()
    scheduler = await story.begin(("a", "* * * * *", partial(thing, 1), DELAY))
    await scheduler.stop()
    assert thing.called == 1


@pytest.mark.contract("DECL-02", "DECL-27")
@pytest.mark.parametrize(
    "callback",
    [plain, lambda: good().close(), lambda: None, partial(plain), Callable, generates, generates(), None, "good", 1, print],
    ids=lambda each: re.sub(r" at 0x\w+", "", repr(each)),
)  # fmt: skip
async def test_a_callback_that_is_no_coroutine_function_is_refused_with_a_hint(callback: Any, story: Story):
    registration = ("a", "* * * * *", callback, DELAY)
    with pytest.raises(RegistrationShapeError) as raised:
        story.scheduler().initialize([registration])
    assert raised.value.message == SHAPE
    assert raised.value.details == {"registrationIndex": 0, "received": registration}
    assert "async def" in (raised.value.hint or "")


@pytest.mark.contract("DECL-26")
@pytest.mark.parametrize(
    "registrations",
    [None, 1, "abcd", b"abcd", {}, {1}, iter([]), (each for each in "ab"), object()],
    ids=lambda each: re.sub(r" at 0x\w+", "", repr(each)),
)
async def test_what_is_no_list_is_refused(registrations: Any, story: Story):
    with pytest.raises(RegistrationsNotArrayError) as raised:
        story.scheduler().initialize(registrations)
    assert raised.value.message == str(raised.value) == "Registrations must be an array"
    assert raised.value.details == {}


@pytest.mark.contract("DECL-27")
@pytest.mark.parametrize(
    "received",
    [
        None, "abcd", {}, object(), (), ("a", "* * * * *", good), (*GOOD, None), {1, 2, 3, 4},
        (None, "* * * * *", good, DELAY), (b"a", "* * * * *", good, DELAY), (1, "* * * * *", good, DELAY),
        ("a", None, good, DELAY), ("a", b"* * * * *", good, DELAY), ("a", ["*"] * 5, good, DELAY),
        ("a", "* * * * *", good, 300), ("a", "* * * * *", good, None), ("a", "* * * * *", good, "5m"),
        ("", None, good, DELAY), ("a", "bad", good, None),
    ],
    ids=lambda each: re.sub(r" at 0x\w+", "", repr(each)),
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 2])
async def test_a_registration_of_another_shape_is_refused_with_its_place(
    received: Any, before: int, story: Story
):
    registrations = [(f"{number}", *GOOD[1:]) for number in range(before)]
    with pytest.raises(RegistrationShapeError) as raised:
        story.scheduler().initialize([*registrations, received, ()])
    assert raised.value.message == SHAPE
    assert raised.value.details == {"registrationIndex": before, "received": received}
    assert raised.value.details["received"] is received


@pytest.mark.contract("DECL-28", "DECL-02")
@pytest.mark.parametrize("name", ["", "half \ud800"])
async def test_a_name_that_cannot_be_is_refused(name: str, story: Story):
    with pytest.raises(InvalidRegistrationError) as raised:
        story.scheduler().initialize([(name, *GOOD[1:])])
    assert raised.value.details.keys() == {"field", "value", "reason"}
    assert (raised.value.details["field"], raised.value.details["value"]) == ("name", name)
    assert raised.value.details["reason"]


@pytest.mark.contract("DECL-29")
@pytest.mark.parametrize("name", ["a", 'say "hi"', " "])
async def test_two_tasks_of_one_name_are_refused(name: str, story: Story):
    registrations = [(name, *GOOD[1:]), GOOD, (name, "0 0 1 1 *", Callable(), timedelta())]
    with pytest.raises(ScheduleDuplicateTaskError) as raised:
        story.scheduler().initialize(registrations)
    assert raised.value.message == f'Task with name "{name}" is already scheduled'
    assert raised.value.details == {"taskName": name}


@pytest.mark.contract("DECL-31", "DECL-21", "DECL-22", "DECL-24")
@pytest.mark.parametrize(
    ("expression", "field", "value"),
    [
        ("60 * * * *", "minute", "60"), ("* 24 * * *", "hour", "24"), ("* * 0 * *", "day", "0"),
        ("* * * 13 *", "month", "13"), ("* * * * 7", "weekday", "7"), ("*/5 * * * *", "minute", "*/5"),
        ("* * * jan *", "month", "jan"), ("5-1 * * * *", "minute", "5-1"), ("* * * *", "expression", "* * * *"),
        ("@daily", "expression", "@daily"), ("", "expression", ""), ("1,,2 * * * *", "minute", "1,,2"),
        ("0 0 31 2 *", "day", "31"), ("* * * * *\n", "expression", None), ("٣ * * * *", "minute", "٣"),
        ("\ud800 * * * *", "minute", "\ud800"),
    ],
    ids=lambda each: re.sub(r" at 0x\w+", "", repr(each)),
)  # fmt: skip
async def test_a_bad_expression_is_refused_with_the_whole_chain_of_causes(
    expression: str, field: str, value: str | None, story: Story
):
    with pytest.raises(CronExpressionInvalidError) as raised:
        story.scheduler().initialize([GOOD, ("a", expression, good, DELAY)])
    error = raised.value
    cause = error.__cause__
    assert isinstance(cause, InvalidCronExpressionError)
    inner = cause.__cause__
    assert isinstance(inner, FieldParseError)
    assert inner.details.keys() == {"fieldValue", "fieldName"}
    assert error.details.keys() == {"expression", "field", "reason"}
    assert (cause.message, cause.details) == (error.message, error.details)
    named = error.details["field"]
    assert error.message == f'Invalid cron expression "{expression}": {named} field {error.details["reason"]}'
    assert error.details["expression"] == expression
    if value is not None and expression != "0 0 31 2 *":
        assert (named, inner.details) == (field, {"fieldValue": value, "fieldName": field})


@pytest.mark.contract("DECL-32")
@pytest.mark.parametrize("milliseconds", [-1, -1000, -86_400_000, -0.001])
async def test_a_negative_delay_is_refused(milliseconds: float, story: Story):
    with pytest.raises(NegativeRetryDelayError) as raised:
        story.scheduler().initialize([("a", "* * * * *", good, timedelta(milliseconds=milliseconds))])
    assert raised.value.message == "Retry delay must be non-negative"
    assert raised.value.details == {"retryDelayMs": milliseconds}


FAULTS: list[tuple[Any, type[HoraeError]]] = [
    (("a", "* * * * *", plain, DELAY), RegistrationShapeError),
    (("", "* * * * *", good, DELAY), InvalidRegistrationError),
    (("a", "7 7 7", good, DELAY), CronExpressionInvalidError),
    (("a", "* * * * *", good, -DELAY), NegativeRetryDelayError),
    (GOOD, ScheduleDuplicateTaskError),
]


@pytest.mark.contract("DECL-03", "DECL-12")
@pytest.mark.parametrize("first", range(len(FAULTS)))
async def test_the_first_faulty_registration_is_reported_as_it_is_called(first: int, story: Story):
    scheduler = story.scheduler()
    faulty = FAULTS[first:] + FAULTS[:first]
    with pytest.raises(faulty[0][1]) as raised:
        scheduler.initialize([GOOD, *(registration for registration, _ in faulty)])
    assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    assert story.events[1].details == {"error": raised.value}
    assert not story.file.exists()  # nothing happened
    assert scheduler._state == "Uninitialized"
    await scheduler.initialize([story.task("a")])  # and it may be tried again
    await story.clock.settle()
    await scheduler.stop()
    assert story.starts["a"] == [NOON]


@pytest.mark.contract("DECL-03")
def test_a_bad_list_is_refused_as_such_without_an_event_loop_too(tmp_path: Path):
    with pytest.raises(RegistrationsNotArrayError):
        Scheduler(database=":memory:", timezone="UTC").initialize(None)  # type: ignore[arg-type]


@pytest.mark.contract("DECL-26", "DECL-27", "DECL-28", "DECL-29", "DECL-30", "DECL-31", "DECL-32", "DECL-34")
def test_every_error_derives_from_one_base_and_carries_a_message_and_details():
    names = [
        "RegistrationsNotArrayError", "RegistrationShapeError", "InvalidRegistrationError",
        "ScheduleDuplicateTaskError", "SchedulerAlreadyActiveError", "CronExpressionInvalidError",
        "InvalidCronExpressionError", "FieldParseError", "NegativeRetryDelayError",
        "CronCalculationError", "TaskTryDeserializeError", "TaskMissingFieldError",
        "TaskInvalidTypeError", "TaskInvalidValueError", "TaskInvalidStructureError",
        "SchedulerInitializationError",
    ]  # fmt: skip
    kinds = [getattr(horae.errors, name) for name in names]
    assert all(issubclass(kind, HoraeError) for kind in kinds)
    below = {kind.__name__ for kind in horae.errors.TaskTryDeserializeError.__subclasses__()}
    assert below == {
        "TaskMissingFieldError", "TaskInvalidTypeError", "TaskInvalidValueError", "TaskInvalidStructureError",
    }  # fmt: skip


@pytest.mark.contract("DECL-02")
async def test_a_delay_as_long_as_can_be_is_a_delay(story: Story):
    scheduler = await story.begin(story.task("a", delay=timedelta.max))
    await story.clock.advance(minutes=1)
    await scheduler.stop()
    assert story.starts["a"] == at("12:00:30", "12:01:00")


@pytest.mark.contract("DECL-17")
async def test_a_task_with_the_longest_delay_fails_as_others_do(story: Story):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", delay=timedelta.max))
    await scheduler.stop()
    assert story.told() == ["start a 12:00:30", "fail a 12:00:30"]
