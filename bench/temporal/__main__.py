"""Measure on both databases, print the page, and write it to a file if one is named."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from bench.herd.contestant import POSTGRES, SQLITE
from bench.herd.server import Databases
from bench.temporal.measure import EVERY, Measured, measure, served

PAGE = """# Calls of Temporal's clients while schedules fire

One client asks for descriptions of schedules through Temporal's API, {rate:,} times a second for {seconds} seconds, while all of {schedules:,} schedules fire at one
instant every {every} seconds. Client and service are two processes on the same two cores. `python -m bench.temporal --write FILE` writes this page anew.

| Horae on | calls answered/s | p50, ms | p99, ms | starts, of those due | late p50, ms | late p99, ms | latest, ms |
|---|---:|---:|---:|---:|---:|---:|---:|
{rows}
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.temporal", description="Calls while schedules fire."
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page to a Markdown file")
    parser.add_argument("--schedules", type=int, default=1000, help="how many fire")
    parser.add_argument("--rate", type=int, default=1000, help="how many calls a second")
    parser.add_argument("--seconds", type=int, default=20, help="for how long")
    parser.add_argument("--store", choices=[SQLITE, POSTGRES], help="only on this database")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows = []
    with Databases() as databases:
        for kind in (SQLITE, POSTGRES) if given.store is None else (given.store,):
            with databases.fresh(kind) as database, served(database) as address:
                found = asyncio.run(measure(address, given.schedules, given.rate, given.seconds))
            rows.append(row(kind, found))
    page = PAGE.format(
        rate=given.rate, seconds=given.seconds, schedules=given.schedules, every=EVERY, rows="\n".join(rows)
    )
    print(page)
    if given.write is not None:
        given.write.parent.mkdir(parents=True, exist_ok=True)
        given.write.write_text(page, "utf-8")


def row(kind: str, found: Measured) -> str:
    """A line of the table."""
    return (
        f"| {kind} | {found.rate:,.0f} | {found.median:.1f} | {found.p99:.1f} | {found.starts:,} of {found.due:,} "
        f"| {found.late_median:.0f} | {found.late_p99:.0f} | {found.latest:.0f} |"
    )


if __name__ == "__main__":
    main()
