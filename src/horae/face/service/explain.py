"""The routes of "why?": explain a time, preview a change, and forecast the load."""

from __future__ import annotations

from typing import Annotated

from horae.app import ScopedOperations
from horae.app.schedule_views import SpecPreview
from horae.app.view_base import view_of
from horae.app.views import ExplanationView, ForecastView, PreviewView
from horae.app.why import MAX_MINUTES
from horae.face.http.arguments import query
from horae.face.http.routes import Router, get, post
from horae.face.service.request_bodies import PreviewChange, PreviewSpec
from horae.face.service.route_helpers import API, READS

Time = Annotated[
    str,
    query(
        "ISO 8601; without an offset, in the schedule's time zone.", examples=["2026-03-08T02:30:00"]
    ),
]  # fmt: skip
Minutes = Annotated[int, query("How far ahead.", minimum=1, maximum=MAX_MINUTES)]
Jitter = Annotated[
    str | None,
    query("From 1s to 24h: forecast as if every schedule had this jitter.", examples=["30s"]),
]


@get("/schedules/{schedule_id}/explain", summary="Why did it, or did it not, run?")
async def explain_time(operations: ScopedOperations, schedule_id: str, time: Time) -> ExplanationView:
    """For any time, past or future, as a sentence and as data."""
    return view_of(ExplanationView, await operations.why.explain(schedule_id, time))


@post("/schedules/{schedule_id}/preview", summary="What a change would do", status_code=200, marks=READS)
async def preview_change(operations: ScopedOperations, schedule_id: str, data: PreviewChange) -> PreviewView:
    """The fire times that another spec would add and remove in the days ahead. Nothing is changed."""
    return view_of(PreviewView, await operations.why.preview(schedule_id, data.spec, days=data.days))


@get("/forecast", summary="The load ahead, by the minute")
async def forecast(
    operations: ScopedOperations, minutes: Minutes = 60, jitter: Jitter = None
) -> ForecastView:
    """The starts of all schedules that the caller sees and that are not paused."""
    return view_of(ForecastView, await operations.why.forecast(minutes=minutes, jitter=jitter))


@post("/preview", summary="What a spec means", status_code=200, marks=READS)
async def preview_spec(operations: ScopedOperations, data: PreviewSpec) -> SpecPreview:
    """Its canonical form, a sentence, and its next times. Nothing is stored."""
    return await operations.schedules.meaning(data.spec, data.limit)


_HANDLERS = [explain_time, preview_change, forecast, preview_spec]
why_router = Router(API, route_handlers=_HANDLERS, tags=("why",))
