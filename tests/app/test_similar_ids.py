"""A misspelt id is answered with the most similar one that the caller may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from horae import App, NewSchedule, SyncApp
from horae.app import ScopedOperations
from horae.errors import ScheduleNotFoundError
from horae.testing import TimeMachine
from tests.face.cli.command import horae as command
from tests.support.service import client_of

DAILY = "0 9 * * *"
CALLS: list[Callable[[ScopedOperations], Awaitable[object]]] = [
    lambda own: own.schedules.get("reprot"),
    lambda own: own.schedules.describe("reprot"),
    lambda own: own.schedules.trigger("reprot"),
    lambda own: own.schedules.pause("reprot"),
    lambda own: own.schedules.update("reprot", note="x"),
    lambda own: own.schedules.put("reprot", DAILY, "work", version=1),
    lambda own: own.schedules.delete("reprot"),
    lambda own: own.schedules.times("reprot"),
    lambda own: own.schedules.versions("reprot"),
    lambda own: own.runs.list("reprot"),
    lambda own: own.backfills.start("reprot", "2026-01-01T00:00Z", "2026-01-02T00:00Z"),
    lambda own: own.why.explain("reprot", "2026-01-01T00:00Z"),
]


@pytest.fixture
def app(machine: TimeMachine) -> App:
    machine.app.action("work")(lambda: None)
    return machine.app


async def hint_of(call: Awaitable[object]) -> str | None:
    with pytest.raises(ScheduleNotFoundError) as refused:
        await call
    return refused.value.hint


async def test_every_operation_on_a_schedule_suggests_one(app: App):
    await app.schedules.create("report", DAILY, "work")
    for call in CALLS:
        assert await hint_of(call(app.all_owners)) == "did you mean report?"
        assert await hint_of(call(app.owned_by("ada"))) is None
    assert await hint_of(app.schedules.get("quite another")) is None
    assert await hint_of(app.schedules.get("")) is None


async def test_an_owner_is_told_only_of_their_own(app: App):
    await app.owned_by("ada").schedules.create("report", DAILY, "work")
    await app.owned_by("bob").schedules.create("reports", DAILY, "work")
    for owner, hint in (
        ("ada", "did you mean report?"),
        ("bob", "did you mean reports?"),
        ("", None),
        ("eve", None),
    ):
        assert await hint_of(app.owned_by(owner).schedules.get("reprot")) == hint


async def test_it_does_so_on_postgresql(postgres: str):
    async with App(postgres) as app:
        app.action("work")(lambda: None)
        await app.owned_by("ada").schedules.create("report", DAILY, "work")
        for call in CALLS:
            assert await hint_of(call(app.owned_by("ada"))) == "did you mean report?"
            assert await hint_of(call(app.owned_by("bob"))) is None


async def test_among_very_many_the_similar_one_is_found_without_reading_all(app: App):
    new = [
        NewSchedule(id=f"{letter}{number:04}", spec=DAILY, action="work")
        for letter in "aqz"
        for number in range(300)
    ]
    await app.schedules.create_many([*new, NewSchedule(id="report", spec=DAILY, action="work")])
    assert await hint_of(app.schedules.get("reprot")) == "did you mean report?"
    assert await hint_of(app.schedules.get("a0001x")) == "did you mean a0001?"


async def test_the_api_and_the_command_say_it_too(app: App, tmp_path):
    await app.schedules.create("report", DAILY, "work")
    async with client_of(app) as client:
        answer = await client.post("/api/v1/schedules/reprot/trigger", json={})
    assert (answer.status_code, answer.json()["hint"]) == (404, "did you mean report?")


def test_a_command_says_it_with_its_own_hint(tmp_path):
    with SyncApp(f"sqlite:///{tmp_path}/horae.db") as app:
        app.action("work")(lambda: None)
        app.schedules.create("report", DAILY, "work")
        with pytest.raises(ScheduleNotFoundError) as refused:
            app.schedules.trigger("reprot")
        assert refused.value.hint == "did you mean report?"
    said = command("schedules", "describe", "reprot", folder=tmp_path).stderr
    assert said.splitlines() == [
        'error: There is no schedule "reprot"',
        "hint: did you mean report? horae schedules list shows what exists",
    ]
