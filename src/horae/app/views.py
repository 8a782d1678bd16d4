"""Views for readers: runs, backfills, calendars, nodes and explanations; those of schedules are in
:mod:`horae.app.schedule_views`. The HTTP service, the command line and other faces only render them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from horae.app.page import Page
from horae.app.schedule_fields import about
from horae.app.view_base import View, view_of
from horae.model import Attempt, Checkpoint, LogLine, Origin, Run, StoredCalendar, UnstartedRange
from horae.policy.forecast import Preview
from horae.policy.reason import SENTENCES
from horae.spec import CalendarDocument

_SENTENCES = {reason.value: sentence for reason, sentence in SENTENCES.items()}


class RunView(View, frozen=True):
    """The run of a slot or of a trigger."""

    id: str
    schedule_id: str
    owner: str
    action: str
    action_id: str
    key: str
    nominal: datetime
    fire: datetime
    decided_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    status: str
    reason: str
    sentence: str
    origin: Origin
    rerun_of: str | None
    attempt: int
    overlap: str
    author: str
    note: str
    input: Any
    result: Any
    failure: str | None
    stop: str

    @classmethod
    def computed(cls, run: Run) -> dict[str, Any]:
        return {"sentence": sentence_of(run.reason)}


class AttemptView(View, frozen=True):
    """An attempt that did not succeed."""

    attempt: int
    reason: str
    failure: str | None
    started_at: datetime | None
    ended_at: datetime
    traceback: Annotated[
        str | None,
        about("Where the action's code failed, without Horae's own frames; at most the last 8 KiB."),
    ]


class CheckpointView(View, frozen=True):
    """A checkpoint that an attempt saved for the next one, without the value."""

    key: str
    attempt: int
    saved_at: datetime


class RunHistory(msgspec.Struct, frozen=True):
    """A run, its attempts that did not succeed, and their checkpoints, in order."""

    run: Run
    attempts: list[Attempt]
    checkpoints: list[Checkpoint]


class LogLineView(View, frozen=True):
    """A line that an attempt logged."""

    attempt: int
    number: Annotated[int, about("The number of the line in its attempt, from 1.")]
    at: datetime
    level: str
    logger: Annotated[str, about("The name of the logger; for lines of `context.log`, the action.")]
    message: str
    dropped: Annotated[
        int, about("How many lines right before this one were dropped, because there were too many.")
    ]


class LogPage(View, frozen=True):
    """Lines of a run's log, in order. Send ``next`` as ``cursor`` to get what follows; it is null when no more lines can come."""

    items: list[LogLineView]
    next: str | None = None


class RunWithAttempts(RunView, frozen=True):
    """A run, its attempts, and their checkpoints."""

    attempts: Annotated[list[AttemptView], about("The latest 100 attempts that did not succeed, in order.")]
    checkpoints: list[CheckpointView]


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


class Triggered(View, frozen=True):
    """The run that a trigger created."""

    run_id: str
    warnings: Annotated[
        list[str], about("What the caller should know: that the input does not fit its function.")
    ]


class UnstartedView(View, frozen=True):
    """Consecutive slots that did not run, for one reason."""

    schedule_id: str
    owner: str
    start: datetime
    end: datetime
    count: int
    status: str
    reason: str
    sentence: str
    decided_at: datetime

    @classmethod
    def computed(cls, unstarted: UnstartedRange) -> dict[str, Any]:
        return {"sentence": sentence_of(unstarted.reason)}


class RunEntry(RunView, frozen=True, tag_field="kind", tag="run"):
    """A run in the ledger of all schedules."""


class UnstartedEntry(UnstartedView, frozen=True, tag_field="kind", tag="unstarted"):
    """Consecutive slots that did not run, in the ledger of all schedules."""


class LedgerPage(View, frozen=True):
    """Runs, and ranges of slots that did not run; ``kind`` says which. Send ``next`` as ``cursor`` to get the next part.

    A page may have few items, or none, and still a ``next``: each examines a bounded part of the ledger.
    """

    items: list[RunEntry | UnstartedEntry]
    next: str | None = None


class CalendarView(View, frozen=True):
    """A shared calendar, and how many schedules a change of it affected."""

    name: str
    owner: str
    dates: tuple[str, ...]
    calendars: tuple[CalendarDocument, ...]
    updated_at: datetime
    schedules: int = 0

    @classmethod
    def parts(cls, calendar: StoredCalendar) -> tuple[object, ...]:
        return calendar, calendar.document


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
    fire: datetime
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

    @classmethod
    def computed(cls, preview: Preview) -> dict[str, Any]:
        return {name: [each.fire for each in getattr(preview, name)] for name in ("added", "removed")}


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


def sentence_of(reason: str) -> str:
    """A reason as a sentence; empty if there is none."""
    return _SENTENCES.get(reason, "")


def history_view(history: RunHistory) -> RunWithAttempts:
    """A run, its attempts that did not succeed, and their checkpoints."""
    attempts = [view_of(AttemptView, each) for each in history.attempts]
    checkpoints = [view_of(CheckpointView, each) for each in history.checkpoints]
    return view_of(RunWithAttempts, history.run, attempts=attempts, checkpoints=checkpoints)


def log_page_view(page: Page[LogLine]) -> LogPage:
    """A page of a run's log."""
    return LogPage(items=[view_of(LogLineView, each) for each in page], next=page.next)


def ledger_page(page: Page[Run | UnstartedRange]) -> LedgerPage:
    """A page of the ledger of all schedules."""
    items = [
        view_of(RunEntry, each) if isinstance(each, Run) else view_of(UnstartedEntry, each) for each in page
    ]
    return LedgerPage(items=items, next=page.next)
