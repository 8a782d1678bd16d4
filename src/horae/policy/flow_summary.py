"""A flow in plain words: its status, its problem and what resolves it, its schedule and recent activity."""

from __future__ import annotations

import re
from typing import NamedTuple

from horae.errors import HoraeError
from horae.flow_model import (
    FlowDefinition,
    FlowRun,
    FlowStatus,
    HandlerDefinition,
    HandlerKind,
    Lane,
    Recovery,
    Trouble,
)
from horae.policy.flow_failure_handling import MAX_RETRIES
from horae.policy.flow_next_handler import NO_MARK
from horae.spec import Spec

RUNNING, IDLE, ATTENTION, STOPPED = "Running", "Idle", "Needs attention", "Stopped"
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_DAILY = re.compile(r"^(\d{1,2}) (\d{1,2}) \* \* \*$")
_HOURLY = re.compile(r"^(\d{1,2}) \* \* \* \*$")


class Words(NamedTuple):
    """A flow as operators see it."""

    status: str
    issue: str | None
    """What is wrong."""
    action: str | None
    """What resolves it, as an operation: resume, resolve, deploy, or to wait."""
    schedule: str
    next_check: str | None


def words(lane: Lane, flow: FlowDefinition, now: int) -> Words:
    """Describe a flow as it is now."""
    status, issue, action = state_words(lane, now)
    return Words(status, issue, action, schedule_words(flow), next_check_words(lane, flow, now))


def state_words(lane: Lane, now: int) -> tuple[str, str | None, str | None]:
    """The status of a flow, its issue, and what resolves that."""
    trouble = lane.trouble
    if lane.paused:
        note = lane.pauses[-1].note if lane.pauses else ""
        return STOPPED, f"Paused: {note}" if note else "Paused", "Resume it to continue"
    if lane.run_id is not None:
        return RUNNING, None, None
    if trouble is None:
        return IDLE, None, None
    status = IDLE if trouble.retry_at_ms is not None else ATTENTION
    return status, issue_words(trouble), action_words(trouble, now)


def issue_words(trouble: Trouble) -> str:
    """What is wrong, in a sentence."""
    issue = trouble.issue.rstrip(".") or "no details"
    if trouble.recovery is Recovery.RECONCILE and trouble.status is not FlowStatus.APPROVAL:
        return f"It is not known whether the last change was made: {issue}"
    match trouble.status:
        case FlowStatus.TRANSIENT if trouble.exhausted:
            return f"Still failing after {MAX_RETRIES} retries: {issue}"
        case FlowStatus.TRANSIENT:
            return f"A temporary problem: {issue}"
        case FlowStatus.APPROVAL:
            return f"Waiting for you to {issue[:1].lower()}{issue[1:]}"
        case FlowStatus.LOGIC:
            return f"Something is wrong with how it works: {issue}"
        case FlowStatus.INTERNAL:
            return f"An internal error stopped it: {issue}"
        case FlowStatus.RECONCILIATION:
            return f"The last change is being settled: {issue}"
        case FlowStatus.CRASHED | FlowStatus.ACTIVE | FlowStatus.COMMITTED:
            return f"It was interrupted: {issue}"


def action_words(trouble: Trouble, now: int) -> str:
    """What resolves an issue."""
    if trouble.retry_at_ms is not None:
        return f"Nothing to do: it tries again {within(trouble.retry_at_ms - now)}"
    if trouble.recovery is Recovery.RECONCILE:
        return "Say what happened: resolve it as applied, not_applied or skip"
    match trouble.status:
        case FlowStatus.APPROVAL:
            return "Do that, then resolve it as approved"
        case FlowStatus.LOGIC:
            return "Deploy a new version, or resolve it with retry"
        case _:
            return "Resume it to try again"


def schedule_words(flow: FlowDefinition) -> str:
    """When a flow runs."""
    producers = [each for each in flow.handlers if each.kind is HandlerKind.PRODUCER]
    if not producers:
        return "Runs when something new arrives"
    sentences = list(dict.fromkeys(producer_words(each) for each in producers))
    return "; ".join([sentences[0], *(f"{each[:1].lower()}{each[1:]}" for each in sentences[1:])])


def producer_words(producer: HandlerDefinition) -> str:
    """When a producer runs."""
    if producer.every is not None:
        number, unit = int(producer.every[:-1]), _UNITS[producer.every[-1]]
        return f"Checks every {unit}" if number == 1 else f"Checks every {number} {unit}s"
    zone = "" if producer.timezone == "UTC" else f" ({producer.timezone})"
    cron = producer.cron or ""
    if match := _DAILY.match(cron):
        return f"Runs daily at {_clock(int(match[2]), int(match[1]))}{zone}"
    if match := _HOURLY.match(cron):
        return "Runs hourly" if int(match[1]) == 0 else f"Runs hourly at minute {int(match[1])}{zone}"
    try:
        sentence = Spec.cron(cron, timezone=producer.timezone).sentence()
    except HoraeError:
        return f"Runs by the schedule {cron}{zone}"
    return f"Runs {sentence[:1].lower()}{sentence[1:]}"


def _clock(hour: int, minute: int) -> str:
    half = "am" if hour < 12 else "pm"
    return f"{hour % 12 or 12}{f':{minute:02}' if minute else ''}{half}"


def next_check_words(lane: Lane, flow: FlowDefinition, now: int) -> str | None:
    """When a producer runs next; ``None`` if none does, or if the flow is stopped."""
    if lane.paused or lane.trouble is not None:
        return None
    marks = [
        lane.marks.get(each.name, NO_MARK) for each in flow.handlers if each.kind is HandlerKind.PRODUCER
    ]
    if any(mark.queued for mark in marks):
        return "Next check now"
    times = [mark.at_ms for mark in marks if mark.at_ms is not None]
    return f"Next check {within(min(times) - now)}" if times else None


def within(span_ms: int) -> str:
    """A time span from now: "in 3 min"."""
    seconds = -(-span_ms // 1000)
    if seconds <= 0:
        return "now"
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"in {round(seconds / length)} {unit}"
    return f"in {seconds} s"


def activity_words(run: FlowRun) -> str:
    """What a committed run did: the title that its handler gave it, or how many events."""
    if run.title:
        return run.title
    parts = []
    if run.events:
        parts.append(f"Processed {run.events} event{'s' if run.events > 1 else ''}")
    if run.published:
        verb = "found" if parts else "Found"
        parts.append(f"{verb} {run.published} new event{'s' if run.published > 1 else ''}")
    return " → ".join(parts) or "Looked, and found nothing to do"
