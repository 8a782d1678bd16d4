"""Options belong to the kind of an action."""

from __future__ import annotations

import pytest

from horae import App
from horae.errors import InvalidInputError


async def test_options_that_the_kind_does_not_have_are_refused():
    async with App(":memory:") as app:
        app.action("work")(lambda: None)
        with pytest.raises(InvalidInputError) as error:
            await app.schedules.create("s", "0 9 * * *", {"name": "work", "options": {"url": "x"}})
        assert error.value.details["field"] == "action.options"
        assert await app.schedules.count() == 0
