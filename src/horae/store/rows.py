"""Between rows and values: the same for every store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from horae.model import (
    AUTOMATIC,
    UNREADABLE,
    Action,
    Attempt,
    Backfill,
    BackfillStatus,
    Checkpoint,
    Node,
    Origin,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    State,
    Status,
    StoredCalendar,
    UnstartedRange,
    Version,
)
from horae.spec import SharedCalendar

Row = Sequence[Any]


class RawSchedule(NamedTuple):
    """The columns of a schedule as they are stored, whatever they contain."""

    id: str
    generation: int
    spec: Any
    action: Any
    policies: Any
    state: Any
    version: int
    cursor: Any
    created_at: int
    updated_at: int
    owner: str
    tags: Any
    memo: Any
    search_attributes: Any
    request_id: Any
    attempted_at: Any


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_statuses = {str(status): status for status in Status}
_overlaps = {str(overlap): overlap for overlap in Overlap}


def to_json(value: object) -> str:
    return _encode(value).decode()


def optional_json(value: object) -> str | None:
    """Nothing is nothing, so that what has no input and no result costs nothing."""
    return None if value is None else _encode(value).decode()


def _optional(text: str | None) -> Any:  # noqa: ANN401 - any JSON
    return None if text is None else _decode(text)


def schedule_of(row: Row) -> Schedule:
    """A schedule. One that somebody spoiled by hand is no reason to read no other: looking at it says what is wrong."""
    try:
        return _schedule(row)
    except msgspec.MsgspecError as error:
        return Schedule(
            id=row[0], generation=row[1], spec=f"unreadable: {error}", action=Action(name=""), policies=Policies(),
            state=State(), version=row[6], cursor=row[7], created_at=row[8], updated_at=row[9], owner=row[10],
        )  # fmt: skip


def _schedule(row: Row) -> Schedule:
    return Schedule(
        id=row[0], generation=row[1], spec=row[2], action=_action(row[3]), policies=_policies(row[4]),
        state=_state(row[5]), version=row[6], cursor=row[7], created_at=row[8], updated_at=row[9], owner=row[10],
        tags=_tags(row[11]), memo=_optional(row[12]) or {}, search_attributes=_optional(row[13]) or {},
        request_id=row[14] or "",
    )  # fmt: skip


# Many schedules share these texts, and all values are frozen.
@lru_cache(maxsize=4096)
def _action(text: str) -> Action:
    return msgspec.json.decode(text, type=Action)


@lru_cache(maxsize=4096)
def _policies(text: str) -> Policies:
    return msgspec.json.decode(text, type=Policies)


@lru_cache(maxsize=4096)
def _state(text: str) -> State:
    return msgspec.json.decode(text, type=State)


@lru_cache(maxsize=4096)
def _tags(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])


def schedule_row(schedule: Schedule, next_at: int | None) -> dict[str, Any]:
    return {
        "id": schedule.id, "schedule_id": schedule.id, "generation": schedule.generation, "spec": schedule.spec,
        "action": to_json(schedule.action), "policies": to_json(schedule.policies), "state": to_json(schedule.state),
        "version": schedule.version, "created_at": schedule.created_at, "updated_at": schedule.updated_at,
        "owner": schedule.owner, "tags": to_json(schedule.tags), "cursor": schedule.cursor, "next_at": next_at,
        "memo": optional_json(schedule.memo or None), "request_id": schedule.request_id or None,
        "search_attributes": optional_json(schedule.search_attributes or None),
    }  # fmt: skip


def run_of(row: Row) -> Run:
    """A run. One that somebody spoiled by hand is known by its reason, and is no reason to read no other."""
    try:
        return _run(row)
    except (KeyError, ValueError, msgspec.MsgspecError) as error:
        return Run(
            id=row[0], schedule_id=row[1], generation=row[2], nominal=0, origin=AUTOMATIC, overlap=Overlap.SKIP,
            status=_statuses.get(row[6], Status.PENDING), fire_at=0, start_at=0, reason=UNREADABLE,
            failure=f"{type(error).__name__}: {error}",
        )  # fmt: skip


def _run(row: Row) -> Run:
    return Run(
        id=row[0], schedule_id=row[1], generation=row[2], nominal=row[3], origin=Origin.parse(row[4]), overlap=_overlaps[row[5]],
        status=_statuses[row[6]], fire_at=row[7], start_at=row[8], action=row[9], action_id=row[10], reason=row[11],
        attempt=row[12], epoch=row[13], failures=row[14], refusals=row[15], crashes=row[16], stop=row[17],
        started_at=row[18], ended_at=row[19], author=row[20], note=row[21], input=_optional(row[22]),
        result=_optional(row[23]), failure=row[24],
    )  # fmt: skip


def run_row(run: Run) -> dict[str, Any]:
    return {
        "id": run.id, "schedule_id": run.schedule_id, "generation": run.generation, "nominal": run.nominal,
        "origin": str(run.origin), "overlap": run.overlap.value, "status": run.status.value, "fire_at": run.fire_at,
        "start_at": run.start_at, "action": run.action, "action_id": run.action_id, "reason": run.reason,
        "attempt": run.attempt, "epoch": run.epoch, "started_at": run.started_at, "ended_at": run.ended_at,
        "author": run.author, "note": run.note, "input": optional_json(run.input),
    }  # fmt: skip


def change_row(run: Run) -> dict[str, Any]:
    """What changes about a run that nobody works on."""
    return {
        "id": run.id, "status": run.status, "reason": run.reason, "attempt": run.attempt, "epoch": run.epoch,
        "started_at": run.started_at, "ended_at": run.ended_at,
    }  # fmt: skip


def unstarted_of(row: Row) -> UnstartedRange:
    return UnstartedRange(
        schedule_id=row[0], generation=row[1], first=row[2], last=row[3], count=row[4],
        status=Status(row[5]), reason=Reason(row[6]), decided_at=row[7], number=row[8],
    )  # fmt: skip


def attempt_of(row: Row) -> Attempt:
    return Attempt(
        run_id=row[0], attempt=row[1], epoch=row[2], reason=row[3], failure=row[4], started_at=row[5],
        ended_at=row[6],
    )  # fmt: skip


def checkpoint_of(row: Row) -> Checkpoint:
    return Checkpoint(run_id=row[0], key=row[1], value=row[2], attempt=row[3], saved_at=row[4])


def backfill_of(row: Row) -> Backfill:
    return Backfill(
        id=row[0], schedule_id=row[1], generation=row[2], first=row[3], last=row[4], overlap=Overlap(row[5]),
        cursor=row[6], total=row[7], made=row[8], status=BackfillStatus(row[9]), created_at=row[10],
        ended_at=row[11], author=row[12], note=row[13], input=_optional(row[14]),
    )  # fmt: skip


def version_of(row: Row) -> Version:
    return Version(
        schedule_id=row[0], generation=row[1], version=row[2], spec=row[3], policies=_policies(row[4]), since=row[5],
        until=row[6], created_at=row[7],
    )  # fmt: skip


def calendar_of(row: Row) -> StoredCalendar:
    return StoredCalendar(
        owner=row[0],
        name=row[1],
        document=msgspec.json.decode(row[2], type=SharedCalendar),
        updated_at=row[3],
    )


def node_of(row: Row, *, alive: bool) -> Node:
    return Node(
        epoch=row[0], name=row[1], actions=_tags(row[2]), tzdata=row[3], started_at=row[4], alive=alive
    )


def fields(value: msgspec.Struct) -> dict[str, Any]:
    """The columns of a value whose fields are the columns."""
    return {name: getattr(value, name) for name in value.__struct_fields__}
