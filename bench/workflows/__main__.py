"""Measure workflows beside DBOS and two ceilings in one run: ``python -m bench.workflows [--quick] [--runs N] [--write PAGE]``."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from itertools import repeat
from typing import NamedTuple

from bench.herd.contestant import POSTGRES, SQLITE, Entry
from bench.herd.measure import Figures, measure_all, measure_herd
from bench.herd.report import bench_machine
from bench.herd.server import Databases
from bench.page import parser, publish, table
from bench.workflows.shape import LAYERS, NODES, TOGETHER

HORAE, DBOS, CHECKPOINTS, ROWS = "Horae", "DBOS", "checkpoints alone", "rows alone"
_CONTESTANTS = {
    HORAE: ("horae_workflows:HoraeWorkflows", "horae_workflows:HoraeWorkflows"),
    DBOS: ("dbos_workflows:DbosWorkflows", "dbos_workflows:DbosWorkflows"),
    CHECKPOINTS: ("horae_workflows:BareCheckpoints", "horae_workflows:BareCheckpoints"),
    ROWS: ("ceiling:OnSqlite", "ceiling:OnPostgres"),
}
PAGE = """\
# How fast workflows are

{runs:,} runs of a workflow are due at one second. It has ten nodes that do nothing, in {layers} layers, two of them three nodes wide: a node runs
when all nodes of the layer before have ended, and that is durable. How long does it take until the ends of all runs are durable? Every contestant
has a process and a database of its own; with PostgreSQL, server and contestant share the processors. The last start is that of the first node of the
last run. In brackets stands how Horae compares. Contestants take turns, {repeats} each, and the middle one is shown; DBOS has one, because it takes minutes. `python -m bench.workflows --write FILE` writes this page anew.

{machine}
- DBOS {dbos}

{tables}

## Who they are

- **Horae**: schedules of a workflow that was deployed, run by `app.serve()`. Each run is decided, claimed and recorded like any other; each node has a
  task of its own, a timeout, a key and a record with its input, output, attempts and times. What nodes of different runs leave behind at the same moment is written in one
  transaction.
- **DBOS**: `start_workflow_async` for every run at the instant, steps under `@DBOS.step`, those of a layer with `asyncio.gather`. It writes each step by itself.
- **checkpoints alone**: Horae with an action that saves the same six groups of records with `context.checkpoint_all`, and runs no workflow: the ceiling that the
  executor of workflows has.
- **rows alone**: a script that inserts the same rows {together} runs at a time, a layer after the other, and the rows of the runs. It checks no claim, calls nothing, and knows
  no failures: what the database takes at most.
"""
REPEATS = 3
HEADINGS = ("", "runs/s", "nodes/s", "last start, ms", "memory, MB")


class Measured(NamedTuple):
    """The figures of all contestants, by database and name."""

    figures: dict[str, dict[str, Figures]]
    server_version: str


def measure(runs: int, repeats: int, at_once: int = 1) -> Measured:
    """All contestants on both databases, so many of them at once; more than one spoils the figures.

    They take turns, so that a machine which is busy with something else disturbs them alike. DBOS has one turn: it takes long.
    """
    entries = [
        Entry(name, name, database, f"bench.workflows.{places[number]}")
        for turn in range(repeats)
        for number, database in enumerate((SQLITE, POSTGRES))
        for name, places in _CONTESTANTS.items()
        if name != DBOS or not turn
    ]
    with Databases() as databases:
        server_version = databases.server_version()  # which starts the server, before several ask for it
        herd = partial(measure_herd, databases)
        taken = measure_all(at_once, herd, entries, repeat(runs), repeat(1 + runs / 500))
    turns: dict[str, dict[str, list[Figures]]] = {SQLITE: {}, POSTGRES: {}}
    for entry, figures in zip(entries, taken, strict=True):
        turns[entry.database].setdefault(entry.name, []).append(figures)
    found = {
        database: {name: _typical(each) for name, each in names.items()} for database, names in turns.items()
    }
    return Measured(found, server_version)


def _typical(turns: list[Figures]) -> Figures:
    """The turn with the middle rate: figures of one turn fit together."""
    return sorted(turns, key=lambda each: each.end_rate or 0)[len(turns) // 2]


def page(found: Measured, runs: int) -> str:
    """The figures as a page."""
    return PAGE.format(
        runs=runs, repeats=REPEATS, layers=len(LAYERS), together=TOGETHER, machine=bench_machine(found.server_version).strip(),
        dbos=version("dbos"), tables="\n".join(database_table(*each) for each in found.figures.items()).strip(),
    )  # fmt: skip


def database_table(database: str, figures: dict[str, Figures]) -> str:
    """The figures on one database."""
    ours = figures[HORAE].end_rate or 0
    rows = []
    for name, each in figures.items():
        rate = each.end_rate or 0
        compared = "" if name == HORAE else f" ({ours / rate:.2f}×)"
        rates = f"{rate:,.0f}{compared}", f"{rate * NODES:,.0f}"
        rows.append((name, *rates, f"{each.last:,.0f}", f"{each.memory or 0:,.0f}"))
    return f"## {database}\n\n{table(HEADINGS, rows)}"


def main() -> None:
    """Measure, print, write."""
    options = parser("bench.workflows", "How fast workflows are.")
    options.add_argument("--runs", type=int, default=1000, help="how many are due at one instant")
    options.add_argument("--quick", action="store_true", help="few runs, all at once, to see that it works")
    given = options.parse_args()
    found = measure(10, 1, at_once=8) if given.quick else measure(given.runs, REPEATS)
    publish(page(found, 10 if given.quick else given.runs), given.write)


if __name__ == "__main__":
    main()
