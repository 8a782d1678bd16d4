"""Measure flows beside their peers in one run: ``python -m bench.flows [--quick] [--events N] [--write PAGE]``."""

from __future__ import annotations

import argparse
import asyncio
import platform
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bench.flows.horae_flows import FLOWS, Figures, measure
from bench.flows.peers import polled_postgres, polled_sqlite, procrastinate
from bench.herd.contestant import POSTGRES, SQLITE
from bench.herd.server import Databases

HEADING = "| | published/s | one a run/s | 100 a run, events/s | wake p50, ms | wake p99, ms |\n| --- | --- | --- | --- | --- | --- |"

INTRODUCTION = """\
Written by `python -m bench.flows`: {events:,} events through a flow that takes 100 of them a run, and a tenth of that one event a
run, over {flows} flows, which are independent of each other; Horae and its peers in the same run on the same machine ({machine},
Python {python}). A run of Horae is a record with its phases and its state, and remembers which events it consumed; a polled table has
none of that. Wake latency is from the call that publishes to the handler; that of a polled table is computed from its pause of
50 ms, and not measured. Procrastinate gets a tenth of the events, as one job each."""


def page(tables: dict[str, list[Figures]], events: int) -> str:
    """The figures as a page."""
    parts = [
        "# How fast flows are",
        INTRODUCTION.format(
            events=events, flows=FLOWS, machine=platform.machine(), python=platform.python_version()
        ),
    ]
    for database, figures in tables.items():
        rows = [
            f"| {each.name} | {_shown(each.published)} | {_shown(each.one_to_one)} | {_shown(each.batched)} "
            f"| {each.wake_p50:.1f} | {each.wake_p99:.1f} |"
            for each in figures
        ]
        parts.append("\n".join([f"## {database}", "", HEADING, *rows]))
    return "\n\n".join(parts) + "\n"


def _shown(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:,.0f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="few events, to see that it runs")
    options.add_argument("--events", type=int, default=100_000)
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    events, wakes = (1000, 5) if given.quick else (given.events, 200)
    tables: dict[str, list[Figures]] = {}
    with Databases() as databases:
        with databases.fresh(SQLITE) as url, databases.fresh(SQLITE) as other:
            path = other.removeprefix("sqlite:///")
            tables["SQLite"] = [
                asyncio.run(measure("Horae", url, events, wakes)),
                polled_sqlite(path, events, wakes),
            ]
        found = []
        contestants: list[Callable[[str], Coroutine[Any, Any, Figures]]] = [
            lambda url: measure("Horae", url, events, wakes),
            lambda url: polled_postgres(url, events, wakes),
            lambda url: procrastinate(url, events // 10, wakes),
        ]
        for contestant in contestants:
            with databases.fresh(POSTGRES) as url:
                found.append(asyncio.run(contestant(url)))
        tables["PostgreSQL"] = found
    text = page(tables, events)
    sys.stdout.write(text)
    if given.write is not None:
        given.write.parent.mkdir(parents=True, exist_ok=True)
        given.write.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
