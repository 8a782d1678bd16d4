"""The parts of the page that are about more than a herd on one node: a text and a table each."""

from __future__ import annotations

from collections.abc import Iterator

from bench.herd.cells import Row, figures_table
from bench.herd.contestant import BACKFILLS_AT_ONCE, BATCH, OURS
from bench.herd.idle import BATCH as IDLE_BATCH
from bench.herd.measure import NODES, Effort, Figures, Idle, Initialize, Measured, Result
from bench.page import number, table

NODES_TEXT = """\
The same herds on Horae with {nodes} nodes: processes that share one database and this machine's processors, beside
the one node from above. There is no leader: each takes what is due and no other node holds, up to {batch:,} schedules at a
time, so who comes late to a small herd finds nothing left. On PostgreSQL they decide side by side, on SQLite one after
another, since a file has one writer. All nodes are there and at rest when the instant comes.
"""

STEADY_TEXT = """\
So many schedules are each due in every second, for {seconds} seconds, and none of these starts may be left out or
merged with another; a contestant that does not keep up is given no more. It keeps up if 99 of 100 starts come before
the next second begins. Starts and ends per second are all of them over the time until the last one, which is
{seconds} s at least. For the lateness, the starts count as those of the first second until there are as many as were
due in it, then as those of the second one, and so on. On Horae the overlap policy is `allow_all`, on APScheduler it is
`coalesce=False` and `max_instances={seconds}`.
"""

BACKFILL_TEXT = """\
{slots:,} slots of one schedule are made up: `app.backfills.start` with a range of as many minutes, the overlap policy
`allow_all`, and the same action. Slots per second are in the columns of starts and ends; times count from the moment
when the backfill is asked for. A backfill makes way for others: a step takes `backfills_per_iteration` of its slots, 10
by default, and then other schedules have their turn. Here no other schedule is waiting, and
`Config(backfills_per_iteration={at_once})` was given, half of `max_buffer_size`, which is the most that a step takes in any
case. `retention_count` is raised as well, so that no run is pruned before it is counted. The ceiling inserts the same
runs, {batch:,} at a time, and records their ends when all have started. The peers know no backfills.
"""

IDLE_TEXT = """\
{count:,} schedules on Horae, created {batch:,} at a time through `create_many`, none due within a year; then a
new process starts on them. Start-up is from before `import horae` to the first start of a run that was triggered
before, so the first step is done. Memory is what the process holds at the end, processor time what it uses in
{seconds:g} s of rest; a PostgreSQL server's own is in neither.
"""

INITIALIZE_TEXT = """\
`Scheduler.initialize` with as many tasks, the first time and again with the same list: milliseconds.
"""


def sections(measured: Measured, effort: Effort) -> list[str]:
    """The parts that were measured."""
    parts = []
    if measured.nodes:
        text = NODES_TEXT.format(nodes=NODES, batch=BATCH)
        parts += [f"## {NODES} nodes\n", text, nodes_table(measured.herds, measured.nodes)]
    if measured.steady:
        text = STEADY_TEXT.format(seconds=effort.steady_seconds)
        parts += ["## A steady rate\n", text, steady_table(measured.steady)]
    if measured.backfills:
        text = BACKFILL_TEXT.format(slots=effort.backfill, at_once=BACKFILLS_AT_ONCE, batch=BATCH)
        parts += ["## A backfill\n", text, backfill_table(measured.backfills)]
    if measured.idle:
        text = IDLE_TEXT.format(count=effort.idle_schedules, batch=IDLE_BATCH, seconds=effort.idle_seconds)
        parts += ["## Idle schedules\n", text, idle_table(measured.idle)]
    if measured.initialize:
        tasks = initialize_table(measured.initialize)
        parts += ["## Initializing declarative tasks\n", INITIALIZE_TEXT, tasks]
    return parts


def nodes_table(herds: list[Result], nodes: list[Result]) -> str:
    alone = _ours(herds)
    rows = []
    for entry, jobs, figures in nodes:
        one = alone.get((entry.database, jobs))
        if one is not None:
            rows.append(Row((f"1 on {entry.database}", f"{jobs:,}", "100"), one, None))
        shares = ", ".join(f"{share * 100:.0f}" for share in figures.shares)
        rows.append(Row((f"{NODES} on {entry.database}", f"{jobs:,}", shares), figures, one))
    names = ("first", "last", "median", "p99", "start_rate", "end_rate")
    return figures_table("nodes", ("jobs", "share of each, %"), names, rows)


def steady_table(results: list[Result]) -> str:
    rows = (
        row._replace(labels=(*row.labels, "yes" if row.figures.keeps_up else "no")) for row in _rows(results)
    )
    names = ("start_rate", "end_rate", "median", "p99", "memory")
    return figures_table("steady", ("due/s", "keeps up"), names, rows)


def backfill_table(results: list[Result]) -> str:
    names = ("first", "last", "start_rate", "end_rate", "memory")
    return figures_table("backfill", ("slots",), names, _rows(results))


def _rows(results: list[Result]) -> Iterator[Row]:
    """A row for each contestant and size, compared to Horae's."""
    ours = _ours(results)
    for entry, jobs, figures in results:
        base = ours.get((entry.database, jobs)) if entry.name != OURS else None
        yield Row((f"{entry.title} on {entry.database}", f"{jobs:,}"), figures, base)


def _ours(results: list[Result]) -> dict[tuple[str, int], Figures]:
    """Horae's own figures, by database and size."""
    return {(entry.database, jobs): figures for entry, jobs, figures in results if entry.name == OURS}


def idle_table(idle: list[Idle]) -> str:
    headings = ("idle", "registered/s", "start-up, ms", "memory, MB", "processor time, ms")
    return table(headings, ((database, *map(number, figures)) for database, *figures in idle))


def initialize_table(initialize: list[Initialize]) -> str:
    rows = ((each.database, f"{each.tasks:,}", number(each.first), number(each.again)) for each in initialize)
    return table(("initialize", "tasks", "first, ms", "again, ms"), rows)
