"""The ceiling: the rows of the runs and of their nodes, each layer durable before the next, and nothing that runs or decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.herd.ceiling import Ceiling
from bench.herd.ceiling_postgres import PostgresCeiling
from bench.herd.ceiling_sqlite import SqliteCeiling
from bench.herd.starts import TIMES, until, wall
from bench.workflows.shape import LAYERS, TOGETHER

# Horae's own table, in both dialects.
TABLE = """
CREATE TABLE checkpoint (
    run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE, key TEXT NOT NULL, value TEXT NOT NULL,
    attempt BIGINT NOT NULL, saved_at_ms BIGINT NOT NULL, PRIMARY KEY (run_id, key)
){clustered}
"""
VALUE = '{"state":"succeeded","followed":[3,4,5],"output":"done","attempts":1,"started_at_ms":1794942671000,"ended_at_ms":1794942671000}'
IN_SQLITE = "INSERT INTO checkpoint VALUES (?, ?, ?, 1, ?)"
IN_POSTGRES = """
INSERT INTO checkpoint
SELECT run_id, key, $3, 1, $4 FROM unnest($1::text[], $2::text[]) AS new (run_id, key)
"""


class CheckpointCeiling(Ceiling):
    """Writes what the nodes of a batch of runs leave behind. To be combined with a kind of database."""

    async def save(self, runs: Sequence[str], nodes: Sequence[str]) -> None:
        raise NotImplementedError

    async def _keep_time(self) -> None:
        await until(self.due)
        while runs := await self.claim():
            TIMES.extend([wall()] * len(runs))
            for layer in LAYERS:
                for start in range(0, len(runs), TOGETHER):
                    await self.save(runs[start : start + TOGETHER], layer)
            await self.record(runs)


class OnSqlite(CheckpointCeiling, SqliteCeiling):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with super().opened():
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.execute(TABLE.format(clustered=" WITHOUT ROWID"))
            yield

    async def save(self, runs: Sequence[str], nodes: Sequence[str]) -> None:
        now = int(wall() * 1000)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            IN_SQLITE, [(run, f"node:{node}", VALUE, now) for run in runs for node in nodes]
        )
        self._connection.execute("COMMIT")


class OnPostgres(CheckpointCeiling, PostgresCeiling):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with super().opened():
            await self._connection.execute(TABLE.format(clustered=""))
            yield

    async def save(self, runs: Sequence[str], nodes: Sequence[str]) -> None:
        keys = [f"node:{node}" for _ in runs for node in nodes]
        ids = [run for run in runs for _ in nodes]
        await self._connection.execute(IN_POSTGRES, ids, keys, VALUE, int(wall() * 1000))
