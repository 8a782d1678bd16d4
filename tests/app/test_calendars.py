"""Shared calendars: whose they are, what changing one does, and what happens when two do so at once."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from horae import App, Context
from horae.errors import CalendarInUseError, CalendarNotFoundError, InvalidSpecError, UnknownCalendarError
from horae.testing import TimeMachine

START = datetime(2026, 12, 23, 12, tzinfo=UTC)
DAILY = {"crons": ["0 9 * * *"], "exclude": [{"calendar": "holidays"}]}


async def nothing(context: Context) -> None: ...


async def days(app: App, schedule_id: str, number: int = 3) -> list[int]:
    return [each.nominal.day for each in (await app.schedules.times(schedule_id, limit=number)).items]


@pytest.mark.contract("SCHD-05")
async def test_a_change_of_a_calendar_changes_what_fires():
    async with TimeMachine(start=START) as machine:
        app = machine.app
        app.functions.register("x", nothing)
        await app.calendars.put("holidays", {"dates": ["2026-12-25"]})
        await app.schedules.create("daily", DAILY, "x")
        assert await days(app, "daily") == [24, 26, 27]
        await machine.advance(hours=24)  # 24 December, 12:00
        _, changed = await app.calendars.put("holidays", {"dates": ["2026-12-26"]})
        assert changed == 1
        assert await days(app, "daily") == [25, 27, 28]
        await machine.advance(hours=72)
        fired = [run.nominal_ms // 1000 for run in await app.runs.list("daily")]
        assert [datetime.fromtimestamp(each, UTC).day for each in reversed(fired)] == [24, 25, 27]
        (version,) = await app.schedules.versions("daily")
        assert "2026-12-25" in version.spec  # what was excluded then is known later
        was = await app.why.explain("daily", "2026-12-26T09:00:00Z")
        assert was.verdict == "excluded"


async def test_the_calendar_of_an_owner_takes_precedence_over_the_one_for_all():
    async with TimeMachine(start=START) as machine:
        app = machine.app
        app.functions.register("x", nothing)
        ada, bob = app.owned_by("ada"), app.owned_by("bob")
        await app.calendars.put("holidays", {"dates": ["2026-12-24"]})
        for owner, name in ((ada, "a"), (bob, "b")):
            await owner.schedules.create(name, DAILY, "x")
        assert await days(app, "a") == await days(app, "b") == [25, 26, 27]
        _, changed = await ada.calendars.put("holidays", {"dates": ["2026-12-25"]})
        assert changed == 1
        assert (await days(app, "a"), await days(app, "b")) == ([24, 26, 27], [25, 26, 27])
        _, changed = await app.calendars.put("holidays", {"dates": ["2026-12-26"]})
        assert changed == 1  # bob's; ada has her own
        assert (await days(app, "a"), await days(app, "b")) == ([24, 26, 27], [24, 25, 27])
        assert (await ada.calendars.get("holidays")).owner == "ada"
        assert [each.owner for each in await ada.calendars.list()] == ["", "ada"]
        assert [each.owner for each in await bob.calendars.list()] == [""]
        with pytest.raises(CalendarNotFoundError):
            await bob.calendars.delete("holidays")  # bob may not remove the one for all
        with pytest.raises(CalendarInUseError):
            await ada.calendars.delete("holidays")
        assert (await ada.calendars.get("holidays")).owner == "ada"


async def test_what_is_wrong_changes_nothing():
    async with TimeMachine(start=START) as machine:
        app = machine.app
        app.functions.register("x", nothing)
        with pytest.raises(UnknownCalendarError):
            await app.schedules.create("daily", DAILY, "x")
        await app.calendars.put("holidays", {"dates": ["2026-12-25"]})
        await app.schedules.create("daily", DAILY, "x")
        wrong: list[dict[str, Any]] = [
            {"dates": ["2026-13-01"]},
            {"date": []},
            {"calendars": [{"hour": "25"}]},
        ]
        for bad in wrong:
            with pytest.raises(InvalidSpecError):
                await app.calendars.put("holidays", bad)
        assert await days(app, "daily") == [24, 26, 27]
        assert (await app.schedules.get("daily")).version == 1
        await app.calendars.put("company-days", {"dates": ["2026-12-27"]})
        misspelt = {"crons": ["0 9 * * *"], "exclude": [{"calendar": "company-dayz"}]}
        for refused in (app.schedules.meaning(misspelt), app.schedules.create("x", misspelt, "x")):
            with pytest.raises(UnknownCalendarError) as caught:
                await refused
            assert caught.value.hint == "did you mean company-days? Defined: company-days, holidays"


async def test_creating_and_changing_at_once_end_with_the_same_days(postgres: str):
    """Whichever comes first, the schedule has the days that the calendar has in the end."""
    async with App(postgres) as app, App(postgres) as other:
        app.functions.register("x", nothing)
        for number in range(15):
            name = f"c{number}"
            await app.calendars.put(name, {"dates": ["2026-12-25"]})
            spec = {"crons": ["0 9 * * *"], "exclude": [{"calendar": name}]}
            await asyncio.gather(
                app.schedules.create(f"s{number}", spec, "x"),
                other.calendars.put(name, {"dates": ["2026-12-26"]}),
            )
            assert "2026-12-26" in (await app.schedules.get(f"s{number}")).spec
