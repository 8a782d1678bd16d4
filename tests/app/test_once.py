"""A single run at a time ahead: a schedule with one time, idempotent by its key."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from horae import Filter
from horae.errors import HoraeError, InvalidInputError, ScheduleExistsError, UnknownActionError
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder


@pytest.mark.parametrize(
    ("when", "minutes"),
    [
        ({"in_": "10m"}, 10),
        ({"in_": timedelta(hours=1)}, 60),
        ({"in_": "500ms"}, 1 / 60),  # specs name whole seconds
        ({"in_": "0s"}, 1 / 60),
        ({"at": START + timedelta(hours=2)}, 120),
        ({"at": "2026-03-01T03:00:00Z"}, 180),
        ({"at": "2026-03-01T09:00", "timezone": "Europe/Berlin"}, 480),
    ],
)
async def test_an_action_runs_once(
    machine: TimeMachine, hello: Recorder, when: dict[str, Any], minutes: float
):
    made = await machine.app.once("hello", **when)
    await machine.advance(days=3)
    assert hello.nominal == [START + timedelta(minutes=minutes)]
    assert (await machine.app.schedules.get(made.id)).state.completed_at is not None


@pytest.mark.parametrize("when", [{"in_": "0s"}, {"at": START + timedelta(seconds=1)}])
async def test_it_runs_although_its_time_is_over_before_it_is_stored(
    machine: TimeMachine, hello: Recorder, when: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    looks = itertools.count()
    monkeypatch.setattr(machine.clock, "now", lambda: START + timedelta(seconds=2) * next(looks))
    await machine.app.once("hello", **when)
    monkeypatch.undo()
    await machine.advance(minutes=1)
    assert hello.nominal == [START + timedelta(seconds=1)]


async def test_it_takes_an_input_and_retries(machine: TimeMachine):
    got: list[Any] = []

    @machine.app.action
    def send(to: str) -> None:
        got.append(to)
        if len(got) < 3:
            raise ConnectionError

    await machine.app.once("send", in_="1m", input={"to": "ada"}, retries=2, timeout="5m")
    await machine.advance(hours=1)
    assert got == ["ada"] * 3


async def test_the_same_key_creates_nothing_more(machine: TimeMachine, hello: Recorder):
    first = await machine.app.once("hello", in_="10m", key="order-7")
    assert await machine.app.once("hello", in_="20m", key="order-7") == first
    await machine.advance(hours=1)
    over = await machine.app.once("hello", at=START + timedelta(minutes=10), key="order-7")
    assert (over.id, over.generation) == ("order-7", first.generation)
    assert len(hello.called) == 1
    await machine.app.once("hello", in_="10m")
    await machine.app.once("hello", in_="10m")
    assert await machine.app.schedules.count(Filter(action="hello")) == 3


async def test_a_key_is_no_other_schedule(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("nightly", "0 2 * * *", "hello")
    with pytest.raises(ScheduleExistsError):
        await machine.app.once("hello", in_="10m", key="nightly")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, InvalidInputError, "the time must be given in one way"),
        ({"in_": "1m", "at": START}, InvalidInputError, "the time must be given in one way"),
        ({"in_": "soon"}, InvalidInputError, "in_"),
        ({"at": START}, InvalidInputError, "at is not ahead"),
        ({"at": "tomorrow"}, InvalidInputError, 'at "tomorrow" is not a time'),
        ({"at": "2026-03-02T09:00", "timezone": "Mars"}, HoraeError, 'Unknown time zone "Mars"'),
        ({"in_": "1m", "key": ""}, InvalidInputError, "key must be a text of 1 to 500 characters"),
        ({"at": START.replace(tzinfo=None)}, HoraeError, "no time zone"),
        ({"in_": "1m", "retries": -1}, InvalidInputError, "retries"),
        ({"in_": "1m", "inptu": 1}, InvalidInputError, "inptu"),
    ],
)
async def test_a_mistake_is_said(
    machine: TimeMachine, hello: Recorder, options: dict[str, Any], error: type[HoraeError], words: str
):
    with pytest.raises(error, match=words):
        await machine.app.once("hello", **options)
    with pytest.raises(UnknownActionError):
        await machine.app.once("helo", in_="1m")
    assert await machine.app.schedules.list() == []


async def test_an_owner_has_their_own(machine: TimeMachine, hello: Recorder):
    made = await machine.app.owned_by("ada").once("hello", in_="1m")
    assert made.owner == "ada"
