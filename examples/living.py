"""The service with a few example schedules: what ``make run`` starts.

They show common cases: a frequent action, one that takes longer than its interval, one that fails and is retried,
holidays, a clock change, and a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any

import horae
from horae.errors import HoraeError, ListenError, ScheduleExistsError
from horae.face.cli.printing import report
from horae.face.service.server import serve

app = horae.App(":memory:")


@app.action("tick")
async def tick(context: horae.Context) -> dict[str, Any]:
    """Return the nominal time."""
    return {"nominal": context.nominal.isoformat(), "attempt": context.attempt}


@app.action("long-work")
async def long_work(context: horae.Context) -> str:
    """Takes longer than the interval of its schedule: every other slot is skipped, with the reason."""
    for _ in range(25):
        context.heartbeat()
        await asyncio.sleep(1)
    return "done at last"


@app.action("flaky")
async def flaky(context: horae.Context) -> str:
    """Fails in the first attempt of every third minute."""
    if context.attempt == 1 and context.nominal.minute % 3 == 0:
        raise ConnectionError("the other side hung up")
    return f"attempt {context.attempt} did it"


@app.action("sync-orders")
async def sync_orders(context: horae.Context) -> dict[str, int]:
    """Fails for good occasionally, so that something needs attention."""
    context.log.info("reading the orders of %s", context.nominal.date())
    if context.nominal.minute % 10 == 4:
        raise TimeoutError("the shop did not answer within 5 s")
    return {"orders": context.nominal.minute}


HOLIDAYS = {"dates": ["2026-12-24", "2026-12-25", "2026-12-31", "2027-01-01"]}
SCHEDULES: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("heartbeat", "*/10 * * * * *", "tick", {"tags": ("often",)}),
    ("long-work", "*/15 * * * * *", "long-work", {"note": "it overlaps itself, and skips"}),
    (
        "flaky-import",
        "* * * * *",
        "flaky",
        {"policies": horae.Policies(retry=horae.RetryPolicy(attempts=3, initial_delay="2s"))},
    ),
    ("orders-sync", "*/2 * * * *", "sync-orders", {"tags": ("shop",), "description": "Orders of the shop, for the books"}),
    (
        "nightly-backup",
        {"crons": ["30 2 * * *"], "timezone": "America/New_York", "gap": "shift", "fold": "first"},
        "tick",
        {"tags": ("night",)},
    ),
    (
        "workday-report",
        {"crons": ["0 9 * * 1-5"], "timezone": "Europe/Berlin", "exclude": [{"calendar": "holidays"}]},
        "tick",
        {"tags": ("reports",), "search_attributes": {"department": "sales"}},
    ),
    ("month-end", {"crons": ["0 18 L * *"], "timezone": "Asia/Tokyo"}, "tick", {"tags": ("reports",)}),
    ("quarter-hour", {"intervals": [{"every": "15m"}], "jitter": "30s"}, "tick", {"paused": True, "note": "ask Ada"}),
]  # fmt: skip


RELEASE: dict[str, Any] = {
    "workflow_id": "release", "version": 1,
    "nodes": [
        {"id": "every-five-minutes", "type": "trigger", "data": {"kind": "schedule_based", "schedule": {"cron_expr": "*/5 * * * *", "timezone": "UTC"}}},
        {"id": "build", "type": "action", "data": {"action": "tick"}},
        {"id": "unit-tests", "type": "action", "data": {"action": "tick"}},
        {"id": "browser-tests", "type": "action", "data": {"action": "flaky", "retry": {"attempts": 3, "delay": "1s"}}},
        {"id": "publish", "type": "action", "data": {"action": "tick"}},
        {"id": "announce", "type": "action", "data": {"action": "tick"}},
    ],
    "edges": [
        {"source": "every-five-minutes", "target": "build"}, {"source": "build", "target": "unit-tests"},
        {"source": "build", "target": "browser-tests"}, {"source": "unit-tests", "target": "publish"},
        {"source": "browser-tests", "target": "publish"}, {"source": "publish", "target": "announce"},
    ],
}  # fmt: skip


async def prepare(config: horae.Config) -> None:
    """Create what does not exist yet; existing schedules stay as they are."""
    service = horae.App(config.database_url, config=config)
    service.adopt(app)
    await service.open()
    try:
        await service.calendars.put("holidays", HOLIDAYS)
        await service.owned_by("local").workflows.deploy(RELEASE)
        for schedule_id, spec, action, more in SCHEDULES:
            with contextlib.suppress(ScheduleExistsError):
                await service.owned_by("local").schedules.create(schedule_id, spec, action, **more)
    finally:
        await service.close()


def main() -> None:
    """Prepare, and serve."""
    try:
        config = horae.Config.from_environment()
        asyncio.run(prepare(config))
        serve(config, "examples.living", flows=["examples.living_flow"])
    except ListenError as error:
        other = 8422 if config.port == 8421 else 8421
        report(ListenError(error.details["address"], error.details["reason"], hint=f"PORT={other} make run"))
        sys.exit(2)
    except HoraeError as error:  # a sentence, and no traceback
        report(error)
        sys.exit(2)


if __name__ == "__main__":
    main()
