"""Between rows and values: the same for every store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from horae.model import Action, PassedOver, Policies, Reason, Run, Schedule, State, Status

Row = Sequence[Any]


def to_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def schedule_of(row: Row) -> Schedule:
    return Schedule(
        id=row[0], incarnation=row[1], spec=row[2],
        action=msgspec.json.decode(row[3], type=Action),
        policies=_policies(row[4]),
        state=_state(row[5]),
        token=row[6], cursor=row[7], created_at=row[8], updated_at=row[9],
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _policies(text: str) -> Policies:
    return msgspec.json.decode(text, type=Policies)


@lru_cache(maxsize=4096)
def _state(text: str) -> State:
    return msgspec.json.decode(text, type=State)


def run_of(row: Row) -> Run:
    return msgspec.convert(
        {
            "id": row[0], "schedule_id": row[1], "incarnation": row[2], "nominal": row[3], "origin": row[4],
            "overlap": row[5], "status": row[6], "fire_at": row[7], "start_at": row[8], "reason": row[9],
            "attempt": row[10], "epoch": row[11], "started_at": row[12], "ended_at": row[13],
            "input": msgspec.json.decode(row[14]),
            "result": None if row[15] is None else msgspec.json.decode(row[15]),
            "failure": row[16],
        },
        type=Run,
    )  # fmt: skip


def passed_of(row: Row) -> PassedOver:
    return PassedOver(
        schedule_id=row[0], incarnation=row[1], first=row[2], last=row[3], count=row[4],
        status=Status(row[5]), reason=Reason(row[6]), decided_at=row[7],
    )  # fmt: skip


def run_row(run: Run) -> dict[str, Any]:
    return {
        "id": run.id, "schedule_id": run.schedule_id, "incarnation": run.incarnation, "nominal": run.nominal,
        "origin": run.origin, "overlap": run.overlap, "status": run.status, "fire_at": run.fire_at,
        "start_at": run.start_at, "reason": run.reason, "attempt": run.attempt, "epoch": run.epoch,
        "started_at": run.started_at, "ended_at": run.ended_at, "input": to_json(run.input),
        "result": None if run.result is None else to_json(run.result), "failure": run.failure,
    }  # fmt: skip
