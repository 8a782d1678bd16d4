"""The tables, one declaration for each noun; statements and decoders are derived from them."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import msgspec

from horae.checked import input_error
from horae.flow_model import FlowEvent, FlowInput, FlowRun, Lane, StoredFlow
from horae.grant_model import Account, ExecutionRecord, Grant, Usage
from horae.model import (
    AUTOMATIC,
    UNREADABLE,
    Action,
    Attempt,
    Backfill,
    Checkpoint,
    LastOutcome,
    LogChunk,
    Node,
    Overlap,
    Policies,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
    StoredCalendar,
    StoredWorkflow,
    UnstartedRange,
    Version,
    schedule_key,
)
from horae.store.row_mapping import Table


class Due(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The part of a schedule that every decision updates: how far it is decided, and when it is due next."""

    schedule_key: ScheduleKey
    cursor_ms: int
    next_at_ms: int | None
    attempted_at_ms: int | None = None
    """When its latest attempt began."""
    started: int = 0
    """How many runs the schedule started."""


class RawSchedule(NamedTuple):
    """Columns of a schedule as they are stored, whatever they contain."""

    id: str
    generation: int
    spec: Any
    action: Any
    policies: Any
    state: Any
    version: int
    cursor_ms: Any
    created_at_ms: int
    updated_at_ms: int
    owner: str
    tags: Any
    attempted_at_ms: Any
    execution_grant_id: str

    @property
    def key(self) -> ScheduleKey:
        """The key of the schedule."""
        return schedule_key(self.owner, self.id)


def _unreadable_schedule(values: dict[str, Any], faults: dict[str, Exception]) -> Schedule:
    """Stand in for a schedule that was edited by hand: the fields that cannot be read have their defaults, and are named."""
    empty: dict[str, Any] = {
        "action": Action(), "policies": Policies(), "state": _readable_state(values["state"]), "tags": (), "memo": {},
        "search_attributes": {},
    }  # fmt: skip
    said = {name: _fault(name, error) for name, error in faults.items()}
    return Schedule(**values | {name: empty[name] for name in faults if name in empty}, unreadable=said)


def _fault(field: str, error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return input_error(error, _TYPES[field], field).message
    return f"{field} is no JSON: {error}"


def _readable_state(stored: Any) -> State:  # noqa: ANN401 - whatever is stored
    """The parts of a state that can be read; the others have their defaults."""
    try:
        parts = msgspec.json.decode(stored, type=dict[str, Any])
    except (TypeError, ValueError, msgspec.MsgspecError):
        return State()
    state = State()
    for field in msgspec.structs.fields(State):
        with contextlib.suppress(KeyError, msgspec.ValidationError):
            msgspec.structs.force_setattr(state, field.name, msgspec.convert(parts[field.name], field.type))
    return state


_TYPES = {field.name: field.type for field in msgspec.structs.fields(Schedule)}


def _unreadable_run(values: dict[str, Any], faults: dict[str, Exception]) -> Run:
    """Stand in for a run that was edited by hand: its reason and its failure say so."""
    error = next(iter(faults.values()))
    return Run(
        **{name: values[name] for name in ("id", "schedule_key", "generation")}, nominal_ms=0, origin=AUTOMATIC,
        overlap=Overlap.SKIP, status=Status.PENDING if "status" in faults else values["status"], fire_ms=0,
        start_at_ms=0, reason=UNREADABLE, failure=f"{type(error).__name__}: {error}",
    )  # fmt: skip


SCHEDULE = Table(
    Schedule,
    "schedule",
    computed=("key",),
    unstored=("unreadable",),
    not_inserted=("cursor_ms",),  # it is in due, which every query of schedules joins
    not_updated=("id", "generation", "created_at_ms", "cursor_ms", "owner"),
    shared=("action", "policies", "state", "tags"),
    unreadable=_unreadable_schedule,
)
DUE = Table(Due, "due", not_inserted=("attempted_at_ms", "started"))
RUN = Table(
    Run,
    "run",
    not_inserted=("failures", "refusals", "crashes", "stop", "result", "failure"),  # a new run has none
    unreadable=_unreadable_run,
)
ATTEMPT = Table(Attempt, "attempt")
CHECKPOINT = Table(Checkpoint, "checkpoint", not_updated=("run_id", "key"))
ATTEMPT_LOG = Table(LogChunk, "attempt_log")
FLOW_LOG = Table(LogChunk, "flow_log")
UNSTARTED_RANGE = Table(UnstartedRange, "unstarted_range", unstored=("before_ms",), not_inserted=("number",))
LAST_OUTCOME = Table(LastOutcome, "last_outcome")
BACKFILL = Table(Backfill, "backfill")
VERSION = Table(Version, "version", shared=("policies",))
CALENDAR = Table(StoredCalendar, "calendar", not_updated=("owner", "name"))
WORKFLOW = Table(StoredWorkflow, "workflow")
NODE = Table(Node, "node", unstored=("alive",))
GRANT = Table(Grant, "execution_grant", not_updated=("id", "user_id", "billing_account_id", "created_at_ms"))
EXECUTION = Table(ExecutionRecord, "execution", not_updated=("user_id", "key"))
USAGE = Table(Usage, "usage_record")
ACCOUNT = Table(Account, "account", not_updated=("id", "user_id", "spent"))


class FlowState(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The state that a handler of a flow passes to its next run, as JSON."""

    flow_id: int
    handler: str
    state: str


class FlowSignal(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A topic of a flow in which events were published from outside."""

    flow_id: int
    topic: str


FLOW = Table(StoredFlow, "flow", not_inserted=("flow_id",), shared=("definition",))
FLOW_LANE = Table(Lane, "flow_lane", not_updated=("flow_id",))
FLOW_STATE = Table(FlowState, "flow_state")
FLOW_EVENT = Table(FlowEvent, "flow_event", not_inserted=("number",))
FLOW_INPUT = Table(FlowInput, "flow_input", not_inserted=("number",))
FLOW_RUN = Table(FlowRun, "flow_run", not_inserted=("number",))
FLOW_SIGNAL = Table(FlowSignal, "flow_signal")

TABLES: dict[str, Table[Any]] = {each.name: each for each in [*vars().values()] if isinstance(each, Table)}
"""All tables that are declared above."""
RUN_WITHOUT_INPUT = Table(Run, "run", unread=("input",), unreadable=_unreadable_run)
"""The runs of a decision: there may be many, and their inputs are large."""

KINDS: dict[str, str] = {name: kind for table in TABLES.values() for name, kind in table.kinds.items()} | {
    "token_hash": "text",
    "report_by_ms": "bigint",
    "before": "bigint",
    "before_ms": "bigint",
    "max_rows": "bigint",
}
"""The SQL type of every column and parameter of a batch; a name has one type, whatever its table."""
