"""The ceiling on SQLite: the standard library's driver, in the thread of the event loop."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing

from bench.herd.ceiling import (
    RUN_COLUMNS,
    SCHEMA,
    Backfill,
    Ceiling,
    DueRow,
    ScheduleRow,
    Slot,
    due_rows,
    run_rows,
)
from bench.herd.contestant import BATCH
from bench.herd.ledger import sqlite_path
from bench.herd.starts import wall

INSERT_SCHEDULE = "INSERT INTO schedule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_DUE = "INSERT INTO due (schedule_id, cursor, next_at) VALUES (?, ?, ?)"
SELECT_DUE = "SELECT schedule_id FROM due WHERE next_at <= ? ORDER BY next_at LIMIT ?"
INSERT_RUN = f"""
INSERT INTO run ({RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""  # noqa: S608 - no input
MOVE = "UPDATE due SET cursor = ?2, next_at = ?3, started = started + 1 WHERE schedule_id = ?1"
END = "UPDATE run SET status = 'succeeded', ended_at = ?, result = 'null' WHERE id = ? AND epoch = 1 AND attempt = 1"


class SqliteCeiling(Ceiling):
    _connection: sqlite3.Connection

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        with closing(sqlite3.connect(sqlite_path(self.url), isolation_level=None)) as self._connection:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(
                SCHEMA.format(number="INTEGER", schedule=" WITHOUT ROWID", due=" WITHOUT ROWID")
            )
            yield

    async def insert(self, schedules: list[ScheduleRow], places: list[DueRow]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(INSERT_SCHEDULE, schedules)
        self._connection.executemany(INSERT_DUE, places)
        self._connection.execute("COMMIT")

    async def claim(self) -> Sequence[str]:
        self._connection.execute("BEGIN IMMEDIATE")
        slots = await self.slots()
        runs = run_rows(slots)
        self._connection.executemany(INSERT_RUN, runs)
        self._connection.executemany(MOVE, due_rows(slots))
        self._connection.execute("COMMIT")
        return [run[0] for run in runs]

    async def slots(self) -> list[Slot]:
        found = self._connection.execute(SELECT_DUE, (self.due * 1000, BATCH))
        return [(schedule, self.due) for (schedule,) in found]

    async def record(self, runs: Sequence[str]) -> None:
        ended = int(wall() * 1000)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(END, [(ended, run) for run in runs])
        self._connection.execute("COMMIT")


class SqliteBackfill(Backfill, SqliteCeiling):
    pass
