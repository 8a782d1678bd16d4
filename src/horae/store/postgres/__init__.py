"""PostgreSQL: many nodes on one database. Rows are locked for a decision; waiting nodes pass them by."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from typing import Any

import asyncpg

from horae.errors import DatabaseVersionError, StoreUnavailableError
from horae.model import PassedOver, Run, Schedule
from horae.store.port import Advance, Outcome, Store, Transaction
from horae.store.rows import passed_of, run_of, run_row, schedule_of, to_json

VERSION = 1
LEASE = 10.0
"""Seconds that a node lives without renewing."""

_MIGRATION_LOCK = 0x686F726165  # "horae", so that other users of the database do not share it
_LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.CannotConnectNowError, OSError)


@cache
def query(name: str) -> str:
    """The text of a query: one a file, named for what it does."""
    return resources.files("horae.store.postgres").joinpath(f"{name}.sql").read_text("utf-8")


class PostgresStore(Store):
    """A database that many nodes share. Lost connections are made anew when they are needed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: asyncpg.Pool | None = None
        self._listening: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()  # the listening connection was lost, or the store is closing
        self._closing = False

    async def open(self, wake: Callable[[], None]) -> None:
        with _as_unavailable():
            self._pool = await asyncpg.create_pool(self._url, min_size=1, max_size=4, command_timeout=60)
            async with self._pool.acquire() as connection:
                await _migrate(connection, self._url)
        self._closing = False
        self._stirred.clear()
        self._listening = asyncio.create_task(self._listen(wake), name="horae:listen")

    async def close(self) -> None:
        if self._listening is not None:
            self._closing = True
            self._stirred.set()
            await asyncio.wait([self._listening])
            self._listening = None
        if self._pool is not None:
            with contextlib.suppress(*_LOST):
                await self._pool.close()
            self._pool = None

    async def _listen(self, wake: Callable[[], None]) -> None:
        """Hear what other nodes change; while the connection is lost, the engine's tick is the net."""
        while not self._closing:
            try:
                connection = await asyncpg.connect(self._url, timeout=5)
            except (*_LOST, TimeoutError):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stirred.wait(), 1)
                continue
            with contextlib.suppress(*_LOST, TimeoutError):
                try:
                    connection.add_termination_listener(lambda _: self._stirred.set())
                    await connection.add_listener("horae", lambda *_: wake())
                    await self._stirred.wait()
                    self._stirred.clear()
                finally:
                    await connection.close(timeout=1)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        with _as_unavailable():
            async with self._opened().acquire() as connection, connection.transaction():
                yield PostgresTransaction(connection)

    async def announce(self, epoch: int) -> None:
        await self._fetch("announce", epoch, LEASE)

    async def renew(self, epoch: int) -> bool:
        return bool(await self._fetch("renew", epoch, LEASE))

    async def living(self, epochs: Collection[int]) -> set[int]:
        return {row[0] for row in await self._fetch("living", list(epochs))}

    async def time(self) -> int | None:
        return int((await self._fetch("time"))[0][0])

    async def _fetch(self, name: str, *values: object) -> list[Any]:
        with _as_unavailable():
            found: list[Any] = await self._opened().fetch(query(name), *values)
            return found

    def _opened(self) -> asyncpg.Pool:
        if self._pool is None:
            raise StoreUnavailableError("the store is not open")
        return self._pool


@contextlib.contextmanager
def _as_unavailable() -> Any:  # noqa: ANN401 - a context manager
    """Whatever a driver says of a lost connection means one thing to the engine."""
    try:
        yield
    except _LOST as error:
        raise StoreUnavailableError(str(error)) from error


async def _migrate(connection: Any, url: str) -> None:  # noqa: ANN401 - asyncpg has no types
    """Bring the schema up to date, under a lock, whoever comes first."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
        if await connection.fetchval("SELECT to_regclass('horae')") is None:
            await connection.execute(query("schema"))
        version = await connection.fetchval("SELECT version FROM horae")
    if version > VERSION:
        raise DatabaseVersionError(url.rpartition("@")[2], version, VERSION)


class PostgresTransaction(Transaction):
    """A transaction of one connection; what it writes goes as one array a column."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        self._connection = connection

    async def _rows(self, name: str, *values: object) -> list[Any]:
        found: list[Any] = await self._connection.fetch(query(name), *values)
        return found

    async def _write(self, name: str, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Write rows at once, turned into columns."""
        return await self._rows(name, *(list(column) for column in zip(*rows, strict=True))) if rows else []

    async def due(self, now: int, limit: int) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("due", now, limit)]

    async def schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("schedules", list(ids))]

    async def all_schedules(self, after: str, limit: int) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("all_schedules", after, limit)]

    async def put_schedule(self, schedule: Schedule, next_at: int | None) -> None:
        await self._rows(
            "put_schedule", schedule.id, schedule.incarnation, schedule.spec, to_json(schedule.action),
            to_json(schedule.policies), to_json(schedule.state), schedule.token, schedule.created_at,
            schedule.updated_at,
        )  # fmt: skip
        await self._rows("put_due", schedule.id, schedule.cursor, next_at)

    async def delete_schedule(self, schedule_id: str) -> None:
        await self._rows("delete_schedule", schedule_id)
        await self._rows("delete_due", schedule_id)

    async def next_incarnation(self, schedule_id: str) -> int:
        return int((await self._rows("next_incarnation", schedule_id))[0][0])

    async def open_runs(self, schedule_ids: Sequence[str]) -> list[Run]:
        return [run_of(row) for row in await self._rows("open_runs", list(schedule_ids))]

    async def runs(self, schedule_id: str, limit: int) -> list[Run]:
        return [run_of(row) for row in await self._rows("runs", schedule_id, limit)]

    async def passed_over(self, schedule_id: str, limit: int) -> list[PassedOver]:
        return [passed_of(row) for row in await self._rows("passed_over", schedule_id, limit)]

    async def insert_runs(self, runs: Iterable[Run]) -> None:
        await self._write("insert_run", [tuple(run_row(run).values()) for run in runs])

    async def update_runs(self, runs: Iterable[Run]) -> None:
        columns = ("id", "status", "reason", "attempt", "epoch", "started_at", "ended_at")
        await self._write("update_run", [tuple(map(run_row(run).get, columns)) for run in runs])

    async def insert_passed(self, ranges: Iterable[PassedOver]) -> None:
        for each in ranges:
            continued = await self._rows(
                "continue_passed", each.last, each.count, each.decided_at, each.schedule_id, each.incarnation,
                each.before, each.status, each.reason,
            )  # fmt: skip
            if not continued:
                await self._rows(
                    "insert_passed", each.schedule_id, each.incarnation, each.first, each.last, each.count,
                    each.status, each.reason, each.decided_at,
                )  # fmt: skip

    async def advance(self, steps: Iterable[Advance]) -> None:
        prepared = list(steps)
        await self._write("advance", [(step.schedule_id, step.cursor, step.next_at) for step in prepared])
        changed = [(step.schedule_id, to_json(step.state)) for step in prepared if step.state is not None]
        await self._write("put_state", changed)

    async def finish(self, outcomes: Iterable[Outcome]) -> list[str]:
        return [row[0] for row in await self._write("finish", [tuple(outcome) for outcome in outcomes])]

    async def look_now(self, schedule_ids: Sequence[str], now: int) -> None:
        await self._rows("look_now", list(schedule_ids), now)

    async def notify(self) -> None:
        await self._rows("notify")

    async def wake_at(self) -> int | None:
        found: int | None = (await self._rows("wake_at"))[0][0]
        return found

    async def claimed(self) -> list[Run]:
        return [run_of(row) for row in await self._rows("claimed")]

    async def next_number(self) -> int:
        return int((await self._rows("next_number"))[0][0])
