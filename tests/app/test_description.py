"""A schedule has a description for people: given, replaced, merged, shown and kept."""

from __future__ import annotations

import pytest

from horae import App, NewSchedule
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import view_of
from horae.errors import InvalidInputError
from horae.model import MAX_TEXT_LENGTH

REPORT = "Sends the report to the board.\nAsk the finance team before you change it: ümläut, 報告."


async def test_a_description_is_stored_changed_and_shown(database: str):
    app = App(database)
    app.action("a")(lambda context: None)
    async with app:
        await app.schedules.create("s", "0 9 * * *", "a", description=REPORT)
        assert (await app.schedules.create("plain", "0 9 * * *", "a")).description == ""
        assert view_of(ScheduleView, await app.schedules.get("s")).description == REPORT
        await app.schedules.update("s", "0 10 * * *")
        await app.schedules.pause("s", "not now")
        assert (await app.schedules.get("s")).description == REPORT
        changed = await app.schedules.update("s", description="")
        assert (changed.description, (await app.schedules.get("s")).description) == ("", "")


@pytest.mark.parametrize("wrong", ["x" * (MAX_TEXT_LENGTH + 1), "a\x00b"])
async def test_a_description_that_cannot_be_stored_is_refused(database: str, wrong: str):
    app = App(database)
    app.action("a")(lambda context: None)
    async with app:
        with pytest.raises(InvalidInputError, match="description"):
            await app.schedules.create_many(
                [NewSchedule(id="s", spec="0 9 * * *", action="a", description=wrong)]
            )
        await app.schedules.create("s", "0 9 * * *", "a")
        with pytest.raises(InvalidInputError, match="description"):
            await app.schedules.update("s", description=wrong)
