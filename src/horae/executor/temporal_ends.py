"""How a workflow ended, read from the last event of its history. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent

from horae.executor.temporal_payloads import values_of

CANCELED = "canceled"
MAX_CAUSES = 10


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a workflow ended."""

    kind: str = ""
    is_good: bool = False
    result: Any = None
    words: str = ""
    """Why it ended badly."""
    continued_by: str = ""
    """The run of the workflow that goes on for this one: it continued as new, or is retried by Temporal."""


def end_of(event: HistoryEvent) -> End:
    """What the last event of a workflow's history says."""
    which = event.WhichOneof("attributes") or ""
    said = getattr(event, which, None)
    kind = which.removeprefix("workflow_execution_").removesuffix("_event_attributes")
    following = getattr(said, "new_execution_run_id", "")
    if following:
        return End(kind=kind, continued_by=following)
    if said is None or kind not in _WORDS:
        return End(
            kind=kind, words=f"it ended in a way that is not known here, with event {event.event_type}"
        )
    if kind == "completed":
        return End(kind=kind, is_good=True, result=values_of(said.result))
    return End(kind=kind, words=_WORDS[kind](said))


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


_WORDS: dict[str, Any] = {
    "completed": None,
    "failed": lambda said: words_of(said.failure),
    "timed_out": lambda _: "it timed out",
    CANCELED: lambda _: "it was cancelled",
    "terminated": lambda said: f"it was terminated: {said.reason}" if said.reason else "it was terminated",
}
"""Why a workflow ended badly, by the kind of its last event."""
