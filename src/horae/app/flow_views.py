"""Views of flows: in plain words, and for operators with handlers, phases and chains."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from horae.app.view_base import View, view_of
from horae.flow_model import (
    EventStatus,
    FlowEvent,
    FlowInput,
    FlowRun,
    FlowStatus,
    HandlerKind,
    Lane,
    Phase,
    StoredFlow,
    Task,
)
from horae.model import instant
from horae.policy.flow_summary import activity_words, words


class ActivityView(View, frozen=True):
    """Something that a flow did."""

    at: datetime
    text: str
    run_id: str


class PendingInputView(View, frozen=True):
    """An input that a flow has not finished."""

    source: str
    type: str
    id: str
    title: str
    since: datetime


class FlowSummaryView(View, frozen=True):
    """A flow in plain words."""

    name: str
    title: str
    owner: str
    status: Annotated[str, msgspec.Meta(description="Running, Idle, Needs attention or Stopped.")]
    issue: Annotated[str | None, msgspec.Meta(description="The problem, if there is one.")] = None
    action: Annotated[str | None, msgspec.Meta(description="How to resolve the problem.")] = None
    schedule: str = ""
    next_check: str | None = None


class HandlerView(View, frozen=True):
    """A handler of a flow, for operators."""

    name: str
    kind: HandlerKind
    publishes: list[str]
    subscribes: list[str]
    due: bool
    next_at: datetime | None = None


class TroubleView(View, frozen=True):
    """The unresolved failure of a flow, for operators."""

    run_id: str
    handler: str
    status: FlowStatus
    recovery: str
    issue: str
    since: datetime
    retry_at: datetime | None = None
    transients: int = 0
    fixes: int = 0
    reconciliations: int = 0
    crashes: int = 0


class OperatorView(View, frozen=True):
    """The details for operators: handlers, topics, the run under way, the failure."""

    revision: str
    hosted_here: bool
    handlers: list[HandlerView]
    events: Annotated[dict[str, dict[str, int]], msgspec.Meta(description="Open events by topic and status.")]
    active_run: str | None = None
    active_task: Task | None = None
    trouble: TroubleView | None = None


class FlowView(FlowSummaryView, frozen=True):
    """A flow in plain words, with its recent activity, its unfinished inputs, and the details for operators."""

    activity: list[ActivityView] = msgspec.field(default_factory=list)
    pending_inputs: list[PendingInputView] = msgspec.field(default_factory=list)
    operator: OperatorView | None = None


class FlowRunView(View, frozen=True):
    """One attempt of a handler."""

    id: str
    handler: str
    kind: HandlerKind
    phase: Phase
    status: FlowStatus
    retry_of: str | None
    prepared: Any
    mutation: Any
    error: str | None
    failure_kind: str
    title: str
    events: int
    published: int
    revision: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None


class FlowEventView(View, frozen=True):
    """An event of a topic."""

    id: Annotated[str, msgspec.Meta(description="The message id.")]
    topic: str
    payload: Any
    status: EventStatus
    run_id: str | None
    created_at: datetime
    ended_at: datetime | None


class FlowInputView(View, frozen=True):
    """Something in the outside world that a producer registered."""

    source: str
    type: str
    id: str
    title: str
    status: Annotated[str, msgspec.Meta(description="pending, skipped or done.")]
    open_events: int
    created_at: datetime


class FlowExplanationView(View, frozen=True):
    """Why a flow ran or did not run at a moment."""

    sentence: str


class PublishedView(View, frozen=True):
    """How many events a request published, or updated."""

    published: int


class SkippedView(View, frozen=True):
    """How many events a request skipped."""

    skipped: int


def summary(stored: StoredFlow, lane: Lane, now: int) -> FlowSummaryView:
    """A flow in plain words."""
    return FlowSummaryView(**_summary(stored, lane, now))


def _summary(stored: StoredFlow, lane: Lane, now: int) -> dict[str, Any]:
    title = stored.definition.title or stored.name
    status = words(lane, stored.definition, now)._asdict()
    return {"name": stored.name, "title": title, "owner": stored.owner, **status}


def full_view(
    stored: StoredFlow,
    lane: Lane,
    now: int,
    *,
    runs: list[FlowRun],
    inputs: list[tuple[FlowInput, int]],
    counts: dict[tuple[str, EventStatus], int],
    hosted_here: bool,
) -> FlowView:
    """All of a flow."""
    events: dict[str, dict[str, int]] = {}
    for (topic, status), count in counts.items():
        events.setdefault(topic, {})[status.value] = count
    return FlowView(
        **_summary(stored, lane, now),
        activity=[
            ActivityView(at=instant(run.ended_at_ms or 0), text=activity_words(run), run_id=run.id) for run in runs
        ],
        pending_inputs=[
            PendingInputView(
                source=each.source, type=each.type, id=each.input_id, title=each.title, since=instant(each.created_at_ms)
            )
            for each, open_events in inputs
            if open_events
        ],
        operator=_operator(stored, lane, now, events, hosted_here=hosted_here),
    )  # fmt: skip


def _operator(
    stored: StoredFlow, lane: Lane, now: int, events: dict[str, dict[str, int]], *, hosted_here: bool
) -> OperatorView:
    handlers = []
    for each in stored.definition.handlers:
        mark = lane.marks.get(each.name)
        at_ms = None if mark is None else mark.at_ms
        due = mark is not None and (mark.new or mark.queued or (at_ms is not None and at_ms <= now))
        handlers.append(
            HandlerView(
                name=each.name, kind=each.kind, publishes=list(each.publishes), subscribes=list(each.subscribes), due=due,
                next_at=None if at_ms is None else instant(at_ms),
            )
        )  # fmt: skip
    trouble = None if lane.trouble is None else view_of(TroubleView, lane.trouble)
    return OperatorView(
        revision=stored.revision, hosted_here=hosted_here, handlers=handlers, events=events, active_run=lane.run_id,
        active_task=lane.task if lane.run_id else None, trouble=trouble,
    )  # fmt: skip


def run_view(run: FlowRun) -> FlowRunView:
    """A run, its stored JSON decoded."""
    return view_of(FlowRunView, run, prepared=_decoded(run.prepared), mutation=_decoded(run.mutation))


def event_view(event: FlowEvent) -> FlowEventView:
    """An event, its payload decoded."""
    return view_of(FlowEventView, event, id=event.message_id, payload=_decoded(event.payload))


def input_view(found: FlowInput, open_events: int) -> FlowInputView:
    """An input, and whether it is done."""
    finished = "done" if found.skipped_at_ms is None else "skipped"
    return view_of(
        FlowInputView, found, id=found.input_id, open_events=open_events, status="pending" if open_events else finished
    )  # fmt: skip


def _decoded(text: str | None) -> Any:  # noqa: ANN401 - any JSON
    return None if text is None else msgspec.json.decode(text)
