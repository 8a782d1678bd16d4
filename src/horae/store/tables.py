"""What is stored, one declaration for each noun. Statements and decoders come from here."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from horae.model import (
    AUTOMATIC,
    UNREADABLE,
    Action,
    Attempt,
    Backfill,
    Checkpoint,
    LastOutcome,
    Node,
    Overlap,
    Policies,
    Run,
    Schedule,
    State,
    Status,
    StoredCalendar,
    UnstartedRange,
    Version,
)
from horae.store.mapping import Table


class Due(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a decision updates: how far a schedule is decided, and when it is due next."""

    schedule_id: str
    cursor_ms: int
    next_at: int | None
    attempted_at: int | None = None
    """When its latest attempt began."""
    started: int = 0
    """How many runs it started."""


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
    created_at: int
    updated_at: int
    owner: str
    tags: Any
    attempted_at: Any


def _unreadable_schedule(row: dict[str, Any], error: Exception) -> Schedule:
    """Stand in for a schedule that was edited by hand: its spec says what is wrong, and the others are still read."""
    known = ("id", "generation", "version", "cursor_ms", "created_at", "updated_at", "owner")
    return Schedule(
        spec=f"unreadable: {error}", action=Action(name=""), policies=Policies(), state=State(),
        **{name: row[name] for name in known},
    )  # fmt: skip


def _unreadable_run(row: dict[str, Any], error: Exception) -> Run:
    """Stand in for a run that was edited by hand: its reason and its failure say so."""
    status = row["status"]
    return Run(
        **{name: row[name] for name in ("id", "schedule_id", "generation")}, nominal_ms=0, origin=AUTOMATIC,
        overlap=Overlap.SKIP, status=Status(status) if status in list(Status) else Status.PENDING, fire_at=0,
        start_at=0, reason=UNREADABLE, failure=f"{type(error).__name__}: {error}",
    )  # fmt: skip


SCHEDULE = Table(
    Schedule,
    "schedule",
    not_inserted=("cursor_ms",),  # it is in due, which every query of schedules joins
    not_updated=("id", "generation", "created_at", "cursor_ms"),
    shared=("action", "policies", "state", "tags"),
    unreadable=_unreadable_schedule,
)
DUE = Table(Due, "due", not_inserted=("attempted_at", "started"))
RUN = Table(
    Run,
    "run",
    not_inserted=("failures", "refusals", "crashes", "stop", "result", "failure"),  # a new run has none
    unreadable=_unreadable_run,
)
ATTEMPT = Table(Attempt, "attempt")
CHECKPOINT = Table(Checkpoint, "checkpoint", not_updated=("run_id", "key"))
UNSTARTED_RANGE = Table(UnstartedRange, "unstarted_range", unstored=("before_ms",), not_inserted=("number",))
LAST_OUTCOME = Table(LastOutcome, "last_outcome")
BACKFILL = Table(Backfill, "backfill")
VERSION = Table(Version, "version", shared=("policies",))
CALENDAR = Table(StoredCalendar, "calendar", not_updated=("owner", "name"))
NODE = Table(Node, "node", unstored=("alive",))

TABLES: dict[str, Table[Any]] = {
    each.name: each
    for each in (
        SCHEDULE,
        DUE,
        RUN,
        ATTEMPT,
        CHECKPOINT,
        UNSTARTED_RANGE,
        LAST_OUTCOME,
        BACKFILL,
        VERSION,
        CALENDAR,
        NODE,
    )
}

KINDS: dict[str, str] = {name: kind for table in TABLES.values() for name, kind in table.kinds.items()} | {
    "token_hash": "text",
    "report_by": "bigint",
    "before": "bigint",
    "before_ms": "bigint",
    "max_rows": "bigint",
}
"""The SQL type of every column and parameter of a batch; a name has one type, whatever its table."""
