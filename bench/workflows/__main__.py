"""Measure workflows beside DBOS and two ceilings in one run: ``python -m bench.workflows [--quick] [--runs N] [--write PAGE]``."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bench.herd.contestant import POSTGRES, SQLITE
from bench.herd.measure import Figures
from bench.herd.report import machine
from bench.herd.server import Databases
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
HEADING = "| | runs/s | nodes/s | last start, ms | memory, MB |\n|---|---:|---:|---:|---:|"


class Measured(NamedTuple):
    """What all contestants reached, by database and name."""

    figures: dict[str, dict[str, Figures]]
    server_version: str


def measure(runs: int, repeats: int, at_once: int = 1) -> Measured:
    """All contestants on both databases, so many of them at once; more than one spoils the figures.

    They take turns, so that a machine which is busy with something else disturbs them alike. DBOS has one turn: it takes long.
    """
    wanted = [
        (database, name, f"bench.workflows.{places[number]}")
        for turn in range(repeats)
        for number, database in enumerate((SQLITE, POSTGRES))
        for name, places in _CONTESTANTS.items()
        if name != DBOS or not turn
    ]
    with Databases() as databases, ThreadPoolExecutor(at_once) as pool:
        server_version = databases.server_version()

        def one(database: str, name: str, place: str) -> Figures:
            allowance = 1 + runs / 500
            while True:
                with databases.fresh(database) as url:
                    said = _contestant(place, url, runs, allowance)
                sys.stderr.write(f"{name} on {database}: {said}\n")
                if "late" not in said:
                    return Figures(**said)
                allowance = 1 + 2 * said["late"]  # it was not ready at the instant

        taken = list(pool.map(lambda each: one(*each), wanted))
    turns: dict[str, dict[str, list[Figures]]] = {SQLITE: {}, POSTGRES: {}}
    for (database, name, _), figures in zip(wanted, taken, strict=True):
        turns[database].setdefault(name, []).append(figures)
    found = {
        database: {name: _typical(each) for name, each in names.items()} for database, names in turns.items()
    }
    return Measured(found, server_version)


def _typical(turns: list[Figures]) -> Figures:
    """The turn with the middle rate: figures of one turn fit together."""
    return sorted(turns, key=lambda each: each.end_rate or 0)[len(turns) // 2]


def _contestant(place: str, url: str, runs: int, allowance: float) -> dict[str, Any]:
    """What a contestant in a process of its own says."""
    command = [sys.executable, "-m", "bench.herd.child", place, url, str(runs), str(allowance), "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True)  # noqa: S603
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def page(found: Measured, runs: int) -> str:
    """The figures as a page."""
    return PAGE.format(
        runs=runs, repeats=REPEATS, layers=len(LAYERS), together=TOGETHER, machine=machine(found.server_version).strip(),
        dbos=version("dbos"), tables="\n\n".join(table(*each) for each in found.figures.items()),
    )  # fmt: skip


def table(database: str, figures: dict[str, Figures]) -> str:
    """What one database took."""
    ours = figures[HORAE].end_rate or 0
    rows = []
    for name, each in figures.items():
        rate = each.end_rate or 0
        compared = "" if name == HORAE else f" ({ours / rate:.2f}×)"
        rows.append(
            f"| {name} | {rate:,.0f}{compared} | {rate * NODES:,.0f} | {each.last:,.0f} | {each.memory or 0:,.0f} |"
        )
    return "\n".join([f"## {database}", "", HEADING, *rows])


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(prog="python -m bench.workflows", description="How fast workflows are.")
    options.add_argument("--runs", type=int, default=1000, help="how many are due at one instant")
    options.add_argument("--quick", action="store_true", help="few runs, all at once, to see that it works")
    options.add_argument("--write", metavar="FILE", type=Path, help="write the page to a Markdown file")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = measure(10, 1, at_once=8) if given.quick else measure(given.runs, REPEATS)
    text = page(found, 10 if given.quick else given.runs)
    sys.stdout.write(text)
    if given.write is not None:
        given.write.parent.mkdir(parents=True, exist_ok=True)
        given.write.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
