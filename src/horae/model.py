"""The nouns: schedules, their policies and state, runs and what becomes of them. All frozen.

Instants are milliseconds since the epoch, except nominal times, which are whole seconds; spans are
milliseconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

AUTOMATIC = "automatic"
"""The origin of slots that the spec itself brought about; others are ``trigger:…`` and ``backfill:…``."""


class Overlap(StrEnum):
    """What happens to a start while another run of the schedule is going on."""

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"
    TERMINATE_OTHER = "terminate_other"
    ALLOW_ALL = "allow_all"

    @classmethod
    def _missing_(cls, value: object) -> Overlap | None:
        """The names that other schedulers use for the same."""
        aliases = {
            "allow": cls.ALLOW_ALL,
            "queue": cls.BUFFER_ALL,
            "forbid": cls.SKIP,
            "replace": cls.CANCEL_OTHER,
        }
        return aliases.get(value.lower()) if isinstance(value, str) else None


class CatchUp(StrEnum):
    """Which of the slots that are late, but within the window, are made up."""

    ALL = "all"
    LATEST = "latest"
    SPREAD = "spread"
    NONE = "none"


class OnResume(StrEnum):
    """What becomes of the slots that fell due in a pause."""

    CATCH_UP = "catch_up"
    SKIP = "skip"


class Status(StrEnum):
    """Where a run stands. The table of transitions is in :mod:`horae.policy.lifecycle`."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    MISSED = "missed"
    DROPPED = "dropped"


class Reason(StrEnum):
    """Why a slot did not run, or a run ended otherwise than by itself."""

    OVERLAP = "overlap"
    REPLACED = "replaced"
    LATE = "late"
    SUPERSEDED = "superseded"
    PAUSED = "paused"
    LIMIT_REACHED = "limit_reached"
    BUFFER_FULL = "buffer_full"
    DELETED = "deleted"
    CRASHED = "crashed"
    FAILED = "failed"


class CatchUpPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How late a slot may start. ``window`` in milliseconds; ``None`` is for ever."""

    mode: CatchUp = CatchUp.ALL
    window: int | None = None
    grace: int = 10_000
    """Lateness up to this much counts as on time, whatever the mode and the window."""
    spread: int = 60_000
    """Over how long the mode ``spread`` distributes what is late."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often an action that failed is tried again, and when."""

    attempts: int = 1
    first_delay: int = 1000
    factor: float = 2.0
    longest_delay: int = 60_000


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what becomes of a schedule's slots."""

    overlap: Overlap = Overlap.SKIP
    max_concurrent: int = 1
    catch_up: CatchUpPolicy = CatchUpPolicy()
    on_resume: OnResume = OnResume.CATCH_UP
    retry: RetryPolicy = RetryPolicy()
    pause_on_failure: bool = False
    max_pending: int = 1000
    at_most_once: bool = False
    """Whether a run whose process died has failed, instead of being attempted again."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What changes about a schedule without being edited."""

    paused: bool = False
    note: str = ""
    paused_until: int | None = None
    remaining: int | None = None
    """How many automatic starts are left; ``None`` is unlimited."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What to do: the name of a registered action, and its input."""

    name: str
    input: Any = None


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When, what, and how; with the state and the place that the engine has come to."""

    id: str
    incarnation: int
    """A schedule that was deleted and created again under its id is another one."""
    spec: str
    """The canonical document, as JSON."""
    action: Action
    policies: Policies
    state: State
    token: int
    cursor: int
    """The last nominal second that was decided."""
    created_at: int
    updated_at: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a slot, or of a trigger."""

    id: str
    schedule_id: str
    incarnation: int
    nominal: int
    origin: str
    overlap: Overlap
    status: Status
    fire_at: int
    start_at: int
    """When it may start at the earliest."""
    reason: str = ""
    attempt: int = 0
    epoch: int = 0
    """The claim: only the node of this epoch may write the outcome of this attempt."""
    started_at: int | None = None
    ended_at: int | None = None
    input: Any = None
    result: Any = None
    failure: str | None = None


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive slots that did not run, for one reason: both ends, and how many."""

    schedule_id: str
    incarnation: int
    first: int
    last: int
    count: int
    status: Status
    reason: Reason
    decided_at: int
    before: int | None = None
    """The nominal time right before the first: a range that ends there is continued, not followed."""


OPEN = (Status.PENDING, Status.STARTING, Status.RUNNING)
"""The statuses of runs that have not ended."""
