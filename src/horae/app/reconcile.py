"""Reconcile an owner's tasks: read what is stored, plan the changes, and write them, in one transaction."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from horae.app.owner_scope import OwnerScope
from horae.app.triggers_and_backfills import given_up
from horae.engine.removed_schedule_grants import revoke_grants
from horae.errors import (
    SpecError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from horae.model import UNREADABLE, Action, Reason, Run, Schedule, State
from horae.policy.face_defaults import declarative
from horae.policy.reconcile_plan import DesiredTask, StoredTask, TaskClass, TaskPlan, plan_tasks
from horae.spec import PosixCron
from horae.store.port import Transaction
from horae.store.row_mapping import to_json
from horae.store.tables import RawSchedule

__all__ = ["DesiredTask", "Reconciliation", "TaskClass", "Tasks"]

PAGE = 5000


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reconciling an owner's tasks."""

    classes: Mapping[str, TaskClass]
    """The class of each task, by the id of its schedule."""
    forgotten: tuple[str, ...]
    """The names of the tasks that were removed, or the ids of those whose names cannot be read."""
    retrying: Mapping[str, str]
    """The failed runs that wait for their retry, by the name of the task."""


class Tasks:
    """An owner's tasks: schedules that an application declares as one list."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def reconcile(self, tasks: Mapping[str, DesiredTask]) -> Reconciliation:
        """Make the given tasks, by the ids of their schedules, the only ones of this owner, in one transaction."""
        scope, owner = self._scope, self._scope.owner or ""
        dead = {node.epoch for node in await scope.store.nodes() if not node.alive}
        now = scope.now()
        async with scope.store.transaction() as transaction:
            stored = await _read(transaction, owner, tasks)
            plan = plan_tasks(tasks, stored, owner, dead, now)
            await _write(transaction, plan, now)
        return Reconciliation(
            classes=plan.classes,
            forgotten=tuple(each.name or each.schedule.id for each in plan.removed),
            retrying={
                tasks[key].name: each.retrying
                for key, each in stored.items()
                if key in tasks and each.retrying is not None
            },
        )


async def _read(
    transaction: Transaction, owner: str, tasks: Mapping[str, DesiredTask]
) -> dict[str, StoredTask]:
    """All stored tasks of an owner. Those in the list must be readable; the others will be removed."""
    stored: dict[str, StoredTask] = {}
    after = ""
    while page := await transaction.raw_schedules(owner, after, PAGE):
        after = page[-1].id
        runs: dict[str, list[Run]] = defaultdict(list)
        for run in await transaction.open_runs([each.key for each in page]):
            runs[run.schedule_id].append(run)
        for each in page:
            task, open_runs = tasks.get(each.id), tuple(runs[each.id])
            stored[each.id] = _unwanted(each, open_runs) if task is None else _stored(each, task, open_runs)
    return stored


async def _write(transaction: Transaction, plan: TaskPlan, now: int) -> None:
    created = sorted(plan.created, key=lambda each: each[0].id)  # in key order, which inserts faster
    generations = await transaction.next_generations([schedule.key for schedule, _ in created])
    await transaction.insert_schedules(
        (msgspec.structs.replace(schedule, generation=generations[schedule.key]), at)
        for schedule, at in created
    )
    await transaction.update_schedules(plan.changed)
    await transaction.update_runs(plan.dropped)
    await transaction.insert_runs(plan.made_up)
    await transaction.insert_unstarted_ranges(plan.unstarted)
    await transaction.wake_waiting({run.schedule_key for run in plan.dropped}, now)
    open_runs = (run for stored in plan.removed for run in stored.runs)
    await transaction.update_runs(given_up(open_runs, Reason.DELETED, now))
    await revoke_grants(transaction, [stored.schedule for stored in plan.removed], now)
    await transaction.delete_schedules([stored.schedule.key for stored in plan.removed])
    await transaction.notify()


def _unwanted(row: RawSchedule, runs: tuple[Run, ...]) -> StoredTask:
    """A task that will be removed, so that unreadable values do not matter."""
    name = ""
    with contextlib.suppress(msgspec.DecodeError, TypeError, KeyError):
        name = str(msgspec.json.decode(str(row.action))["input"]["task"])
    schedule = Schedule(
        id=row.id, generation=row.generation, spec="", action=Action(name=""), policies=declarative(0),
        state=State(), version=row.version, cursor_ms=0, created_at_ms=0, updated_at_ms=0, owner=row.owner,
        execution_grant_id=row.execution_grant_id,
    )  # fmt: skip
    return StoredTask(schedule=schedule, name=name, cron="", delay_ms=0, last_attempt_at_ms=None, runs=runs)


def _stored(row: RawSchedule, task: DesiredTask, runs: tuple[Run, ...]) -> StoredTask:
    """The stored state of a registered task; each kind of fault raises a specific error."""
    name = task.name
    action = _object(name, "action", row.action)
    record = _field(name, action, "input", dict, "object")
    cron = _field(name, record, "cron", str, "string")
    delay_ms = _delay_ms(name, record)
    if _field(name, record, "task", str, "string") != name:
        raise TaskInvalidValueError(name, "task", record["task"], f'is not "{name}"')
    if delay_ms < 0:
        raise TaskInvalidValueError(name, "retryDelayMs", delay_ms, "must be non-negative")
    if cron != task.cron:  # otherwise registering it has checked it
        try:
            PosixCron(cron)
        except SpecError as error:
            raise TaskInvalidValueError(name, "cron", cron, error.message) from error
    for field, value in (("lastAttemptAt", row.attempted_at_ms), ("cursor", row.cursor_ms)):
        if value is not None and not isinstance(value, int):
            raise TaskInvalidTypeError(name, field, value, "number")
    _check_runs(name, runs)
    schedule = Schedule(
        id=row.id, generation=row.generation, spec=row.spec, action=Action(name=str(action.get("name")), input=record),
        policies=declarative(delay_ms), state=_state(name, row.state), version=row.version, cursor_ms=row.cursor_ms,
        created_at_ms=row.created_at_ms, updated_at_ms=row.updated_at_ms, owner=row.owner,
    )  # fmt: skip
    _object(name, "policies", row.policies)
    intact = (row.policies, row.tags, action.get("name")) == (to_json(schedule.policies), "[]", row.owner)
    return StoredTask(
        schedule=schedule, name=name, cron=cron, delay_ms=delay_ms, runs=runs, last_attempt_at_ms=row.attempted_at_ms, intact=intact
    )  # fmt: skip


def _delay_ms(task: str, record: dict[str, Any]) -> int:
    delay = _field(task, record, "retryDelayMs", int | float, "number")
    if delay != int(delay):
        raise TaskInvalidValueError(task, "retryDelayMs", delay, "must be a whole number")
    return int(delay)


def _check_runs(task: str, runs: Sequence[Run]) -> None:
    """Check the open runs of a task: they record the latest attempt and the time of the next one."""
    for run in runs:
        if run.reason == UNREADABLE:
            raise TaskInvalidValueError(task, "run", run.id, f"cannot be read: {run.failure}")
        numbers = {"nominal": run.nominal_ms, "pendingRetryUntil": run.start_at_ms, "attempt": run.attempt}
        for field, value in numbers.items():
            if not isinstance(value, int):
                raise TaskInvalidTypeError(task, field, value, "number")


def _object(task: str, field: str, text: object) -> dict[str, Any]:
    """The JSON object in a column."""
    if not isinstance(text, str):
        raise TaskInvalidTypeError(task, field, text, "string")
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise TaskTryDeserializeError(
            f"Cannot read the field '{field}': {error}",
            {"field": field, "value": text, "expectedType": "object"},
            task=task,
        ) from error
    if not isinstance(value, dict):
        raise TaskInvalidStructureError(task, value)
    return value


def _field(task: str, record: dict[str, Any], field: str, kind: Any, expected: str) -> Any:  # noqa: ANN401 - of that kind
    if field not in record:
        raise TaskMissingFieldError(task, field)
    value = record[field]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TaskInvalidTypeError(task, field, value, expected)
    return value


def _state(task: str, text: object) -> State:
    value = _object(task, "state", text)
    try:
        return msgspec.convert(value, State)
    except msgspec.ValidationError as error:
        raise TaskInvalidValueError(task, "state", value, str(error)) from error
