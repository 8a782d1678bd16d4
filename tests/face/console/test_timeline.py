"""Which schedules a timeline shows, of very many, and in which order."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from horae import Context
from horae.face.console.timeline import by_relevance
from horae.model import schedule_key
from horae.testing import TimeMachine
from tests.support.service import client_of


async def test_trouble_comes_first_then_what_is_nearest_to_now(machine: TimeMachine):
    @machine.app.action("ok")
    async def ok(context: Context) -> None: ...

    @machine.app.action("bad")
    async def bad(context: Context) -> None:
        raise ValueError

    schedules = machine.app.owned_by("local").schedules
    for name, spec, action in (
        ("a-far", {"times": [(machine.now + timedelta(minutes=80)).isoformat()]}, "ok"),
        ("b-often", "* * * * *", "ok"),
        ("c-fails", {"intervals": [{"every": "25m"}]}, "bad"),
        ("d-yearly", "0 0 1 1 *", "ok"),
    ):
        await schedules.create(name, spec, action)
    await machine.advance(minutes=30, seconds=10)
    entries = await machine.app.all_owners.runs.search(limit=1000)
    soonest = await machine.app.all_owners.schedules.soonest(40)
    until = machine.now + timedelta(hours=1)
    keys = {name: schedule_key("local", name) for name in ("a-far", "b-often", "c-fails")}
    order = by_relevance(entries, soonest, (), machine.now, until)
    assert order == [keys["c-fails"], keys["b-often"], keys["a-far"]]
    assert by_relevance(entries, soonest, {keys["a-far"]}, machine.now, until)[1] == keys["a-far"]
    async with client_of(machine.app) as client:
        page = (await client.get("/console")).text
        assert _lanes(page) == ["c-fails", "a-far", "b-often"], (
            "trouble first, then by name: lines keep their places"
        )
        fewer = (await client.get("/console?lanes=1")).text
        assert _lanes(fewer) == ["c-fails"]
        assert "lanes=41" in fewer


def _lanes(page: str) -> list[Any]:
    return [
        part.split("<")[0]
        for part in page.split('class="lane-name"')[1:]
        for part in [part.split("<bdi>")[1]]
    ]


async def test_a_short_window_counts_the_slots_in_it_and_what_is_over_ends_at_now(machine: TimeMachine):
    @machine.app.action("hold")
    async def hold(context: Context) -> None:
        await machine.sleep(hours=3)

    await machine.app.owned_by("local").schedules.create("long", "* * * * *", "hold")
    await machine.advance(minutes=45)
    async with client_of(machine.app) as client:
        page = (await client.get("/console?span=5m")).text
    (skipped,) = re.findall(r"([\d,]+) skipped</span>", page)
    assert int(skipped) in {5, 6}
    bars = re.findall(r'piece-skipped" x="([\d.]+)" y="16" width="([\d.]+)"', page)
    assert [float(x) + float(width) for x, width in bars] == [500.0]


async def test_a_tag_narrows_the_whole_overview_and_one_that_no_schedule_has_is_told(machine: TimeMachine):
    @machine.app.action("ok")
    async def ok(context: Context) -> None: ...

    schedules = machine.app.owned_by("local").schedules
    await schedules.create("often", "* * * * *", "ok")
    await schedules.create("rare", "30 * * * *", "ok", tags=("shop",))
    async with client_of(machine.app) as client:
        ahead = (await client.get("/console/forecast?tag=shop")).text
        assert "1 start;" in ahead
        shop = (await client.get("/console?tag=shop")).text
        assert "/console/forecast?tag=shop" in shop
        assert "nothing went wrong with schedules tagged" in shop
        none = (await client.get("/console?tag=nosuch")).text
        assert "No schedule is tagged" in none
        assert "nothing went wrong" not in none
