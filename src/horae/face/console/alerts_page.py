"""Alerts: what waits for a person (nodes, time-zone data, flows, schedules, grants), and recent problems."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec

from horae.app import Filter
from horae.app.grant_views import GrantView
from horae.app.page import Page
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import page_of, view_of
from horae.app.views import NodeView, ledger_page
from horae.face.console.flows_pages import NEEDS_ATTENTION
from horae.face.console.grants_pages import state_of
from horae.face.console.page_request import Visit
from horae.face.console.problem_runs import ASKED_FOR, PROBLEMS, problems_among
from horae.face.console.rendering import called
from horae.face.console.schedule_display_names import names_of
from horae.face.console.statuses import resolution
from horae.face.http.responses import Response
from horae.face.http.routes import get
from horae.model import ScheduleKey, instant, schedule_key

LISTED = 50
"""How many of a kind are listed."""
EXPIRES = timedelta(days=7)
"""How long before it expires a grant is listed."""
SINCE = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "1w": timedelta(weeks=1)}
"""How far back problems are listed."""


class Alert(msgspec.Struct, frozen=True):
    """Something that waits for a person: how bad it is, what it is about, and the page to resolve it on."""

    tone: str
    kind: str
    name: str
    text: str
    href: str
    todo: str = ""
    schedule_key: ScheduleKey | None = None
    """The schedule that the alert is about, if any."""


@get("/alerts")
async def alerts_page(visit: Visit) -> Response[Any]:
    """What waits for a person, and what failed lately."""
    reach = visit.query.get("since", "1d")
    reach = reach if reach in SINCE else "1d"

    async def build() -> dict[str, Any]:
        since = instant(visit.now) - SINCE[reach]
        found = await visit.operations.runs.search(
            status=PROBLEMS, without_reasons=ASKED_FOR, since=since, limit=LISTED
        )
        among = Page(problems_among(found), found.next)
        problems = ledger_page(among).items
        counts = Counter((each.owner, each.schedule_id) for each in problems)
        return {
            "alerts": await alerts_of(visit), "names": await names_of(visit.operations, among), "problems": problems, "more": found.next is not None, "reach": reach,
            "reaches": SINCE, "often": [(*key, number) for key, number in counts.most_common(3) if number > 2],
        }  # fmt: skip

    return await visit.live_page("alerts.html", build)


async def alerts_of(visit: Visit) -> list[Alert]:
    """What waits for a person."""
    found = await asyncio.gather(_nodes(visit), _flows(visit), _schedules(visit), _grants(visit))
    return [alert for kind in found for alert in kind]


async def _nodes(visit: Visit) -> list[Alert]:
    nodes = [view_of(NodeView, each) for each in await visit.app.nodes()]
    ready = await visit.app.readiness()
    found = []
    if ready.status != "ready":
        found.append(Alert("failed", "Node", "This node", f"cannot work: {ready.status}", visit.url("nodes")))
    if not any(each.alive for each in nodes):
        found.append(
            Alert("failed", "Node", "No node", "drives this database: nothing fires", visit.url("nodes"))
        )
    versions = sorted({each.tzdata for each in nodes if each.alive})
    if len(versions) > 1:
        text = f"differs between nodes: {', '.join(versions)}. Nodes with the older one do not decide what is due"
        found.append(
            Alert("missed", "Node", "Time-zone data", text, visit.url("nodes"), "Update those nodes")
        )
    return found


async def _flows(visit: Visit) -> list[Alert]:
    """Flows that wait for a person. Paused flows, and flows that retry by themselves, are not listed."""
    return [
        Alert(
            "failed",
            "Flow",
            each.title,
            each.issue or "",
            visit.of_owner(each.owner, "flows", each.name),
            resolution(each.action),
        )
        for each in await visit.operations.flows.list(limit=1000)
        if each.status == NEEDS_ATTENTION
    ]


async def _schedules(visit: Visit) -> list[Alert]:
    found = await visit.operations.schedules.list(Filter(attention=True), limit=LISTED)
    shown = [view_of(ScheduleView, each) for each in found]
    return [
        Alert(
            "attention", "Schedule", called(each.action, each.id), each.attention, visit.of_schedule(each),
            schedule_key=schedule_key(each.owner, each.id),
        )
        for each in shown
    ]  # fmt: skip


async def _grants(visit: Visit) -> list[Alert]:
    """The grants that expire soon, and with them what they allow."""
    found = page_of(GrantView, await visit.operations.grants.list()).items
    now = instant(visit.now)
    soon = [
        each
        for each in found
        if state_of(each, visit.now) == "active" and each.expires_at and each.expires_at - now <= EXPIRES
    ]
    return [
        Alert(
            "missed", "Grant", ", ".join(each.scopes), f"ends on {each.expires_at:%d %b %Y at %H:%M} UTC; what runs by it then stops",
            visit.url("grants"), "Renew it",
        )
        for each in soon
    ]  # fmt: skip


HANDLERS = [alerts_page]
