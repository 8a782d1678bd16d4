"""``/api/v1/usage``: what runs of graphs used."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, get

from horae.app import ScopedOperations
from horae.app.grant_views import UsageView
from horae.app.view_base import PageView, view_of
from horae.face.service.query_parameters import asked
from horae.face.service.route_helpers import API, Limit

Since = Annotated[str | None, asked("since", "Recorded at or after this.", format="date-time")]
Until = Annotated[str | None, asked("until", "Recorded before this.", format="date-time")]
By = Annotated[str, asked("by", "Also by the hour or the day, in UTC.", enum=["all", "hour", "day"])]


@get("/", summary="Sum usage")
async def sum_usage(
    operations: ScopedOperations, since: Since = None, until: Until = None, by: By = "all", limit: Limit = 100
) -> PageView[UsageView]:
    """What runs of graphs used, by account and time, the latest first. It has no further pages: ask for a shorter span."""
    found = await operations.usage.sums(since=since, until=until, by=by, limit=limit)
    return PageView(items=[view_of(UsageView, each) for each in found])


def usage_router() -> Router:
    """The routes of usage."""
    return Router(f"{API}/usage", route_handlers=[sum_usage], tags=["grants"])
