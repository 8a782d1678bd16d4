"""The policies of a schedule: what happens to its slots. These are values; :mod:`horae.policy` decides by them.

Every field is checked when a value is created. An enumeration may be given by its name, a part as a mapping, and a duration as a text
or a ``timedelta``. The typed dictionaries declare this for type checkers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, Unpack

import msgspec
from msgspec import Meta

from horae.spec.duration import Duration, DurationFields


class Overlap(StrEnum):
    """What happens to a start while another run of the schedule is running."""

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"
    TERMINATE_OTHER = "terminate_other"
    ALLOW_ALL = "allow_all"

    @classmethod
    def _missing_(cls, value: object) -> Overlap | None:
        """Accept the names that other schedulers use."""
        aliases = {
            "allow": cls.ALLOW_ALL,
            "queue": cls.BUFFER_ALL,
            "forbid": cls.SKIP,
            "replace": cls.CANCEL_OTHER,
        }
        return aliases.get(value.lower()) if isinstance(value, str) else None


class CatchUp(StrEnum):
    """Which late slots within the window are made up."""

    ALL = "all"
    LATEST = "latest"
    SPREAD = "spread"
    NONE = "none"

    @classmethod
    def _missing_(cls, value: object) -> CatchUp | None:
        """Accept the registrar's name."""
        return cls.ALL if value == "fire_immediately" else None


class OnResume(StrEnum):
    """What happens to the slots that fell due in a pause."""

    CATCH_UP = "catch_up"
    SKIP = "skip"


class WhenFull(StrEnum):
    """What happens to a slot when the buffer of waiting starts is full: it is dropped, or stays due until there is room."""

    DROP = "drop"
    WAIT = "wait"


OverlapName = Literal[
    "skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow_all", "allow", "queue", "forbid", "replace"
]  # fmt: skip
CatchUpName = Literal["all", "latest", "spread", "none"]
OnResumeName = Literal["catch_up", "skip"]
WhenFullName = Literal["drop", "wait"]
ErrorNames = Sequence[type[BaseException]] | list[str] | tuple[str, ...]
"""Exception classes, or their names."""


class CatchUpFields(TypedDict, total=False):
    """The fields of a :class:`CatchUpPolicy`, as they may be given."""

    mode: CatchUp | CatchUpName
    window: Duration | None
    grace: Duration
    spread: Duration


class RetryFields(TypedDict, total=False):
    """The fields of a :class:`RetryPolicy`, as they may be given."""

    attempts: int | None
    initial_delay: Duration
    factor: float
    max_delay: Duration
    retry_on: ErrorNames
    preempted: bool


class TimeoutFields(TypedDict, total=False):
    """The fields of :class:`Timeouts`, as they may be given."""

    start: Duration | None
    run: Duration | None
    heartbeat: Duration | None
    cancel: Duration


class RetentionFields(TypedDict, total=False):
    """The fields of a :class:`Retention`, as they may be given."""

    age: Duration | None
    count: int | None


class PolicyFields(TypedDict, total=False):
    """The fields of :class:`Policies`, as they may be given."""

    overlap: Overlap | OverlapName
    coalesce: bool
    max_concurrent: int | None
    catch_up: CatchUpPolicy | CatchUpFields
    backfill_limit: int | None
    on_resume: OnResume | OnResumeName
    retry: RetryPolicy | RetryFields
    start_attempts: int
    pause_on_failure: bool
    max_buffer_size: int | None
    when_full: WhenFull | WhenFullName
    expire_waiting: bool
    at_most_once: bool
    timeouts: Timeouts | TimeoutFields
    retention: Retention | RetentionFields
    finished_ttl: Duration | None


class CatchUpPolicy(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How late a slot may start, and which late slots start."""

    mode: CatchUp = CatchUp.ALL
    window: Annotated[
        Duration | None,
        Meta(description="Slots that are later than this are missed; ``None`` means no limit."),
    ] = None
    grace: Annotated[
        Duration,
        Meta(description="Lateness up to this much counts as on time, whatever the mode and the window."),
    ] = "10s"
    spread: Annotated[
        Duration, Meta(description="The time over which the mode ``spread`` distributes late slots.")
    ] = "1m"

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[CatchUpFields]) -> None: ...


def _named(errors: object) -> object:
    """The names of exception classes; every other value as it is."""
    if not isinstance(errors, tuple | list):
        return errors
    return tuple(each.__name__ if isinstance(each, type) else each for each in errors)


class RetryPolicy(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a failed action is attempted again, when, and after which errors."""

    attempts: Annotated[int | None, Meta(description="``None`` means no limit.")] = 1
    initial_delay: Duration = "1s"
    factor: Annotated[float, Meta(description="1 means a fixed delay.")] = 2.0
    max_delay: Duration = "1m"
    retry_on: Annotated[
        tuple[str, ...],
        Meta(description="Names of exception classes, or of their base classes. Empty means any."),
    ] = ()
    preempted: Annotated[
        bool,
        Meta(description="Whether a slot that falls due replaces a retry that waits for its time."),
    ] = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "retry_on", _named(self.retry_on))
        super().__post_init__()

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[RetryFields]) -> None: ...


class Timeouts(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time limits of a run; ``None`` means no limit."""

    start: Annotated[Duration | None, Meta(description="From the fire time to the start.")] = None
    run: Annotated[Duration | None, Meta(description="One attempt.")] = None
    heartbeat: Annotated[Duration | None, Meta(description="Between two signs of life of an attempt.")] = None
    cancel: Annotated[
        Duration,
        Meta(description="How long a run that was asked to stop may take; after that it is terminated."),
    ] = "30s"


class Retention(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the ledger keeps ended entries: by age and by number, whichever is less; ``None`` means the program's setting."""

    age: Duration | None = None
    count: int | None = None


class Policies(DurationFields, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The policies that decide what happens to a schedule's slots."""

    overlap: Overlap = Overlap.SKIP
    coalesce: Annotated[
        bool, Meta(description="Whether waiting automatic starts become one: the latest replaces all others.")
    ] = False
    max_concurrent: Annotated[
        int | None,
        Meta(description="How many runs may run at once. Unset: one; with ``allow_all``, any number."),
    ] = None
    catch_up: CatchUpPolicy = CatchUpPolicy()
    backfill_limit: Annotated[
        int | None,
        Meta(
            description="The most late slots that are made up, and the most slots of a backfill: the consent of the payer."
        ),
    ] = None
    on_resume: OnResume = OnResume.CATCH_UP
    retry: RetryPolicy = RetryPolicy()
    start_attempts: Annotated[
        int, Meta(description="How often a run is started while its action says that it cannot begin now.")
    ] = 10
    pause_on_failure: bool = False
    max_buffer_size: Annotated[
        int | None,
        Meta(description="How many automatic starts may wait; ``None`` means the program's limit."),
    ] = None
    when_full: WhenFull = WhenFull.DROP
    expire_waiting: Annotated[
        bool,
        Meta(
            description="Whether a start that waited longer than the catch-up window is missed when its turn comes."
        ),
    ] = True
    at_most_once: Annotated[
        bool,
        Meta(description="Whether a run whose process died fails, instead of being attempted again."),
    ] = False
    timeouts: Timeouts = Timeouts()
    retention: Retention = Retention()
    finished_ttl: Annotated[
        Duration | None,
        Meta(description="How long to keep a schedule with nothing left to fire; ``None`` means for ever."),
    ] = "7d"

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[PolicyFields]) -> None: ...
