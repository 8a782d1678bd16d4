"""The overview: alerts, problems, the timeline, the lateness of starts, and the nodes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from horae.app import Filter, ScopedOperations
from horae.app.fire_times import times_ahead
from horae.app.page import Page
from horae.app.view_base import view_of
from horae.app.views import ForecastView, NodeView, ledger_page
from horae.face.console.alerts_page import alerts_of
from horae.face.console.page_request import Visit
from horae.face.console.problem_runs import ASKED_FOR, PROBLEMS, latest_of_each, problems_among
from horae.face.console.rendering import called
from horae.face.console.schedule_display_names import names_of
from horae.face.console.timeline import MAX_COMING, SPANS, by_relevance, lateness, slots_since, timeline
from horae.face.http.responses import Response
from horae.face.http.routes import get
from horae.model import Reason, Run, Schedule, ScheduleKey, Status, UnstartedRange, instant

ENTRIES = 600
"""How many of the latest runs and ranges the timeline draws and counts, and how many older problems are read besides."""
CROWDS = (Reason.BACKFILL_CANCELLED, Reason.DELETED)
"""Reasons to leave out: one click may drop thousands of runs, which would crowd out the others."""
LANES, MAX_LANES = 40, 400
"""How many schedules the timeline shows at first, and after asking for more."""
LISTED = 8
"""How many alerts and problems are listed."""
FORECAST_MINUTES = 60


@get("/")
async def overview_page(visit: Visit) -> Response[Any]:
    """What ran, what will run, what did not and why."""

    async def build() -> dict[str, Any]:
        operations, tag = visit.operations, visit.query.get("tag") or None
        reach = visit.query.get("span", "1h")
        reach = reach if reach in SPANS else "1h"
        now, span = instant(visit.now), SPANS[reach][1]
        asked = visit.query.get("lanes", "")
        lanes = min(int(asked), MAX_LANES) if asked.isdecimal() else LANES
        found, alerts, soonest, nodes = await asyncio.gather(
            operations.runs.search(since=now - span, tag=tag, without_reasons=CROWDS, limit=ENTRIES),
            alerts_of(visit),
            operations.schedules.soonest(lanes + 1, tag=tag),
            visit.app.nodes(),
        )
        entries = [*found, *await _problems_before(operations, found, now - span, tag)]
        attention = {each.schedule_key for each in alerts if each.schedule_key}
        order = by_relevance(entries, soonest, attention, now, now + span)
        drawn_ones = await operations.schedules.get_many(order[:lanes])
        names = {each.key: called(each.action, each.id) for each in drawn_ones}
        ahead = await _coming(
            operations, drawn_ones, visit.now, visit.now + span // timedelta(milliseconds=1)
        )
        drawn = timeline(entries, ahead, now, span, visit.zone, order[:lanes], names)
        problems = latest_of_each(problems_among(entries))
        latest = Page(each for each, _ in problems[:LISTED])
        listed = ledger_page(latest).items
        return {
            "timeline": drawn, "spans": SPANS, "reach": reach, "late": lateness(found), "nodes": [view_of(NodeView, each) for each in nodes],
            "problems": [(each, number) for each, (_, number) in zip(listed, problems, strict=False)], "more_problems": max(len(problems) - LISTED, 0),
            "alerts": alerts[:LISTED], "more_alerts": max(len(alerts) - LISTED, 0), "names": await names_of(operations, latest), "now": now, "truncated": len(found) if found.next else None, "tag": tag,
            "is_tagged": not tag or bool(drawn.lanes) or await _is_tagged(operations, tag),
            "total": bool(drawn.lanes) or bool(await operations.schedules.list(limit=1)), "counts": _counts(found, now - span),
            "hidden": max(len(order) - lanes, 0), "wider": lanes + LANES if lanes < MAX_LANES else None,
        }  # fmt: skip

    return await visit.live_page("overview.html", build)


async def _is_tagged(operations: ScopedOperations, tag: str) -> bool:
    """Whether a schedule has a tag, or may have it: a search examines only a part of very many schedules."""
    found = await operations.schedules.search(Filter(tag=tag), limit=1)
    return bool(found) or found.next is not None


async def _problems_before(
    operations: ScopedOperations, found: Page[Run | UnstartedRange], since: datetime, tag: str | None
) -> Iterable[Run | UnstartedRange]:
    """The problems of a window that are older than the entries that were found, newest first."""
    if found.next is None or (tag and not found):  # a tag so rare is not worth a second search
        return ()
    return await operations.runs.search(
        since=since, tag=tag, status=PROBLEMS, without_reasons=ASKED_FOR, limit=ENTRIES, cursor=found.next
    )


def _counts(entries: Iterable[Run | UnstartedRange], since: datetime) -> dict[str, int]:
    """The number of slots in the window by status."""
    counts: Counter[str] = Counter()
    for each in entries:
        counts[each.status] += slots_since(each, since) if isinstance(each, UnstartedRange) else 1
    return {status.value: counts[status] for status in Status if counts[status]}


async def _coming(
    operations: ScopedOperations, schedules: Sequence[Schedule], now: int, until_ms: int
) -> dict[ScheduleKey, tuple[datetime, ...]]:
    """The next fire times of some schedules, as far as the timeline reaches."""
    return {
        each.key: await operations.evaluate(
            partial(times_ahead, each, now, MAX_COMING, until_ms=until_ms)
        )  # one by one: none is too much at once
        for each in schedules
        if not each.state.paused and not each.unreadable
    }


@get("/forecast")
async def forecast_part(visit: Visit) -> Response[Any]:
    """The starts of each minute ahead, as a plot; a part of the overview that may take a moment with many schedules."""
    operations, tag = visit.operations, visit.query.get("tag") or None
    found = await visit.console.kept.get(
        f"forecast {operations.owner!r} {tag!r}",
        lambda: operations.why.forecast(minutes=FORECAST_MINUTES, tag=tag),
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
