"""The state machines of a scheduler, of its polling and of a task, as tables; the diagrams of the docs come from them."""

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


class PollingState(StrEnum):
    """The states of polling."""

    INACTIVE = "Inactive"
    ACTIVE = "Active"
    STOPPING = "Stopping"


class TaskState(StrEnum):
    """The states of a task."""

    AWAITING_RUN = "AwaitingRun"
    RUNNING = "Running"
    AWAITING_RETRY = "AwaitingRetry"


class Transition(NamedTuple):
    """From one state to another, with the event of it."""

    before: str
    after: str
    event: type[events.Event]


S, P, T = SchedulerState, PollingState, TaskState
SCHEDULER = (
    Transition(S.UNINITIALIZED, S.INITIALIZING, events.SchedulerInitializationStarted),
    Transition(S.STOPPED, S.INITIALIZING, events.SchedulerInitializationStarted),
    Transition(S.INITIALIZING, S.RUNNING, events.SchedulerInitializationCompleted),
    Transition(S.INITIALIZING, S.UNINITIALIZED, events.SchedulerInitializationFailed),
    Transition(S.RUNNING, S.STOPPING, events.SchedulerStopRequested),
    Transition(S.STOPPING, S.STOPPED, events.SchedulerStopped),
)
POLLING = (
    Transition(P.INACTIVE, P.ACTIVE, events.PollingStarted),
    Transition(P.ACTIVE, P.STOPPING, events.PollingStopRequested),
    Transition(P.STOPPING, P.INACTIVE, events.PollingStopped),
)
TASK = (
    Transition(T.AWAITING_RUN, T.RUNNING, events.TaskRunStarted),
    Transition(T.RUNNING, T.AWAITING_RUN, events.TaskRunCompleted),
    Transition(T.RUNNING, T.AWAITING_RETRY, events.TaskRunFailed),
    Transition(T.AWAITING_RETRY, T.RUNNING, events.TaskRetryStarted),
    Transition(T.AWAITING_RETRY, T.AWAITING_RUN, events.TaskRetryPreempted),
)


def diagram(table: tuple[Transition, ...]) -> str:
    """A table as a Mermaid diagram; it begins at the state of its first transition."""
    lines = ["stateDiagram-v2", f"    [*] --> {table[0].before}"]
    lines += [f"    {before} --> {after}: {event.__name__}" for before, after, event in table]
    return "\n".join(lines)
