"""Descriptions that many callers ask for at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from unittest import mock

import msgspec
import pytest

import horae
from horae.app import Description
from horae.app.schedules import Schedules
from horae.errors import ScheduleNotFoundError, StoreUnavailableError
from horae.face.temporal.batched_reads import MAX_TOGETHER, Describer, ShownSchedules


@asynccontextmanager
async def asking(database: str = ":memory:") -> AsyncIterator[tuple[horae.App, Describer, list[int]]]:
    """An app with schedules, what describes them, and how many each question to the database was about."""
    app, asked, ask = horae.App(database), list[int](), Schedules.describe_many

    async def describe_many(self: Schedules, ids: Sequence[str]) -> Sequence[Description | None]:
        asked.append(len(ids))
        await asyncio.sleep(0)  # as if the database took its time
        return await ask(self, ids)

    app.action("ping")(lambda: None)
    async with app:
        mine = app.owned_by("ada")
        for number in range(120):
            await mine.schedules.create(f"s{number}", "0 9 * * *", "ping")
        with mock.patch.object(Schedules, "describe_many", describe_many):
            yield app, Describer(mine), asked


@pytest.mark.contract("SCHD-30")
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_schedules_that_are_asked_for_at_once_are_read_together(
    store: str, request: pytest.FixtureRequest
):
    database = request.getfixturevalue("postgres") if store == "postgresql" else ":memory:"
    async with asking(database) as (_, describer, asked):
        wanted = [f"s{number % 120}" for number in range(240)]
        found = await asyncio.gather(
            *map(describer.describe, wanted), describer.describe("none"), return_exceptions=True
        )
        assert [each.schedule.id for each in found[:-1] if isinstance(each, Description)] == wanted
        assert isinstance(found[-1], ScheduleNotFoundError)
        assert len(asked) <= 4
        assert max(asked) <= MAX_TOGETHER


async def test_what_was_changed_before_it_was_asked_for_is_seen():
    async with asking() as (app, describer, _):
        mine, shown = app.owned_by("ada").schedules, ShownSchedules()
        first = asyncio.create_task(describer.describe("s1"))
        await asyncio.sleep(0)  # its question is under way
        for note in ("a", "b"):
            await mine.pause("s1", note)
            read = (await describer.describe("s1")).schedule
            assert read.state.note == note
            assert shown.of(read).schedule.state.notes == note
            assert shown.of(read) is shown.of((await describer.describe("s1")).schedule)
        state = msgspec.structs.replace(
            read.state, remaining_actions=3
        )  # decisions change it, and no version
        limited = msgspec.structs.replace(read, state=state)
        assert shown.of(limited).schedule.state.remaining_actions == 3
        await first


async def test_an_error_reaches_all_that_asked_and_the_next_one_is_answered():
    async with asking() as (_, describer, _asked):
        away = mock.AsyncMock(side_effect=StoreUnavailableError("away"))
        with mock.patch.object(Schedules, "describe_many", away):
            found = await asyncio.gather(*map(describer.describe, ("s1", "s2")), return_exceptions=True)
        assert [type(each) for each in found] == [StoreUnavailableError] * 2
        assert (await describer.describe("s1")).schedule.id == "s1"
