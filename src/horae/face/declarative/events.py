"""What a listener hears: one class for each event, in the order in which things happen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened: its name, when, to which task, and more about it."""

    time: datetime
    task: str | None = None
    details: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """What happened, as a word."""
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
    """Nothing runs any more, and nothing will start."""


class PollingStarted(Event, frozen=True):
    """The scheduler looks at the clock, for the sake of its first task."""


class PollingStopRequested(Event, frozen=True):
    """It looks no more, but ends what it has begun."""


class PollingStopped(Event, frozen=True):
    """The last look and the running tasks are done."""


class TaskRunStarted(Event, frozen=True):
    """The callback of a task is about to be called; that it was is durable."""


class TaskRunCompleted(Event, frozen=True):
    """The callback returned."""


class TaskRunFailed(Event, frozen=True):
    """The callback raised; ``details`` hold the error and ``pendingRetryUntil``."""


class TaskRetryStarted(Event, frozen=True):
    """The callback is about to be called again, after it failed."""


class TaskRetryPreempted(Event, frozen=True):
    """A new occurrence fell due before the retry, which is given up for it."""
