"""The nouns of flows: handlers, events, inputs, runs, and the state of a flow between its runs. All values are frozen."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from horae.model import Instant, Span


class HandlerKind(StrEnum):
    """What a handler does: reads the outside world by a schedule, or processes events."""

    PRODUCER = "producer"
    CONSUMER = "consumer"


class Phase(StrEnum):
    """The progress of a run. Phases only move forward."""

    EXECUTING = "executing"
    PREPARING = "preparing"
    PREPARED = "prepared"
    MUTATING = "mutating"
    MUTATED = "mutated"
    EMITTING = "emitting"
    COMMITTED = "committed"


class FlowStatus(StrEnum):
    """The status of a run. It never moves the phase."""

    ACTIVE = "active"
    TRANSIENT = "paused:transient"
    APPROVAL = "paused:approval"
    RECONCILIATION = "paused:reconciliation"
    LOGIC = "failed:logic"
    INTERNAL = "failed:internal"
    COMMITTED = "committed"
    CRASHED = "crashed"


class FailureKind(StrEnum):
    """Why a run stopped."""

    TRANSIENT = "transient"
    """A ``Transient``, a lost connection or a timeout that the handler raised."""
    NOT_APPLIED = "not_applied"
    """``Transient(applied=False)``: temporary, and nothing happened."""
    LOGIC = "logic"
    """A ``LogicError``: the handler says that it is wrong, and that nothing happened."""
    VIOLATION = "violation"
    """The handler did what its phase does not allow."""
    APPROVAL = "approval"
    UNCLASSIFIED = "unclassified"
    """Any other exception of the handler."""
    TIMEOUT = "timeout"
    """The handler did not return in time, or its process ended before it did."""
    INTERNAL = "internal"
    """``Internal``, or a fault of the host itself."""
    CRASH = "crash"
    """The process died."""


class Recovery(StrEnum):
    """How the next run of a handler begins after one that did not commit."""

    AFRESH = "afresh"
    """At preparing or executing; reservations were released."""
    EMIT = "emit"
    """At emitting, with the reservations, the prepare result and the outcome of the run before."""
    RECONCILE = "reconcile"
    """After reconciliation: first find out whether the mutation was applied."""


class EventStatus(StrEnum):
    """The status of an event."""

    PENDING = "pending"
    RESERVED = "reserved"
    CONSUMED = "consumed"
    SKIPPED = "skipped"


class MutationStatus(StrEnum):
    """The outcome of the mutation of a run."""

    APPLIED = "applied"
    NONE = "none"
    SKIPPED = "skipped"


class Task(StrEnum):
    """The task for which a node has claimed a flow."""

    RUN = "run"
    RECONCILE = "reconcile"
    FIX = "fix"


class HandlerDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A handler as it is deployed."""

    name: str
    kind: HandlerKind
    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    every: str | None = None
    cron: str | None = None
    timezone: str = "UTC"
    timeout_ms: int | None = None
    mutates: bool = False
    emits: bool = False
    reconciles: bool = False

    timeout = Span[timedelta | None]()

    @property
    def schedule(self) -> tuple[str | None, str | None, str]:
        """The schedule of a producer."""
        return self.every, self.cron, self.timezone


class FlowDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flow as it is deployed: its handlers, and the topics that join them."""

    name: str
    title: str = ""
    handlers: tuple[HandlerDefinition, ...] = ()

    def handler(self, name: str) -> HandlerDefinition | None:
        """One of its handlers."""
        return next((each for each in self.handlers if each.name == name), None)

    def subscribers(self, topic: str) -> list[str]:
        """The names of the consumers of a topic."""
        return [each.name for each in self.handlers if topic in each.subscribes]

    @property
    def topics(self) -> set[str]:
        """All topics of its handlers."""
        return {topic for each in self.handlers for topic in (*each.publishes, *each.subscribes)}


class StoredFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A deployed flow: its owner, its definition, and the revision of its code."""

    flow_id: int
    owner: str
    name: str
    definition: FlowDefinition
    revision: str
    created_at_ms: int
    updated_at_ms: int

    created_at = Instant[datetime]()
    updated_at = Instant[datetime]()


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why and when one handler is due. A consumer by a new event or a wake time, a producer by its time or by "run now"."""

    new: bool = False
    """For a consumer: whether a new event arrived in one of its topics since it last read them."""
    at_ms: int | None = None
    """For a producer: its next time. For a consumer: its wake time."""
    queued: bool = False
    """For a producer: whether it was asked to run now."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The unresolved failure that pauses a flow, and what was tried since the last commit."""

    run_id: str
    handler: str
    status: FlowStatus
    recovery: Recovery
    since_ms: int
    retry_at_ms: int | None = None
    """When it is retried automatically; ``None`` if a person, or a new deploy, must resolve it."""
    issue: str = ""
    """The failure in the words of its error."""
    mutation: str | None = None
    """The finding of a reconciliation, or of a person, about the mutation: the next run continues with it."""
    fixing: bool = False
    """Whether the next try asks the fixer first."""
    exhausted: bool = False
    """Whether everything that may be tried without a person has been tried."""
    transients: int = 0
    logic_failures: int = 0
    fixes: int = 0
    reconciliations: int = 0
    crashes: int = 0


class Pause(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pause by hand: from when to when, and why."""

    since_ms: int
    until_ms: int | None = None
    note: str = ""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a flow between its runs. Its row is the lock under which the flow is decided."""

    flow_id: int
    revision: str
    next_at_ms: int | None = None
    """When the flow is decided next; ``None`` while a node works on it, or if nothing is to come."""
    runs: int = 0
    """How many runs it has had: the number of the next one."""
    run_id: str | None = None
    """The claim: the run that a node works on, the task, the epoch of the node, and the number of the attempt."""
    task: Task = Task.RUN
    epoch: int = 0
    attempt: int = 0
    marks: dict[str, Mark] = {}
    trouble: Trouble | None = None
    paused: bool = False
    pauses: tuple[Pause, ...] = ()
    """The latest pauses by hand, oldest first."""


class FlowRun(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a handler. A later attempt never rewrites it."""

    id: str
    flow_id: int
    handler: str
    kind: HandlerKind
    phase: Phase
    status: FlowStatus
    created_at_ms: int
    updated_at_ms: int
    retry_of: str | None = None
    prepared: str | None = None
    """The prepare result, as JSON."""
    mutation: str | None = None
    """The outcome of the mutation, as JSON."""
    error: str | None = None
    failure_kind: str = ""
    title: str = ""
    revision: str = ""
    events: int = 0
    """How many events it reserved."""
    published: int = 0
    """How many events it published."""
    ended_at_ms: int | None = None
    number: int = 0
    """The run's place in the ledger."""


class FlowEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An event of a topic. Its payload is JSON."""

    number: int = 0
    flow_id: int
    topic: str
    message_id: str
    payload: str
    status: EventStatus = EventStatus.PENDING
    run_id: str | None = None
    """The run that reserved or consumed it."""
    caused: bool = False
    """Whether inputs caused it."""
    created_at_ms: int
    ended_at_ms: int | None = None


class FlowInput(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the outside world that a producer saw: a mail, an order, a form."""

    number: int = 0
    flow_id: int
    source: str
    type: str
    input_id: str
    title: str
    created_at_ms: int
    skipped_at_ms: int | None = None


class Mutation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a mutation, as it is stored."""

    status: MutationStatus
    result: Any = None


class PreparedRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The prepare result of a run, as it is stored."""

    key: str = ""
    """The run that prepared it: the idempotency key of its mutation."""
    reservations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The topics, and the message ids of the events reserved in each."""
    numbers: tuple[int, ...] = ()
    """The numbers of these events."""
    data: Any = None
    wake_at_ms: int | None = None
    title: str = ""


def flow_run_id(flow_id: int, owner: str, name: str, number: int) -> str:
    """The id of a run: a hash of its flow and its number, so that the same decision made twice is the same run."""
    return hashlib.sha256(f"flow\0{flow_id}\0{owner}\0{name}\0{number}".encode()).hexdigest()[:32]
