"""What is stored of tasks: reading it, with an error for each thing that can be wrong, and bringing it up to date."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from horae.app.schedules import removal
from horae.errors import (
    SpecError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from horae.face.declarative.registration import Task
from horae.model import AUTOMATIC, UNREADABLE, Action, Reason, Run, Schedule, State, Status, UnstartedRange
from horae.policy.defaults import declarative
from horae.policy.due import Slot, fire_instant, leave_behind
from horae.policy.ledger import new_run, unstarted_ranges
from horae.policy.undecided import undecided
from horae.spec import PosixCron, Spec
from horae.store.port import Transaction
from horae.store.rows import to_json

PAGE = 5000
MINUTE = 60
_replace = msgspec.structs.replace


class Class(StrEnum):
    """What a task is to the database when a scheduler is initialized."""

    NEW = "new"
    PRESERVED = "preserved"
    OVERRIDDEN = "overridden"
    ORPHANED = "orphaned"
    FORGOTTEN = "forgotten"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a task."""

    schedule: Schedule
    name: str
    cron: str
    delay: int
    last_attempt_at: int | None
    intact: bool = True
    """Whether everything that is derived from the record is as it should be."""
    runs: tuple[Run, ...]
    """Its runs that have not ended."""

    @property
    def retrying(self) -> str | None:
        """The run that failed and waits for its retry."""
        return next((run.id for run in self.runs if run.status is Status.PENDING and run.attempt), None)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What initializing changes: everything in one transaction."""

    classes: Mapping[str, Class]
    created: Sequence[tuple[Schedule, int | None]] = ()
    changed: Sequence[tuple[Schedule, int | None]] = ()
    removed: Sequence[Record] = ()
    dropped: Sequence[Run] = ()
    """Starts that wait although what they were to serve is judged anew."""
    made_up: Sequence[Run] = ()
    unstarted: Sequence[UnstartedRange] = ()


async def read_records(transaction: Transaction, owner: str, tasks: Mapping[str, Task]) -> dict[str, Record]:
    """All that is stored of an owner's tasks. What is registered must be readable; what is not will be forgotten."""
    records: dict[str, Record] = {}
    after = ""
    while rows := await transaction.owned(owner, after, PAGE):
        after = rows[-1][0]
        ids = [row[0] for row in rows]
        runs: dict[str, list[Run]] = defaultdict(list)
        for run in await transaction.open_runs(ids):
            runs[run.schedule_id].append(run)
        for row in rows:
            records[row[0]] = _record(row, tasks.get(row[0]), tuple(runs[row[0]]))
    return records


def _record(row: Sequence[Any], task: Task | None, runs: tuple[Run, ...]) -> Record:
    if task is None:
        bare = Schedule(
            id=row[0], generation=row[1], spec="", action=Action(name=""), policies=declarative(0), state=State(),
            version=row[6], cursor=0, created_at=0, updated_at=0,
        )  # fmt: skip
        return Record(schedule=bare, name=_name(row[3]), cron="", delay=0, last_attempt_at=None, runs=runs)
    name = task.name
    action = _object(name, "action", row[3])
    stored = _field(name, action, "input", dict, "object")
    cron = _field(name, stored, "cron", str, "string")
    delay = _field(name, stored, "retryDelayMs", int | float, "number")
    if delay != int(delay):
        raise TaskInvalidValueError(name, "retryDelayMs", delay, "must be a whole number")
    if _field(name, stored, "task", str, "string") != name:
        raise TaskInvalidValueError(name, "task", stored["task"], f'is not "{name}"')
    if delay < 0:
        raise TaskInvalidValueError(name, "retryDelayMs", delay, "must be non-negative")
    if cron != task.cron:  # else it was found good just now
        try:
            PosixCron(cron)
        except SpecError as error:
            raise TaskInvalidValueError(name, "cron", cron, error.message) from error
    for field, value in (("lastAttemptAt", row[15]), ("cursor", row[7])):
        if value is not None and not isinstance(value, int):
            raise TaskInvalidTypeError(name, field, value, "number")
    _check_runs(name, runs)
    schedule = Schedule(
        id=row[0], generation=row[1], spec=row[2], action=Action(name=str(action.get("name")), input=stored),
        policies=declarative(int(delay)), state=_state(name, row[5]), version=row[6], cursor=row[7], created_at=row[8],
        updated_at=row[9], owner=row[10],
    )  # fmt: skip
    _object(name, "policies", row[4])
    intact = (row[4], row[11], action.get("name")) == (to_json(schedule.policies), "[]", row[10])
    return Record(
        schedule=schedule, name=name, cron=cron, delay=int(delay), runs=runs, last_attempt_at=row[15], intact=intact
    )  # fmt: skip


def _name(action: object) -> str:
    """The name in a record that nobody needs any more, if it can be read."""
    with contextlib.suppress(msgspec.DecodeError, TypeError, KeyError):
        return str(msgspec.json.decode(str(action))["input"]["task"])
    return ""


def _check_runs(task: str, runs: Sequence[Run]) -> None:
    """Runs that have not ended are part of the record: when the latest was attempted, and when the next may be."""
    for run in runs:
        if run.reason == UNREADABLE:
            raise TaskInvalidValueError(task, "run", run.id, f"cannot be read: {run.failure}")
        for field, value in (
            ("nominal", run.nominal),
            ("pendingRetryUntil", run.start_at),
            ("attempt", run.attempt),
        ):
            if not isinstance(value, int):
                raise TaskInvalidTypeError(task, field, value, "number")


def _object(task: str, field: str, text: object) -> dict[str, Any]:
    """The object in a column."""
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


def make_plan(
    tasks: Mapping[str, Task], records: Mapping[str, Record], owner: str, dead: set[int], now: int
) -> Plan:
    """Compare what is registered with what is stored. A pure function: the same gives the same."""
    planning = _Planning(owner, now)
    for task in tasks.values():
        record = records.get(task.id)
        if record is None:
            planning.create(task)
        else:
            planning.compare(task, record, dead)
    planning.forget([record for key, record in records.items() if key not in tasks])
    return planning.plan()


class _Planning:
    """Collects what is to be changed."""

    def __init__(self, owner: str, now: int) -> None:
        self._owner, self._now, self._second = owner, now, now // 1000
        self._classes: dict[str, Class] = {}
        self._created: list[tuple[Schedule, int | None]] = []
        self._changed: list[tuple[Schedule, int | None]] = []
        self._removed: list[Record] = []
        self._dropped: list[Run] = []
        self._made_up: list[Run] = []
        self._passed: list[UnstartedRange] = []

    def create(self, task: Task) -> None:
        """A task that was never registered runs at once if the present minute matches, and else at its next."""
        self._classes[task.id] = Class.NEW
        cursor = self._second // MINUTE * MINUTE - 1
        schedule = Schedule(
            id=task.id, generation=0, spec=task.spec, action=self._action(task), policies=declarative(task.delay),
            state=State(), version=1, cursor=cursor, created_at=self._now, updated_at=self._now, owner=self._owner,
        )  # fmt: skip
        spec = Spec.parse(task.spec)
        following = spec.next_instant(cursor)
        self._created.append(
            (schedule, None if following is None else fire_instant(spec, following, task.id))
        )

    def _action(self, task: Task) -> Action:
        record = {"task": task.name, "cron": task.cron, "retryDelayMs": task.delay}
        # Not every database takes a NUL in the id of a run.
        return Action(name=self._owner, input=record, id=task.name.replace("\0", "\\0"))

    def compare(self, task: Task, record: Record, dead: set[int]) -> None:
        """A task that was registered before: as it was, or otherwise; or cut off in the middle."""
        orphaned = any(_is_orphan(run, dead) for run in record.runs)
        same = (record.cron, record.delay) == (task.cron, task.delay)
        self._classes[task.id] = Class.ORPHANED if orphaned else Class.PRESERVED if same else Class.OVERRIDDEN
        waiting = [run for run in record.runs if run.status is not Status.RUNNING and not run.attempt]
        if record.schedule.spec != task.spec:
            self._judge_anew(task, record, waiting)
        else:
            if not same or record.schedule.state.paused or not record.intact:
                self._put(task, record, record.schedule.cursor)
            self._keep_one(task, record, waiting)

    def _put(self, task: Task, record: Record, cursor: int) -> None:
        old = record.schedule
        changed = _replace(
            old, spec=task.spec, action=self._action(task), policies=declarative(task.delay),
            state=State(spec_since=old.state.spec_since if old.spec == task.spec else self._second), cursor=cursor, version=old.version + 1, updated_at=self._now,
        )  # fmt: skip
        self._changed.append((changed, self._now))

    def _keep_one(self, task: Task, record: Record, waiting: list[Run]) -> None:
        """However much was missed, one run makes up for it: the one that catching up finds, or the latest that waits."""
        if not waiting:
            return
        previous = Spec.parse(task.spec).previous_instant(self._second)
        missed = previous is not None and previous > record.schedule.cursor
        self._drop(waiting if missed else waiting[:-1], Reason.SUPERSEDED)

    def _judge_anew(self, task: Task, record: Record, waiting: list[Run]) -> None:
        """After a changed cron, what was missed is judged by the new one, since the latest attempt: one run at most."""
        old, spec = record.schedule, Spec.parse(task.spec)
        self._drop(waiting, Reason.EDITED)
        with contextlib.suppress(SpecError):  # a spec that cannot be read had no slots
            before = undecided(old, Spec.parse(old.spec))
            left = leave_behind(before, old.cursor, self._second, Reason.EDITED)
            self._passed += [unstarted_ranges(old, before, each, self._now) for each in left]
        since = (old.created_at if record.last_attempt_at is None else record.last_attempt_at) // 1000
        self._put(task, record, max(old.cursor, self._second, since))
        owed = spec.previous_instant(self._second)
        if owed is None or owed <= since or any(self._serves(run) for run in record.runs):
            return
        schedule = self._changed[-1][0]
        slot = Slot(owed, owed * 1000, self._now)
        # An origin of its own: the old spec may have had a slot at that time, and a slot is unique.
        self._made_up.append(
            new_run(schedule, slot, f"{AUTOMATIC}:{schedule.version}", schedule.policies.overlap)
        )

    def _serves(self, run: Run) -> bool:
        """Whether a run that was cut off, or a retry that is due, serves what is owed as well."""
        return run.attempt > 0 and (run.status is Status.RUNNING or run.start_at <= self._now)

    def _drop(self, runs: Sequence[Run], reason: Reason) -> None:
        self._dropped += [
            _replace(run, status=Status.SKIPPED, reason=reason, ended_at=self._now) for run in runs
        ]

    def forget(self, records: list[Record]) -> None:
        """Tasks that are registered no more."""
        for record in records:
            self._classes[record.schedule.id] = Class.FORGOTTEN
            self._removed.append(record)

    def plan(self) -> Plan:
        return Plan(
            classes=self._classes, created=self._created, changed=self._changed, removed=self._removed,
            dropped=self._dropped, made_up=self._made_up, unstarted=self._passed,
        )  # fmt: skip


def _is_orphan(run: Run, dead: set[int]) -> bool:
    """Whether a run was cut off: by an instance that is dead, whether somebody has noticed that yet or not."""
    if run.status is Status.RUNNING:
        return run.epoch in dead
    return run.attempt > 0 and run.reason == Reason.CRASHED


async def carry_out(transaction: Transaction, plan: Plan, now: int) -> None:
    """Write all of a plan."""
    created = sorted(plan.created, key=lambda each: each[0].id)  # in the order of the tables, which is faster
    generations = await transaction.next_generations([schedule.id for schedule, _ in created])
    await transaction.insert_schedules(
        (_replace(schedule, generation=generations[schedule.id]), at) for schedule, at in created
    )
    await transaction.update_schedules(plan.changed)
    await transaction.update_runs(plan.dropped)
    await transaction.insert_runs(plan.made_up)
    await transaction.insert_unstarted(plan.unstarted)
    await transaction.wake_waiting({run.schedule_id for run in plan.dropped}, now)
    await transaction.update_runs(run for record in plan.removed for run in removal(record.runs, now))
    await transaction.delete_schedules([record.schedule.id for record in plan.removed])
    await transaction.notify()
