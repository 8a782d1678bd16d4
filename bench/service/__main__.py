"""Measure the service on both databases, print the page, and write it to a file if one is named."""

from __future__ import annotations

import asyncio

from bench.herd.contestant import POSTGRES, SQLITE
from bench.herd.server import Databases
from bench.page import parser, publish, table
from bench.service.measure import BATCH, CLIENTS, Figures, Measured, ask_ceiling, ask_horae, ceiling, served

PAGE = """# How fast the service answers

{schedules:,} schedules are in the database, and a real client (httpx, {clients} requests at a time) asks the service, which is another process on the
same two cores and keeps time meanwhile. `describe` reads one schedule with its counts, its latest runs and its next ten times; `list` reads a page of
100; `create` sends {batch:,} schedules in one request. The ceiling is the same server and the same toolkit with routes that do nothing but answer. In
brackets stands how many times faster the ceiling is. `python -m bench.service --write FILE` writes this page anew.

{table}
`create` is in schedules a second: a request of {batch:,} took so many milliseconds.
"""


def main() -> None:
    """Measure, print, write."""
    options = parser("bench.service", "How fast the service answers.")
    options.add_argument("--schedules", type=int, default=100_000, help="how many schedules there are")
    options.add_argument("--requests", type=int, default=10_000, help="how many requests are sent")
    given = options.parse_args()
    publish(measured(given.schedules, given.requests), given.write)


def measured(schedules: int, requests: int) -> str:
    """The page."""
    results: dict[str, Measured] = {}
    with ceiling() as address:
        results["ceiling"] = asyncio.run(ask_ceiling(address, schedules, requests))
    with Databases() as databases:
        for kind in (SQLITE, POSTGRES):
            with databases.fresh(kind) as database, served(database) as address:
                results[f"Horae on {kind}"] = asyncio.run(ask_horae(address, schedules, requests))
    rows = [
        row(name, request, getattr(found, request), getattr(results["ceiling"], request))
        for request in Measured._fields
        for name, found in results.items()
    ]
    figures = table(("service", "request", "answers/s", "p50, ms", "p99, ms"), rows, texts=2)
    return PAGE.format(schedules=schedules, clients=CLIENTS, batch=BATCH, table=figures)


def row(name: str, request: str, figures: Figures, best: Figures) -> tuple[str, ...]:
    """A line of the table."""
    factor = BATCH if request == "create" else 1
    compared = "" if figures == best else f" ({best.rate / figures.rate:.1f}×)"
    shown = {"several": "list"}.get(request, request)
    rate = f"{figures.rate * factor:,.0f}{compared}"
    return name, shown, rate, f"{figures.median:.1f}", f"{figures.p99:.1f}"


if __name__ == "__main__":
    main()
