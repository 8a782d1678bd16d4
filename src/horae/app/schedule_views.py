"""Views of schedules, their specs, versions and times. The other views are in :mod:`horae.app.views`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from horae.app.fire_times import fire_time, nominal_times
from horae.app.graph_schedules import graph_fields, graph_run
from horae.app.page import Page
from horae.app.schedule_edits import Resumed
from horae.app.schedule_fields import ScheduleFields, about, reference, with_fields
from horae.app.view_base import PageView, View, view_of, whole
from horae.app.views import BackfillView, RunView
from horae.errors import HoraeError
from horae.executor.secret_sealing import redact
from horae.model import Counts, Policies, Run, Schedule, UnstartedRange, Version, instant
from horae.spec import Spec

PoliciesView = Annotated[Any, about(**{"$ref": reference("Policies")})]
"""All policies, including those with their default."""
ActionView = Annotated[Any, about(**{"$ref": reference("Action")})]
"""An action with all its fields, without its secrets."""


@with_fields(ScheduleFields, "required", without={"paused"})
class ScheduleView(View, frozen=True):
    """The current version of a schedule."""

    id: str
    owner: str
    spec: dict[str, Any]
    sentence: Annotated[str, about("The spec in words.")]
    timezone: str
    action: ActionView
    policies: PoliciesView
    state: str
    paused_until: datetime | None
    skip_next: int
    attention: str
    unreadable: Annotated[
        dict[str, str],
        about("The fields of the stored row that cannot be read, and what is wrong with each."),
    ]
    orphaned: bool
    version: int
    created_at: datetime
    updated_at: datetime
    next_time: Annotated[
        datetime | None, about("When it fires next; null while it is paused, and when it never fires again.")
    ]
    owner_user_id: Annotated[
        str | msgspec.UnsetType, about("Only schedules of graphs have this field and the following ones.")
    ] = msgspec.UNSET
    graph_id: str | msgspec.UnsetType = msgspec.UNSET
    input: Any = msgspec.UNSET
    cron: Annotated[
        str | msgspec.UnsetType | None, about("Null if the spec is more than one cron expression.")
    ] = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    next_run_at: datetime | msgspec.UnsetType | None = msgspec.UNSET
    last_run_at: Annotated[datetime | msgspec.UnsetType | None, about("When the latest run began.")] = (
        msgspec.UNSET
    )
    concurrency_policy: str | msgspec.UnsetType = msgspec.UNSET
    backfill_limit: int | msgspec.UnsetType = msgspec.UNSET
    starting_deadline_seconds: int | msgspec.UnsetType = msgspec.UNSET

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

    @classmethod
    def parts(cls, schedule: Schedule) -> tuple[object, ...]:
        return schedule, schedule.state

    @classmethod
    def computed(cls, schedule: Schedule) -> dict[str, Any]:
        state, action = schedule.state, schedule.action
        status = "paused" if state.paused else "running" if state.completed_at_ms is None else "completed"
        when, faults = _when(schedule)
        attention = state.attention
        if faults and not attention:  # the next decision sets it aside
            status, attention = "paused", f"needs attention: {'; '.join(faults.values())}"
        return {
            "action": {**whole(action), "options": redact(action.options)}, "policies": policies_view(schedule.policies),
            "state": status, "attention": attention, "unreadable": faults, **when, **_of_graph(schedule, when),
        }  # fmt: skip


def _of_graph(schedule: Schedule, when: dict[str, Any]) -> dict[str, Any]:
    """The additional fields of a schedule of a graph; the caller adds its last start."""
    shown = graph_fields(schedule)
    return shown and {**shown, "next_run_at": when["next_time"], "last_run_at": None}


class GraphRunView(View, frozen=True):
    """A run of a graph, or consecutive slots that did not run for one reason."""

    id: str | None
    run_id: Annotated[str | None, about("Null until the execution first starts; the same for all attempts.")]
    schedule_id: str
    scheduled_for: datetime
    last_scheduled_for: Annotated[datetime, about("The last of the slots, if there are several.")]
    count: Annotated[int, about("How many slots.")]
    status: Annotated[str, about(enum=["pending", "running", "success", "error", "skipped", "cancelled"])]
    error_code: Annotated[
        str | None, about("Why the run did not succeed, or why the slots did not run: one of the reasons.")
    ]
    started_at: datetime | None
    completed_at: datetime | None
    attempt: int = 0
    result: Any = None
    failure: str | None = None


def graph_runs_view(page: Page[Run | UnstartedRange]) -> PageView[GraphRunView]:
    """The ledger of a schedule of a graph."""
    return PageView(items=[GraphRunView(**graph_run(each)) for each in page], next=page.next)


class StoredSchedule(ScheduleView, frozen=True, kw_only=True):
    """A schedule that was created or changed, or would be."""

    warnings: Annotated[
        list[str],
        about(
            "What the owner should know: for example that the schedule never fires, or that some of its times are over."
        ),
    ]


class PutSchedule(StoredSchedule, frozen=True, kw_only=True):
    """A schedule that was put, or would be."""

    outcome: Annotated[str, about("What that did.", enum=["created", "changed", "unchanged"])]


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

    @classmethod
    def parts(cls, description: Description) -> tuple[object, ...]:
        return description, description.counts

    @classmethod
    def computed(cls, description: Description) -> dict[str, Any]:
        unstarted = sorted(description.counts.unstarted.items())
        return {"unstarted": {reason.value: number for reason, number in unstarted}}


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


class DescribedSchedule(ScheduleView, frozen=True, kw_only=True):
    """A schedule with its counts, its latest runs and its next times."""

    info: Info


class SlotsView(View, frozen=True):
    """Some slots: how many, the first and the last."""

    count: int
    start: datetime
    end: datetime


class UnstartedSlotsView(SlotsView, frozen=True):
    """Slots that do not start, for one reason."""

    reason: str


class ResumptionView(View, frozen=True):
    """What happens to the slots that fell due in a pause, and to the starts that waited when it began."""

    sentence: str
    on_resume: Annotated[str, about("The policy that was applied.")]
    other: Annotated[str, about("The alternative, which `on_resume` can choose.")]
    starts: Annotated[SlotsView | None, about("The slots that start now.")]
    waits: Annotated[
        SlotsView | None, about("The slots that start when other runs have ended, or when their time comes.")
    ]
    unstarted: Annotated[list[UnstartedSlotsView], about("The slots that never start, by reason.")]
    later: Annotated[int, about("How many slots are decided later.")]


class ResumedSchedule(ScheduleView, frozen=True, kw_only=True):
    """A schedule, and what resuming it starts and does not start."""

    resumption: ResumptionView


class CreatedView(View, frozen=True):
    """One of several schedules created by one request."""

    id: str
    version: int
    next_time: datetime | None
    warnings: Annotated[
        list[str], about("What the owner should know: for example that the schedule never fires.")
    ]


class PatchedView(View, frozen=True):
    """The result of several changes in one request."""

    schedule: ScheduleView
    run_id: str | None
    backfills: list[BackfillView]
    warnings: Annotated[
        list[str], about("What the owner should know: that an input does not fit its function.")
    ]


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


class VersionView(View, frozen=True):
    """A version of a schedule before an edit."""

    version: int
    spec: dict[str, Any]
    sentence: str
    policies: PoliciesView
    since: datetime
    until: datetime

    @classmethod
    def computed(cls, version: Version) -> dict[str, Any]:
        meaning = _meaning(version.spec)
        shown = {name: meaning[name] for name in ("spec", "sentence")}
        return shown | {"policies": policies_view(version.policies)}


def description_view(description: Description) -> DescribedSchedule:
    """A schedule with its counts, its latest runs and its next times."""
    return view_of(DescribedSchedule, description.schedule, info=view_of(Info, description))


def resumed_view(resumed: Resumed) -> ResumedSchedule:
    """A schedule, and what resuming it starts and does not start."""
    return view_of(ResumedSchedule, resumed.schedule, resumption=view_of(ResumptionView, resumed.resumption))


def spec_view(spec: Spec) -> dict[str, Any]:
    """A spec's canonical document, without the contents of shared calendars, which their own views show."""
    return {key: value for key, value in spec.canonical().items() if key != "shared"}


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


def _when(schedule: Schedule) -> tuple[dict[str, Any], dict[str, str]]:
    """The view of a schedule's spec, and the unreadable fields of its row: a list must still show the other schedules."""
    faults = schedule.unreadable
    shown = {"sentence": schedule.sentence, "next_time": schedule.next_time}
    try:
        return {**_meaning(schedule.spec), **shown}, faults
    except HoraeError:
        unreadable = {"spec": f"its spec {schedule.sentence}"}
        return {"spec": {}, "timezone": "UTC", **shown}, {**faults, **unreadable}


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
