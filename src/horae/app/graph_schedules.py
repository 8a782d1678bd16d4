"""Translate between a graph's schedule (graph, cron expression, zone, three policies) and an ordinary schedule. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from horae.app.field_checks import check_number
from horae.errors import InvalidInputError
from horae.executor.graph_provider_port import check_graph_id
from horae.model import GRAPH, Action, CatchUp, Overlap, Policies, Run, Schedule, UnstartedRange
from horae.policy.face_defaults import GRANTS, grants_show
from horae.policy.validate import check_policies
from horae.spec import Spec
from horae.spec.duration import duration_text, milliseconds

MAX_DEADLINE = 24 * 60 * 60
"""The longest starting deadline, in seconds."""
MAX_BACKFILL_LIMIT = 1000
_FIELDS = 5
_replace = msgspec.structs.replace


class Concurrency(StrEnum):
    """What happens to a slot while a run of the schedule executes."""

    FORBID = "Forbid"
    ALLOW = "Allow"
    REPLACE = "Replace"


_OVERLAPS = {
    Concurrency.FORBID: Overlap.SKIP,
    Concurrency.ALLOW: Overlap.ALLOW_ALL,
    Concurrency.REPLACE: Overlap.CANCEL_OTHER,
}
_SHOWN = {overlap: word for word, overlap in _OVERLAPS.items()}


def graph_spec(cron: str, timezone: str) -> Spec:
    """The spec of a cron expression of five fields in a zone."""
    if len(cron.split()) != _FIELDS or cron.lstrip().startswith("@"):
        raise InvalidInputError(
            "cron", f"must have {_FIELDS} fields, and is {cron[:100]!r}", hint="such as 0 9 * * 1-5"
        )
    if not timezone:
        raise InvalidInputError("timezone", "must name a zone", hint="such as Europe/Berlin or UTC")
    return Spec.cron(cron, timezone=timezone)


def graph_action(graph_id: str, given: Any) -> Action:  # noqa: ANN401 - any JSON
    """The action that runs a graph."""
    check_graph_id(graph_id)
    return Action(kind=GRAPH, name=graph_id, input=given)


def graph_policies(base: Policies, given: Mapping[str, Any]) -> Policies:
    """Policies changed by the given fields of a graph's schedule."""
    new = base
    if "concurrency_policy" in given:
        new = _replace(new, overlap=_OVERLAPS[Concurrency(given["concurrency_policy"])])
    if "starting_deadline_seconds" in given:
        seconds = given["starting_deadline_seconds"]
        check_number("starting_deadline_seconds", seconds, 0, MAX_DEADLINE)
        new = _replace(new, catch_up=_replace(new.catch_up, grace=duration_text(seconds * 1000)))
    if "backfill_limit" in given:
        limit = given["backfill_limit"]
        check_number("backfill_limit", limit, 0, MAX_BACKFILL_LIMIT)
        mode = CatchUp.ALL if limit else CatchUp.NONE
        new = _replace(new, backfill_limit=limit, catch_up=_replace(new.catch_up, mode=mode))
    check_policies(new)
    return new


def new_graph_fields(graph_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new schedule, from the given fields of a graph's schedule."""
    for name in ("cron", "timezone"):
        if name not in given:
            raise InvalidInputError(name, "is missing")
    return {
        "spec": graph_spec(given["cron"], given["timezone"]),
        "action": graph_action(graph_id, given.get("input")),
        "policies": graph_policies(given.get("policies", GRANTS), given),
        "paused": not given.get("enabled", True),
    }


def graph_edit(schedule: Schedule, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an edit that changes only the given fields of a graph's schedule."""
    if schedule.action.kind != GRAPH:
        raise InvalidInputError(next(iter(given)), "goes with a schedule of a graph only")
    edit: dict[str, Any] = {}
    if "cron" in given or "timezone" in given:
        shown = graph_fields(schedule)
        cron = given.get("cron", shown["cron"])
        if cron is None:
            raise InvalidInputError("cron", "is missing: the schedule has another kind of spec")
        edit["spec"] = graph_spec(cron, given.get("timezone", Spec.parse(schedule.spec).elements.timezone))
        edit["recompute"] = True
    if "input" in given:
        edit["input"] = given["input"]
    if "enabled" in given:
        edit["paused"] = not given["enabled"]
    policies = graph_policies(schedule.policies, given)
    if policies != schedule.policies:
        edit["policies"] = policies
    return edit


def graph_fields(schedule: Schedule) -> dict[str, Any]:
    """The additional fields that a schedule of a graph shows; none for other schedules."""
    if schedule.action.kind != GRAPH:
        return {}
    policies = schedule.policies
    return {
        "owner_user_id": schedule.owner, "graph_id": schedule.action.name, "input": schedule.action.input,
        "cron": _cron(schedule), "enabled": not schedule.state.paused,
        "concurrency_policy": _SHOWN.get(policies.overlap, policies.overlap.value),
        "backfill_limit": policies.backfill_limit or 0,
        "starting_deadline_seconds": milliseconds(policies.catch_up.grace) // 1000,
    }  # fmt: skip


def _cron(schedule: Schedule) -> str | None:
    """The cron expression of a schedule, if its spec is nothing else."""
    try:
        crons = Spec.parse(schedule.spec).canonical().get("crons", [])
    except Exception:  # its view says what is wrong
        return None
    return str(crons[0]) if len(crons) == 1 else None


def graph_run(entry: Run | UnstartedRange) -> dict[str, Any]:
    """A run of a graph, or slots that did not run, in the words of graph schedules.

    A run has a ``run_id`` once its execution has first started.
    """
    if isinstance(entry, UnstartedRange):
        return {
            "id": None, "run_id": None, "schedule_id": entry.schedule_id, "scheduled_for": entry.start,
            "last_scheduled_for": entry.end, "count": entry.count, "status": grants_show(entry.status, entry.reason),
            "error_code": entry.reason.value, "started_at": None, "completed_at": entry.decided_at,
        }  # fmt: skip
    # A run stays running between two attempts, so that its status never goes backwards.
    is_executing = entry.ended_at_ms is None and entry.attempt > 0
    status = "running" if is_executing else grants_show(entry.status, entry.reason)
    return {
        "id": entry.id, "run_id": entry.id if entry.attempt else None, "schedule_id": entry.schedule_id,
        "scheduled_for": entry.nominal, "last_scheduled_for": entry.nominal, "count": 1, "status": status,
        "error_code": (entry.reason or None) if entry.ended_at_ms is not None else None,
        "started_at": entry.started_at, "completed_at": entry.ended_at,
        "attempt": entry.attempt, "result": entry.result, "failure": entry.failure,
    }  # fmt: skip
