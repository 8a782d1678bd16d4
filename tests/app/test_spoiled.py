"""A row that was spoiled, by hand or by another version, is named everywhere, stops no other schedule, and can be repaired."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horae import App, Config, Filter
from horae.app.schedule_views import description_view
from horae.errors import ScheduleUnreadableError
from tests.face.cli.command import horae
from tests.support.nodes import keeping_time
from tests.support.service import client_of
from tests.support.wait import wait_until

CONFIG = Config(tick_ms=50, housekeeping_ms=100, prune_ms=100)
EVERY_SECOND = "* * * * * *"
SPOILED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("policies", '{"overlap":"skp"}', 'policies.overlap is "skp", and must be one of', {"policies": {}}),
    ("policies", "{", "policies is no JSON", {"policies": {"overlap": "queue"}}),
    ("action", '{"name":5}', "action.name must be a text, not a whole number", {"action": "work"}),
    ("spec", '{"crons":["61 * * * *"]}', "its spec cannot be read: crons[0]", {"spec": EVERY_SECOND}),
    ("state", '{"paused":5,"remaining_actions":9}', "state.paused must be true or false", {"paused": False}),
    ("state", "x", "state is no JSON", {"paused": False}),
    ("tags", "{}", "tags must be a list, not a mapping", {"tags": ["t"]}),
]  # fmt: skip
BAD = [f"bad-{number}" for number in range(len(SPOILED))]


async def spoil(database: str, column: str, value: str, schedule_id: str = "bad") -> None:
    """Change a column of a schedule, as an operator with a client of the database would."""
    update = f"UPDATE %s SET {column} = %s WHERE id = '{schedule_id}'"  # noqa: S608
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(update % ("schedule", "?"), (value,))
        return
    server = await asyncpg.connect(database)
    await server.execute(update % ("horae.schedule", "$1"), value)
    await server.close()


@asynccontextmanager
async def at_work(database: str, *spoiled: tuple[str, str, str]) -> AsyncIterator[App]:
    """An app with a good schedule and spoiled ones, which it finds spoiled when it begins to keep time."""
    async with App(database, config=CONFIG) as app:
        app.action("work")(lambda: None)
        for each in {"good", *(bad for bad, _, _ in spoiled)}:
            await app.schedules.create(each, EVERY_SECOND, "work", tags=["t"])
        for bad, column, value in spoiled:
            await spoil(database, column, value, bad)
        async with keeping_time(app):
            yield app


def runs_of(app: App, schedule_id: str, number: int = 1) -> Callable[[], Awaitable[bool]]:
    """Whether a schedule has that many runs more than now."""
    before: list[int] = []

    async def has() -> bool:
        found = len(await app.runs.list(schedule_id, 1000))
        before.append(found)
        return found >= before[0] + number

    return has


async def test_spoiled_rows_are_named_stop_no_other_and_are_repaired_by_updates(
    database: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "horae")
    rows = [(bad, *row[:2]) for bad, row in zip(BAD, SPOILED, strict=True)]
    async with at_work(database, *rows) as app:
        await wait_until(runs_of(app, "good", 2))
        for bad, (_, _, sentence, _) in zip(BAD, SPOILED, strict=True):
            view = description_view(await app.schedules.describe(bad))
            assert (bad, view.state) == (bad, "paused")
            assert sentence in view.attention
            said = [text for text in map(logging.LogRecord.getMessage, caplog.records) if f'"{bad}"' in text]
            assert len(said) == 1, said
            assert sentence in said[0]
        for only in (Filter(attention=True), Filter(paused=True)):
            assert [each.id for each in await app.schedules.list(only)] == BAD
        assert [each.id for each in await app.schedules.list()] == [*BAD, "good"]
        assert "good" in [each.id for each in await app.schedules.list(Filter(tag="t", action="work"))]
        for bad, (column, value, _, repair) in zip(BAD, SPOILED, strict=True):
            await app.schedules.update(bad, **repair)
            if column == "state":
                left = (await app.schedules.get(bad)).state.remaining_actions
                assert left == (9 if "9" in value else None)
        assert await app.schedules.unreadable() == []
        await asyncio.gather(*(wait_until(runs_of(app, bad)) for bad in BAD))
        for bad in BAD:
            fixed = await app.schedules.get(bad)
            assert (fixed.unreadable, fixed.state.attention, fixed.state.note) == ({}, "", "")
            await app.schedules.delete(bad)


async def test_it_is_refused_what_would_overwrite_it_and_checked_and_counted(database: str):
    async with at_work(database, ("bad", "policies", '{"overlap":"skp"}'), ("bad", "tags", "{}")) as app:

        async def is_counted_and_set_aside() -> bool:
            set_aside = (await app.schedules.get("bad")).state.paused
            return set_aside and (await app.readiness()).unreadable == 1

        await wait_until(is_counted_and_set_aside)
        assert (await app.readiness()).status == "ready"
        spoiled = await app.schedules.get("bad")
        for change in (
            lambda: app.schedules.trigger("bad"),
            lambda: app.schedules.resume("bad"),
            lambda: app.schedules.update("bad", description="x"),
            lambda: app.schedules.update("bad", policies={"overlap": "skip"}),
        ):
            with pytest.raises(ScheduleUnreadableError, match="tags must be a list") as refused:
                await change()
        assert set(refused.value.details["fields"]) == {"tags"}
        assert refused.value.hint == "update it with tags, or delete it"
        assert await app.schedules.pause_all(Filter(), "all") == 1
        assert await app.schedules.get("bad") == spoiled
        assert [each.id for each in await app.schedules.unreadable()] == ["bad"]
        await app.schedules.delete("bad")
        assert not await app.schedules.exists("bad")
        await app.calendars.put("c", {"dates": ["2026-12-25"]})


async def test_it_is_shown_and_repaired_over_http(database: str):
    async with App(database) as app:
        app.action("work")(lambda: None)
        async with client_of(app) as api:
            for column, value, sentence, repair in SPOILED:
                await app.schedules.create("bad", EVERY_SECOND, "work", owner="local")
                await spoil(database, column, value)
                shown = (await api.get("/api/v1/schedules/bad")).json()
                assert sentence in shown["unreadable"][column]
                assert (shown["state"], shown["attention"]) == (
                    "paused",
                    f"needs attention: {shown['unreadable'][column]}",
                )
                refused = await api.patch("/api/v1/schedules/bad", json={"note": "x"})
                assert (refused.status_code, refused.json()["code"]) == (409, "schedule_unreadable")
                repaired = await api.patch("/api/v1/schedules/bad", json=repair)
                assert (repaired.status_code, repaired.json()["unreadable"], repaired.json()["state"]) == (
                    200,
                    {},
                    "running",
                )
                assert (await api.delete("/api/v1/schedules/bad")).status_code == 204


def test_the_check_names_it(tmp_path: Path):
    database = f"sqlite:///{tmp_path}/horae.db"

    async def spoiled() -> None:
        async with App(database) as app:
            app.action("work")(lambda: None)
            await app.schedules.create("bad", EVERY_SECOND, "work", paused=True)
            await spoil(database, "policies", '{"overlap":"skp"}')

    asyncio.run(spoiled())
    ran = horae("check", "--database", database, "--json")
    assert ran.returncode == 1
    assert '\\"bad\\" cannot be read: policies.overlap is \\"skp\\"' in ran.stdout
