"""Why a flow ran or did not run at a moment, and why it cannot run now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from horae.flow_model import FlowDefinition, FlowRun, FlowStatus, HandlerKind, Lane
from horae.policy.flow_next_handler import NO_MARK, is_due
from horae.policy.flow_summary import issue_words, within

JUST_AFTER_MS = 5000
"""A run that begins within this time after a moment counts as having run at that moment."""


def run_now_refusal(lane: Lane, flow: FlowDefinition) -> str | None:
    """Why "run now" is refused; ``None`` if it is allowed."""
    if lane.paused:
        return "it is paused"
    if lane.trouble is not None:
        return f"a failure is not resolved. {issue_words(lane.trouble)}"
    if lane.run_id is not None:
        return "one of its handlers is running"
    if not any(each.kind is HandlerKind.PRODUCER for each in flow.handlers):
        return "it has no producers; consumers run when events arrive"
    return None


def explain(
    flow: FlowDefinition,
    lane: Lane,
    runs: Sequence[FlowRun],
    at_ms: int,
    *,
    now: int,
    handler: str | None,
    deployed_at_ms: int = 0,
) -> str:
    """Why a flow, or one handler of it, ran or did not run at a moment. ``runs`` are those around it, oldest first."""
    who, when = _who(handler), _time(at_ms)
    if at_ms < deployed_at_ms:
        return f"{who} did not run at {when}: the flow was first deployed at {_time(deployed_at_ms)}."
    if at_ms > now:
        return _ahead(flow, lane, at_ms, now, handler)
    at_that_time = [run for run in runs if run.created_at_ms <= at_ms <= (run.ended_at_ms or now)]
    mine = [run for run in at_that_time if handler in {None, run.handler}]
    mine += [
        run
        for run in runs
        if at_ms < run.created_at_ms <= at_ms + JUST_AFTER_MS and handler in {None, run.handler}
    ]
    if mine:
        run = mine[0]
        return f'{who} ran at {when}: the run {run.id} of "{run.handler}" is {run.status}{_error(run)}.'
    pause = next((each for each in lane.pauses if each.since_ms <= at_ms < (each.until_ms or now + 1)), None)
    if pause is not None:
        note = f" ({pause.note})" if pause.note else ""
        return f"{who} did not run at {when}: the flow was paused by hand{note}."
    if at_that_time:
        other = at_that_time[0]
        return f'{who} did not run at {when}: "{other.handler}" was running, and a flow runs one handler at a time.'
    before = [run for run in runs if run.created_at_ms <= at_ms]
    if before and before[-1].status is not FlowStatus.COMMITTED:
        run = before[-1]
        return f'{who} did not run at {when}: the run {run.id} of "{run.handler}" was {run.status}, which pauses the whole flow{_error(run)}.'
    names = [each.name for each in flow.handlers if handler in {None, each.name}]
    times = [at for name in names if (at := lane.marks.get(name, NO_MARK).at_ms) is not None and at <= at_ms]
    if times:
        return f"{who} did not run at {when}: it has been due since {_time(min(times))}, and no node that hosts this version has run it."
    return f"{who} did not run at {when}: {_nothing_due(flow, handler)}."


def _nothing_due(flow: FlowDefinition, handler: str | None) -> str:
    definition = None if handler is None else flow.handler(handler)
    if definition is not None and definition.kind is HandlerKind.PRODUCER:
        return "its schedule names another time"
    if definition is not None:
        return "no new event had arrived in its topics, and no wake time had come"
    return "no producer was due, no new event had arrived, and no wake time had come"


def _ahead(flow: FlowDefinition, lane: Lane, at_ms: int, now: int, handler: str | None) -> str:
    who, when = _who(handler), _time(at_ms)
    if lane.paused:
        return f"{who} will not run at {when} unless the flow is resumed: it is paused by hand."
    if lane.trouble is not None and lane.trouble.retry_at_ms is None:
        return f"{who} will not run at {when} unless its failure is resolved. {issue_words(lane.trouble)}."
    names = [each.name for each in flow.handlers if handler in {None, each.name}]
    times = [lane.marks.get(name, NO_MARK).at_ms for name in names]
    if any(is_due(lane.marks.get(name, NO_MARK), now) for name in names):
        return f"{who} is due now."
    first = min((at for at in times if at is not None), default=None)
    if first is None:
        return f"{who} runs when a new event arrives; no time is planned."
    consumers = any(each.name in names and each.kind is HandlerKind.CONSUMER for each in flow.handlers)
    earlier = ", or earlier if a new event arrives" if consumers else ""
    return f"{who} runs next {within(first - now)}, at {_time(first)}{earlier}."


def _who(handler: str | None) -> str:
    return f'"{handler}"' if handler else "The flow"


def _error(run: FlowRun) -> str:
    return f": {run.error}" if run.error else ""


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
