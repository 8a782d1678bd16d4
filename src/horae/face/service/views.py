"""What answers bring: values of the app as JSON for people and programs. Times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from horae.app import Description, next_time
from horae.app.manual import BackfillPreview
from horae.errors import HoraeError
from horae.executor.sealing import Sealer
from horae.model import (
    AUTOMATIC,
    Action,
    Attempt,
    Backfill,
    Node,
    Policies,
    Reason,
    Run,
    Schedule,
    SearchValue,
    StoredCalendar,
    UnstartedRange,
    Version,
)
from horae.policy.reason import SENTENCES
from horae.spec import CalendarDocument, Spec, slot_key

T = TypeVar("T")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""


class Page(View, Generic[T], frozen=True):
    """Some of a list, and where the rest begins: give ``next`` as ``cursor``."""

    items: list[T]
    next: str | None = None


class RunView(View, frozen=True):
    """What became of a slot, or of a trigger."""

    id: str
    schedule_id: str
    action: str
    action_id: str
    key: str
    nominal: datetime
    fire: datetime
    started_at: datetime | None
    ended_at: datetime | None
    status: str
    reason: str
    sentence: str
    origin: str
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


class RunWithAttempts(RunView, frozen=True):
    """A run, and its attempts that were followed by another."""

    attempts: list[AttemptView]


class ScheduleView(View, frozen=True):
    """A schedule as it stands."""

    id: str
    owner: str
    spec: dict[str, Any]
    sentence: str
    timezone: str
    action: dict[str, Any]
    policies: dict[str, Any]
    state: str
    note: str
    paused_until: datetime | None
    skip_next: int
    remaining_actions: int | None
    attention: str
    tags: list[str]
    memo: dict[str, Any]
    search_attributes: dict[str, SearchValue]
    version: int
    created_at: datetime
    updated_at: datetime
    next_time: datetime | None


class Info(View, frozen=True):
    """What became of a schedule, and what is ahead."""

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


class DescribedSchedule(ScheduleView, frozen=True):
    """A schedule with what became of it."""

    info: Info


class CreatedView(View, frozen=True):
    """One of many schedules that were created."""

    id: str
    version: int
    next_time: datetime | None


class BackfillView(View, frozen=True):
    """A backfill as it stands: ``made`` of ``total`` slots have become runs."""

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
    """What several changes at once brought about."""

    schedule: ScheduleView
    run_id: str | None
    backfills: list[BackfillView]


class Triggered(View, frozen=True):
    """The run that a trigger made."""

    run_id: str


class TimeView(View, frozen=True):
    """A time that a schedule names, when it fires, and what the clock there shows."""

    nominal: datetime
    fire: datetime
    local: str


class TimesView(View, frozen=True):
    """Times that a schedule names, and why there are no more if there are none."""

    items: list[TimeView]
    ended: str | None


class SpecPreview(View, frozen=True):
    """What a spec means."""

    spec: dict[str, Any]
    sentence: str
    times: list[TimeView]
    ended: str | None


class UnstartedView(View, frozen=True):
    """Consecutive slots that did not run, for one reason."""

    first: datetime
    last: datetime
    count: int
    status: str
    reason: str
    sentence: str
    decided_at: datetime


class VersionView(View, frozen=True):
    """What a schedule was before an edit."""

    version: int
    spec: dict[str, Any]
    sentence: str
    policies: dict[str, Any]
    since: datetime
    until: datetime


class CalendarView(View, frozen=True):
    """A shared calendar, and how many schedules its change has changed."""

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
    """How many there are."""

    count: int


class ReportView(View, frozen=True):
    """Where a run stands after a report, and whether it was asked to ``cancel`` or ``terminate``."""

    status: str
    stop: str


def instant(milliseconds: int) -> datetime:
    """A moment of the ledger."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def optional_instant(milliseconds: int | None) -> datetime | None:
    """A moment that may not have come."""
    return None if milliseconds is None else instant(milliseconds)


def whole(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value with every field, also those that are as they are by default."""
    if isinstance(value, msgspec.Struct):
        return {name: whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Enum):
        return value.value
    return [whole(each) for each in value] if isinstance(value, tuple) else value


def sentence_of(reason: str) -> str:
    """A reason in words; nothing if there is none."""
    return SENTENCES.get(Reason(reason), "") if reason in Reason._value2member_map_ else ""


def spec_view(spec: Spec) -> dict[str, Any]:
    """A spec's canonical document; what its shared calendars contain is shown with them."""
    return {key: value for key, value in spec.canonical().items() if key != "shared"}


def action_view(action: Action) -> dict[str, Any]:
    """An action without its secrets."""
    shown = {name: getattr(action, name) for name in ("name", "input", "id", "id_format")}
    if action.http is not None:
        shown["http"] = whole(Sealer.hide(action.http))
    return shown


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """The fields of a schedule's view."""
    state = schedule.state
    status = "paused" if state.paused else "running" if state.completed_at is None else "completed"
    return {
        "id": schedule.id, "owner": schedule.owner, "action": action_view(schedule.action),
        "policies": policies_view(schedule.policies), "state": status, "note": state.note,
        "paused_until": optional_instant(state.paused_until), "skip_next": state.skip_next,
        "remaining_actions": state.remaining_actions, "attention": state.attention, "tags": list(schedule.tags),
        "memo": schedule.memo, "search_attributes": schedule.search_attributes, "version": schedule.version,
        "created_at": instant(schedule.created_at), "updated_at": instant(schedule.updated_at),
        **_when(schedule),
    }  # fmt: skip


@lru_cache(maxsize=4096)
def _meaning(text: str) -> dict[str, Any]:
    """A stored spec as it is shown: many schedules share one, and lists are asked for again and again."""
    spec = Spec.parse(text)
    return {"spec": spec_view(spec), "sentence": spec.sentence(), "timezone": spec.elements.timezone}


@lru_cache(maxsize=4096)
def policies_view(policies: Policies) -> dict[str, Any]:
    """All policies, also those that are as they are by default."""
    shown: dict[str, Any] = whole(policies)
    return shown


def _when(schedule: Schedule) -> dict[str, Any]:
    """What a schedule's spec says. One that somebody spoiled by hand is no reason to show no other."""
    try:
        meaning = _meaning(schedule.spec)
    except HoraeError as error:
        return {"spec": {}, "sentence": f"cannot be read: {error}", "timezone": "UTC", "next_time": None}
    try:
        return {**meaning, "next_time": next_time(schedule)}
    except HoraeError:  # it is put aside, and fires at no time
        return {**meaning, "next_time": None}


def schedule_view(schedule: Schedule) -> ScheduleView:
    """A schedule as it stands."""
    return ScheduleView(**schedule_fields(schedule))


def description_view(description: Description) -> DescribedSchedule:
    """A schedule with what became of it."""
    counts = description.counts
    info = Info(
        started=counts.started, skipped=counts.skipped, missed=counts.missed, dropped=counts.dropped,
        unstarted={reason.value: number for reason, number in sorted(counts.unstarted.items())},
        pending=description.pending, retrying=description.retrying, running=description.running,
        recent_runs=[run_view(run) for run in description.recent_runs], next_times=list(description.next_times),
        last_result=description.last_result, last_failure=description.last_failure,
    )  # fmt: skip
    return DescribedSchedule(**schedule_fields(description.schedule), info=info)


def run_fields(run: Run) -> dict[str, Any]:
    """The fields of a run's view."""
    return {
        "id": run.id, "schedule_id": run.schedule_id, "action": run.action, "action_id": run.action_id,
        "key": slot_key(run.schedule_id, run.nominal) if run.origin == AUTOMATIC else run.id,
        "nominal": instant(run.nominal * 1000), "fire": instant(run.fire_at),
        "started_at": optional_instant(run.started_at), "ended_at": optional_instant(run.ended_at),
        "status": run.status.value, "reason": run.reason, "sentence": sentence_of(run.reason), "origin": run.origin,
        "attempt": run.attempt, "overlap": run.overlap.value, "author": run.author, "note": run.note,
        "input": run.input, "result": run.result, "failure": run.failure, "stop": run.stop,
    }  # fmt: skip


def run_view(run: Run) -> RunView:
    """What became of a slot, or of a trigger."""
    return RunView(**run_fields(run))


def run_with_attempts(run: Run, attempts: list[Attempt]) -> RunWithAttempts:
    """A run, and its attempts that were followed by another."""
    shown = [
        AttemptView(
            attempt=each.attempt, reason=each.reason, failure=each.failure,
            started_at=optional_instant(each.started_at), ended_at=instant(each.ended_at),
        )
        for each in attempts
    ]  # fmt: skip
    return RunWithAttempts(**run_fields(run), attempts=shown)


def backfill_view(backfill: Backfill) -> BackfillView:
    """A backfill as it stands."""
    return BackfillView(
        id=backfill.id, schedule_id=backfill.schedule_id, start=instant(backfill.first * 1000),
        end=instant(backfill.last * 1000), overlap=backfill.overlap.value, status=backfill.status.value,
        total=backfill.total, made=backfill.made, cursor=instant(backfill.cursor * 1000),
        created_at=instant(backfill.created_at), ended_at=optional_instant(backfill.ended_at), author=backfill.author,
        note=backfill.note,
    )  # fmt: skip


def preview_view(preview: BackfillPreview) -> dict[str, Any]:
    """What a backfill would do."""
    return {"slots": preview.slots, "first": preview.first, "last": preview.last}


def times_of(spec: Spec, times: list[tuple[datetime, datetime]]) -> list[TimeView]:
    """Nominal and fire times, with what the clock in the spec's zone shows."""
    zone = spec.zone
    return [
        TimeView(nominal=nominal, fire=fire, local=nominal.astimezone(timezone(offset)).isoformat())
        for nominal, fire in times
        for offset in [timedelta(seconds=zone.offset_at(int(nominal.timestamp())))]
    ]


def unstarted_view(unstarted: UnstartedRange) -> UnstartedView:
    """Consecutive slots that did not run."""
    return UnstartedView(
        first=instant(unstarted.first * 1000), last=instant(unstarted.last * 1000), count=unstarted.count,
        status=unstarted.status.value, reason=unstarted.reason.value, sentence=sentence_of(unstarted.reason),
        decided_at=instant(unstarted.decided_at),
    )  # fmt: skip


def version_view(version: Version) -> VersionView:
    """What a schedule was before an edit."""
    spec = Spec.parse(version.spec)
    return VersionView(
        version=version.version, spec=spec_view(spec), sentence=spec.sentence(), policies=policies_view(version.policies),
        since=instant(version.since), until=instant(version.until),
    )  # fmt: skip


def calendar_view(calendar: StoredCalendar, schedules: int = 0) -> CalendarView:
    """A shared calendar."""
    return CalendarView(
        name=calendar.name, owner=calendar.owner, dates=calendar.document.dates,
        calendars=calendar.document.calendars, updated_at=instant(calendar.updated_at), schedules=schedules,
    )  # fmt: skip


def node_view(node: Node) -> NodeView:
    """A process that drives the database."""
    return NodeView(
        epoch=node.epoch, name=node.name, actions=node.actions, tzdata=node.tzdata,
        started_at=instant(node.started_at), alive=node.alive,
    )  # fmt: skip
