"""Reconcile tasks: compare the tasks that an application registers with those that are stored, and plan the changes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

import msgspec

from horae.errors import SpecError
from horae.model import Action, Origin, OriginKind, Reason, Run, Schedule, State, Status, UnstartedRange
from horae.policy.catch_up import Slot, leave_behind, next_fire_ms
from horae.policy.face_defaults import declarative
from horae.policy.ledger_changes import new_run, unstarted_ranges
from horae.policy.slot_times import previous_slot_ms
from horae.policy.undecided_spec import undecided
from horae.spec import Spec

MINUTE_MS = 60_000
_replace = msgspec.structs.replace


class TaskClass(StrEnum):
    """How a registered task relates to what is stored."""

    NEW = "new"
    PRESERVED = "preserved"
    OVERRIDDEN = "overridden"
    ORPHANED = "orphaned"
    FORGOTTEN = "forgotten"


class DesiredTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is registered."""

    id: str
    """The id of its schedule."""
    name: str
    cron: str
    delay_ms: int
    """Between a failure and its retry."""
    spec: str
    """The canonical document of the cron expression in the scheduler's zone."""


class StoredTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is stored."""

    schedule: Schedule
    name: str
    cron: str
    delay_ms: int
    last_attempt_at_ms: int | None
    intact: bool = True
    """Whether all stored fields that derive from the registration are correct."""
    runs: tuple[Run, ...]
    """Its open runs, oldest first."""

    @property
    def retrying(self) -> str | None:
        """The run that failed and waits for its retry."""
        return next((run.id for run in self.runs if run.status is Status.RETRYING), None)


class TaskPlan:
    """The changes that make the stored tasks equal to the registered ones."""

    def __init__(self, owner: str, now: int) -> None:
        self._owner, self._now, self._second_ms = owner, now, now // 1000 * 1000
        self.classes: dict[str, TaskClass] = {}
        self.created: list[tuple[Schedule, int | None]] = []
        self.changed: list[tuple[Schedule, int | None]] = []
        self.removed: list[StoredTask] = []
        self.dropped: list[Run] = []
        """Waiting runs that are skipped, because their slots are decided again."""
        self.made_up: list[Run] = []
        self.unstarted: list[UnstartedRange] = []

    def create(self, task: DesiredTask) -> None:
        """Create a task; it runs at once if the present minute matches."""
        self.classes[task.id] = TaskClass.NEW
        cursor_ms = self._now // MINUTE_MS * MINUTE_MS - 1000
        schedule = Schedule(
            id=task.id, generation=0, spec=task.spec, action=self._action(task), policies=declarative(task.delay_ms),
            state=State(), version=1, cursor_ms=cursor_ms, created_at_ms=self._now, updated_at_ms=self._now, owner=self._owner,
        )  # fmt: skip
        self.created.append((schedule, next_fire_ms(Spec.parse(task.spec), cursor_ms, task.id)))

    def _action(self, task: DesiredTask) -> Action:
        record = {"task": task.name, "cron": task.cron, "retryDelayMs": task.delay_ms}
        # Not every database takes a NUL in the id of a run.
        return Action(name=self._owner, input=record, id=task.name.replace("\0", "\\0"))

    def compare(self, task: DesiredTask, stored: StoredTask, dead: Collection[int]) -> None:
        """Classify a task that was registered before, and update it if it differs."""
        orphaned = any(_is_orphan(run, dead) for run in stored.runs)
        same = (stored.cron, stored.delay_ms) == (task.cron, task.delay_ms)
        kept = TaskClass.PRESERVED if same else TaskClass.OVERRIDDEN
        self.classes[task.id] = TaskClass.ORPHANED if orphaned else kept
        waiting = [run for run in stored.runs if run.status is not Status.RUNNING and not run.attempt]
        if stored.schedule.spec != task.spec:
            self._decide_again(task, stored, waiting)
        else:
            if not same or stored.schedule.state.paused or not stored.intact:
                self._update(task, stored, stored.schedule.cursor_ms)
            self._keep_one(task, stored, waiting)

    def _update(self, task: DesiredTask, stored: StoredTask, cursor_ms: int) -> None:
        old = stored.schedule
        spec_since_ms = old.state.spec_since_ms if old.spec == task.spec else self._second_ms
        changed = _replace(
            old, spec=task.spec, action=self._action(task), policies=declarative(task.delay_ms),
            state=State(spec_since_ms=spec_since_ms), cursor_ms=cursor_ms, version=old.version + 1, updated_at_ms=self._now,
        )  # fmt: skip
        self.changed.append((changed, self._now))

    def _keep_one(self, task: DesiredTask, stored: StoredTask, waiting: list[Run]) -> None:
        """Keep one run for all missed slots: the one that catching up will create, or else the latest waiting one."""
        if not waiting:
            return
        previous = previous_slot_ms(Spec.parse(task.spec), self._now)
        missed = previous is not None and previous > stored.schedule.cursor_ms
        self._drop(waiting if missed else waiting[:-1], Reason.SUPERSEDED)

    def _decide_again(self, task: DesiredTask, stored: StoredTask, waiting: list[Run]) -> None:
        """After a changed cron, decide the slots since the latest attempt by the new one; make up one run at most."""
        old, spec = stored.schedule, Spec.parse(task.spec)
        self._drop(waiting, Reason.EDITED)
        with contextlib.suppress(SpecError):  # a spec that cannot be read had no slots
            before = undecided(old, Spec.parse(old.spec))
            left = leave_behind(before, old.cursor_ms, self._now, Reason.EDITED)
            self.unstarted += [unstarted_ranges(old, before, each, self._now) for each in left]
        since_ms = old.created_at_ms if stored.last_attempt_at_ms is None else stored.last_attempt_at_ms
        self._update(task, stored, max(old.cursor_ms, self._second_ms, since_ms // 1000 * 1000))
        owed = previous_slot_ms(spec, self._now)
        if owed is None or owed <= since_ms or any(self._serves(run) for run in stored.runs):
            return
        schedule = self.changed[-1][0]
        slot = Slot(owed, owed, self._now)
        # A separate origin: the old spec may have had a slot at that time, and a slot is unique.
        origin = Origin(OriginKind.AUTOMATIC, str(schedule.version))
        self.made_up.append(new_run(schedule, slot, origin, schedule.policies.overlap, self._now))

    def _serves(self, run: Run) -> bool:
        """Whether an orphaned run, or a retry that is due, also makes up for the missed slots."""
        return run.attempt > 0 and (run.status is Status.RUNNING or run.start_at_ms <= self._now)

    def _drop(self, runs: Sequence[Run], reason: Reason) -> None:
        self.dropped += [
            _replace(run, status=Status.SKIPPED, reason=reason, ended_at_ms=self._now) for run in runs
        ]

    def forget(self, stored: StoredTask) -> None:
        """Remove a task that is no longer registered."""
        self.classes[stored.schedule.id] = TaskClass.FORGOTTEN
        self.removed.append(stored)


def plan_tasks(
    tasks: Mapping[str, DesiredTask],
    stored: Mapping[str, StoredTask],
    owner: str,
    dead: Collection[int],
    now: int,
) -> TaskPlan:
    """Compare the registered tasks with the stored ones, by the ids of their schedules; ``dead`` are epochs of nodes."""
    plan = TaskPlan(owner, now)
    for task in tasks.values():
        if task.id in stored:
            plan.compare(task, stored[task.id], dead)
        else:
            plan.create(task)
    for task_id, each in stored.items():
        if task_id not in tasks:
            plan.forget(each)
    return plan


def _is_orphan(run: Run, dead: Collection[int]) -> bool:
    """Whether the node that ran it died, even if no other node has noticed yet."""
    if run.status is Status.RUNNING:
        return run.epoch in dead
    return run.attempt > 0 and run.reason == Reason.CRASHED
