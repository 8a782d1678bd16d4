"""Choose which handler of a flow runs next, and when to decide the flow again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

from horae.flow_model import (
    FlowDefinition,
    HandlerDefinition,
    HandlerKind,
    Lane,
    Mark,
    Recovery,
    Task,
)
from horae.policy.slot_times import next_slot_ms
from horae.spec import Spec
from horae.spec.duration import milliseconds

NO_MARK = Mark()
NEVER = 2**62
_replace = msgspec.structs.replace


class Choice(NamedTuple):
    """The handler that an idle flow runs now; if it is ``None``, when to decide again."""

    handler: str | None = None
    task: Task = Task.RUN
    next_at_ms: int | None = None


def choose(lane: Lane, flow: FlowDefinition, now: int, oldest: Mapping[str, int]) -> Choice:
    """Choose what a flow does now. ``oldest`` is when the oldest pending event of a topic was published.

    Consumers come before producers. Among consumers the one with the oldest pending event or wake time is first, then by name.
    """
    if lane.run_id is not None or lane.paused:
        return Choice()
    trouble = lane.trouble
    if trouble is not None:
        if trouble.retry_at_ms is None:
            return Choice()
        if trouble.retry_at_ms > now:
            return Choice(next_at_ms=trouble.retry_at_ms)
        return Choice(trouble.handler, _task(trouble.recovery, fixing=trouble.fixing))
    due = due_handlers(lane, flow, now)
    if due:
        first = min(due, key=lambda each: _order(each, lane.marks.get(each.name, NO_MARK), oldest))
        return Choice(first.name)
    times = (lane.marks.get(each.name, NO_MARK).at_ms for each in flow.handlers)
    return Choice(next_at_ms=min((at for at in times if at is not None), default=None))


def _task(recovery: Recovery, *, fixing: bool) -> Task:
    if fixing:
        return Task.FIX
    return Task.RECONCILE if recovery is Recovery.RECONCILE else Task.RUN


def due_handlers(lane: Lane, flow: FlowDefinition, now: int) -> list[HandlerDefinition]:
    """The handlers that have a reason to run now."""
    return [each for each in flow.handlers if is_due(lane.marks.get(each.name, NO_MARK), now)]


def is_due(mark: Mark, now: int) -> bool:
    """Whether a handler has a reason to run now."""
    return mark.new or mark.queued or (mark.at_ms is not None and mark.at_ms <= now)


def _order(handler: HandlerDefinition, mark: Mark, oldest: Mapping[str, int]) -> tuple[bool, int, str]:
    since = [oldest[topic] for topic in handler.subscribes if topic in oldest]
    if mark.at_ms is not None:
        since.append(mark.at_ms)
    return handler.kind is HandlerKind.PRODUCER, min(since, default=NEVER), handler.name


def begun(lane: Lane, handler: str) -> Lane:
    """The lane of a flow after a handler started: events that arrive from now on count as new."""
    mark = lane.marks.get(handler, NO_MARK)
    return _replace(lane, marks={**lane.marks, handler: _replace(mark, new=False)})


def committed(
    lane: Lane, flow: FlowDefinition, handler: str, now: int, *, wake_at_ms: int | None, reserved: bool
) -> Lane:
    """The marks of a flow after a run of a handler committed.

    A producer gets its next time. A consumer gets its wake time; one that reserved events looks again.
    """
    definition = flow.handler(handler)
    mark = lane.marks.get(handler, NO_MARK)
    if definition is None:  # a redeploy removed it
        return lane
    if definition.kind is HandlerKind.PRODUCER:
        mark = Mark(at_ms=next_time(definition, now))
    else:
        mark = Mark(new=mark.new or reserved, at_ms=wake_at_ms)
    return _replace(lane, marks={**lane.marks, handler: mark})


def next_time(producer: HandlerDefinition, now: int) -> int | None:
    """When a producer runs next, after a commit: an interval later, or at the first slot of its cron expression."""
    if producer.every is not None:
        return now + milliseconds(producer.every)
    return None if producer.cron is None else next_slot_ms(_cron(producer.cron, producer.timezone), now)


@lru_cache(1024)
def _cron(expression: str, timezone: str) -> Spec:
    return Spec.cron(expression, timezone=timezone)


def published(lane: Lane, flow: FlowDefinition, topics: Iterable[str]) -> Lane:
    """The lane of a flow after events were published in some topics: their consumers have something new."""
    names = {name for topic in topics for name in flow.subscribers(topic)}
    if not names:
        return lane
    marks = lane.marks | {name: _replace(lane.marks.get(name, NO_MARK), new=True) for name in names}
    return _replace(lane, marks=marks)


def deployed(lane: Lane, before: FlowDefinition | None, flow: FlowDefinition, now: int) -> Lane:
    """The lane of a flow after a deploy: new producers are due, those with an unchanged schedule keep their time, consumers look."""
    marks = {}
    for each in flow.handlers:
        old = None if before is None else before.handler(each.name)
        mark = lane.marks.get(each.name, NO_MARK)
        if each.kind is HandlerKind.CONSUMER:
            marks[each.name] = _replace(mark, new=True, queued=False)
        elif old is not None and old.kind is each.kind and old.schedule == each.schedule:
            marks[each.name] = mark
        else:
            marks[each.name] = Mark(at_ms=now)
    return _replace(lane, marks=marks)


def queued(lane: Lane, flow: FlowDefinition) -> Lane:
    """The lane of a flow after "run now": all producers are due, one after another."""
    names = [each.name for each in flow.handlers if each.kind is HandlerKind.PRODUCER]
    marks = lane.marks | {name: _replace(lane.marks.get(name, NO_MARK), queued=True) for name in names}
    return _replace(lane, marks=marks)


def wake_time(wake_at: object) -> tuple[int | None, str]:
    """Parse a wake time into milliseconds; ``None`` and the reason if it is not a time. An omitted one is ``None`` too."""
    if wake_at is None:
        return None, ""
    if isinstance(wake_at, str):
        text = wake_at[:100]
        try:
            wake_at = datetime.fromisoformat(wake_at)
        except ValueError:
            return None, f"the wake time {text!r} is no ISO 8601 time"
    if not isinstance(wake_at, datetime):
        return (
            None,
            f"a wake time must be an aware datetime or an ISO 8601 text, not {type(wake_at).__name__}",
        )
    if wake_at.utcoffset() is None:
        return None, f"the wake time {wake_at.isoformat()} has no zone"
    return int(wake_at.timestamp() * 1000), ""


def clamped(wake_at_ms: int | None, now: int, *, least_ms: int, most_ms: int) -> int | None:
    """Clamp a wake time to the host's bounds."""
    return None if wake_at_ms is None else min(max(wake_at_ms, now + least_ms), now + most_ms)
