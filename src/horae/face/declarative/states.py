"""The state machines of a scheduler, its polling and a task, as tables; the diagrams in the docs are made from them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from horae.face.declarative import events


class SchedulerState(StrEnum):
    """The states of a scheduler."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class Transition(NamedTuple):
    """A change of state, and its event."""

    before: str
    after: str
    event: type[events.Event]


S = SchedulerState
SCHEDULER = (
    Transition(S.UNINITIALIZED, S.INITIALIZING, events.SchedulerInitializationStarted),
    Transition(S.STOPPED, S.INITIALIZING, events.SchedulerInitializationStarted),
    Transition(S.INITIALIZING, S.RUNNING, events.SchedulerInitializationCompleted),
    Transition(S.INITIALIZING, S.UNINITIALIZED, events.SchedulerInitializationFailed),
    Transition(S.RUNNING, S.STOPPING, events.SchedulerStopRequested),
    Transition(S.STOPPING, S.STOPPED, events.SchedulerStopped),
)
POLLING = (
    Transition("Inactive", "Active", events.PollingStarted),
    Transition("Active", "Stopping", events.PollingStopRequested),
    Transition("Stopping", "Inactive", events.PollingStopped),
)
TASK = (
    Transition("AwaitingRun", "Running", events.TaskRunStarted),
    Transition("Running", "AwaitingRun", events.TaskRunCompleted),
    Transition("Running", "AwaitingRetry", events.TaskRunFailed),
    Transition("AwaitingRetry", "Running", events.TaskRetryStarted),
    Transition("AwaitingRetry", "AwaitingRun", events.TaskRetryPreempted),
)


def diagram(table: tuple[Transition, ...]) -> str:
    """A table as a Mermaid diagram, which begins at the first transition."""
    lines = ["stateDiagram-v2", f"    [*] --> {table[0].before}"]
    lines += [f"    {before} --> {after}: {event.__name__}" for before, after, event in table]
    return "\n".join(lines)
