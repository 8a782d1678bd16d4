"""The events that a listener gets: one class each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event: its time, its task if it concerns one, and details."""

    time: datetime
    task: str | None = None
    details: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """The name of the event."""
        return type(self).__name__


class SchedulerInitializationStarted(Event, frozen=True):
    """``initialize`` was called."""


class SchedulerInitializationCompleted(Event, frozen=True):
    """The scheduler runs; ``details`` count the tasks that are new, preserved, overridden, orphaned and forgotten."""


class SchedulerInitializationFailed(Event, frozen=True):
    """Nothing was changed; ``details`` hold the error."""


class SchedulerStopRequested(Event, frozen=True):
    """``stop`` was called."""


class SchedulerStopped(Event, frozen=True):
    """Nothing runs, and nothing will start."""


class PollingStarted(Event, frozen=True):
    """The scheduler has tasks, and begins to start them when they are due."""


class PollingStopRequested(Event, frozen=True):
    """The scheduler starts no more tasks; running ones continue."""


class PollingStopped(Event, frozen=True):
    """The running tasks have ended."""


class TaskRunStarted(Event, frozen=True):
    """The callback of a task is about to be called; the attempt is durable."""


class TaskRunCompleted(Event, frozen=True):
    """The callback returned."""


class TaskRunFailed(Event, frozen=True):
    """The callback raised; ``details`` hold the error and ``pendingRetryUntil``."""


class TaskRetryStarted(Event, frozen=True):
    """The callback is about to be called again, after it failed."""


class TaskRetryPreempted(Event, frozen=True):
    """A new slot fell due before the retry, and replaces it."""
