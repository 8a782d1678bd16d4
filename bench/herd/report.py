"""The page: the herds in a table for each kind of database, all other parts, and what to know about them."""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
from importlib.metadata import version
from time import perf_counter

from bench.herd.cells import HEADINGS, Row, figures_table
from bench.herd.child import SETTLE
from bench.herd.contestant import BATCH, OURS, POSTGRES, SQLITE
from bench.herd.measure import Effort, Measured, Result
from bench.herd.sections import sections
from bench.page import machine, number

OPENING = """\
# A herd at one instant

Many schedules are due at the same second. How soon does the last of them start, when no action may start
before it is on disk that it does? Horae answers beside its peers, and beside a ceiling: a bare script that
writes the same rows and decides nothing. In brackets stands how a figure compares to that of Horae's first
row for as many jobs; the ratios say more about other machines than the figures do. Herds of up to
{repeated:,} were run {repeats}, and the run with the middle time to the last start is shown. The peers were given up
to {peers:,} jobs, because more take them many minutes each (`--peers-up-to`).
After the herds come several nodes, a steady rate, a backfill, idle schedules and declarative tasks.
`python -m bench.herd --write FILE` writes this page anew.
"""

COLUMNS = """\
Registering is jobs per second until all are durable. Starts are milliseconds after the instant: the first,
the last, the middle one and the 99th of a hundred. Starts and ends per second are all jobs over the time from the
instant to the last start, and to the moment when another connection sees the last end. CPU is the processor time
that the contestant's own process takes to register 1,000 jobs, and from the instant on to start and end them, with
the counting of the ends: it says what a change costs even on a busy machine. Memory is the most that the process held,
in megabytes. A PostgreSQL server's own is in neither.
"""

RULES = """\
- Every contestant has a fresh process and a fresh database for each herd, one after another on one machine; with
  PostgreSQL, server and contestant share its processors.
- All jobs are registered first. The instant is a whole second, set before that by the rate of the herd before; if
  all is not ready {settle:g} s ahead of it, the contestant begins anew with more time. Then it starts, and waits.
  For declarative tasks the instant is the beginning of a minute.
- The action is a coroutine that notes the time and returns. The event loop is asyncio's own.
- SQLite is a file in WAL with `synchronous=FULL`; PostgreSQL has its default settings, so `fsync` and
  `synchronous_commit` are on. After the registering `ANALYZE` is run for every contestant: the server would do it by
  itself a little later, and without it Procrastinate is three times slower with a herd of 10,000.
- That each job started exactly once is checked, and that each end is recorded where ends are recorded.
"""

CALLS = """\
- **Horae**: `app.schedules.create_many` with {batch:,} schedules at a time, then `app.serve()`. The first row has cron
  schedules with six fields, which fire again a day later; *one-shot* has `{{"times": [instant]}}`.
- **Horae, before**: the same in another checkout of this project, if one was given with `--before`.
- **Horae, declarative**: `Scheduler.initialize` with all tasks, whose minute begins at the instant; `stop`, and
  `initialize` again, which begins to run them.
- **APScheduler** 3: `AsyncIOScheduler` with the SQLAlchemy job store and a `CronTrigger` for the same second of every
  day; `misfire_grace_time=None`, so that late jobs start, `coalesce=True`, `max_instances=1`. Jobs are added one by one,
  since there is no other way, while the scheduler is paused, so that it does not look for due jobs after each.
  On PostgreSQL the driver is psycopg. It writes the next time of each job in a transaction of its own and starts
  the coroutines when all are written; with `BackgroundScheduler` and threads the first start comes sooner and
  the last at the same time. It keeps no record of runs, so no ends are recorded, and after a crash there is no record of which
  jobs had started.
- **Procrastinate**: `batch_defer_async` with `schedule_at` and {batch:,} jobs at a time; one worker with
  `concurrency=100`, ten connections and `fetch_job_polling_interval=0.05`, because nothing tells a worker of a job whose
  time has come. It fetches jobs one by one and records each start and end in a transaction of its own; other
  numbers, from 10 to 100 and from 4 to 20, made no difference.
- **ceiling**: reads {batch:,} due rows, inserts their runs, moves the cursors, commits, starts the coroutines as tasks;
  when nothing is due any more it records the ends, {batch:,} at a time: up to the last start it has done a part of the
  work, and to the last end the same as Horae. Its tables have the columns and indexes that a herd goes through in Horae.
  On SQLite it is the standard library's driver in the thread of the event loop, on PostgreSQL asyncpg with one
  connection, copying what is new.
"""


def render(measured: Measured, effort: Effort, server_version: str) -> str:
    """The page as Markdown."""
    repeats = "once" if effort.repeats == 1 else f"{effort.repeats} times"
    tables = []
    for database in (SQLITE, POSTGRES):
        if chosen := [result for result in measured.herds if result.entry.database == database]:
            tables += [f"## {database}\n", herd_table(database, chosen)]
    parts = (
        OPENING.format(repeated=effort.repeated_sizes, repeats=repeats, peers=effort.peers_up_to),
        "## The machine\n",
        bench_machine(server_version),
        *([COLUMNS] if tables else []),
        *tables,
        *sections(measured, effort),
        "## The rules\n",
        RULES.format(settle=SETTLE),
        "## How each contestant is called\n",
        CALLS.format(batch=BATCH),
    )
    return "\n".join(parts)


def herd_table(title: str, results: list[Result]) -> str:
    """A row for each herd and contestant."""
    ours = {result.jobs: result.figures for result in results if result.entry.name == OURS}
    rows = (
        Row((entry.title, f"{jobs:,}"), figures, ours.get(jobs) if entry.name != OURS else None)
        for entry, jobs, figures in results
    )
    return figures_table(title, ("jobs",), HEADINGS, rows)


def bench_machine(server_version: str) -> str:
    packages = ("horae", "APScheduler", "SQLAlchemy", "procrastinate", "psycopg", "asyncpg")
    return machine(
        f"a write of 4 KiB with `fsync` takes {number(sync_time())} µs",
        ", ".join(f"{package} {version(package)}" for package in packages),
        f"SQLite {sqlite3.sqlite_version}, PostgreSQL {server_version}",
    )


def sync_time() -> float:
    """Microseconds, in the middle of many: what every commit must wait for."""
    took = []
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        for _ in range(100):
            began = perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append(perf_counter() - began)
    return statistics.median(took) * 1_000_000
