"""The search among very many schedules: a page examines a part of them, and says where to go on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from horae.app import App, Filter, schedules
from horae.app.page import Page
from horae.model import Schedule, schedule_key
from horae.testing import TimeMachine

ODD = [f"s{number:02}" for number in range(1, 30, 2)]


@pytest.fixture
async def app(machine: TimeMachine, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr(schedules, "MAX_EXAMINED", 8)
    monkeypatch.setattr(schedules, "CHUNK", 4)
    machine.app.action("ping")(lambda: None)
    for number in range(30):
        tags = ("odd",) if number % 2 else ()
        await machine.app.owned_by("ada").schedules.create(
            f"s{number:02}", f"{number} * * * *", "ping", tags=tags
        )
    return machine.app


async def pages_of(app: App, only: Filter, limit: int) -> list[Page[Schedule]]:
    pages = [await app.schedules.search(only, limit=limit)]
    while (cursor := pages[-1].next) is not None:
        pages.append(await app.schedules.search(only, cursor=cursor, limit=limit))
    return pages


@pytest.mark.parametrize("limit", [1, 2, 5, 15, 40])
async def test_pages_together_have_each_that_matches_once_and_in_order(app: App, limit: int):
    for only in (Filter(tag="odd"), Filter(text="odd"), Filter(owner="ada", text="odd")):
        pages = await pages_of(app, only, limit)
        assert [each.id for page in pages for each in page] == ODD
        assert all(len(page) <= limit for page in pages)


async def test_a_page_ends_after_a_number_of_examined_schedules_with_none_or_some(app: App):
    pages = await pages_of(app, Filter(text="s29"), 3)
    assert [len(page) for page in pages] == [0, 0, 0, 1]
    assert [len(page) for page in await pages_of(app, Filter(text="nothing"), 50)] == [0]
    await app.owned_by("ada").schedules.pause("s29", "")
    assert [each.id for each in await app.schedules.search(Filter(paused=True))] == ["s29"], "along its index"


async def test_the_soonest_is_found_behind_those_of_others(app: App, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedules, "MAX_EXAMINED", 40)
    await app.owned_by("bob").schedules.create("late", "59 * * * *", "ping")
    assert list(await app.owned_by("bob").schedules.soonest(1)) == [schedule_key("bob", "late")]


async def test_the_soonest_are_those_that_fire_next_and_others_see_none(app: App, machine: TimeMachine):
    found = await app.schedules.soonest(3)
    assert list(found) == sorted(found, key=found.__getitem__)
    assert all(at - machine.now <= timedelta(minutes=3) for at in found.values())
    assert await app.owned_by("bob").schedules.soonest(3) == {}
    assert list(await app.schedules.soonest(40, tag="odd")) != []
    assert await app.owned_by("bob").schedules.get_many([schedule_key("ada", "s01")]) == ()
    assert [
        each.id for each in await app.owned_by("ada").schedules.get_many([schedule_key("ada", "s01")])
    ] == ["s01"]
