"""The ceiling on PostgreSQL: asyncpg with one connection; what is new is copied, what changes goes as one array a column."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

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
from bench.herd.starts import wall

DUE_COLUMNS = ("schedule_id", "cursor", "next_at")
SELECT_DUE = """
SELECT schedule_id FROM due WHERE next_at <= $1 ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED
"""
MOVE = """
UPDATE due SET cursor = new.cursor, next_at = new.next_at, started = due.started + 1
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new (schedule_id, cursor, next_at)
WHERE due.schedule_id = new.schedule_id
"""
# Not by a join with the ids: with 100,000 rows, and none when PostgreSQL last counted them, that took a hundred times
# as long.
END = """
UPDATE run SET status = 'succeeded', ended_at = $2, result = 'null'
WHERE id = ANY($1::text[]) AND epoch = 1 AND attempt = 1
"""


class PostgresCeiling(Ceiling):
    _connection: Any

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self._connection = await asyncpg.connect(self.url)
        try:
            number = "BIGINT GENERATED ALWAYS AS IDENTITY"
            await self._connection.execute(
                SCHEMA.format(number=number, schedule="", due=" WITH (fillfactor = 70)")
            )
            yield
        finally:
            await self._connection.close()

    async def insert(self, schedules: list[ScheduleRow], places: list[DueRow]) -> None:
        async with self._connection.transaction():
            await self._connection.copy_records_to_table("schedule", records=schedules)
            await self._connection.copy_records_to_table("due", records=places, columns=DUE_COLUMNS)

    async def claim(self) -> Sequence[str]:
        async with self._connection.transaction():
            slots = await self.slots()
            runs = run_rows(slots)
            if runs:
                columns = RUN_COLUMNS.split(", ")
                await self._connection.copy_records_to_table("run", records=runs, columns=columns)
                moves = (list(column) for column in zip(*due_rows(slots), strict=True))
                await self._connection.execute(MOVE, *moves)
        return [run[0] for run in runs]

    async def slots(self) -> list[Slot]:
        found = await self._connection.fetch(SELECT_DUE, self.due * 1000, BATCH)
        return [(row["schedule_id"], self.due) for row in found]

    async def record(self, runs: Sequence[str]) -> None:
        await self._connection.execute(END, list(runs), int(wall() * 1000))


class PostgresBackfill(Backfill, PostgresCeiling):
    pass
