"""A dry run stores nothing and says what would be; an edit that changes nothing is none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from horae import Config
from horae.app import App, Edit, NewSchedule
from horae.errors import HoraeError, ScheduleNotFoundError
from horae.testing import TimeMachine

SECRET_KEY = "a key for secrets, of 32 characters or more"  # noqa: S105


@pytest.fixture
async def app(machine: TimeMachine) -> App:
    machine.app.action("report")(lambda context: None)
    return machine.app


async def test_a_dry_run_creates_nothing(app: App):
    new = NewSchedule(id="s", spec="0 9 * * *", action="report")
    made = await app.schedules.create_once([new], dry_run=True)
    assert (made.schedules[0].id, made.schedules[0].version) == ("s", 1)
    with pytest.raises(ScheduleNotFoundError):
        await app.schedules.get("s")
    with pytest.raises(HoraeError):
        await app.schedules.create_once([NewSchedule(id="s", spec="0 9 * * *", action="none")], dry_run=True)


async def test_a_dry_run_changes_nothing(app: App):
    before = await app.schedules.create("s", "0 9 * * *", "report")
    would_be = await app.schedules.edit("s", lambda _: Edit(spec="0 10 * * *", tags=("x",)), dry_run=True)
    assert (would_be.version, would_be.tags) == (2, ("x",))
    assert await app.schedules.get("s") == before
    assert await app.schedules.versions("s") == []


@pytest.mark.parametrize(
    "fields", [{}, {"spec": "0 9 * * *"}, {"tags": ("a",), "memo": {"m": 1}}, {"action": "report"}, {"paused": False, "note": ""}]
)  # fmt: skip
async def test_an_edit_that_changes_nothing_keeps_the_version(app: App, fields: dict[str, Any]):
    before = await app.schedules.create("s", "0 9 * * *", "report", tags=("a",), memo={"m": 1})
    assert await app.schedules.edit("s", lambda _: Edit(**fields)) == before
    assert (await app.schedules.get("s")).version == 1


async def test_a_secret_that_is_given_again_is_no_change():
    config = Config(secret_key=SECRET_KEY, http_allow=("example.org",))
    async with TimeMachine(datetime(2026, 3, 1, tzinfo=UTC), config=config) as machine:
        machine.app.use_builtin()

        def action(token: str) -> dict[str, Any]:
            options = {"url": "https://example.org/", "headers": {"Authorization": token}}
            return {"kind": "http", "options": options}

        await machine.app.schedules.create("s", "0 9 * * *", action("one"))
        for token, version in (("one", 1), ("***", 1), ("two", 2), ("two", 2), ("***", 2)):
            edited = await machine.app.schedules.update("s", action=action(token))
            assert edited.version == version
