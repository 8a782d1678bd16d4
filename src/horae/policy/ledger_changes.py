"""The rows of the ledger (runs, unstarted ranges, versions) and the changes that one decision makes to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256

import msgspec

from horae.model import (
    MISSED,
    Action,
    Backfill,
    Counts,
    Origin,
    Overlap,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
    UnstartedRange,
    Version,
)
from horae.policy.catch_up import Slot, Unstarted
from horae.policy.overlap import Verdict
from horae.policy.slot_times import previous_slot_ms
from horae.spec import Spec

_IN_RANGES = {Status.SKIPPED, Status.MISSED, Status.DROPPED}
_replace = msgspec.structs.replace


class Decision(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The decision for one schedule: the engine writes it before it starts the released runs."""

    new: tuple[Run, ...] = ()
    """Runs that did not exist before, waiting, released or ended."""
    changed: tuple[Run, ...] = ()
    """Waiting runs that are released, or will never run."""
    unstarted: tuple[UnstartedRange, ...] = ()
    stop: tuple[Run, ...] = ()
    """Running runs that are asked to stop."""
    backfills: tuple[Backfill, ...] = ()
    """Backfills that advanced."""
    state: State
    cursor_ms: int
    next_at_ms: int | None
    """When this schedule must be decided again, if nothing happens to it before."""
    counts: Counts = Counts()
    """What this decision adds to the schedule's counts."""
    remove: bool = False
    """Whether to remove the schedule: it is finished, and ``finished_ttl`` has passed."""


def run_id(key: ScheduleKey, generation: int, nominal_ms: int, origin: Origin) -> str:
    """The id of a slot's run: a UUID computed from the slot, so that two nodes cannot create two runs for it.

    It begins with the nominal time, as a UUID of version 7 begins with its time, so that a large ledger's index grows at its end.
    """
    name = f"{key}:{generation}:{nominal_ms // 1000}:{origin}".encode("utf-8", "surrogatepass")
    time = f"{nominal_ms & 0xFFFF_FFFF_FFFF:012x}"
    rest = sha256(name).hexdigest()
    return f"{time[:8]}-{time[8:]}-8{rest[:3]}-a{rest[3:6]}-{rest[6:18]}"


def action_id(action: Action, schedule_id: str, nominal_ms: int) -> str:
    """The action id of a slot, made from the action's ``id`` and ``id_format``; it is known before the slot has a run."""
    return _stamp(action.id_format, nominal_ms).replace(
        "{id}", schedule_id if action.id is None else action.id
    )


_SECONDS = re.compile(r"%%|%[-_0^#]?s")


@lru_cache(maxsize=1024)
def _stamp(form: str, nominal_ms: int) -> str:
    """Format a nominal time; cached, because many schedules share it."""
    seconds = nominal_ms // 1000
    # The C library takes a time for one of the machine's zone when it counts its seconds.
    counted = _SECONDS.sub(lambda found: found[0] if found[0] == "%%" else str(seconds), form)
    return datetime.fromtimestamp(seconds, UTC).strftime(counted)


def new_run(schedule: Schedule, slot: Slot, origin: Origin, overlap: Overlap, now: int) -> Run:
    """Create the run of a slot; it waits until it is judged."""
    action, key = schedule.action, schedule.key
    return Run(
        id=run_id(key, schedule.generation, slot.nominal_ms, origin), schedule_key=key,
        generation=schedule.generation, nominal_ms=slot.nominal_ms, origin=origin, overlap=overlap,
        status=Status.PENDING, fire_ms=slot.fire_ms, start_at_ms=slot.start_at_ms, decided_at_ms=now, owner=schedule.owner,
        action=action.address, action_id=action_id(action, schedule.id, slot.nominal_ms), input=action.input,
    )  # fmt: skip


def version_of(schedule: Schedule, now: int) -> Version:
    """The version of a schedule that ends now, or at its cursor if the clock was set back behind the slots it decided."""
    until = max(now, schedule.cursor_ms)
    return Version(
        schedule_key=schedule.key, generation=schedule.generation, version=schedule.version, spec=schedule.spec,
        policies=schedule.policies, since_ms=max(schedule.created_at_ms, schedule.state.spec_since_ms), until_ms=until,
        created_at_ms=schedule.created_at_ms,
    )  # fmt: skip


class Changes:
    """Collects what one decision changes."""

    def __init__(self, schedule: Schedule, spec: Spec, now: int) -> None:
        self._now = now
        self.added: list[Run] = []
        """Runs that this decision adds, as they are before they are judged."""
        self.released: list[Run] = []
        self._new: dict[str, Run] = {}
        self._changed: list[Run] = []
        self._ended: set[str] = set()
        self._schedule, self._spec = schedule, spec
        self._unstarted: list[tuple[int, Status, Reason]] = []
        self._started = 0
        self._counts: dict[Reason, int] = {}

    def add(self, run: Run) -> None:
        """Add a run for a slot that had none."""
        self.added.append(run)
        self._new[run.id] = run

    def has_ended(self, run: Run) -> bool:
        return run.id in self._ended

    def apply(self, verdict: Verdict, waiting: list[Run]) -> None:
        by_id = {run.id: run for run in waiting}
        self.release([by_id[str(identity)] for identity in verdict.start])
        self.end([by_id[str(i)] for i in verdict.skip], Status.SKIPPED, Reason.OVERLAP)
        self.end([by_id[str(i)] for i in verdict.replace], Status.SKIPPED, Reason.REPLACED)
        self.end([by_id[str(i)] for i in verdict.expire], Status.MISSED, Reason.LATE)

    def release(self, runs: list[Run]) -> None:
        """Release runs: each begins an attempt as soon as a node claims it."""
        for run in runs:
            begun = _replace(run, status=Status.STARTING, epoch=0)
            self.released.append(run)
            if run.id in self._new:
                self._new[run.id] = begun
            else:
                self._changed.append(begun)
            self._started += run.attempt == 0

    def take_back(self, run: Run) -> Run:
        """Return a released run that no node has claimed to waiting."""
        waiting = _replace(run, status=Status.PENDING, epoch=0)
        self._changed.append(waiting)
        self._started -= 1
        return waiting

    def end(self, runs: list[Run], status: Status, reason: Reason) -> None:
        """End runs without a start or a further attempt.

        A new automatic run becomes part of an unstarted range if its status allows that; every other run keeps its row.
        """
        for run in runs:
            self._ended.add(run.id)
            ended = _replace(run, status=status, reason=reason, ended_at_ms=self._now)
            if run.id not in self._new:
                self._changed.append(ended)
            elif run.is_automatic and status in _IN_RANGES:
                del self._new[run.id]
                self._unstarted.append((run.nominal_ms, status, reason))
            else:
                self._new[run.id] = ended
            if run.attempt == 0:
                self._count(reason, 1)
                self._started -= run.status is Status.STARTING  # it was released, but no node claimed it

    def _count(self, reason: Reason, number: int) -> None:
        self._counts[reason] = self._counts.get(reason, 0) + number

    def leave_unstarted(self, slots: Sequence[Slot], status: Status, reason: Reason) -> None:
        """Record slots that never become runs."""
        self._unstarted += [(slot.nominal_ms, status, reason) for slot in slots]
        if slots:
            self._count(reason, len(slots))

    def decision(
        self,
        *,
        state: State,
        cursor_ms: int,
        next_at_ms: int | None,
        unstarted: Sequence[Unstarted],
        stop: tuple[Run, ...],
        backfills: tuple[Backfill, ...],
        remove: bool,
    ) -> Decision:
        """The collected changes as a decision."""
        ranges = [unstarted_ranges(self._schedule, self._spec, each, self._now) for each in unstarted]
        for each in ranges:
            self._count(each.reason, each.count)
        return Decision(
            new=tuple(self._new.values()), changed=tuple(self._changed), unstarted=(*ranges, *self._ranges()), stop=stop,
            backfills=backfills, state=state, cursor_ms=cursor_ms, next_at_ms=next_at_ms, remove=remove,
            counts=Counts(started=self._started, unstarted=self._counts),
        )  # fmt: skip

    def _ranges(self) -> list[UnstartedRange]:
        """The slots that never start; consecutive ones with the same status and reason form one range."""
        ranges: list[UnstartedRange] = []
        for nominal_ms, status, reason in sorted(self._unstarted):
            last = ranges[-1] if ranges else None
            before = _before(self._schedule, self._spec, nominal_ms)
            if last is not None and (last.status, last.reason, last.end_ms) == (status, reason, before):
                ranges[-1] = _replace(last, end_ms=nominal_ms, count=last.count + 1)
            else:
                slot = Unstarted(nominal_ms, nominal_ms, 1, reason)
                ranges.append(_range(self._schedule, slot, status, before, self._now))
        return ranges


def unstarted_ranges(schedule: Schedule, spec: Spec, unstarted: Unstarted, now: int) -> UnstartedRange:
    """The ledger's row for an unstarted range."""
    status = Status.MISSED if unstarted.reason in MISSED else Status.SKIPPED
    return _range(schedule, unstarted, status, _before(schedule, spec, unstarted.start_ms), now)


def _range(
    schedule: Schedule, unstarted: Unstarted, status: Status, before_ms: int | None, now: int
) -> UnstartedRange:
    return UnstartedRange(
        schedule_key=schedule.key, generation=schedule.generation, start_ms=unstarted.start_ms, end_ms=unstarted.end_ms,
        count=unstarted.count, status=status, reason=unstarted.reason, decided_at_ms=now, owner=schedule.owner, before_ms=before_ms,
    )  # fmt: skip


def _before(schedule: Schedule, spec: Spec, nominal_ms: int) -> int | None:
    """The slot before another; ``None`` if there is none, or if an edit lies between them: no range extends across an edit."""
    before = previous_slot_ms(spec, nominal_ms - 1)
    return None if before is None or before <= schedule.state.spec_since_ms else before
