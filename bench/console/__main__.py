"""Fill a database, ask for the pages of the console, print the page of figures, and write it to a file if one is named."""

from __future__ import annotations

import asyncio
import warnings
from time import perf_counter, process_time

import httpx

from bench.herd.contestant import POSTGRES, SQLITE, batches
from bench.herd.server import Databases
from bench.page import parser, publish, table
from horae.app import App, NewSchedule
from horae.config import Config
from horae.face.service import Service
from horae.model import AUTOMATIC, Overlap, Run, Schedule, Status

PAGES = {
    "overview": "",
    "overview, a week": "?span=1w",
    "overview, a tag": "?tag=t3",
    "schedules": "/schedules",
    "schedules, searched: common": "/schedules?q=job-0000",
    "schedules, searched: the last": "/schedules?q=job-0999",
    "schedules, searched: none": "/schedules?q=nothing",
    "schedules, active": "/schedules?state=active",
    "schedules, paused": "/schedules?state=paused",
    "schedules, completed": "/schedules?state=completed",
    "schedules, need attention": "/schedules?state=attention",
    "schedules, a tag": "/schedules?tag=t3",
    "schedules, a tag that none has": "/schedules?tag=none",
    "schedules, an action that none has": "/schedules?action=none",
    "schedules, paused and searched": "/schedules?state=paused&q=job-05",
    "a schedule": "/schedules/job-000007",
    "its times": "/schedules/job-000007/times",
    "its edit": "/schedules/job-000007/edit",
    "its versions": "/schedules/job-000007/versions",
    "a new schedule": "/new",
    "runs": "/runs",
    "runs, open": "/runs?state=open",
    "runs, failed": "/runs?state=failed",
    "runs, problems": "/runs?state=problems",
    "runs, unstarted": "/runs?state=unstarted",
    "runs, a tag": "/runs?tag=t3",
    "runs, a tag that none has": "/runs?tag=none",
    "runs, a reason": "/runs?reason=late",
    "runs, since": "/runs?since=-1d",
    "runs of a schedule": "/runs?schedule=job-000007",
    "a run": "/runs/{run}",
    "alerts": "/alerts",
    "flows": "/flows",
    "workflows": "/workflows",
    "grants": "/grants",
    "calendars": "/calendars",
    "nodes": "/nodes",
    "explain": "/explain?schedule=job-000007&time=2026-01-01T00:00:00Z",
    "a question": "/explain?q=why+did+job-000007+not+run+yesterday+at+2:30",
    "explain, a misspelt id": "/explain?schedule=job-099l99&time=yesterday",
    "a question, a misspelt id": "/explain?q=why+did+jbo-000007+not+run+yesterday+at+2:30",
    "go to, the last": "/go?q=job-0999",
    "go to, none": "/go?q=nothing",
}
TEXT = """# How soon the console's pages are there

One process has {schedules:,} schedules ({paused:,} of them paused) and {runs:,} runs and answers in its own event loop; the time is that of the whole answer, which is the first paint of a page that
needs nothing else to be read. The fastest of {times} requests, after one that was not counted: the machine had other work to do. What takes longer comes after the first paint: the load ahead on the overview, and a search that
has not filled its page after 4,000 schedules, which the browser goes on with by itself. `python -m bench.console --write FILE` writes this page anew.

{table}"""
HEADINGS = ("page", "ms on SQLite", "of these computing", "ms on PostgreSQL", "KiB")
PAUSED = 200
"""Every so many schedules, one is paused."""


async def fill(app: App, schedules: int, runs: int) -> str:
    """Create schedules that fire hourly to daily, and ended runs of the latest days; the id of one of the runs."""
    created: list[Schedule] = []
    for batch in batches(schedules):
        new = [
            NewSchedule(
                id=f"job-{number:06}", spec=f"{number % 60} {number % 24} * * *", action="ping", owner="local", tags=(f"t{number % 7}",),
                paused=number % PAUSED == PAUSED - 1,
            )
            for number in batch
        ]  # fmt: skip
        created += await app.schedules.create_many(new)
    now = app.now()
    for batch in batches(runs, 10_000):
        async with app.transaction() as transaction:
            await transaction.insert_runs(
                _run(created[number % len(created)], number, now - (runs - number) * 86_400)
                for number in batch
            )
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
    found = []
    with Databases() as databases:
        for kind in (SQLITE, POSTGRES):
            with databases.fresh(kind) as database:
                found.append(await _measure(database, schedules, runs, times))
    on_sqlite, on_postgres = found
    rows = [
        (name, f"{taken:.1f}", f"{computing:.1f}", f"{on_postgres[name][0]:.1f}", f"{size / 1024:.0f}")
        for name, (taken, computing, size) in on_sqlite.items()
    ]
    paused = schedules // PAUSED
    return TEXT.format(
        schedules=schedules, paused=paused, runs=runs, times=times, table=table(HEADINGS, rows)
    )


async def _measure(
    database: str, schedules: int, runs: int, times: int
) -> dict[str, tuple[float, float, int]]:
    """How many milliseconds each page takes, how many of them it computes, and its bytes."""
    config = Config(schedules_per_user=schedules + 1)
    app = App(database, config=config)
    app.action("ping")(lambda: None)
    await app.open()
    try:
        run_id = await fill(app, schedules, runs) if schedules else "run-500000"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transport = httpx.ASGITransport(app=Service(app, config))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=600) as client:
            return {
                name: await _ask(client, f"/console{path.format(run=run_id)}", times)
                for name, path in PAGES.items()
            }
    finally:
        await app.close()


async def _ask(client: httpx.AsyncClient, path: str, times: int) -> tuple[float, float, int]:
    taken, computing, size = [], [], 0
    for _ in range(times + 1):
        begun, used = perf_counter(), process_time()
        answer = await client.get(path)
        taken.append((perf_counter() - begun) * 1000)
        computing.append((process_time() - used) * 1000)
        answer.raise_for_status()
        size = len(answer.content)
    return min(taken[1:]), min(computing[1:]), size


def main() -> None:
    """Measure, print, write."""
    options = parser("bench.console", "How soon the console's pages are there.")
    options.add_argument("--schedules", type=int, default=100_000, help="how many schedules there are")
    options.add_argument("--runs", type=int, default=1_000_000, help="how many runs there are")
    options.add_argument("--times", type=int, default=10, help="how often each page is asked for")
    given = options.parse_args()
    publish(asyncio.run(measured(given.schedules, given.runs, given.times)), given.write)


if __name__ == "__main__":
    main()
