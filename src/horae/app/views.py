"""Views for readers: schedules, runs, backfills, calendars, nodes and explanations, with UTC times instead of milliseconds.

Each view is built here, once; the HTTP service, the command line and other faces only render it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin

import msgspec

from horae.app.fire_times import fire_time, instant, next_time, nominal_times
from horae.app.schedule_fields import ScheduleFields, about, reference, with_fields
from horae.errors import HoraeError
from horae.executor.sealing import redact
from horae.model import (
    Action,
    Attempt,
    Backfill,
    Checkpoint,
    Counts,
    Node,
    Origin,
    Policies,
    Run,
    Schedule,
    StoredCalendar,
    UnstartedRange,
    Version,
)
from horae.policy.explain import Explanation
from horae.policy.forecast import Forecast, Preview
from horae.policy.reason import SENTENCES
from horae.spec import CalendarDocument, Spec

T = TypeVar("T")


class From(msgspec.Struct, frozen=True):
    """The model's field that a time in a view comes from, if it is not the one of the same name, with or without ``_ms``."""

    field: str


FireTime = Annotated[datetime, From("fire_at")]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""


V = TypeVar("V", bound=View)


class PageView(View, Generic[T], frozen=True):
    """A part of a list. Send ``next`` as ``cursor`` to get the next part."""

    items: list[T]
    next: str | None = None


PoliciesView = Annotated[Any, about(**{"$ref": reference("Policies")})]
"""All policies, including those with their default."""
ActionView = Annotated[Any, about(**{"$ref": reference("Action")})]
"""An action with all its fields, without its secrets."""


class RunView(View, frozen=True):
    """The run of a slot or of a trigger."""

    id: str
    schedule_id: str
    action: str
    action_id: str
    key: str
    nominal: datetime
    fire: FireTime
    started_at: datetime | None
    ended_at: datetime | None
    status: str
    reason: str
    sentence: str
    origin: Origin
    attempt: int
    overlap: str
    author: str
    note: str
    input: Any
    result: Any
    failure: str | None
    stop: str


class AttemptView(View, frozen=True):
    """An attempt that was followed by another."""

    attempt: int
    reason: str
    failure: str | None
    started_at: datetime | None
    ended_at: datetime


class CheckpointView(View, frozen=True):
    """A checkpoint that an attempt saved for the next one, without the value."""

    key: str
    attempt: int
    saved_at: datetime


class RunWithAttempts(RunView, frozen=True):
    """A run, its earlier attempts, and their checkpoints."""

    attempts: list[AttemptView]
    checkpoints: list[CheckpointView]


@with_fields(ScheduleFields, "required", without={"paused"})
class ScheduleView(View, frozen=True):
    """The current version of a schedule."""

    id: str
    owner: str
    spec: dict[str, Any]
    sentence: str
    timezone: str
    action: ActionView
    policies: PoliciesView
    state: str
    paused_until: datetime | None
    skip_next: int
    attention: str
    version: int
    created_at: datetime
    updated_at: datetime
    next_time: datetime | None

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


class Info(View, frozen=True):
    """The counts, latest runs and next times of a schedule."""

    started: int
    skipped: int
    missed: int
    dropped: int
    unstarted: dict[str, int]
    pending: int
    retrying: int
    running: int
    recent_runs: list[RunView]
    next_times: list[datetime]
    last_result: Any
    last_failure: str | None


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule with its counts, its latest runs and its next fire times."""

    schedule: Schedule
    counts: Counts
    pending: int
    """How many starts wait for other runs or for their fire time."""
    retrying: int
    """How many runs wait for another attempt."""
    running: int
    recent_runs: tuple[Run, ...]
    """The latest ten runs, newest first."""
    next_times: tuple[datetime, ...]
    """The next ten fire times, up to its limit; of a paused schedule, those after it is resumed."""
    last_result: Any = None
    last_failure: str | None = None


class DescribedSchedule(ScheduleView, frozen=True):
    """A schedule with its counts, its latest runs and its next times."""

    info: Info


class CreatedView(View, frozen=True):
    """One of several schedules created by one request."""

    id: str
    version: int
    next_time: datetime | None


class BackfillView(View, frozen=True):
    """A backfill and its progress: ``made`` of ``total`` slots have become runs."""

    id: str
    schedule_id: str
    start: datetime
    end: datetime
    overlap: str
    status: str
    total: int
    made: int
    cursor: datetime
    created_at: datetime
    ended_at: datetime | None
    author: str
    note: str


class PatchedView(View, frozen=True):
    """The result of several changes in one request."""

    schedule: ScheduleView
    run_id: str | None
    backfills: list[BackfillView]


class Triggered(View, frozen=True):
    """The run that a trigger created."""

    run_id: str


class TimeView(View, frozen=True):
    """A time that a schedule names, when it fires, and the wall-clock time in its zone."""

    nominal: datetime
    fire: datetime
    local: str


class TimesView(View, frozen=True):
    """Times that a schedule names, and the reason if it names no more."""

    items: list[TimeView]
    ended: str | None


class SpecPreview(View, frozen=True):
    """The meaning of a spec: its canonical form, a sentence and its next times."""

    spec: dict[str, Any]
    sentence: str
    times: list[TimeView]
    ended: str | None


class UnstartedView(View, frozen=True):
    """Consecutive slots that did not run, for one reason."""

    start: datetime
    end: datetime
    count: int
    status: str
    reason: str
    sentence: str
    decided_at: datetime


class VersionView(View, frozen=True):
    """A version of a schedule before an edit."""

    version: int
    spec: dict[str, Any]
    sentence: str
    policies: PoliciesView
    since: datetime
    until: datetime


class CalendarView(View, frozen=True):
    """A shared calendar, and how many schedules a change of it affected."""

    name: str
    owner: str
    dates: tuple[str, ...]
    calendars: tuple[CalendarDocument, ...]
    updated_at: datetime
    schedules: int = 0


class NodeView(View, frozen=True):
    """A process that drives the database."""

    epoch: int
    name: str
    actions: tuple[str, ...]
    tzdata: str
    started_at: datetime
    alive: bool


class Changed(View, frozen=True):
    """How many schedules were changed."""

    changed: int


class Count(View, frozen=True):
    """A number of schedules."""

    count: int


class ReportView(View, frozen=True):
    """The status of a run after a report, and whether it was asked to ``cancel`` or ``terminate``."""

    status: str
    stop: str


class RangeView(View, frozen=True):
    """Slots that did not start, for one reason."""

    start: datetime
    end: datetime
    count: int


class HappenedView(View, frozen=True):
    """A run at the time in question."""

    id: str
    origin: Origin
    status: str
    reason: str
    fire: FireTime
    started_at: datetime | None
    ended_at: datetime | None


class ExplanationView(View, frozen=True):
    """Why a schedule ran or did not run at a time, or will or will not."""

    verdict: str
    sentence: str
    schedule_id: str
    nominal: datetime | None
    local: str
    timezone: str
    fire: FireTime | None
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
    """The number of starts in a minute."""

    minute: datetime
    starts: int
    with_jitter: int | None


class ForecastView(View, frozen=True):
    """The starts ahead, minute by minute; minutes without starts are left out."""

    start: datetime
    minutes: list[MinuteView]
    peak: MinuteView | None
    peak_with_jitter: MinuteView | None
    total: int
    schedules: int
    truncated: bool


def view_of(kind: type[V], *sources: object, **computed: object) -> V:
    """Build a view from the fields of the same names of some models, and from computed values."""
    shown = dict(computed)
    for name, field, convert in _plan(kind):
        if name not in shown:
            value = _value(sources, field)
            shown[name] = value if convert is None or value is None else convert(value)
    return kind(**shown)


def _value(sources: Sequence[object], field: str) -> Any:  # noqa: ANN401 - of any field
    for source in sources:
        for name in (field, f"{field}_ms"):
            if hasattr(source, name):
                return getattr(source, name)
    raise AttributeError(field)


@lru_cache
def _plan(kind: type[View]) -> list[tuple[str, str, Callable[[Any], object] | None]]:
    """For each field of a view: its name, the name of the model's field, and the conversion from one to the other."""
    return [(field.name, *_source(field.name, field.type)) for field in msgspec.structs.fields(kind)]


def _source(name: str, kind: Any) -> tuple[str, Callable[[Any], object] | None]:  # noqa: ANN401 - a type as it was annotated
    for each in (kind, *get_args(kind)):  # the type itself, or the members of a union or the items of a list
        if each is datetime or (get_origin(each) is Annotated and get_args(each)[0] is datetime):
            return next((more.field for more in get_args(each) if isinstance(more, From)), name), instant
        if isinstance(each, type) and issubclass(each, View):
            return name, partial(_nested, each)
    return name, None


def _nested(kind: type[View], value: object) -> object:
    return (
        [view_of(kind, each) for each in value] if isinstance(value, list | tuple) else view_of(kind, value)
    )


def whole(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value as JSON with every field, including those with their default."""
    if isinstance(value, msgspec.Struct):
        return {name: whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Enum):
        return value.value
    return [whole(each) for each in value] if isinstance(value, tuple) else value


def sentence_of(reason: str) -> str:
    """A reason as a sentence; empty if there is none."""
    return _SENTENCES.get(reason, "")


_SENTENCES = {reason.value: sentence for reason, sentence in SENTENCES.items()}


def spec_view(spec: Spec) -> dict[str, Any]:
    """A spec's canonical document, without the contents of shared calendars, which their own views show."""
    return {key: value for key, value in spec.canonical().items() if key != "shared"}


def action_view(action: Action) -> dict[str, Any]:
    """An action without its secrets."""
    return {**whole(action), "options": redact(action.options)}


@lru_cache(maxsize=4096)
def _meaning(text: str) -> dict[str, Any]:
    """The view of a stored spec; cached, because many schedules share one and lists are read often."""
    spec = Spec.parse(text)
    return {"spec": spec_view(spec), "sentence": spec.sentence(), "timezone": spec.elements.timezone}


@lru_cache(maxsize=4096)
def policies_view(policies: Policies) -> dict[str, Any]:
    """All policies, including those with their default."""
    shown: dict[str, Any] = whole(policies)
    return shown


def _when(schedule: Schedule) -> dict[str, Any]:
    """The view of a schedule's spec. A damaged spec yields an error sentence, so that a list still shows the other schedules."""
    try:
        meaning = _meaning(schedule.spec)
    except HoraeError as error:
        return {"spec": {}, "sentence": f"cannot be read: {error}", "timezone": "UTC", "next_time": None}
    try:
        return {**meaning, "next_time": next_time(schedule)}
    except HoraeError:  # the next decision pauses it
        return {**meaning, "next_time": None}


S = TypeVar("S", bound=ScheduleView)


def _schedule(kind: type[S], schedule: Schedule, **more: object) -> S:
    state = schedule.state
    status = "paused" if state.paused else "running" if state.completed_at is None else "completed"
    shown = {
        "action": action_view(schedule.action),
        "policies": policies_view(schedule.policies),
        "state": status,
    }
    return view_of(kind, schedule, state, **shown, **_when(schedule), **more)


def schedule_view(schedule: Schedule) -> ScheduleView:
    """The current version of a schedule."""
    return _schedule(ScheduleView, schedule)


def created_view(schedule: Schedule) -> CreatedView:
    """One of several schedules created by one request."""
    return view_of(CreatedView, schedule, next_time=next_time(schedule))


def description_view(description: Description) -> DescribedSchedule:
    """A schedule with its counts, its latest runs and its next times."""
    unstarted = {reason.value: number for reason, number in sorted(description.counts.unstarted.items())}
    runs = [run_view(run) for run in description.recent_runs]
    times = list(description.next_times)
    info = view_of(
        Info, description, description.counts, unstarted=unstarted, recent_runs=runs, next_times=times
    )
    return _schedule(DescribedSchedule, description.schedule, info=info)


def run_view(run: Run) -> RunView:
    """The run of a slot or of a trigger."""
    return _run(RunView, run)


def run_with_attempts(
    run: Run, attempts: Sequence[Attempt], checkpoints: Sequence[Checkpoint]
) -> RunWithAttempts:
    """A run, its earlier attempts, and their checkpoints."""
    return _run(
        RunWithAttempts,
        run,
        attempts=[view_of(AttemptView, each) for each in attempts],
        checkpoints=[view_of(CheckpointView, each) for each in checkpoints],
    )


R = TypeVar("R", bound=RunView)


def _run(kind: type[R], run: Run, **more: object) -> R:
    return view_of(kind, run, sentence=sentence_of(run.reason), **more)


def backfill_view(backfill: Backfill) -> BackfillView:
    """A backfill as it stands."""
    return view_of(BackfillView, backfill)


def unstarted_view(unstarted: UnstartedRange) -> UnstartedView:
    """Consecutive slots that did not run, for one reason."""
    return view_of(UnstartedView, unstarted, sentence=sentence_of(unstarted.reason))


def version_view(version: Version) -> VersionView:
    """A version of a schedule before an edit."""
    meaning = _meaning(version.spec)
    shown = {
        "spec": meaning["spec"],
        "sentence": meaning["sentence"],
        "policies": policies_view(version.policies),
    }
    return view_of(VersionView, version, **shown)


def calendar_view(calendar: StoredCalendar, schedules: int = 0) -> CalendarView:
    """A shared calendar."""
    days = calendar.document
    return view_of(CalendarView, calendar, dates=days.dates, calendars=days.calendars, schedules=schedules)


def node_view(node: Node) -> NodeView:
    """A process that drives the database."""
    return view_of(NodeView, node)


def explanation_view(explanation: Explanation) -> ExplanationView:
    """Why a schedule ran or did not run at a time, or will or will not."""
    return view_of(ExplanationView, explanation)


def preview_view(preview: Preview) -> PreviewView:
    """The effect of a change of spec."""
    added, removed = ([instant(each.fire_at) for each in some] for some in (preview.added, preview.removed))
    return view_of(PreviewView, preview, added=added, removed=removed)


def forecast_view(forecast: Forecast) -> ForecastView:
    """The starts ahead."""
    return view_of(ForecastView, forecast)


def times_view(
    spec: Spec, schedule_id: str | None, after_ms: int, until_ms: int | None, limit: int
) -> TimesView:
    """The times that a spec names, and when the slots of a schedule with it fire; without a schedule, jitter is left out."""
    nominals_ms = nominal_times(spec, after_ms, until_ms, limit)
    items = [_time_view(spec, schedule_id, each) for each in nominals_ms]
    last = instant(nominals_ms[-1] if nominals_ms else after_ms)
    ended = spec.why_never(last) if len(nominals_ms) < limit and until_ms is None else None
    return TimesView(items=items, ended=ended)


def _time_view(spec: Spec, schedule_id: str | None, nominal_ms: int) -> TimeView:
    shown = instant(nominal_ms)
    fire = shown if schedule_id is None else fire_time(spec, nominal_ms, schedule_id)
    zone = timezone(timedelta(seconds=spec.zone.offset_at(nominal_ms // 1000)))
    return TimeView(nominal=shown, fire=fire, local=shown.astimezone(zone).isoformat())


def spec_preview(spec: Spec, now: int, limit: int) -> SpecPreview:
    """The meaning of a spec: its canonical form, a sentence and its next times."""
    times = times_view(spec, None, now, None, limit)
    return SpecPreview(spec=spec_view(spec), sentence=spec.sentence(), times=times.items, ended=times.ended)
