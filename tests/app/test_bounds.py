"""What an app keeps and answers has an end: what would be more is refused and leaves no trace, or comes with the next page."""

from __future__ import annotations

from typing import Any

import pytest

from horae import App, Config, Context
from horae.errors import LimitExceededError


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return ":memory:" if request.param == "sqlite" else request.getfixturevalue("postgres")


async def nothing(context: Context) -> Any:
    return context.input


async def test_one_user_has_so_many_calendars_at_most(database: str):
    async with App(database, config=Config(calendars_per_user=2)) as app:
        ada, bob = app.owned_by("ada"), app.owned_by("bob")
        for calendars in (app.calendars, ada.calendars):  # everybody's fill no user's
            await calendars.put("one", {"dates": ["2026-12-24"]})
            await calendars.put("two", {"dates": ["2026-12-25"]})
            with pytest.raises(LimitExceededError) as error:
                await calendars.put("three", {"dates": ["2026-12-26"]})
            assert error.value.details == {"limit": "calendars_per_user", "most": 2}
        await ada.calendars.put("two", {"dates": ["2026-12-31"]})  # what is there may change
        await bob.calendars.put("three", {"dates": ["2026-12-26"]})
        assert [each.name for each in await ada.calendars.list()] == ["one", "one", "two", "two"]
        await ada.calendars.delete("one")
        await ada.calendars.put("three", {"dates": ["2026-12-26"]})
