"""Changes of many schedules are made in batches: other transactions run in between, and the same request again does what a crash interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from horae import App, Context, Filter, NewSchedule
from horae.app import bulk, calendars
from horae.model import OnResume, Policies

BATCH = 40
"""Fewer than Horae's, for quick tests."""
MANY = 6 * BATCH
DAILY = {"crons": ["0 9 * * *"], "exclude": [{"calendar": "holidays"}]}
Bulk = Callable[[App], Awaitable[object]]


async def nothing(context: Context) -> None: ...


@pytest.fixture
async def app(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    """An app that nothing drives: only the test's calls happen."""
    for module in (bulk, calendars):
        monkeypatch.setattr(module, "BATCH", BATCH)
    app = App(database)
    app.functions.register("x", nothing)
    async with app:
        await app.calendars.put("holidays", {"dates": ["2099-12-25"]})
        await app.schedules.create_many(
            NewSchedule(id=f"s{number:04}", spec=DAILY, action="x", tags=("t",)) for number in range(MANY)
        )
        yield app


async def pause(app: App) -> int:
    return await app.schedules.pause_all(Filter(tag="t"), "all of them")


async def resume(app: App) -> int:
    return await app.schedules.resume_all(Filter(tag="t"))


async def change_calendar(app: App) -> int:
    return (await app.calendars.put("holidays", {"dates": ["2099-12-26"]}))[1]


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize("change", [pause, resume, change_calendar])
async def test_others_are_let_in_between(app: App, change: Bulk):
    if change is resume:
        await pause(app)
    doing = asyncio.ensure_future(change(app))
    await asyncio.sleep(0)
    await app.schedules.create("other", "0 9 * * *", "x")
    assert not doing.done()  # in one transaction, the other would come after all of it
    assert await doing == MANY


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize("change", [pause, change_calendar])
async def test_what_was_interrupted_is_finished_by_asking_again(app: App, change: Bulk):
    doing = asyncio.ensure_future(change(app))
    while (await app.schedules.get("s0000")).version == 1:  # quick, before the rest is done
        await asyncio.sleep(0)
    doing.cancel()
    await asyncio.wait([doing])
    some = await changed(app)
    assert 0 < len(some) < MANY
    assert len(some) % BATCH == 0  # whole batches
    await change(app)
    assert len(await changed(app)) == MANY
    assert set((await changed(app)).values()) == {2}  # each was changed once


async def changed(app: App) -> dict[str, int]:
    """The tokens of those that are no longer as they were created."""
    found: dict[str, int] = {}
    cursor = None
    while True:
        page = await app.schedules.list(cursor=cursor, limit=1000)
        found |= {each.id: each.version for each in page if each.version > 1}
        if (cursor := page.next) is None:
            return found


async def test_the_last_change_of_a_calendar_holds_when_several_come_at_once(app: App):
    days = [f"2099-11-{day:02}" for day in range(1, 5)]
    await asyncio.gather(*(app.calendars.put("holidays", {"dates": [day]}) for day in days))
    (kept,) = (await app.calendars.get("holidays")).document.dates
    specs = [each.spec for each in await app.schedules.list(limit=1000)]
    assert [spec for spec in specs if str(kept) not in spec] == []


async def test_changing_a_calendar_of_an_owner_reads_only_their_schedules(app: App):
    ada = app.owned_by("ada")
    await ada.calendars.put("holidays", {"dates": ["2099-12-24"]})
    await ada.schedules.create("hers", DAILY, "x", policies=Policies(on_resume=OnResume.SKIP))
    assert (await ada.calendars.put("holidays", {"dates": ["2099-12-31"]}))[1] == 1
    assert "2099-12-25" in (await app.schedules.get("s0000")).spec
    assert "2099-12-31" in (await app.schedules.get("hers")).spec
