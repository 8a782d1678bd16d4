"""The data model: schedules with their policies and state, runs and their outcomes. All values are frozen.

Instants are milliseconds since the epoch, in fields named ``_ms`` (also nominal times, although these are whole seconds); the
attribute without ``_ms`` is the same instant as a ``datetime``. Durations are texts in their short form;
:func:`~horae.spec.duration.milliseconds` converts them. Values that exist in thousands are ``gc=False``: they hold no cycles, so the
garbage collector can ignore them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Generic, NewType, TypeVar, cast

import msgspec
from msgspec import Meta

from horae.errors import HoraeError
from horae.policies import CatchUp as CatchUp
from horae.policies import CatchUpPolicy as CatchUpPolicy
from horae.policies import OnResume as OnResume
from horae.policies import Overlap as Overlap
from horae.policies import Policies as Policies
from horae.policies import Retention as Retention
from horae.policies import RetryPolicy as RetryPolicy
from horae.policies import Timeouts as Timeouts
from horae.policies import WhenFull as WhenFull
from horae.spec import SharedCalendar, Spec, slot_key

UNREADABLE = "unreadable"
"""The reason of a run whose row was damaged by a manual change of the database; ``failure`` says how."""


class NotRead:
    """Stands for a value that is stored and was not read, because it may be large."""

    def __repr__(self) -> str:
        return "NOT_READ"


NOT_READ = NotRead()

OPERATOR = "admin"
"""The scope of operators. What a program stores without an owner is an operator's too."""

FUNCTION = "function"
"""The kind of action that calls a function of the program."""
GRAPH = "graph"
"""The kind of action that runs a graph for an absent user, under a grant."""
TEMPORAL_WORKFLOW = "temporal-workflow"
"""The kind of action that starts a workflow on the Temporal cluster that the operator named."""
DEFAULT_ID_FORMAT = "{id}-%Y-%m-%dT%H:%M:%SZ"
MAX_ID_FORMAT_LENGTH = 200
MAX_TEXT_LENGTH = 10_000
"""The maximum number of characters of a text for people."""


T = TypeVar("T", bound=datetime | None)
D = TypeVar("D", bound=timedelta | None)


def instant(milliseconds: int) -> datetime:
    """An instant as a ``datetime`` in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


class Instant(Generic[T]):
    """An attribute that reads the field of the same name with ``_ms`` as a ``datetime``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = f"{name}_ms"

    def __get__(self, value: object, owner: type) -> T:
        milliseconds = getattr(value, self._field)
        return cast("T", None if milliseconds is None else instant(milliseconds))


class Span(Generic[D]):
    """An attribute that reads the field of the same name with ``_ms`` as a ``timedelta``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = f"{name}_ms"

    def __get__(self, value: object, owner: type) -> D:
        milliseconds = getattr(value, self._field)
        return cast("D", None if milliseconds is None else timedelta(milliseconds=milliseconds))


def between(start_ms: int | None, end_ms: int | None) -> timedelta | None:
    """The time from one instant to another; ``None`` if one of them is unknown."""
    return None if start_ms is None or end_ms is None else timedelta(milliseconds=end_ms - start_ms)


ScheduleKey = NewType("ScheduleKey", str)
"""The store's name of a schedule: one text for its owner and its id, because ids are unique only within an owner."""
BETWEEN = "\x1f"
"""Separates the owner and the id in a key. It is not printable, so neither of them contains it."""


def schedule_key(owner: str, schedule_id: str) -> ScheduleKey:
    """The key of a schedule; without an owner it is the id."""
    # A herd makes many: calling ScheduleKey would take as long again.
    return f"{owner}{BETWEEN}{schedule_id}" if owner else schedule_id  # type: ignore[return-value]


def owner_and_id(key: ScheduleKey) -> tuple[str, str]:
    """The owner and the id that a key was made of."""
    owner, _, schedule_id = key.rpartition(BETWEEN)
    return owner, schedule_id


class OfSchedule:
    """The base of values that belong to a schedule and name it by its key."""

    __slots__ = ()
    schedule_key: ScheduleKey

    @property
    def schedule_id(self) -> str:
        """The id of its schedule."""
        return owner_and_id(self.schedule_key)[1]


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
    GRANT_NOT_FOUND = "grant_not_found"
    GRANT_REVOKED = "grant_revoked"
    GRANT_EXPIRED = "grant_expired"
    GRANT_SCOPE = "grant_scope"
    NO_CREDIT = "no_credit"
    GRAPH_UNAVAILABLE = "graph_unavailable"
    INVALID_RESULT = "invalid_result"
    FAILED = "failed"


MISSED = (Reason.LATE, Reason.SUPERSEDED, Reason.NO_CONSENT)
"""The reasons of slots that were missed."""


class Carried(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A slot that an edit left due: its nominal time and its earliest fire time."""

    nominal_ms: int
    not_before_ms: int

    nominal = Instant[datetime]()
    not_before = Instant[datetime]()


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a schedule that changes without an edit."""

    paused: bool = False
    note: str = ""
    paused_until_ms: int | None = None
    skip_waiting: bool = False
    """Whether a pause under ``on_resume: skip`` has ended: the next decision skips the starts that waited before its end."""
    skip_next: int = 0
    """How many of the next slots to skip at a caller's request."""
    remaining_actions: int | None = None
    """How many automatic starts are left; ``None`` is unlimited."""
    spec_since_ms: int = 0
    """The time since which the spec is in force; 0 if it never changed."""
    carried: tuple[Carried, ...] = ()
    """Slots after the cursor that an edit left due. Up to ``spec_since_ms`` there are no other undecided slots."""
    buffer_full: bool = False
    """Whether the buffer of waiting starts is full, so that slots stay due; these do not count as late."""
    completed_at_ms: int | None = None
    """When a schedule with nothing left to do was found finished."""
    attention: str = ""
    """A problem that the owner or operator should check, in a sentence."""
    attention_reason: str = ""
    """Why slots are skipped until the grant or its account changes, if that is the problem."""
    orphaned: bool = False
    """Whether the program or file that manages it no longer defines it."""

    @property
    def spec_since(self) -> datetime | None:
        """The time since which the spec is in force; ``None`` if it never changed."""
        return instant(self.spec_since_ms) if self.spec_since_ms else None

    paused_until = Instant[datetime | None]()
    completed_at = Instant[datetime | None]()


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a schedule does: a kind of action, a name within the kind, an input, and the kind's own options."""

    kind: Annotated[str, Meta(description="The kind, which selects the executor.")] = FUNCTION
    name: Annotated[
        str,
        Meta(
            description="The name within the kind; without a kind, the address of an action. `GET /actions` lists the addresses."
        ),
    ] = ""
    input: Annotated[Any, Meta(description="The action's input: any JSON.")] = None
    options: Annotated[
        dict[str, Any],
        Meta(
            description="The options of the kind. Secrets are stored encrypted and shown as `***`; sending `***` back keeps them."
        ),
    ] = {}
    id: Annotated[
        Annotated[str, Meta(extra_json_schema={"maxLength": MAX_TEXT_LENGTH})] | None,
        Meta(description="The base of action ids. The schedule's id if omitted."),
    ] = None
    id_format: Annotated[
        str,
        Meta(
            description="The format of action ids, from the base and the nominal time in UTC. It may contain `{id}` once, `%Y`, `%m`, `%d`, `%j`, `%H`, `%M`, `%S`, `%s` (seconds since 1970) and `%%`; ids have at most 1,000 characters.",
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
    """Tells apart schedules that were deleted and created again under the same id."""
    spec: str
    """The canonical document, as JSON."""
    action: Action
    policies: Policies
    state: State
    version: int
    """Grows with every change."""
    cursor_ms: int
    """The nominal time up to which its slots are decided."""
    created_at_ms: int
    updated_at_ms: int
    owner: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    memo: dict[str, Any] = {}
    """Notes of its owner, which Horae stores and does not use."""
    search_attributes: dict[str, SearchValue] = {}
    """The attributes by which a search finds it."""
    request_id: str = ""
    """The request that created it; repeating the same request creates nothing."""
    unreadable: dict[str, str] = {}
    """Fields whose stored values cannot be read, and what is wrong with each; they have their defaults here. Such a schedule does not run."""
    managed_by: str = ""
    """The program or file that defines it; empty if it was created by hand."""
    permitted_by: str = ""
    """The scope by which its action was stored; empty if its owner may use the action by themselves."""
    execution_grant_id: str = ""
    """The grant under which its graph runs; empty if it runs no graph."""

    cursor = Instant[datetime]()
    created_at = Instant[datetime]()
    updated_at = Instant[datetime]()

    @property
    def sentence(self) -> str:
        """Its spec as an English sentence."""
        try:
            return Spec.parse(self.spec).sentence()
        except HoraeError as error:
            return f"cannot be read: {error}"

    @property
    def next_time(self) -> datetime | None:
        """When it fires next; ``None`` while it is paused, when no slot is left, and if its row cannot be read."""
        from horae.policy.upcoming_starts import next_fire_of  # noqa: PLC0415 - it decides about the values of this module

        try:
            fire_ms = None if self.unreadable else next_fire_of(self)
        except HoraeError:  # the next decision pauses it
            return None
        return None if fire_ms is None else instant(fire_ms)

    @property
    def key(self) -> ScheduleKey:
        """The store's name of the schedule."""
        return schedule_key(self.owner, self.id) if self.owner else self.id  # type: ignore[return-value]


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
    """The kinds of causes of runs."""

    AUTOMATIC = "automatic"
    TRIGGER = "trigger"
    BACKFILL = "backfill"
    RERUN = "rerun"


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What caused a run: a slot of its schedule, a trigger, a backfill, or a request to run an earlier run's slot again."""

    kind: OriginKind
    id: Annotated[
        str,
        Meta(
            description="The trigger or backfill; for a rerun, the earlier run and a number; for an automatic run that an edit added, the version of the schedule after the edit."
        ),
    ] = ""

    def __str__(self) -> str:
        """``automatic``, ``trigger:ID``, ``backfill:ID`` or ``rerun:ID``: the form that is stored and hashed into the id of the run."""
        return f"{self.kind}:{self.id}" if self.id else str.__str__(self.kind)

    @staticmethod
    @lru_cache
    def parse(text: str) -> Origin:
        """Parse the text of an origin; raise a ``ValueError`` if it is not one."""
        kind, _, own = text.partition(":")
        return Origin(OriginKind(kind), own)


AUTOMATIC = Origin(OriginKind.AUTOMATIC)


class Run(OfSchedule, msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A run of a schedule: its slot or trigger, its status, and its latest attempt."""

    id: str
    schedule_key: ScheduleKey
    generation: int
    nominal_ms: int
    origin: Origin
    overlap: Overlap
    status: Status
    fire_ms: int
    start_at_ms: int
    """When it may start at the earliest."""
    decided_at_ms: int = 0
    """When the run was entered in the ledger."""
    owner: str = ""
    """The owner of its schedule."""
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
    started_at_ms: int | None = None
    """When its latest attempt was launched; while it is running, when it was claimed. ``None`` if it never began."""
    ended_at_ms: int | None = None
    """When it ended; ``None`` while it waits, runs, or waits for another attempt."""
    author: str = ""
    note: str = ""
    input: Any = None
    result: Any = None
    failure: str | None = None

    nominal = Instant[datetime]()
    fire = Instant[datetime]()
    start_at = Instant[datetime]()
    decided_at = Instant[datetime]()
    started_at = Instant[datetime | None]()
    ended_at = Instant[datetime | None]()

    @property
    def late(self) -> timedelta | None:
        """How long after its fire time its latest attempt began; ``None`` if none did."""
        return between(self.fire_ms, self.started_at_ms)

    @property
    def duration(self) -> timedelta | None:
        """How long its latest attempt took; ``None`` until it has ended, or if it never began."""
        return between(self.started_at_ms, self.ended_at_ms)

    @property
    def rerun_of(self) -> str | None:
        """The id of the run whose slot it runs again, if it does."""
        return self.origin.id.rpartition(".")[0] if self.origin.kind is OriginKind.RERUN else None

    @property
    def is_automatic(self) -> bool:
        """Whether its schedule caused it, and not a caller."""
        return self.origin.kind is OriginKind.AUTOMATIC

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt of the same slot or trigger, and for no other."""
        return slot_key(self.schedule_id, self.nominal_ms // 1000) if self.origin == AUTOMATIC else self.id


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that did not succeed: the node that made it, and how it ended."""

    run_id: str
    attempt: int
    epoch: int
    reason: str
    failure: str | None
    started_at_ms: int | None
    ended_at_ms: int
    traceback: str | None = None
    """Where in the action's code it failed; bounded, and without Horae's own frames."""

    started_at = Instant[datetime | None]()
    ended_at = Instant[datetime]()

    @property
    def duration(self) -> timedelta | None:
        """How long it took; ``None`` if it never began."""
        return between(self.started_at_ms, self.ended_at_ms)


class Checkpoint(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A value that an attempt of a run saved, so that the next attempt need not repeat the work behind it."""

    run_id: str
    key: str
    value: str
    """As JSON."""
    attempt: int
    saved_at_ms: int

    saved_at = Instant[datetime]()


class LogEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A line of an attempt's log as it is stored."""

    at_ms: int
    level: str
    logger: str
    message: str

    at = Instant[datetime]()


class LogChunk(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Consecutive lines of an attempt's log."""

    run_id: str
    attempt: int
    number: int
    """The number of its first line; the lines of an attempt are counted from 1."""
    lines: tuple[LogEntry, ...]


class LogBatch(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The lines of an attempt's log to be written, under its claim."""

    run_id: str
    epoch: int
    attempt: int
    chunks: tuple[LogChunk, ...]
    dropped: tuple[int, ...] = ()
    """The numbers of chunks to delete, because later lines took their place."""
    flow: bool = False
    """Whether the log belongs to a run of a flow."""


class LogLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A line that an action logged."""

    attempt: int
    number: int
    """Lines of an attempt are counted from 1."""
    at_ms: int
    level: str
    """``DEBUG``, ``INFO``, ``WARNING``, ``ERROR``, ``CRITICAL``, or a level of the program's own."""
    logger: str
    """The name of its logger; of a line of ``context.log``, the action."""
    message: str
    dropped: int = 0
    """How many lines right before it were dropped, because there were too many."""

    at = Instant[datetime]()


class UnstartedRange(OfSchedule, msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Consecutive slots that did not run, for one reason: both ends, and how many."""

    schedule_key: ScheduleKey
    generation: int
    start_ms: int
    end_ms: int
    count: int
    status: Status
    reason: Reason
    decided_at_ms: int
    owner: str = ""
    """The owner of its schedule."""
    before_ms: int | None = None
    """The slot right before the first: a stored range that ends there is extended instead."""
    number: int | None = None
    """Its place in the ledger; ``None`` before it is stored."""

    start = Instant[datetime]()
    end = Instant[datetime]()
    decided_at = Instant[datetime]()
    before = Instant[datetime | None]()


class BackfillStatus(StrEnum):
    """The status of a backfill."""

    OPEN = "open"
    DONE = "done"
    CANCELLED = "cancelled"


class Backfill(OfSchedule, msgspec.Struct, frozen=True, kw_only=True):
    """A range of nominal times, both ends included, whose slots are made up on request."""

    id: str
    schedule_key: ScheduleKey
    generation: int
    start_ms: int
    end_ms: int
    overlap: Overlap
    cursor_ms: int
    """The last nominal time that became a run."""
    total: int
    made: int = 0
    status: BackfillStatus = BackfillStatus.OPEN
    created_at_ms: int
    ended_at_ms: int | None = None
    author: str = ""
    note: str = ""
    input: Any = None
    """Its own input; ``None`` is the schedule's."""

    start = Instant[datetime]()
    end = Instant[datetime]()
    cursor = Instant[datetime]()
    created_at = Instant[datetime]()
    ended_at = Instant[datetime | None]()


class Version(OfSchedule, msgspec.Struct, frozen=True, kw_only=True):
    """A schedule before an edit: the spec and policies that were in force from one moment until another."""

    schedule_key: ScheduleKey
    generation: int
    version: int
    spec: str
    policies: Policies
    since_ms: int
    until_ms: int
    created_at_ms: int
    """When the schedule itself was created."""

    since = Instant[datetime]()
    until = Instant[datetime]()
    created_at = Instant[datetime]()


class StoredCalendar(msgspec.Struct, frozen=True, kw_only=True):
    """A shared calendar: of one owner, or of all owners if the owner is empty."""

    owner: str
    name: str
    document: SharedCalendar
    updated_at_ms: int

    updated_at = Instant[datetime]()


class StoredWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow: of one owner, or of all owners if the owner is empty. A version never changes."""

    owner: str
    workflow_id: str
    version: int
    document: str
    """As JSON."""
    deployed_at_ms: int

    deployed_at = Instant[datetime]()


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
    """The claim might have expired before the launch, so the attempt was not launched."""
    NOT_ADMITTED = "not_admitted"
    """The run was claimed but must no longer happen; its action was not called."""


class Denial(msgspec.Struct, frozen=True, gc=False):
    """Why a claimed run must no longer happen."""

    reason: Reason
    sentence: str


class AttemptResult(
    msgspec.Struct, frozen=True, kw_only=True
):  # its error leads to frames, and these back to it
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
    launched_at_ms: int | None = None
    """When its node called the action; ``None`` if only the claim is known."""
    error: BaseException | None = None
    """What the action raised, without Horae's own frames."""
    traceback: str | None = None
    """The error's traceback as a text, bounded."""
    log: LogBatch | None = None
    """The lines it logged that were not written while it ran."""

    launched_at = Instant[datetime | None]()
    value: Any = None
    """The value returned by an attempt that its decider created itself, recorded as it is."""


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The effect of an attempt's end on its run, written under the claim of the attempt."""

    run_id: str
    epoch: int
    attempt: int
    status: Status
    ended_at_ms: int
    started_at_ms: int | None = None
    """When the attempt began; ``None`` if it never did."""
    result: str | None = None
    failure: str | None = None
    reason: str = ""
    start_at_ms: int | None = None
    """When the next attempt may start, if one follows (the status is then retrying)."""
    failures: int = 0
    refusals: int = 0
    crashes: int = 0
    report_by_ms: int | None = None
    """If an external worker has the work (the status is then running): the time by which it must report."""

    started_at = Instant[datetime | None]()
    ended_at = Instant[datetime]()
    start_at = Instant[datetime | None]()
    report_by = Instant[datetime | None]()


class LastOutcome(msgspec.Struct, frozen=True, gc=False):
    """The result, as JSON, and the failure that the latest ended run of a schedule hands to the next."""

    schedule_key: ScheduleKey
    result: str | None = None
    failure: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A process that decides and runs the schedules of a database."""

    epoch: int
    name: str
    actions: tuple[str, ...]
    """The addresses of the actions that it can run."""
    tzdata: str
    started_at_ms: int
    alive: bool = True

    started_at = Instant[datetime]()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one decision, so that a backlog does not become a storm of starts."""

    catch_up_per_pass: int = 100
    """How many late slots of one schedule one decision selects; the others follow, in turn with other schedules."""
    max_buffer_size: int = 1000
    backfills_per_pass: int = 10
    max_crashes: int = 10
    """How many processes may die while running one run before it fails."""
