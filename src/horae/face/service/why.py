"""The routes of "why?": explain a time, preview a change, and forecast the load."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, get, post
from litestar.params import QueryParameter

from horae.app import App
from horae.app.views import (
    ExplanationView,
    ForecastView,
    PreviewView,
    SpecPreview,
    explanation_view,
    forecast_view,
    preview_view,
)
from horae.app.why import MAX_MINUTES
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import PreviewChange, PreviewSpec
from horae.face.service.route_helpers import Owner, named, operations


@get(
    "/schedules/{schedule_id:str}/explain",
    operation_id="explainTime",
    summary="Why did it, or did it not, run?",
)
async def explain(
    app: App,
    caller: Caller,
    schedule_id: str,
    time: Annotated[
        str,
        QueryParameter(
            name="time",
            description="ISO 8601; without an offset: in the schedule's zone.",
            schema_extra={"examples": ["2026-03-08T02:30:00"]},
        ),
    ],
    owner: Owner = None,
) -> ExplanationView:
    """For any time, past or future, as a sentence and as data."""
    return explanation_view(await operations(app, caller, owner).why.explain(named(schedule_id), time))


@post(
    "/schedules/{schedule_id:str}/preview",
    operation_id="previewChange",
    summary="What a change would do",
    status_code=200,
)
async def preview(
    app: App, caller: Caller, schedule_id: str, data: PreviewChange, owner: Owner = None
) -> PreviewView:
    """Which fire times another spec adds and removes in the days ahead; nothing is changed."""
    there = operations(app, caller, owner).why
    return preview_view(await there.preview(named(schedule_id), data.spec, days=data.days))


@get("/forecast", operation_id="forecast", summary="The load ahead, by the minute")
async def forecast(
    app: App,
    caller: Caller,
    owner: Owner = None,
    minutes: Annotated[
        int,
        QueryParameter(
            name="minutes", description="How far ahead.", schema_extra={"minimum": 1, "maximum": MAX_MINUTES}
        ),
    ] = 60,
    jitter: Annotated[
        str | None,
        QueryParameter(
            name="jitter",
            description="From 1s to 24h: how it would flatten the peaks.",
            schema_extra={"examples": ["30s"]},
        ),
    ] = None,
) -> ForecastView:
    """Over all schedules that the caller sees and that are not paused."""
    return forecast_view(await operations(app, caller, owner).why.forecast(minutes=minutes, jitter=jitter))


@post("/preview", operation_id="previewSpec", summary="What a spec means", tags=["why"], status_code=200)
async def preview_spec(app: App, caller: Caller, data: PreviewSpec, owner: Owner = None) -> SpecPreview:
    """Its canonical form, a sentence, and its next times; nothing is stored."""
    return await operations(app, caller, owner).schedules.meaning(data.spec, data.limit)


def why_router() -> Router:
    """The routes of "why?"."""
    return Router("/", route_handlers=[explain, preview, forecast, preview_spec], tags=["why"])
