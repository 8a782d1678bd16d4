"""SQLite: a file, or memory. One writer thread; several processes may open the same file."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from horae.errors import DatabaseVersionError, StoreUnavailableError
from horae.model import PassedOver, Run, Schedule
from horae.store.port import Advance, Outcome, Store, Transaction
from horae.store.rows import passed_of, run_of, run_row, schedule_of, to_json

VERSION = 1
T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


@cache
def query(name: str) -> str:
    """The text of a query: one a file, named for what it does."""
    return resources.files("horae.store.sqlite").joinpath(f"{name}.sql").read_text("utf-8")


class SqliteStore(Store):
    """A database in a file, or in memory.

    ``inline`` works in the caller's thread, so that a simulation is deterministic; otherwise a thread of its own does, and the
    event loop never waits for the disk.
    """

    def __init__(self, path: str, *, inline: bool = False) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._thread = None if inline else ThreadPoolExecutor(1, thread_name_prefix="horae-sqlite")
        self._lock = asyncio.Lock()
        self._announced: list[int] = []

    async def open(self, wake: Callable[[], None]) -> None:  # noqa: ARG002 - a file tells nobody
        await self.work(lambda _: None)

    async def close(self) -> None:
        if self._connection is not None:
            await self.work(lambda connection: connection.close())
            self._connection = None
        if self._thread is not None:
            self._thread.shutdown()
        for descriptor in self._announced:
            os.close(descriptor)
        self._announced.clear()

    async def work(self, work: Work[T]) -> T:
        """Do something with the connection, in the store's thread."""
        try:
            if self._thread is None:
                return work(self._connected())
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, lambda: work(self._connected()))
        except sqlite3.OperationalError as error:  # locked too long, a full disk, a folder that is gone
            raise StoreUnavailableError(f"{self._path}: {error}") from error

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(
                self._path, timeout=30, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                _migrate(connection, self._path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._lock:
            await self.work(lambda connection: connection.execute("BEGIN IMMEDIATE"))
            try:
                yield SqliteTransaction(self)
                await self.work(lambda connection: connection.execute("COMMIT"))
            except BaseException:
                with contextlib.suppress(StoreUnavailableError):  # the database has undone it by itself
                    await self.work(lambda connection: connection.execute("ROLLBACK"))
                raise

    async def announce(self, epoch: int) -> None:
        """Hold an operating-system lock on a file of the node's own: it ends with the process, at once."""
        if self._path == ":memory:":
            return
        descriptor = os.open(self._lock_file(epoch), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._announced.append(descriptor)

    async def renew(self, epoch: int) -> bool:  # noqa: ARG002 - the lock holds by itself
        return True

    async def living(self, epochs: Collection[int]) -> set[int]:
        return {epoch for epoch in epochs if self._path != ":memory:" and self._is_alive(epoch)}

    def _is_alive(self, epoch: int) -> bool:
        try:
            descriptor = os.open(self._lock_file(epoch), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        Path(self._lock_file(epoch)).unlink(missing_ok=True)
        return False

    async def time(self) -> int | None:
        return None

    def _lock_file(self, epoch: int) -> str:
        return f"{self._path}.node-{epoch}"


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the schema up to date, under a lock, whoever comes first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'horae'").fetchone()
        if known is None:
            for statement in query("schema").split(";\n"):
                connection.execute(statement)
        (version,) = connection.execute("SELECT version FROM horae").fetchone()
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    if version > VERSION:
        raise DatabaseVersionError(path, version, VERSION)


class SqliteTransaction(Transaction):
    """A transaction of the one connection."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def _rows(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        return await self._store.work(lambda c: c.execute(query(name), values).fetchall())

    async def _write(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        prepared = list(rows)
        if prepared:
            await self._store.work(lambda c: c.executemany(query(name), prepared))

    async def due(self, now: int, limit: int) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("due", now=now, limit=limit)]

    async def schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("schedules", ids=to_json(ids))]

    async def all_schedules(self, after: str, limit: int) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("all_schedules", after=after, limit=limit)]

    async def put_schedule(self, schedule: Schedule, next_at: int | None) -> None:
        await self._write(
            "put_schedule",
            [
                {
                    "id": schedule.id, "incarnation": schedule.incarnation, "spec": schedule.spec,
                    "action": to_json(schedule.action), "policies": to_json(schedule.policies),
                    "state": to_json(schedule.state), "token": schedule.token,
                    "created_at": schedule.created_at, "updated_at": schedule.updated_at,
                }
            ],
        )  # fmt: skip
        await self._write("put_due", [{"id": schedule.id, "cursor": schedule.cursor, "next_at": next_at}])

    async def delete_schedule(self, schedule_id: str) -> None:
        await self._write("delete_schedule", [{"id": schedule_id}])
        await self._write("delete_due", [{"id": schedule_id}])

    async def next_incarnation(self, schedule_id: str) -> int:
        return int((await self._rows("next_incarnation", id=schedule_id))[0][0])

    async def open_runs(self, schedule_ids: Sequence[str]) -> list[Run]:
        return [run_of(row) for row in await self._rows("open_runs", ids=to_json(schedule_ids))]

    async def runs(self, schedule_id: str, limit: int) -> list[Run]:
        return [run_of(row) for row in await self._rows("runs", id=schedule_id, limit=limit)]

    async def passed_over(self, schedule_id: str, limit: int) -> list[PassedOver]:
        return [passed_of(row) for row in await self._rows("passed_over", id=schedule_id, limit=limit)]

    async def insert_runs(self, runs: Iterable[Run]) -> None:
        await self._write("insert_run", (run_row(run) for run in runs))

    async def update_runs(self, runs: Iterable[Run]) -> None:
        await self._write("update_run", (run_row(run) for run in runs))

    async def insert_passed(self, ranges: Iterable[PassedOver]) -> None:
        rows = [{f: getattr(each, f) for f in each.__struct_fields__} for each in ranges]

        def write(connection: sqlite3.Connection) -> None:
            for row in rows:
                if not connection.execute(query("continue_passed"), row).rowcount:
                    connection.execute(query("insert_passed"), row)

        if rows:
            await self._store.work(write)

    async def advance(self, steps: Iterable[Advance]) -> None:
        prepared = list(steps)
        await self._write("advance", (step._asdict() for step in prepared))
        changed = [step for step in prepared if step.state is not None]
        await self._write(
            "put_state", ({"schedule_id": s.schedule_id, "state": to_json(s.state)} for s in changed)
        )

    async def finish(self, outcomes: Iterable[Outcome]) -> list[str]:
        rows = [outcome._asdict() for outcome in outcomes]

        def write(connection: sqlite3.Connection) -> list[str]:
            found = []
            for row in rows:
                found += [schedule for (schedule,) in connection.execute(query("finish"), row)]
            return found

        return await self._store.work(write)

    async def look_now(self, schedule_ids: Sequence[str], now: int) -> None:
        await self._rows("look_now", ids=to_json(schedule_ids), now=now)

    async def notify(self) -> None:
        """Other processes look at the file once each tick."""

    async def wake_at(self) -> int | None:
        found: int | None = (await self._rows("wake_at"))[0][0]
        return found

    async def claimed(self) -> list[Run]:
        return [run_of(row) for row in await self._rows("claimed")]

    async def next_number(self) -> int:
        return int((await self._rows("next_number"))[0][0])
