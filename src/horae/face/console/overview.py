"""The overview: what needs attention, what ran and will run, how late starts are, and the nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from litestar import Response, get

from horae.app import Filter, ScopedOperations
from horae.app.fire_times import next_time, times_ahead
from horae.app.schedule_views import ScheduleView
from horae.app.view import view_of
from horae.app.views import ForecastView, NodeView, RunEntry, ledger_page
from horae.errors import HoraeError
from horae.face.console.timeline import MAX_COMING, SPANS, lateness, timeline
from horae.face.console.visit import Visit
from horae.model import Schedule, Status, instant

ENTRIES = 1000
LANES = 60
ATTENTION = 8
FORECAST_MINUTES = 60


@get("/")
async def overview_page(visit: Visit) -> Response[Any]:
    """What ran, what will run, what did not and why."""

    async def build() -> dict[str, Any]:
        there, tag = visit.there, visit.query.get("tag") or None
        reach = visit.query.get("span", "1h")
        reach = reach if reach in SPANS else "1h"
        now, span = instant(visit.now), SPANS[reach][1]
        found = await there.runs.search(since=now - span, tag=tag, limit=ENTRIES)
        entries = ledger_page(found).items
        ahead = await _coming(there, tag, visit.now, now + span)
        drawn = timeline(entries, ahead, now, span, visit.zone)
        failed = [
            each for each in entries if isinstance(each, RunEntry) and each.status in {"failed", "timed_out"}
        ]
        troubled = await _troubled(visit)
        nodes = [view_of(NodeView, each) for each in await visit.app.nodes()]
        return {
            "timeline": drawn, "spans": SPANS, "reach": reach, "late": lateness(entries), "nodes": nodes,
            "failed": failed[:ATTENTION], "failures": len(failed), "troubled": troubled,
            "ready": await visit.app.readiness(), "now": now, "truncated": found.next is not None, "tag": tag,
            "total": bool(drawn.lanes) or bool(await there.schedules.list(limit=1)), "counts": _counts(entries),
        }  # fmt: skip

    return await visit.live_page("overview.html", build)


def _counts(entries: list[Any]) -> dict[str, int]:
    """How many slots of the window became what."""
    counts: dict[str, int] = {}
    for each in entries:
        counts[each.status] = counts.get(each.status, 0) + getattr(each, "count", 1)
    return {status.value: counts[status] for status in Status if status in counts}


async def _coming(
    there: ScopedOperations, tag: str | None, now: int, until: datetime
) -> dict[tuple[str, str], tuple[datetime, ...]]:
    """The next fire times of some schedules, as far as the timeline reaches."""
    soon = await there.schedules.list(Filter(paused=False, completed=False, tag=tag), limit=LANES)

    def work() -> dict[tuple[str, str], tuple[datetime, ...]]:
        return {(each.owner, each.id): _ahead(each, now, until) for each in soon}

    return await there.evaluate(work)


def _ahead(schedule: Schedule, now: int, until: datetime) -> tuple[datetime, ...]:
    """The fire times ahead; one look is enough for a schedule that does not fire before the end."""
    try:
        first = None if schedule.unreadable else next_time(schedule)
    except HoraeError:  # its spec cannot be read: the next decision pauses it
        return ()
    return () if first is None or first > until else times_ahead(schedule, now, MAX_COMING)


async def _troubled(visit: Visit) -> list[ScheduleView] | None:
    """The schedules that need attention; ``None`` while they are still searched for among very many."""
    there = visit.there
    found = await visit.console.kept.soon(
        f"attention {there.owner!r}",
        lambda: there.schedules.list(Filter(attention=True), limit=ATTENTION),
        visit.console.feed.changed,
    )
    return None if found is None else [view_of(ScheduleView, each) for each in found]


@get("/forecast")
async def forecast_part(visit: Visit) -> Response[Any]:
    """The starts of each minute ahead, as a plot; a part of the overview that may take a moment with many schedules."""
    there = visit.there
    found = await visit.console.kept.get(
        f"forecast {there.owner!r}", lambda: there.why.forecast(minutes=FORECAST_MINUTES)
    )
    forecast = view_of(ForecastView, found)
    by_minute = {each.minute: each.starts for each in forecast.minutes}
    top = max(by_minute.values(), default=1)
    bars = [
        ((minute - forecast.start).total_seconds() / 60, starts, round(60 * starts / top, 1))
        for minute, starts in by_minute.items()
    ]
    template = "forecast.html" if "hx-request" in visit.request.headers else "forecast_page.html"
    return visit.page(template, forecast=forecast, bars=bars, top=top)


HANDLERS = [overview_page, forecast_part]
