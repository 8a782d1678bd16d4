"""Measure on both databases, print the page, and write it to a file if one is named."""

from __future__ import annotations

import asyncio

from bench.herd.contestant import POSTGRES, SQLITE
from bench.herd.server import Databases
from bench.page import parser, publish, table
from bench.service.measure import served
from bench.temporal.measure import EVERY, LISTENS, Measured, measure

PAGE = """# Calls of Temporal's clients while schedules fire

One client asks for descriptions of schedules through Temporal's API, {rate:,} times a second for {seconds} seconds, while all of {schedules:,} schedules fire at one
instant every {every} seconds. Client and service are two processes on the same two cores. `python -m bench.temporal --write FILE` writes this page anew.

{table}"""
HEADINGS = (
    "Horae on", "calls answered/s", "p50, ms", "p99, ms", "starts, of those due", "late p50, ms", "late p99, ms", "latest, ms",
)  # fmt: skip


def main() -> None:
    """Measure, print, write."""
    options = parser("bench.temporal", "Calls while schedules fire.")
    options.add_argument("--schedules", type=int, default=1000, help="how many schedules fire")
    options.add_argument("--rate", type=int, default=1000, help="how many calls are made a second")
    options.add_argument("--seconds", type=int, default=20, help="for how many seconds")
    options.add_argument("--store", choices=[SQLITE, POSTGRES], help="only on this database")
    given = options.parse_args()
    rows = []
    with Databases() as databases:
        for kind in (SQLITE, POSTGRES) if given.store is None else (given.store,):
            with (
                databases.fresh(kind) as database,
                served(database, "--temporal-port", "0", pattern=LISTENS) as address,
            ):
                found = asyncio.run(measure(address, given.schedules, given.rate, given.seconds))
            rows.append(row(kind, found))
    figures = table(HEADINGS, rows)
    page = PAGE.format(
        rate=given.rate, seconds=given.seconds, schedules=given.schedules, every=EVERY, table=figures
    )
    publish(page, given.write)


def row(kind: str, found: Measured) -> tuple[str, ...]:
    """A line of the table."""
    return (
        kind, f"{found.rate:,.0f}", f"{found.median:.1f}", f"{found.p99:.1f}", f"{found.starts:,} of {found.due:,}",
        f"{found.late_median:.0f}", f"{found.late_p99:.0f}", f"{found.latest:.0f}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
