"""The page: a table for each kind of database, the cost of idle schedules, and what to know about them."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import tempfile
from importlib.metadata import version
from time import perf_counter

from bench.herd.child import SETTLE
from bench.herd.contestant import BATCH, OURS, POSTGRES, SQLITE
from bench.herd.idle import BATCH as IDLE_BATCH
from bench.herd.measure import Effort, Figures, Idle, Initialize, Result
from bench.report import bullets, factor, number, processor

OPENING = """\
# A herd at one instant

Many schedules are due at the same second. How soon does the last of them start, when no action may start
before it is on disk that it does? Horae answers beside its peers, and beside a ceiling: a bare script that
writes the same rows and decides nothing. In brackets stands how a figure compares to that of Horae's first
row for as many jobs; the ratios say more about other machines than the figures do. Herds of up to
{repeated:,} were run {repeats}, and the run with the middle time to the last start is shown. The peers were given up
to {peers:,} jobs, because more take them many minutes each (`--peers-up-to`).
`python -m bench.herd --write FILE` writes this page anew.
"""

COLUMNS = """\
Registering is jobs per second until all are durable. Starts are milliseconds after the instant: the first,
the last, the middle one and the 99th of a hundred. Starts and ends per second are all jobs over the time from the
instant to the last start, and to the moment when another connection sees the last end. Memory is the most
that the contestant's process held, in megabytes; a PostgreSQL server's own is not in it.
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
- **Horae**: `app.schedules.create_many` with {batch:,} schedules at a time, then `app.run()`. The first row has cron
  schedules with six fields, which fire again a day later; *one-shot* has `{{"times": [instant]}}`.
- **Horae, declarative**: `Scheduler.initialize` with all tasks, whose minute begins at the instant; `stop`, and
  `initialize` again, which begins to run them.
- **APScheduler** 3: `AsyncIOScheduler` with the SQLAlchemy job store and a `CronTrigger` for the same second of every
  day; `misfire_grace_time=None`, so that late jobs start, `coalesce=True`, `max_instances=1`. Jobs are added one by one,
  since there is no other way, while the scheduler is paused, so that it does not look for due jobs after each.
  On PostgreSQL the driver is psycopg. It writes the next time of each job in a transaction of its own and starts
  the coroutines when all are written; with `BackgroundScheduler` and threads the first start comes sooner and
  the last at the same time. It keeps no record of runs, so no ends are recorded, and after a crash nobody knows which
  jobs had started.
- **Procrastinate**: `batch_defer_async` with `schedule_at` and {batch:,} jobs at a time; one worker with
  `concurrency=100`, ten connections and `fetch_job_polling_interval=0.05`, because nothing tells a worker of a job whose
  time has come. It fetches jobs one by one and records each start and end in a transaction of its own; other
  numbers, from 10 to 100 and from 4 to 20, made no difference.
- **ceiling**: reads {batch:,} due rows, inserts their runs, moves the cursors, commits, starts the coroutines as tasks;
  when nothing is due any more it records the ends, {batch:,} at a time. Its tables have the columns and indexes that
  a herd goes through in Horae. On SQLite it is the standard library's driver in the thread of the event loop, on
  PostgreSQL asyncpg with one connection and arrays.
"""

IDLE = """\
{count:,} schedules on Horae, created {batch:,} at a time through `create_many`, none due within a year; then a
new process starts on them. Start-up is from before `import horae` to the first start of a run that was triggered
before, so the first step is done. Memory is what the process holds at the end, processor time what it uses in
{seconds:g} s of rest; a PostgreSQL server's own is in neither.
"""

INITIALIZE = """\
`Scheduler.initialize` with as many tasks, the first time and again with the same list: milliseconds.
"""

NOT_RECORDED = "not recorded"

# Each figure's heading, and the words for more and for less than Horae's.
HEADINGS: dict[str, tuple[str, str, str]] = {
    "register_rate": ("registered/s", "faster", "slower"),
    "first": ("first start, ms", "later", "sooner"),
    "last": ("last start, ms", "later", "sooner"),
    "median": ("p50, ms", "later", "sooner"),
    "p99": ("p99, ms", "later", "sooner"),
    "start_rate": ("starts/s", "faster", "slower"),
    "end_rate": ("ends/s", "faster", "slower"),
    "memory": ("memory, MB", "more", "less"),
}


def render(
    results: list[Result],
    idle: list[Idle],
    initialize: list[Initialize],
    effort: Effort,
    server_version: str,
) -> str:
    """The page as Markdown."""
    repeats = "once" if effort.repeats == 1 else f"{effort.repeats} times"
    tables = []
    for database in (SQLITE, POSTGRES):
        if chosen := [result for result in results if result.entry.database == database]:
            tables += [f"## {database}\n", table(database, chosen)]
    parts = [
        OPENING.format(repeated=effort.repeated_sizes, repeats=repeats, peers=effort.peers_up_to),
        "## The machine\n",
        machine(server_version),
        *([COLUMNS] if tables else []),
        *tables,
    ]
    if idle:
        text = IDLE.format(count=effort.idle_schedules, batch=IDLE_BATCH, seconds=effort.idle_seconds)
        parts += ["## Idle schedules\n", text, idle_table(idle)]
    if initialize:
        parts += ["## Initializing declarative tasks\n", INITIALIZE, initialize_table(initialize)]
    parts += ["## The rules\n", RULES.format(settle=SETTLE), "## How each contestant is called\n"]
    return "\n".join((*parts, CALLS.format(batch=BATCH)))


def table(title: str, results: list[Result]) -> str:
    """A row for each herd and contestant."""
    ours = {result.jobs: result.figures for result in results if result.entry.name == OURS}
    lines = [f"| {title} | jobs | " + " | ".join(heading for heading, _, _ in HEADINGS.values()) + " |"]
    lines.append("|---|" + "---:|" * (1 + len(HEADINGS)))
    for entry, jobs, figures in results:
        baseline = ours.get(jobs) if entry.name != OURS else None
        cells = [cell(name, figures, baseline) for name in HEADINGS]
        lines.append(f"| {entry.title} | {jobs:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(name: str, figures: Figures, ours: Figures | None) -> str:
    """A figure, and how it compares to Horae's. A start within the clock's own error compares to nothing."""
    _, more, less = HEADINGS[name]
    value: float | None = getattr(figures, name)
    if value is None:
        return NOT_RECORDED
    base: float | None = getattr(ours, name, None)
    if base is None or base <= 0 or value <= 0:
        return number(value)
    ratio = value / base
    return (
        f"{number(value)} ({factor(ratio)} {more})"
        if ratio >= 1
        else f"{number(value)} ({factor(1 / ratio)} {less})"
    )


def idle_table(idle: list[Idle]) -> str:
    lines = [
        "| idle | registered/s | start-up, ms | memory, MB | processor time, ms |",
        "|---|" + "---:|" * 4,
    ]
    for database, *figures in idle:
        lines.append(f"| {database} | " + " | ".join(map(number, figures)) + " |")
    return "\n".join(lines) + "\n"


def initialize_table(initialize: list[Initialize]) -> str:
    lines = ["| initialize | tasks | first, ms | again, ms |", "|---|---:|---:|---:|"]
    for database, tasks, first, again in initialize:
        lines.append(f"| {database} | {tasks:,} | {number(first)} | {number(again)} |")
    return "\n".join(lines) + "\n"


def machine(server_version: str) -> str:
    packages = ("horae", "APScheduler", "SQLAlchemy", "procrastinate", "psycopg", "asyncpg")
    return bullets(
        (
            f"CPU: {processor()}, {os.cpu_count()} cores visible",
            f"a write of 4 KiB with `fsync` takes {number(sync_time())} µs",
            f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}",
            ", ".join(f"{package} {version(package)}" for package in packages),
            f"SQLite {sqlite3.sqlite_version}, PostgreSQL {server_version}",
        )
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
