"""The decision for one schedule: its due slots and its waiting runs, given what is running.

A pure function of the schedule, its open runs and the time. The engine writes what it says, in one transaction, and only
then starts anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

import msgspec

from horae.model import (
    AUTOMATIC,
    CatchUp,
    PassedOver,
    Reason,
    Run,
    Schedule,
    State,
    Status,
)
from horae.policy.due import Due, Passed, Slot, find_due, pass_over
from horae.policy.overlap import Start, Verdict, judge_overlap
from horae.spec import Spec


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written for one schedule, and then started."""

    new: tuple[Run, ...] = ()
    """Runs that did not exist, waiting or released."""
    changed: tuple[Run, ...] = ()
    """Waiting runs that are released, or will never run."""
    passed: tuple[PassedOver, ...] = ()
    stop: tuple[Run, ...] = ()
    """Running runs that are asked to stop."""
    state: State
    cursor: int
    next_at: int | None
    """When this schedule must be looked at again, if nothing happens to it before."""


def run_id(schedule_id: str, incarnation: int, nominal: int, origin: str) -> str:
    """The identity of a slot's run: computed, so that nobody can make two."""
    digest = sha256(
        f"{schedule_id}:{incarnation}:{nominal}:{origin}".encode("utf-8", "surrogatepass")
    ).digest()
    return str(UUID(bytes=digest[:16], version=5))


def decide(schedule: Schedule, spec: Spec, runs: Sequence[Run], now: int, epoch: int) -> Decision:
    """Decide for a schedule at a time. ``runs`` are its open ones, oldest first."""
    state = _resumed(schedule.state, now)
    due = _due(schedule, state, spec, now)
    found = [_pending(schedule, slot) for slot in due.slots]
    fresh, refused = _without_overflow(schedule, runs, found)
    candidates = [run for run in [*runs, *fresh] if _is_waiting(run) and run.start_at <= now]
    expired = [run for run in candidates if _is_expired(schedule, run, now)]
    waiting = _startable(state, [run for run in candidates if run not in expired])
    going_on = [run for run in runs if not _is_waiting(run)]
    verdict = judge_overlap(
        [Start(run.id, run.overlap) for run in waiting], len(going_on), schedule.policies.max_concurrent
    )
    outcome = _Outcome(schedule, spec, now, epoch, {run.id for run in found})
    outcome.apply(verdict, waiting)
    outcome.end(expired, Status.MISSED, Reason.LATE)
    outcome.end(refused, Status.DROPPED, Reason.BUFFER_FULL)
    outcome.keep([run for run in fresh if run not in waiting and run not in expired])
    stopping = verdict.cancel or verdict.terminate
    retries = [run for run in going_on if run.status is Status.PENDING]
    if stopping:
        outcome.end(retries, Status.CANCELLED, Reason.REPLACED)
    else:
        outcome.release([run for run in retries if run.start_at <= now])
    state = _counted(state, outcome.released)
    return Decision(
        new=tuple(outcome.new),
        changed=tuple(outcome.changed),
        passed=(*(_passed_over(schedule, spec, p, now) for p in due.passed), *outcome.passed()),
        stop=tuple(run for run in going_on if run.status is not Status.PENDING) if stopping else (),
        state=state,
        cursor=due.cursor,
        next_at=_next_look(
            now,
            [due.next_fire, state.paused_until, *(run.start_at for run in [*runs, *outcome.new])],
            # More is due than a pass takes, or something was held back, or waits behind a retry given up.
            again=(due.next_fire is not None and due.next_fire <= now)
            or (stopping and bool(retries))
            or (len(waiting) + len(expired) < len(candidates) and _may_start(state)),
        ),
    )


def _next_look(now: int, moments: Sequence[int | None], *, again: bool) -> int | None:
    """The earliest of some moments that are still to come."""
    return now if again else min((at for at in moments if at is not None and at > now), default=None)


def _startable(state: State, runs: list[Run]) -> list[Run]:
    """The runs that may start now: manual ones always, automatic ones unless paused, and as many as are left."""
    left = state.remaining
    startable = []
    for run in runs:
        if run.origin == AUTOMATIC:
            if not _may_start(state) or left == 0:
                continue
            left = None if left is None else left - 1
        startable.append(run)
    return startable


def _may_start(state: State) -> bool:
    """Whether automatic starts are released at all."""
    return not state.paused and state.remaining != 0


def _counted(state: State, released: list[Run]) -> State:
    """The automatic starts that were released count towards the limit; further attempts of a run do not."""
    if state.remaining is None:
        return state
    started = sum(run.origin == AUTOMATIC and run.attempt == 1 for run in released)
    return msgspec.structs.replace(state, remaining=state.remaining - started)


def _resumed(state: State, now: int) -> State:
    """A pause with an end is over when that has come."""
    if state.paused and state.paused_until is not None and state.paused_until <= now:
        return msgspec.structs.replace(state, paused=False, paused_until=None)
    return state


def _due(schedule: Schedule, state: State, spec: Spec, now: int) -> Due:
    """While paused nothing automatic is decided; at the limit time goes by."""
    if state.paused:
        return Due((), (), schedule.cursor, None)
    if state.remaining == 0:
        return pass_over(spec, schedule.id, schedule.cursor, now, Reason.LIMIT_REACHED)
    return find_due(spec, schedule.id, schedule.cursor, now, schedule.policies.catch_up)


def _pending(schedule: Schedule, slot: Slot) -> Run:
    return Run(
        id=run_id(schedule.id, schedule.incarnation, slot.nominal, AUTOMATIC),
        schedule_id=schedule.id,
        incarnation=schedule.incarnation,
        nominal=slot.nominal,
        origin=AUTOMATIC,
        overlap=schedule.policies.overlap,
        status=Status.PENDING,
        fire_at=slot.fire_at,
        start_at=slot.start_at,
        input=schedule.action.input,
    )


def _without_overflow(
    schedule: Schedule, runs: Sequence[Run], fresh: list[Run]
) -> tuple[list[Run], list[Run]]:
    """At most so many automatic starts wait; manual ones are never refused."""
    waiting = sum(run.status is Status.PENDING for run in runs)
    room = max(schedule.policies.max_pending - waiting, 0)
    return fresh[:room], fresh[room:]


def _is_waiting(run: Run) -> bool:
    """Whether a run has not begun. One that waits for another attempt has, and goes on over its attempts."""
    return run.status is Status.PENDING and run.attempt == 0


def _is_expired(schedule: Schedule, run: Run, now: int) -> bool:
    """Automatic starts that waited too long are missed, by the same window as late ones."""
    policy = schedule.policies.catch_up
    window = policy.grace if policy.mode is CatchUp.NONE else policy.window
    if run.origin != AUTOMATIC or window is None or run.attempt or run.start_at > run.fire_at:
        return False
    return now - run.fire_at > max(window, policy.grace)


class _Outcome:
    """Collects what becomes of the starts that were judged."""

    def __init__(self, schedule: Schedule, spec: Spec, now: int, epoch: int, fresh: set[str]) -> None:
        self.new: list[Run] = []
        self.changed: list[Run] = []
        self.released: list[Run] = []
        self._schedule, self._spec, self._now, self._epoch, self._fresh = schedule, spec, now, epoch, fresh
        self._unstarted: list[tuple[int, Status, Reason]] = []

    def apply(self, verdict: Verdict, waiting: list[Run]) -> None:
        by_id = {run.id: run for run in waiting}
        self.release([by_id[str(identity)] for identity in verdict.start])
        self.keep([by_id[str(identity)] for identity in verdict.keep])
        self.end([by_id[str(i)] for i in verdict.skip], Status.SKIPPED, Reason.OVERLAP)
        self.end([by_id[str(i)] for i in verdict.replace], Status.SKIPPED, Reason.REPLACED)

    def release(self, runs: list[Run]) -> None:
        """Runs that begin an attempt, claimed by this node."""
        for run in runs:
            attempt = run.attempt + 1
            begun = msgspec.structs.replace(
                run, status=Status.RUNNING, attempt=attempt, epoch=self._epoch, started_at=self._now
            )
            self.released.append(begun)
            (self.new if run.id in self._fresh else self.changed).append(begun)

    def keep(self, runs: list[Run]) -> None:
        """Runs that wait; those that did not exist are written."""
        self.new += [run for run in runs if run.id in self._fresh]

    def end(self, runs: list[Run], status: Status, reason: Reason) -> None:
        """Runs that never start: a row of their own if they had one, else part of a range."""
        for run in runs:
            if run.id in self._fresh:
                self._unstarted.append((run.nominal, status, reason))
            else:
                self.changed.append(
                    msgspec.structs.replace(run, status=status, reason=reason, ended_at=self._now)
                )

    def passed(self) -> list[PassedOver]:
        """The slots that never start, consecutive ones of one reason as one range."""
        ranges: list[PassedOver] = []
        for nominal, status, reason in sorted(self._unstarted):
            last = ranges[-1] if ranges else None
            before = self._spec.previous_instant(nominal - 1)
            if last is not None and (last.status, last.reason, last.last) == (status, reason, before):
                ranges[-1] = msgspec.structs.replace(last, last=nominal, count=last.count + 1)
            else:
                ranges.append(
                    PassedOver(
                        schedule_id=self._schedule.id, incarnation=self._schedule.incarnation, first=nominal,
                        last=nominal, count=1, status=status, reason=reason, decided_at=self._now, before=before,
                    )
                )  # fmt: skip
        return ranges


def _passed_over(schedule: Schedule, spec: Spec, passed: Passed, now: int) -> PassedOver:
    missed = passed.reason in {Reason.LATE, Reason.SUPERSEDED}
    return PassedOver(
        schedule_id=schedule.id,
        incarnation=schedule.incarnation,
        first=passed.first,
        last=passed.last,
        count=passed.count,
        status=Status.MISSED if missed else Status.SKIPPED,
        reason=passed.reason,
        decided_at=now,
        before=spec.previous_instant(passed.first - 1),
    )
