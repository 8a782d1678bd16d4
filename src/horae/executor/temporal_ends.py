"""How a workflow ended, read from the last event of its history. Pure."""

from __future__ import annotations

from typing import Any

from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent

from horae.executor.hand_off import End, Ending
from horae.executor.temporal_payloads import values_of

MAX_CAUSES = 10


def continued_by(event: HistoryEvent) -> str:
    """The id of the run that continues the one with this last event, as new or as Temporal's retry; empty if there is none."""
    following: str = getattr(_attributes(event), "new_execution_run_id", "")
    return following


def end_of(event: HistoryEvent) -> End:
    """How a workflow ended, by the last event of its history."""
    attributes: Any = _attributes(event)
    match (event.WhichOneof("attributes") or "").removeprefix("workflow_execution_"):
        case "completed_event_attributes":
            return End(ending=Ending.SUCCEEDED, result=values_of(attributes.result))
        case "failed_event_attributes":
            return failed(words_of(attributes.failure))
        case "timed_out_event_attributes":
            return failed("it timed out")
        case "canceled_event_attributes":
            return End(ending=Ending.STOPPED, reason="it was cancelled")
        case "terminated_event_attributes":
            reason = f"it was terminated: {attributes.reason}" if attributes.reason else "it was terminated"
            return End(ending=Ending.STOPPED, reason=reason)
        case _:
            return failed(f"it ended in an unknown way, with event {event.event_type}")


def failed(reason: str) -> End:
    """The end of a workflow that failed."""
    return End(ending=Ending.FAILED, reason=reason)


def _attributes(event: HistoryEvent) -> object:
    return getattr(event, event.WhichOneof("attributes") or "", None)


def words_of(failure: Failure) -> str:
    """A failure and its causes in one line."""
    words = []
    for _ in range(MAX_CAUSES):
        kind = failure.application_failure_info.type
        words.append(f"{kind}: {failure.message}" if kind else failure.message)
        if not failure.HasField("cause"):
            break
        failure = failure.cause
    return ": ".join(words)
