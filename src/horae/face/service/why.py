"""The routes of "why?": explain a moment, preview a change, and the load ahead."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import Router, get, post
from litestar.params import QueryParameter

from horae.app import App
from horae.app.why import MAX_MINUTES
from horae.face.service.caller import Caller
from horae.face.service.requests import PreviewChange
from horae.face.service.routes import Owner, named, operations
from horae.face.service.views import View, instant, optional_instant
from horae.policy.ahead import Forecast, Minute, Preview
from horae.policy.explain import Explanation


class RangeView(View, frozen=True):
    """Slots that were passed over together."""

    first: datetime
    last: datetime
    count: int


class HappenedView(View, frozen=True):
    """A run at the moment that was asked about."""

    id: str
    origin: str
    status: str
    reason: str
    fire: datetime
    started_at: datetime | None
    ended_at: datetime | None


class ExplanationView(View, frozen=True):
    """Why a moment of a schedule did or did not run, or will or will not."""

    verdict: str
    sentence: str
    schedule_id: str
    nominal: datetime | None
    local: str
    timezone: str
    fire: datetime | None
    late_ms: int | None
    run_id: str | None
    status: str | None
    reason: str
    range: RangeView | None
    by: str
    moved_to: datetime | None
    before: datetime | None
    after: datetime | None
    version: int | None
    decided_at: datetime | None
    runs: list[HappenedView]


class PreviewView(View, frozen=True):
    """The fire times that a change adds and removes; the lists are bounded, the numbers count all."""

    added: list[datetime]
    removed: list[datetime]
    adds: int
    removes: int
    kept: int
    until: datetime
    sentence: str
    truncated: bool


class MinuteView(View, frozen=True):
    """How many starts a minute brings."""

    minute: datetime
    starts: int
    with_jitter: int | None


class ForecastView(View, frozen=True):
    """The starts ahead, minute by minute; minutes without any are left out."""

    start: datetime
    minutes: list[MinuteView]
    peak: MinuteView | None
    peak_with_jitter: MinuteView | None
    total: int
    schedules: int
    truncated: bool


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
    return _explanation(await operations(app, caller, owner).why.explain(named(schedule_id), time))


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
    return _preview(await there.preview(named(schedule_id), data.spec, days=data.days))


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
    return _forecast(await operations(app, caller, owner).why.forecast(minutes=minutes, jitter=jitter))


def _second(second: int | None) -> datetime | None:
    return None if second is None else instant(second * 1000)


def _explanation(found: Explanation) -> ExplanationView:
    span = found.range
    return ExplanationView(
        verdict=found.verdict.value, sentence=found.sentence, schedule_id=found.schedule_id,
        nominal=_second(found.nominal), local=found.local, timezone=found.timezone,
        fire=optional_instant(found.fire_at), late_ms=found.late_ms, run_id=found.run_id,
        status=None if found.status is None else found.status.value, reason=found.reason,
        range=None if span is None else RangeView(
            first=instant(span.first * 1000), last=instant(span.last * 1000), count=span.count
        ),
        by=found.by, moved_to=_second(found.moved_to), before=_second(found.before), after=_second(found.after),
        version=found.version, decided_at=optional_instant(found.decided_at),
        runs=[
            HappenedView(
                id=each.id, origin=each.origin, status=each.status.value, reason=each.reason,
                fire=instant(each.fire_at), started_at=optional_instant(each.started_at),
                ended_at=optional_instant(each.ended_at),
            )
            for each in found.runs
        ],
    )  # fmt: skip


def _preview(found: Preview) -> PreviewView:
    return PreviewView(
        added=[instant(each.fire_at) for each in found.added],
        removed=[instant(each.fire_at) for each in found.removed],
        adds=found.adds, removes=found.removes, kept=found.kept, until=instant(found.until * 1000),
        sentence=found.sentence, truncated=found.truncated,
    )  # fmt: skip


def _forecast(found: Forecast) -> ForecastView:
    return ForecastView(
        start=instant(found.start * 1000), minutes=[_minute(each) for each in found.minutes],
        peak=None if found.peak is None else _minute(found.peak),
        peak_with_jitter=None if found.peak_with_jitter is None else _minute(found.peak_with_jitter),
        total=found.total, schedules=found.schedules, truncated=found.truncated,
    )  # fmt: skip


def _minute(minute: Minute) -> MinuteView:
    return MinuteView(
        minute=instant(minute.minute * 1000), starts=minute.starts, with_jitter=minute.with_jitter
    )


def why_router() -> Router:
    """The routes of "why?"."""
    return Router("/", route_handlers=[explain, preview, forecast], tags=["why"])
