"""The data model: schedules with their policies and state, runs and their outcomes. All values are frozen.

Instants are milliseconds since the epoch, also nominal times (``_ms``), although these are whole seconds. Durations are texts
in their short form; :func:`~horae.spec.duration.milliseconds` converts them. Values that exist in thousands are ``gc=False``: they
hold no cycles, so the garbage collector can ignore them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from horae.spec import SharedCalendar, slot_key
from horae.spec.duration import Duration, DurationFields

UNREADABLE = "unreadable"
"""The reason of a run whose row was damaged by a manual change in the database; ``failure`` says how."""

FUNCTION = "function"
"""The kind of action that calls a function of the program."""
DEFAULT_ID_FORMAT = "{id}-%Y-%m-%dT%H:%M:%SZ"
MAX_ID_FORMAT_LENGTH = 200
MAX_TEXT_LENGTH = 10_000
"""The maximum number of characters of a text for people."""


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


class Status(StrEnum):
    """The status of a run. The table of transitions is in :mod:`horae.policy.lifecycle`."""

    PENDING = "pending"
    RETRYING = "retrying"
    """An attempt ended, and the run waits for its next one."""
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


WAITING = (Status.PENDING, Status.RETRYING)
"""The statuses of runs that wait to be released."""

OPEN = (*WAITING, Status.STARTING, Status.RUNNING)
"""The statuses of runs that have not ended."""


class Reason(StrEnum):
    """Why a slot did not run, or why a run did not succeed. :mod:`horae.policy.reason` has a sentence for each."""

    OVERLAP = "overlap"
    REPLACED = "replaced"
    LATE = "late"
    SUPERSEDED = "superseded"
    NO_CONSENT = "no_consent"
    PAUSED = "paused"
    SKIP_NEXT = "skip_next"
    LIMIT_REACHED = "limit_reached"
    BUFFER_FULL = "buffer_full"
    SERVED = "served"
    EDITED = "edited"
    DELETED = "deleted"
    BACKFILL_CANCELLED = "backfill_cancelled"
    NOT_STARTED = "not_started"
    START_TIMEOUT = "start_timeout"
    RUN_TIMEOUT = "run_timeout"
    HEARTBEAT_TIMEOUT = "heartbeat_timeout"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    CRASHED = "crashed"
    SHUTDOWN = "shutdown"
    PREEMPTED = "preempted"
    NOT_ALLOWED = "not_allowed"
    FAILED = "failed"


MISSED = (Reason.LATE, Reason.SUPERSEDED, Reason.NO_CONSENT)
"""The reasons of slots that were missed."""


class CatchUpPolicy(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How late a slot may start."""

    mode: CatchUp = CatchUp.ALL
    window: Annotated[
        Duration | None, Meta(description="Slots that are later than this are missed; ``None`` is for ever.")
    ] = None
    grace: Annotated[
        Duration,
        Meta(description="Lateness up to this much counts as on time, whatever the mode and the window."),
    ] = "10s"
    spread: Annotated[
        Duration, Meta(description="Over how long the mode ``spread`` distributes what is late.")
    ] = "1m"


class RetryPolicy(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a failed action is attempted again, when, and after which errors."""

    attempts: Annotated[int | None, Meta(description="``None`` is for ever.")] = 1
    initial_delay: Duration = "1s"
    factor: Annotated[float, Meta(description="1 is a fixed delay.")] = 2.0
    max_delay: Duration = "1m"
    retry_on: Annotated[
        tuple[str, ...],
        Meta(
            description="Names of exception classes, their own or of a class they derive from; none named is any."
        ),
    ] = ()
    preempted: Annotated[
        bool,
        Meta(description="Whether a slot that falls due takes the place of a retry that waits for its time."),
    ] = False


class Timeouts(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time limits of a run; ``None`` is no limit."""

    start: Annotated[Duration | None, Meta(description="From the fire time to the start.")] = None
    run: Annotated[Duration | None, Meta(description="One attempt.")] = None
    heartbeat: Annotated[Duration | None, Meta(description="Between two signs of life of an attempt.")] = None
    cancel: Annotated[
        Duration,
        Meta(description="How long a run that was asked to stop may take; after that it is terminated."),
    ] = "30s"


class Retention(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the ledger keeps what has ended: by age and by number, whichever is less; ``None`` is the program's setting."""

    age: Duration | None = None
    count: int | None = None


class Policies(DurationFields, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The policies that decide what happens to a schedule's slots."""

    overlap: Overlap = Overlap.SKIP
    coalesce: Annotated[
        bool, Meta(description="Whether automatic starts that wait become one: the latest stands for all.")
    ] = False
    max_concurrent: Annotated[
        int | None, Meta(description="How many may run at once. Unset: one, and any number of ``allow_all``.")
    ] = None
    catch_up: CatchUpPolicy = CatchUpPolicy()
    backfill_limit: Annotated[
        int | None,
        Meta(
            description="How many late slots are made up at most, and how many a backfill may have: the consent of who pays for them."
        ),
    ] = None
    on_resume: OnResume = OnResume.CATCH_UP
    retry: RetryPolicy = RetryPolicy()
    start_attempts: Annotated[
        int, Meta(description="How often a run is started whose action says that it cannot begin now.")
    ] = 10
    pause_on_failure: bool = False
    max_buffer_size: Annotated[
        int | None,
        Meta(description="How many automatic starts may wait; ``None`` is the program's own limit."),
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
        Meta(description="Whether a run whose process died has failed, instead of being attempted again."),
    ] = False
    timeouts: Timeouts = Timeouts()
    retention: Retention = Retention()
    finished_ttl: Annotated[
        Duration | None,
        Meta(description="How long a schedule with nothing left to fire is kept; ``None`` is for ever."),
    ] = "7d"


class Carried(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A slot that an edit left due: its nominal time and its earliest fire time."""

    nominal_ms: int
    not_before_ms: int


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a schedule that changes without an edit."""

    paused: bool = False
    note: str = ""
    paused_until: int | None = None
    skip_waiting: bool = False
    """Whether a pause under ``on_resume: skip`` has ended: the next decision skips the starts that waited before its end."""
    skip_next: int = 0
    """How many of the slots ahead are skipped at a caller's request."""
    remaining_actions: int | None = None
    """How many automatic starts are left; ``None`` is unlimited."""
    spec_since_ms: int = 0
    """The time since which the spec is in force; 0 if it never changed."""
    carried: tuple[Carried, ...] = ()
    """Slots after the cursor that an edit left due. Up to ``spec_since_ms`` there are no other undecided slots."""
    buffer_full: bool = False
    """Whether the buffer of waiting starts is full, so that slots stay due; these do not count as late."""
    completed_at: int | None = None
    """When a schedule with nothing left to do was found finished."""
    attention: str = ""
    """A problem that the owner or operator should check, in a sentence."""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a schedule does: a kind of action, a name within the kind, an input, and the kind's own options."""

    kind: Annotated[str, Meta(description="Which executor runs it.")] = FUNCTION
    name: Annotated[
        str,
        Meta(
            description="Which one of its kind; without a kind it is the address of an action. `GET /actions` lists the addresses."
        ),
    ] = ""
    input: Annotated[Any, Meta(description="What the action gets: any JSON.")] = None
    options: Annotated[
        dict[str, Any],
        Meta(
            description="What the kind needs to know besides. Secrets are stored encrypted, and shown as `***`, which given back changes nothing."
        ),
    ] = {}
    id: Annotated[
        Annotated[str, Meta(extra_json_schema={"maxLength": MAX_TEXT_LENGTH})] | None,
        Meta(description="The base of action ids; the schedule's own id unless said otherwise."),
    ] = None
    id_format: Annotated[
        str,
        Meta(
            description="How action ids are made from the base and the nominal time, in UTC. It may have `{id}` once, `%Y`, `%m`, `%d`, `%j`, `%H`, `%M`, `%S`, `%s` (seconds since 1970) and `%%`; ids have at most 1,000 characters.",
            extra_json_schema={"maxLength": MAX_ID_FORMAT_LENGTH},
        ),
    ] = DEFAULT_ID_FORMAT

    @property
    def address(self) -> str:
        """The text that names it in nodes and runs: ``report``, ``http``, ``command:backup``."""
        if self.kind == FUNCTION:
            return self.name
        return f"{self.kind}:{self.name}" if self.name else self.kind

    def __repr__(self) -> str:
        """Omit input and options, which may be secret."""
        return f"Action({self.address})"


SearchValue = str | int | float | bool


class Schedule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A schedule: its spec, action and policies, with its state and the cursor of the engine."""

    id: str
    generation: int
    """It differs when a schedule is deleted and created again under the same id."""
    spec: str
    """The canonical document, as JSON."""
    action: Action
    policies: Policies
    state: State
    version: int
    """It grows with every change."""
    cursor_ms: int
    """The nominal time up to which its slots are decided."""
    created_at: int
    updated_at: int
    owner: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    memo: dict[str, Any] = {}
    """Notes of its owner, which Horae stores and does not use."""
    search_attributes: dict[str, SearchValue] = {}
    """The attributes by which a search finds it."""
    request_id: str = ""
    """The request that created it; repeating the same request creates nothing."""


class Counts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How many starts of a schedule began or never started, since it was created."""

    started: int = 0
    unstarted: Mapping[Reason, int] = {}
    """How many never started, by reason."""

    @property
    def skipped(self) -> int:
        """How many were skipped because another run was running."""
        return self.unstarted.get(Reason.OVERLAP, 0)

    @property
    def missed(self) -> int:
        """How many were too late."""
        return sum(self.unstarted.get(reason, 0) for reason in MISSED)

    @property
    def dropped(self) -> int:
        """How many were dropped because the buffer was full."""
        return self.unstarted.get(Reason.BUFFER_FULL, 0)


class OriginKind(StrEnum):
    """What causes runs."""

    AUTOMATIC = "automatic"
    TRIGGER = "trigger"
    BACKFILL = "backfill"


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What caused a run: a slot of its schedule, a trigger or a backfill."""

    kind: OriginKind
    id: Annotated[
        str,
        Meta(
            description="Which trigger or backfill. Of an automatic run that an edit added: the version of the schedule since then."
        ),
    ] = ""

    def __str__(self) -> str:
        """``automatic``, ``trigger:ID`` or ``backfill:ID``: the form that is stored and hashed into the id of the run."""
        return f"{self.kind}:{self.id}" if self.id else self.kind.value

    @staticmethod
    @lru_cache
    def parse(text: str) -> Origin:
        """Parse the text of an origin; raise a ``ValueError`` if it is none."""
        kind, _, own = text.partition(":")
        return Origin(OriginKind(kind), own)


AUTOMATIC = Origin(OriginKind.AUTOMATIC)


class Run(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A run of a schedule: its slot or trigger, its status, and its latest attempt."""

    id: str
    schedule_id: str
    generation: int
    nominal_ms: int
    origin: Origin
    overlap: Overlap
    status: Status
    fire_at: int
    start_at: int
    """When it may start at the earliest."""
    action: str = ""
    action_id: str = ""
    reason: str = ""
    attempt: int = 0
    epoch: int = 0
    """The claim: only the node of this epoch may write the outcome of this attempt. 0 means that no node has claimed it."""
    failures: int = 0
    """How many attempts failed; crashes and refusals to begin do not count."""
    refusals: int = 0
    """How many times its action refused to begin."""
    crashes: int = 0
    """How many processes died while running it."""
    stop: str = ""
    """``cancel`` or ``terminate`` if it was asked to stop."""
    started_at: int | None = None
    """When its latest attempt was launched; while it is running, when it was claimed. ``None`` if it never began."""
    ended_at: int | None = None
    author: str = ""
    note: str = ""
    input: Any = None
    result: Any = None
    failure: str | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether its schedule caused it, and not a caller."""
        return self.origin.kind is OriginKind.AUTOMATIC

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt of the same slot or trigger, and for no other."""
        return slot_key(self.schedule_id, self.nominal_ms // 1000) if self.origin == AUTOMATIC else self.id


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was followed by another: the node that made it, and how it ended."""

    run_id: str
    attempt: int
    epoch: int
    reason: str
    failure: str | None
    started_at: int | None
    ended_at: int


class Checkpoint(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A value that an attempt of a run saved, so that the next attempt need not repeat the work behind it."""

    run_id: str
    key: str
    value: str
    """As JSON."""
    attempt: int
    saved_at: int


class UnstartedRange(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Consecutive slots that did not run, for one reason: both ends, and how many."""

    schedule_id: str
    generation: int
    start_ms: int
    end_ms: int
    count: int
    status: Status
    reason: Reason
    decided_at: int
    before_ms: int | None = None
    """The slot right before the first: a stored range that ends there is extended instead."""
    number: int | None = None
    """Its place in the ledger; ``None`` before it is stored."""


class BackfillStatus(StrEnum):
    """The status of a backfill."""

    OPEN = "open"
    DONE = "done"
    CANCELLED = "cancelled"


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """A range of nominal times, both ends included, whose slots are made up on request."""

    id: str
    schedule_id: str
    generation: int
    start_ms: int
    end_ms: int
    overlap: Overlap
    cursor_ms: int
    """The last nominal time that became a run."""
    total: int
    made: int = 0
    status: BackfillStatus = BackfillStatus.OPEN
    created_at: int
    ended_at: int | None = None
    author: str = ""
    note: str = ""
    input: Any = None
    """Its own input; ``None`` is the schedule's."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule was before an edit: the spec and policies that were in force from one moment until another."""

    schedule_id: str
    generation: int
    version: int
    spec: str
    policies: Policies
    since: int
    until: int
    created_at: int
    """When the schedule itself was created."""


class StoredCalendar(msgspec.Struct, frozen=True, kw_only=True):
    """A shared calendar: its owner's, or that of all owners if the owner is empty."""

    owner: str
    name: str
    document: SharedCalendar
    updated_at: int


class AttemptEnd(StrEnum):
    """How an attempt ended."""

    RETURNED = "returned"
    RAISED = "raised"
    REFUSED = "refused"
    """The action refused to begin now, and has not begun."""
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    ACCEPTED = "accepted"
    """An external worker took over the work, and reports how it ends."""
    UNLAUNCHED = "unlaunched"
    """It was claimed, but the claim might have expired before the launch, so it was not launched."""
    NOT_ADMITTED = "not_admitted"
    """It was claimed, but must no longer happen; its action was not called."""


class Denial(msgspec.Struct, frozen=True, gc=False):
    """Why a claimed run must no longer happen."""

    reason: Reason
    sentence: str


class AttemptResult(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An attempt that ended: with a result as JSON, or with a failure in words."""

    run: Run
    ending: AttemptEnd
    result: str | None = None
    failure: str | None = None
    errors: tuple[str, ...] = ()
    """The names of the raised error's class and of its base classes."""
    reason: Reason | None = None
    permanent: bool = False
    """Whether a refusal is final, so that the action is not started again."""
    launched_at: int | None = None
    """When its node called the action; ``None`` if only the claim is known."""


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the end of an attempt means for its run; it is written under the claim of the attempt."""

    run_id: str
    epoch: int
    attempt: int
    status: Status
    ended_at: int
    started_at: int | None = None
    """When the attempt began; ``None`` if it never did."""
    result: str | None = None
    failure: str | None = None
    reason: str = ""
    start_at: int | None = None
    """When the next attempt may start, if one follows (the status is then retrying)."""
    failures: int = 0
    refusals: int = 0
    crashes: int = 0
    report_by: int | None = None
    """If an external worker has the work (the status is then running): the time by which it must report."""


class LastOutcome(msgspec.Struct, frozen=True, gc=False):
    """What the latest ended run of a schedule hands to the next: a result as JSON, and a failure."""

    schedule_id: str
    result: str | None = None
    failure: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A process that decides and runs the schedules of a database."""

    epoch: int
    name: str
    actions: tuple[str, ...]
    """The addresses of the actions that it can run."""
    tzdata: str
    started_at: int
    alive: bool = True


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum that one decision may do, so that a backlog does not become a storm of starts."""

    catch_up_per_pass: int = 100
    """How many late slots of one schedule one decision selects; the others follow, in turn with other schedules."""
    max_buffer_size: int = 1000
    backfills_per_pass: int = 10
    max_crashes: int = 10
    """How many processes may die while running one run before it fails."""
