"""The nouns: schedules, their policies and state, runs and what becomes of them. All frozen.

Instants are milliseconds since the epoch, also nominal times (``_ms``), although these are whole seconds. Durations are texts
in their short form; :func:`~horae.spec.duration.milliseconds` says how long they are. Values that a herd makes thousands of are ``gc=False``: they hold no cycles, and the collector need not look.
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
"""The reason of a run whose row was spoiled by hand; ``failure`` says how."""

FUNCTION = "function"
"""The kind of actions that are functions of a program."""
DEFAULT_ID_FORMAT = "{id}-%Y-%m-%dT%H:%M:%SZ"
MAX_ID_FORMAT_LENGTH = 200
MAX_TEXT_LENGTH = 10_000
"""How many characters a text for people has at most."""


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

    @classmethod
    def _missing_(cls, value: object) -> CatchUp | None:
        """The name that the registrar has for it."""
        return cls.ALL if value == "fire_immediately" else None


class OnResume(StrEnum):
    """What becomes of the slots that fell due in a pause."""

    CATCH_UP = "catch_up"
    SKIP = "skip"


class WhenFull(StrEnum):
    """What becomes of a slot when as many starts wait as may: it is dropped, or stays due until there is room."""

    DROP = "drop"
    WAIT = "wait"


class Status(StrEnum):
    """Where a run stands. The table of transitions is in :mod:`horae.policy.lifecycle`."""

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
    """Why a slot did not run, or a run ended otherwise than by itself. Sentences: :mod:`horae.policy.reason`."""

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
    """How often an action that failed is tried again, when, and after which errors."""

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
    """How long things may take; ``None`` is for ever."""

    start: Annotated[Duration | None, Meta(description="From the fire time to the start.")] = None
    run: Annotated[Duration | None, Meta(description="One attempt.")] = None
    heartbeat: Annotated[Duration | None, Meta(description="Between two signs of life of an attempt.")] = None
    cancel: Annotated[
        Duration,
        Meta(description="How long a run that was asked to stop may take; after that it is terminated."),
    ] = "30s"


class Retention(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the ledger keeps what ended: by age and by number, whichever is less; ``None`` is the program's own."""

    age: Duration | None = None
    count: int | None = None


class Policies(DurationFields, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything that decides what becomes of a schedule's slots."""

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
    """A slot that an edit left due: its nominal time, and when it fires at the earliest."""

    nominal_ms: int
    not_before_ms: int


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changes about a schedule without being edited."""

    paused: bool = False
    note: str = ""
    paused_until: int | None = None
    skip_waiting: bool = False
    """A pause under ``on_resume: skip`` has ended: what waited since before it ended is skipped by the next decision."""
    skip_next: int = 0
    """How many of the slots ahead are passed over, because a caller asked for it."""
    remaining_actions: int | None = None
    """How many automatic starts are left; ``None`` is unlimited."""
    spec_since_ms: int = 0
    """The moment since which the spec is what it is; 0 is ever since."""
    carried: tuple[Carried, ...] = ()
    """Slots after the cursor that an edit left due. Of those up to ``spec_since_ms`` there are no others."""
    buffer_full: bool = False
    """As many starts wait as may, so that slots stay due; those are not late."""
    completed_at: int | None = None
    """When the last thing happened to a schedule that has nothing left to fire."""
    attention: str = ""
    """What somebody should look at, in a sentence."""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to do: a kind of action, a name within the kind, an input, and the kind's own options."""

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
        """The text by which nodes and runs name it: ``report``, ``http``, ``command:backup``."""
        if self.kind == FUNCTION:
            return self.name
        return f"{self.kind}:{self.name}" if self.name else self.kind

    def __repr__(self) -> str:
        """Without input and options, which may be secret."""
        return f"Action({self.address})"


SearchValue = str | int | float | bool


class Schedule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """When, what, and how; with the state and the place that the engine has come to."""

    id: str
    generation: int
    """A schedule that was deleted and created again under its id is another one."""
    spec: str
    """The canonical document, as JSON."""
    action: Action
    policies: Policies
    state: State
    version: int
    """It grows with every change."""
    cursor_ms: int
    """Up to which nominal time its slots are decided."""
    created_at: int
    updated_at: int
    owner: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    memo: dict[str, Any] = {}
    """What its owner wants to remember about it."""
    search_attributes: dict[str, SearchValue] = {}
    """By what it can be found."""
    request_id: str = ""
    """The request that created it: the same one again creates nothing."""


class Counts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How often what became of a schedule's starts, since it was created."""

    started: int = 0
    unstarted: Mapping[Reason, int] = {}
    """How many never started, by the reason."""

    @property
    def skipped(self) -> int:
        """How many were skipped because another run was going on."""
        return self.unstarted.get(Reason.OVERLAP, 0)

    @property
    def missed(self) -> int:
        """How many were too late."""
        return sum(self.unstarted.get(reason, 0) for reason in MISSED)

    @property
    def dropped(self) -> int:
        """How many came when as many waited as may."""
        return self.unstarted.get(Reason.BUFFER_FULL, 0)


class OriginKind(StrEnum):
    """What brings runs about."""

    AUTOMATIC = "automatic"
    TRIGGER = "trigger"
    BACKFILL = "backfill"


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What brought a run about: a slot of its schedule, a trigger or a backfill."""

    kind: OriginKind
    id: Annotated[
        str,
        Meta(
            description="Which trigger or backfill. Of an automatic run that an edit added: the version of the schedule since then."
        ),
    ] = ""

    def __str__(self) -> str:
        """``automatic``, ``trigger:ID`` or ``backfill:ID``: so it is stored, and hashed into the id of the run."""
        return f"{self.kind}:{self.id}" if self.id else self.kind.value

    @staticmethod
    @lru_cache
    def parse(text: str) -> Origin:
        """The origin that a text stands for; raises a ``ValueError`` if there is none."""
        kind, _, own = text.partition(":")
        return Origin(OriginKind(kind), own)


AUTOMATIC = Origin(OriginKind.AUTOMATIC)


class Run(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What became of a slot, or of a trigger."""

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
    """The claim: only the node of this epoch may write the outcome of this attempt. 0 is nobody."""
    failures: int = 0
    """How many attempts failed; those that a crash or a refusal to begin ended do not count."""
    refusals: int = 0
    """How many times its action said that it cannot begin now."""
    crashes: int = 0
    """How many processes died over it."""
    stop: str = ""
    """Whether it was asked to ``cancel`` or ``terminate``."""
    started_at: int | None = None
    """When its latest attempt was launched; while that goes on, when it was claimed. ``None`` if that never began."""
    ended_at: int | None = None
    author: str = ""
    note: str = ""
    input: Any = None
    result: Any = None
    failure: str | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether its schedule brought it about, and not a caller."""
        return self.origin.kind is OriginKind.AUTOMATIC

    @property
    def key(self) -> str:
        """The same for every attempt of the same slot, and for no other."""
        return slot_key(self.schedule_id, self.nominal_ms // 1000) if self.origin == AUTOMATIC else self.id


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was followed by another: who made it, and how it ended."""

    run_id: str
    attempt: int
    epoch: int
    reason: str
    failure: str | None
    started_at: int | None
    ended_at: int


class Checkpoint(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A value that an attempt of a run saved, so that the next attempt need not repeat what led to it."""

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
    """The nominal time right before the first: a range that ends there is continued, not followed."""
    number: int | None = None
    """Its place in the ledger; ``None`` before it is stored."""


class BackfillStatus(StrEnum):
    """Whether a backfill goes on."""

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
    """A shared calendar: an owner's own, or everybody's if the owner is empty."""

    owner: str
    name: str
    document: SharedCalendar
    updated_at: int


class AttemptEnd(StrEnum):
    """How an attempt ended."""

    RETURNED = "returned"
    RAISED = "raised"
    REFUSED = "refused"
    """The action said that it cannot begin now, and has not begun."""
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    ACCEPTED = "accepted"
    """Somebody else goes on with it, and reports how it ends."""
    UNLAUNCHED = "unlaunched"
    """It was claimed, and the claim may not have held any more when it was to begin."""
    NOT_ADMITTED = "not_admitted"
    """It was claimed, and must not happen any more; its action was not called."""


class Denial(msgspec.Struct, frozen=True, gc=False):
    """Why a claimed run must not happen any more."""

    reason: Reason
    sentence: str


class AttemptResult(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An attempt that ended: with a result as JSON, or with a failure in words."""

    run: Run
    ending: AttemptEnd
    result: str | None = None
    failure: str | None = None
    errors: tuple[str, ...] = ()
    """The class of what was raised, and those it derives from."""
    reason: Reason | None = None
    permanent: bool = False
    """A refusal that will not pass."""
    launched_at: int | None = None
    """When its node called the action; ``None`` if only the claim is known."""


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What an attempt's end means for its run, written under the claim that made the attempt."""

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
    """When the work was handed to somebody else (the status is then running): until when something must be heard of it."""


class LastOutcome(msgspec.Struct, frozen=True, gc=False):
    """What the latest run of a schedule that ended left to the next: a result as JSON, and a failure."""

    schedule_id: str
    result: str | None = None
    failure: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One process that drives a database."""

    epoch: int
    name: str
    actions: tuple[str, ...]
    """What it can run."""
    tzdata: str
    started_at: int
    alive: bool = True


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one decision may bring about at most, so that nothing ends in a storm."""

    catch_up_per_pass: int = 100
    """How many late slots of one schedule are selected at once; the others follow, taking turns."""
    max_buffer_size: int = 1000
    backfills_per_pass: int = 10
    max_crashes: int = 10
    """How many processes may die over one run before it has failed."""
