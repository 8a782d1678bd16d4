"""Fill a database, ask for the pages of the console, print the page of figures, and write it to a file if one is named."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter

import httpx

from horae.app import App, NewSchedule
from horae.config import Config
from horae.face.service import make_service
from horae.model import AUTOMATIC, Overlap, Run, Schedule, Status

PAGES = {
    "overview": "/console",
    "schedules": "/console/schedules",
    "schedules, searched": "/console/schedules?q=job-0000",
    "schedules, paused": "/console/schedules?state=paused",
    "a schedule": "/console/schedules/job-000007",
    "runs": "/console/runs",
    "runs, failed": "/console/runs?state=failed",
    "a run": "/console/runs/{run}",
    "explain": "/console/explain?schedule=job-000007&time=2026-01-01T00:00:00Z",
}
TEXT = """# How soon the console's pages are there

One process has {schedules:,} schedules and {runs:,} runs in an SQLite file and answers in its own event loop; the time is that of the whole answer, which is the first paint of a page that
needs nothing else to be read. The median of {times} requests, after one that was not counted. The load ahead on the overview is fetched after the first paint. `python -m bench.console --write FILE` writes this page anew.

| page | ms | KiB |
|---|---:|---:|
{rows}
"""
BATCH = 10_000


async def fill(app: App, schedules: int, runs: int) -> str:
    """Create schedules that fire hourly to daily, and ended runs of the latest days; the id of one of the runs."""
    made: list[Schedule] = []
    for first in range(0, schedules, BATCH // 10):
        new = [
            NewSchedule(id=f"job-{number:06}", spec=f"{number % 60} {number % 24} * * *", action="ping", owner="local", tags=(f"t{number % 7}",))
            for number in range(first, min(first + BATCH // 10, schedules))
        ]  # fmt: skip
        made += await app.schedules.create_many(new)
    now = app.now()
    for first in range(0, runs, BATCH):
        async with app.transaction() as transaction:
            await transaction.insert_runs(
                _run(made[number % len(made)], number, now - (runs - number) * 86_400) for number in range(first, min(first + BATCH, runs))
            )  # fmt: skip
    return f"run-{runs // 2}"


def _run(schedule: Schedule, number: int, at_ms: int) -> Run:
    failed = number % 50 == 0
    return Run(
        id=f"run-{number}", schedule_key=schedule.key, generation=schedule.generation, nominal_ms=at_ms // 1000 * 1000, origin=AUTOMATIC,
        overlap=Overlap.SKIP, status=Status.FAILED if failed else Status.SUCCEEDED, fire_ms=at_ms, start_at_ms=at_ms, decided_at_ms=at_ms,
        owner="local", action="ping", started_at_ms=at_ms + 3, ended_at_ms=at_ms + 40, attempt=1, reason="failed" if failed else "",
        failure="it did not answer" if failed else None, result=None if failed else {"rows": number},
    )  # fmt: skip


async def measured(schedules: int, runs: int, times: int) -> str:
    """The page of figures."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        config = Config(schedules_per_user=schedules + 1)
        app = App(f"sqlite:///{folder}/horae.db", config=config)
        app.action("ping")(lambda: None)
        await app.open()
        run_id = await fill(app, schedules, runs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transport = httpx.ASGITransport(app=make_service(app, config))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=600) as client:
            for name, path in PAGES.items():
                taken, size = await _ask(client, path.format(run=run_id), times)
                rows.append(f"| {name} | {taken:.1f} | {size / 1024:.0f} |")
        await app.close()
    return TEXT.format(schedules=schedules, runs=runs, times=times, rows="\n".join(rows))


async def _ask(client: httpx.AsyncClient, path: str, times: int) -> tuple[float, int]:
    taken, size = [], 0
    for _ in range(times + 1):
        begun = perf_counter()
        answer = await client.get(path)
        taken.append((perf_counter() - begun) * 1000)
        answer.raise_for_status()
        size = len(answer.content)
    return median(taken[1:]), size


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.console", description="How soon the console's pages are there."
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page to a Markdown file")
    parser.add_argument("--schedules", type=int, default=100_000, help="how many there are")
    parser.add_argument("--runs", type=int, default=1_000_000, help="how many there are")
    parser.add_argument("--times", type=int, default=10, help="how often each page is asked for")
    arguments = parser.parse_args()
    page = asyncio.run(measured(arguments.schedules, arguments.runs, arguments.times))
    print(page)
    if arguments.write is not None:
        arguments.write.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
