"""The others: a table that is polled, on both databases, and Procrastinate."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import asyncpg
from procrastinate import App, PsycopgConnector

from bench.flows.horae_flows import PUBLISHED_TOGETHER, Figures, _percentiles, until

POLL = 0.05
"""Seconds between two polls of a table in which nothing was found."""
TABLE = "CREATE TABLE queue (id TEXT PRIMARY KEY, payload TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0)"


def polled_sqlite(path: str, events: int, wakes: int) -> Figures:
    """A table in a file with the same durability, polled by one worker."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(TABLE)

    def publish(start: int, number: int) -> None:
        rows = [(str(each), json.dumps({"n": each})) for each in range(start, start + number)]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO queue (id, payload) VALUES (?, ?)", rows)
        connection.execute("COMMIT")

    def take(size: int) -> int:
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute("SELECT id FROM queue WHERE done = 0 LIMIT ?", (size,)).fetchall()
        connection.executemany("UPDATE queue SET done = 1 WHERE id = ?", found)
        connection.execute("COMMIT")
        return len(found)

    def rate(number: int, size: int) -> float:
        begun, taken = time.perf_counter(), 0
        while taken < number:
            taken += take(size)
        return number / (time.perf_counter() - begun)

    begun = time.perf_counter()
    for start in range(0, events, PUBLISHED_TOGETHER):
        publish(start, min(PUBLISHED_TOGETHER, events - start))
    publishing = events / (time.perf_counter() - begun)
    single = min(events // 10, 1000)
    one, batched = rate(single, 1), rate(events - single, 100)
    connection.close()
    return Figures("table and poll", publishing, one, batched, *_polled(wakes))


def _polled(wakes: int) -> tuple[float, float]:
    """A poller sees what is published after a part of its pause: each as likely as the other."""
    return _percentiles([(number + 0.5) / max(wakes, 1) * POLL * 1000 for number in range(wakes)])


async def polled_postgres(url: str, events: int, wakes: int) -> Figures:
    """A table on the server, polled by one worker that skips what others have locked."""
    connection = await asyncpg.connect(url)
    await connection.execute(TABLE)
    begun = time.perf_counter()
    for start in range(0, events, PUBLISHED_TOGETHER):
        some = range(start, min(start + PUBLISHED_TOGETHER, events))
        rows = [(str(each), json.dumps({"n": each})) for each in some]
        await connection.copy_records_to_table("queue", columns=("id", "payload"), records=rows)
    publishing = events / (time.perf_counter() - begun)
    take = "UPDATE queue SET done = 1 WHERE id IN (SELECT id FROM queue WHERE done = 0 LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id"

    async def rate(number: int, size: int) -> float:
        start, taken = time.perf_counter(), 0
        while taken < number:
            taken += len(await connection.fetch(take, size))
        return number / (time.perf_counter() - start)

    single = min(events // 10, 1000)
    one, batched = await rate(single, 1), await rate(events - single, 100)
    await connection.close()
    return Figures("table and poll", publishing, one, batched, *_polled(wakes))


async def procrastinate(url: str, events: int, wakes: int) -> Figures:
    """Procrastinate: one job an event, one worker."""
    app = App(connector=PsycopgConnector(conninfo=url, min_size=2, max_size=10))
    done: list[float] = []
    note: Callable[[], None] = lambda: done.append(time.perf_counter())  # noqa: E731

    async def work(n: int) -> None:  # noqa: ARG001 - the job's payload
        note()

    task = app.task(name="work")(work)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        begun = time.perf_counter()
        for start in range(0, events, PUBLISHED_TOGETHER):
            some = range(start, min(start + PUBLISHED_TOGETHER, events))
            jobs: list[dict[str, Any]] = [{"n": each} for each in some]
            await task.batch_defer_async(*jobs)
        publishing = events / (time.perf_counter() - begun)
        begun = time.perf_counter()
        worker = asyncio.create_task(app.run_worker_async(concurrency=100, install_signal_handlers=False))
        await until(done, events)
        one = events / (time.perf_counter() - begun)
        waits = []
        for number in range(wakes):
            done.clear()
            begun = time.perf_counter()
            await task.defer_async(n=number)
            await until(done, 1)
            waits.append((done[0] - begun) * 1000)
        worker.cancel()
        await asyncio.wait([worker])
    return Figures("Procrastinate", publishing, one, None, *_percentiles(waits))
