"""Nodes in this process: apps that run, step by step or by themselves, and the database behind them."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from horae import App, Run
from horae.clock import SystemClock
from horae.model import OPEN
from tests.support.wait import wait_until


class ShiftedClock(SystemClock):
    """The machine's clock, off by as much as a test wants."""

    def __init__(self, shift: timedelta = timedelta(0)) -> None:
        self.shift = shift
        self.slept = 0.0
        """Seconds that the monotonic clock is ahead, as if this process had stood still for so long."""

    def now(self) -> datetime:
        return super().now() + self.shift

    def monotonic(self) -> float:
        return super().monotonic() + self.slept


@asynccontextmanager
async def running(app: App) -> AsyncIterator[App]:
    """An app that is open and keeps time as long as the context lasts."""
    async with app, keeping_time(app):
        yield app


@asynccontextmanager
async def keeping_time(app: App) -> AsyncIterator[None]:
    """Let an open app keep time as long as the context lasts."""
    task = asyncio.create_task(app.serve())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def ended(app: App, run_id: str) -> Run:
    """A run of an app that keeps time, once it has ended."""

    async def is_over() -> bool:
        return (await app.runs.get(run_id)).status not in OPEN

    await wait_until(is_over)
    return await app.runs.get(run_id)


async def fetch(database: str, query: str, *values: object) -> list[Any]:
    connection = await asyncpg.connect(database)
    try:
        rows: list[Any] = await connection.fetch(query, *values)
    finally:
        await connection.close()
    return rows


async def end_leases(database: str, *epochs: int) -> None:
    """Let the leases of some nodes, or of all, end now. On SQLite a node that holds the lock of a file has none."""
    if database.startswith("postgres"):
        query = "UPDATE node SET deadline = clock_timestamp() WHERE epoch = ANY($1) OR $1 = '{}'"
        await fetch(database, query, epochs)
        return
    with closing(sqlite3.connect(database.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        named = ", ".join(map(str, epochs)) or "epoch"
        connection.execute(f"UPDATE node SET deadline_ms = 1 WHERE deadline_ms > 0 AND epoch IN ({named})")  # noqa: S608


async def only_run(app: App, schedule_id: str = "s") -> Run:
    (run,) = await app.runs.list(schedule_id)
    return run


async def has_status(app: App, status: str, schedule_id: str = "s") -> bool:
    runs = await app.runs.list(schedule_id)
    return bool(runs) and runs[-1].status == status


def soon(app: App, seconds: int = 1) -> dict[str, Any]:
    """A spec of one slot: a moment ahead, by the clock that the nodes share."""
    at = datetime.fromtimestamp(app.now() // 1000 + seconds, UTC)
    return {"times": [at.isoformat()]}


async def due_now(app: App) -> bool:
    async with app._store.transaction() as transaction:
        return bool(await transaction.due(app.now(), 1))


async def step(app: App) -> int | None:
    """One step of a node, which nothing else drives."""
    return await app.engine.step(app.now())


async def step_until(app: App, status: str, *, house: bool = False) -> bool:
    """One step of a node, which nothing else drives."""
    if house:
        await app.engine.renew_and_maintain(app.now())
    await step(app)
    return await has_status(app, status)


@asynccontextmanager
async def writes_wait(table: str, database: str) -> AsyncIterator[None]:
    """Every transaction that writes to a table waits in the middle of what it does."""
    connection = await asyncpg.connect(database)
    try:
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {table} IN SHARE MODE")
            yield
    finally:
        await connection.close()


async def waits_for_lock(database: str, count: int = 1) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    found: int = (await fetch(database, query))[0][0]
    return found >= count
