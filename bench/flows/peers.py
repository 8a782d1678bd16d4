"""The peers: a table that is polled, on both databases, Procrastinate and PgQueuer; and the cost of a commit alone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from typing import Any

import asyncpg
from pgqueuer import QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from procrastinate import App, PsycopgConnector

from bench.flows.figures import Figures, Meter, percentiles, until, woken
from bench.herd.contestant import background, batches

POLL = 0.05
"""Seconds between two polls of a table in which nothing was found."""
TABLE = "CREATE TABLE queue (id TEXT PRIMARY KEY, payload TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0)"
MAX_SINGLE = 1000
"""How many events a polled table takes one by one at most."""


def opened(path: str) -> sqlite3.Connection:
    """A file with the durability that Horae's has."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(TABLE)
    return connection


def polled_sqlite(meter: Meter, path: str, events: int, wakes: int) -> Figures:
    """A table in a file, polled by one worker."""
    connection = opened(path)

    def take(number: int, size: int) -> None:
        taken = 0
        while taken < number:
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("SELECT id FROM queue WHERE done = 0 LIMIT ?", (size,)).fetchall()
            connection.executemany("UPDATE queue SET done = 1 WHERE id = ?", found)
            connection.execute("COMMIT")
            taken += len(found)

    with meter.rate(events) as published:
        for batch in batches(events):
            rows = [(str(each), json.dumps({"n": each})) for each in batch]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO queue (id, payload) VALUES (?, ?)", rows)
            connection.execute("COMMIT")
    single = min(events // 10, MAX_SINGLE)
    with meter.rate(single) as one:
        take(single, 1)
    with meter.rate(events - single) as batched:
        take(events - single, 100)
    connection.close()
    return Figures("table and poll", published, one, batched, *_polled(wakes))


def _polled(wakes: int) -> tuple[float, float]:
    """A poller sees what is published after a part of its pause: each as likely as the other."""
    return percentiles([(number + 0.5) / max(wakes, 1) * POLL * 1000 for number in range(wakes)])


async def polled_postgres(meter: Meter, url: str, events: int, wakes: int) -> Figures:
    """A table on the server, polled by one worker that skips what others have locked."""
    connection = await asyncpg.connect(url)
    await connection.execute(TABLE)
    with meter.rate(events) as published:
        for batch in batches(events):
            rows = [(str(each), json.dumps({"n": each})) for each in batch]
            await connection.copy_records_to_table("queue", columns=("id", "payload"), records=rows)
    taking = "UPDATE queue SET done = 1 WHERE id IN (SELECT id FROM queue WHERE done = 0 LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id"

    async def take(number: int, size: int) -> None:
        taken = 0
        while taken < number:
            taken += len(await connection.fetch(taking, size))

    single = min(events // 10, MAX_SINGLE)
    with meter.rate(single) as one:
        await take(single, 1)
    with meter.rate(events - single) as batched:
        await take(events - single, 100)
    await connection.close()
    return Figures("table and poll", published, one, batched, *_polled(wakes))


async def _settled() -> None:
    """Nothing is left to wait for when a job is done."""


async def procrastinate(meter: Meter, url: str, events: int, wakes: int) -> Figures:
    """Procrastinate: one job an event, one worker."""
    app = App(connector=PsycopgConnector(conninfo=url, min_size=2, max_size=10))
    done: list[float] = []

    async def work(n: int) -> None:  # noqa: ARG001 - the job's payload
        done.append(time.perf_counter())

    task = app.task(name="work")(work)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with meter.rate(events) as published:
            for batch in batches(events):
                jobs: list[dict[str, Any]] = [{"n": each} for each in batch]
                await task.batch_defer_async(*jobs)
        worker = app.run_worker_async(concurrency=100, install_signal_handlers=False)
        async with background(worker):
            with meter.rate(events) as one:
                await until(done, events)
            waits = await woken(done, wakes, lambda number: task.defer_async(n=number), _settled)
    return Figures("Procrastinate", published, one, None, *waits)


async def pgqueuer(meter: Meter, url: str, events: int, wakes: int) -> Figures:
    """PgQueuer: one job an event, one worker that takes 100 jobs at a time and runs them side by side."""
    done: list[float] = []
    publishing, working = await asyncpg.connect(url), await asyncpg.connect(url)
    queue = Queries(AsyncpgDriver(publishing))
    await queue.install()
    manager = QueueManager(Queries(AsyncpgDriver(working)))

    @manager.entrypoint("work")
    async def work(job: Job) -> None:  # noqa: ARG001 - its payload
        done.append(time.perf_counter())

    with meter.rate(events) as published:
        for batch in batches(events):
            payloads: list[bytes | None] = [json.dumps({"n": each}).encode() for each in batch]
            await queue.enqueue(["work"] * len(batch), payloads, [0] * len(batch))
    with meter.rate(events) as one:
        running = asyncio.create_task(manager.run(batch_size=100))
        await until(done, events)
    waits = await woken(done, wakes, lambda number: queue.enqueue("work", str(number).encode()), _settled)
    manager.shutdown.set()
    await asyncio.wait([running])
    await publishing.close()
    await working.close()
    return Figures("PgQueuer", published, one, None, *waits)


def commits_sqlite(path: str, number: int) -> list[float]:
    """How long commits of one row take, in milliseconds."""
    connection, waits = opened(path), []
    for each in range(number):
        begun = time.perf_counter()
        connection.execute("INSERT INTO queue (id, payload) VALUES (?, '{}')", (str(each),))
        waits.append((time.perf_counter() - begun) * 1000)
    connection.close()
    return waits


async def commits_postgres(url: str, number: int) -> list[float]:
    """Like ``commits_sqlite``, on the server."""
    connection, waits = await asyncpg.connect(url), []
    await connection.execute(TABLE)
    for each in range(number):
        begun = time.perf_counter()
        await connection.execute("INSERT INTO queue (id, payload) VALUES ($1, '{}')", str(each))
        waits.append((time.perf_counter() - begun) * 1000)
    await connection.close()
    return waits
