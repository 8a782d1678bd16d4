"""The decision for one schedule: its due slots, its backfills and its waiting runs, given what is running.

A pure function of the schedule, its open runs and backfills, and the time. The engine writes the decision in one transaction and
starts attempts only after that. Deciding is not claiming: a released run is ``starting`` until a node claims it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from horae.model import (
    AUTOMATIC,
    WAITING,
    Backfill,
    BackfillStatus,
    CatchUpPolicy,
    Counts,
    Limits,
    Origin,
    OriginKind,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    State,
    Status,
    WhenFull,
)
from horae.policy import backfill as backfiller
from horae.policy import pause
from horae.policy.catch_up import Due, Slot, Unstarted, find_due, skip_due, window_ms_of
from horae.policy.ledger_changes import Changes, Decision, new_run
from horae.policy.overlap import Start, Verdict, judge_overlap
from horae.policy.undecided_spec import undecided
from horae.spec import Spec
from horae.spec.duration import milliseconds

DEFAULT_LIMITS = Limits()
_NOT_LATE = CatchUpPolicy()
_ONE_STARTED = Counts(started=1)
_replace = msgspec.structs.replace


def decide(
    schedule: Schedule,
    spec: Spec,
    runs: Sequence[Run],
    now: int,
    *,
    backfills: Sequence[Backfill] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> Decision:
    """Decide for a schedule at the time ``now``. ``runs`` are its open runs, oldest first."""
    if not runs and not backfills and _is_plain(schedule.state):
        usual = _usual(schedule, spec, now, limits)
        if usual is not None:
            return usual
    return _DecisionBuilder(schedule, spec, runs, now, limits).decide(backfills)


def _usual(schedule: Schedule, spec: Spec, now: int, limits: Limits) -> Decision | None:
    """The fast path for the usual case: no run is open and one slot is due and on time, so it starts under any policy.

    The result equals that of the general path; a test compares the two.
    """
    due = due_at(schedule, spec, now, limits)
    if len(due.slots) != 1 or due.unstarted or schedule.policies.timeouts.start is not None:
        return None
    slot = due.slots[0]
    if slot.start_at_ms > now or (due.next_fire is not None and due.next_fire <= now):
        return None
    run = _replace(new_run(schedule, slot, AUTOMATIC, schedule.policies.overlap, now), status=Status.STARTING)
    return Decision(
        new=(run,),
        state=schedule.state,
        cursor_ms=due.cursor_ms,
        next_at_ms=due.next_fire,
        counts=_ONE_STARTED,
    )


def _is_plain(state: State) -> bool:
    """Whether nothing in a schedule's state affects what is due."""
    if state.paused or state.buffer_full or state.skip_next or state.skip_waiting or state.carried:
        return False
    return state.remaining_actions is None and state.completed_at_ms is None


class _DecisionBuilder:
    """Builds the decision for one schedule step by step: the general path."""

    def __init__(self, schedule: Schedule, spec: Spec, runs: Sequence[Run], now: int, limits: Limits) -> None:
        self.runs, self.now, self.limits, self.base = runs, now, limits, spec
        spec = undecided(schedule, spec)
        self.changes = Changes(schedule, spec, now)
        self.unstarted: tuple[Unstarted, ...] = ()
        if pause.is_over(schedule.state, now):
            resumed = pause.resume(schedule, spec, schedule.state.paused_until_ms or now)
            self.unstarted = resumed.unstarted
            schedule = _replace(schedule, state=resumed.state, cursor_ms=resumed.cursor_ms)
        self.schedule = schedule
        self.state = schedule.state
        self.due = due_at(schedule, spec, now, limits)
        self.steps: list[backfiller.Step] = []
        self.again = pause.is_over(self.state, now)
        """Whether another decision must follow at once."""
        self.withheld = 0
        """How many starts exceed the remaining limit."""
        self.taken_back = 0
        """How many released starts went back to waiting."""
        self.queue: list[Run] = []
        """The pending runs whose start time has come, in order, including those that a pause holds."""

    def decide(self, backfills: Sequence[Backfill]) -> Decision:
        self.end_pause()
        self.skip_next()
        self.take()
        self.continue_backfills(backfills)
        waiting = self.startable()
        stop = self.judge(waiting)
        self.count(waiting)
        self.again = self.again or (
            self.due.next_fire is not None and self.due.next_fire <= self.now and not self.state.buffer_full
        )
        cursor_ms = self.leave_edit()
        state, next_at_ms, remove = self.finish()
        return self.changes.decision(
            state=state,
            cursor_ms=cursor_ms,
            next_at_ms=next_at_ms,
            unstarted=(*self.unstarted, *self.due.unstarted),
            stop=stop,
            backfills=tuple(step.backfill for step in self.steps if step.moved),
            remove=remove,
        )

    def end_pause(self) -> None:
        """After a pause that skips, skip the automatic starts that waited."""
        if self.state.skip_waiting and not self.state.paused:
            self.changes.end(self.unbegun(), Status.SKIPPED, Reason.PAUSED)
            self.state = _replace(self.state, skip_waiting=False)

    def open_runs(self) -> list[Run]:
        """The open runs and those that this decision adds, without those that it ends."""
        return [run for run in (*self.runs, *self.changes.added) if not self.changes.has_ended(run)]

    def unbegun(self) -> list[Run]:
        """The automatic starts that no node has claimed."""
        return [run for run in self.open_runs() if run.is_automatic and not has_begun(run)]

    def leave_edit(self) -> int:
        """Return the new cursor, and drop from the state the slots that an edit left due and that are decided now."""
        cursor_ms, state = self.due.cursor_ms, self.state
        if not state.carried:
            return cursor_ms
        carried = tuple(each for each in state.carried if each.nominal_ms > cursor_ms)
        self.state = _replace(state, carried=carried)
        # Before the edit only carried slots count, even if the new spec names others there.
        done = all(each.nominal_ms > state.spec_since_ms for each in carried)
        return max(cursor_ms, state.spec_since_ms) if done else cursor_ms

    def skip_next(self) -> None:
        """Skip the slots that a caller asked to skip."""
        if self.state.skip_next and self.due.slots:
            skipped = self.due.slots[: self.state.skip_next]
            self.changes.leave_unstarted(skipped, Status.SKIPPED, Reason.SKIP_NEXT)
            self.due = _replace(self.due, slots=self.due.slots[len(skipped) :])
            self.state = _replace(self.state, skip_next=self.state.skip_next - len(skipped))

    def take(self) -> None:
        """Turn due slots into waiting runs, up to the buffer's size; drop the others or leave them due (``when_full``)."""
        policies, slots = self.schedule.policies, self.due.slots
        most = self.limits.max_buffer_size if policies.max_buffer_size is None else policies.max_buffer_size
        room = max(most - self.waiting, 0)
        taken, over = slots[:room], slots[room:]
        full = False
        match policies.when_full:
            case WhenFull.DROP:
                self.changes.leave_unstarted(over, Status.DROPPED, Reason.BUFFER_FULL)
            case WhenFull.WAIT:
                full = bool(over)
            case _:
                assert_never(policies.when_full)
        if full:
            # Every slot before the first that stays due is decided.
            self.due = _replace(
                self.due, slots=taken, cursor_ms=over[0].nominal_ms - 1000, next_fire=over[0].fire_ms
            )
        # Slots that stayed due do not count as late until the cursor has caught up with the present.
        caught_up = self.due.next_fire is None or self.due.next_fire > self.now
        if full is not self.state.buffer_full and (full or caught_up):
            self.state = _replace(self.state, buffer_full=full)
        for slot in taken:
            self.changes.add(new_run(self.schedule, slot, AUTOMATIC, policies.overlap, self.now))

    @property
    def waiting(self) -> int:
        return sum(run.status in WAITING for run in self.runs)

    def continue_backfills(self, backfills: Sequence[Backfill]) -> None:
        """Add the runs of the schedule's backfills in this pass, after the automatic starts."""
        if not backfills:
            return
        self.steps = backfiller.advance(
            backfills, self.base, self.now, self.limits, waiting=self.waiting, reserve=len(self.changes.added)
        )
        for step in self.steps:
            each = step.backfill
            for nominal_ms in step.nominals_ms:
                slot = Slot(nominal_ms, self.now, self.now)
                run = new_run(
                    self.schedule, slot, Origin(OriginKind.BACKFILL, each.id), each.overlap, self.now
                )
                own = run.input if each.input is None else each.input
                self.changes.add(_replace(run, input=own, author=each.author, note=each.note))
            self.again = self.again or (bool(step.nominals_ms) and each.status is BackfillStatus.OPEN)

    def startable(self) -> list[Run]:
        """End the starts that must never run, and return those that may be released now."""
        self.withhold_by_time()
        self.withhold_by_state()
        self.queue = [
            run for run in self.open_runs() if run.status is Status.PENDING and run.start_at_ms <= self.now
        ]
        left = self.state.remaining_actions
        startable = []
        for run in self.queue:
            if self.waits_for_pause(run):
                continue
            if run.is_automatic and left is not None:
                left -= 1
                if left < 0:  # a later decision judges it, once the outcome of the others is known
                    self.withheld += 1
                    continue
            startable.append(run)
        return startable

    def withhold_by_time(self) -> None:
        """Time out the starts that waited longer than ``timeouts.start``."""
        timeout_ms = milliseconds(self.schedule.policies.timeouts.start)
        if timeout_ms is None:
            return
        overdue = [
            run for run in self.open_runs() if not has_begun(run) and self.now - run.start_at_ms >= timeout_ms
        ]
        self.changes.end(overdue, Status.TIMED_OUT, Reason.START_TIMEOUT)
        if overdue and self.schedule.policies.pause_on_failure:
            note = f"paused because the run {overdue[0].id} timed out: {Reason.START_TIMEOUT}"
            self.state = _replace(self.state, paused=True, paused_until_ms=None, note=note)

    def withhold_by_state(self) -> None:
        """Hold back automatic starts by the schedule's state; manual ones are never held back.

        While paused they wait, or are skipped if the pause skips; once the limit is reached they are skipped.
        """
        state = self.state
        waiting = self.unbegun()
        if state.paused and pause.pause_skips(self.schedule.policies):
            self.changes.end(waiting, Status.SKIPPED, Reason.PAUSED)
        elif state.paused:
            released = {run.id for run in waiting if run.status is Status.STARTING}
            self.runs = [self.changes.take_back(run) if run.id in released else run for run in self.runs]
            self.taken_back = len(released)
        elif state.remaining_actions == 0:
            # Released runs are already counted, and start.
            gone = [run for run in waiting if run.status is Status.PENDING and run.start_at_ms <= self.now]
            self.changes.end(gone, Status.SKIPPED, Reason.LIMIT_REACHED)

    def waits_for_pause(self, run: Run) -> bool:
        """Whether a pause keeps a start waiting."""
        return self.state.paused and run.is_automatic

    def judge(self, waiting: list[Run]) -> tuple[Run, ...]:
        """Apply the overlap policy to the waiting starts, and release due retries. Return the runs that must stop."""
        changes, policies = self.changes, self.schedule.policies
        going_on = [
            run for run in self.runs if run.status is not Status.PENDING and not changes.has_ended(run)
        ]
        retries = [run for run in going_on if run.status is Status.RETRYING]
        ready = [run for run in retries if run.start_at_ms <= self.now]
        if policies.retry.preempted and retries and waiting:
            if ready:  # one attempt serves both
                served = [run for run in waiting if run.is_automatic]
                changes.end(served, Status.SKIPPED, Reason.SERVED)
            else:
                changes.end(retries, Status.FAILED, Reason.PREEMPTED)
            waiting = [run for run in waiting if not changes.has_ended(run)]
            going_on = [run for run in going_on if not changes.has_ended(run)]
        if policies.coalesce:
            automatic = [run for run in waiting if run.is_automatic]
            changes.end(automatic[:-1], Status.MISSED, Reason.SUPERSEDED)
            waiting = [run for run in waiting if not changes.has_ended(run)]
        free = sum(run.overlap is Overlap.ALLOW_ALL for run in going_on)
        judged = {run.id for run in waiting}
        starts = [
            Start(run.id, run.overlap, _is_expired(policies, run, self.now), self.waits_for_pause(run))
            for run in self.queue
            if run.id in judged or self.waits_for_pause(run)
        ]
        verdict = judge_overlap(starts, len(going_on) - free, policies.max_concurrent, free=free)
        changes.apply(verdict, waiting)
        stop = self.make_way(verdict, going_on) if verdict.cancel or verdict.terminate else ()
        changes.release([run for run in ready if not changes.has_ended(run)])
        return stop

    def make_way(self, verdict: Verdict, going_on: list[Run]) -> tuple[Run, ...]:
        """Make room for a start that replaces others: cancel blocking runs that no node runs, and return the running ones to stop."""
        how = "terminate" if verdict.terminate else "cancel"
        blocking = [run for run in going_on if run.overlap is not Overlap.ALLOW_ALL]
        idle = [run for run in blocking if run.status is not Status.RUNNING]
        self.changes.end(idle, Status.CANCELLED, Reason.REPLACED)
        self.again = self.again or bool(idle)
        return tuple(
            _replace(run, stop=how, reason=Reason.REPLACED)
            for run in blocking
            if run.status is Status.RUNNING and run.stop not in {how, "terminate"}
        )

    def count(self, judged: list[Run]) -> None:
        """Count the released automatic starts towards the limit; further attempts of a run do not count."""
        if self.state.remaining_actions is None:
            return
        started = sum(run.is_automatic and run.attempt == 0 for run in self.changes.released)
        self.state = _replace(
            self.state, remaining_actions=self.state.remaining_actions - started + self.taken_back
        )
        if self.withheld:
            # Decide again for them if a judged start ended without starting, or if the limit leaves none for them.
            skipped = any(run.is_automatic and self.changes.has_ended(run) for run in judged)
            self.again = self.again or skipped or self.state.remaining_actions == 0

    def finish(self) -> tuple[State, int | None, bool]:
        """Return the new state, when to decide next, and whether to remove the schedule.

        A finished schedule is kept for ``finished_ttl`` after it completed.
        """
        state = self.state
        if self.again or not self.is_finished:
            state = state if state.completed_at_ms is None else _replace(state, completed_at_ms=None)
            return state, self.now if self.again else self.next_moment(), False
        completed_at_ms = self.now if state.completed_at_ms is None else state.completed_at_ms
        ttl_ms = milliseconds(self.schedule.policies.finished_ttl)
        until = None if ttl_ms is None else completed_at_ms + ttl_ms
        # Once the limit is reached, slots are still recorded as skipped when they fall due.
        moments = [at for at in (until, self.due.next_fire) if at is not None]
        over = until is not None and until <= self.now
        return _replace(state, completed_at_ms=completed_at_ms), min(moments, default=None), over

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to fire, waiting or running. A paused schedule, or one with an empty spec, is not finished."""
        if self.state.paused or (self.due.next_fire is not None and self.state.remaining_actions != 0):
            return False
        if self.base.is_empty or any(step.backfill.status is BackfillStatus.OPEN for step in self.steps):
            return False
        return not self.open_runs()

    def next_moment(self) -> int | None:
        """The next time at which a decision is due without any other event."""
        state, timeout_ms = self.state, milliseconds(self.schedule.policies.timeouts.start)
        # Once the limit is reached, the end of the open runs comes first: it finishes the schedule.
        waits = state.buffer_full or state.remaining_actions == 0
        moments = [None if waits else self.due.next_fire, state.paused_until_ms if state.paused else None]
        for run in [*self.runs, *self.changes.added]:
            if run.status in WAITING:
                moments.append(run.start_at_ms)
            if timeout_ms is not None and not has_begun(run):
                moments.append(run.start_at_ms + timeout_ms)
        return min((at for at in moments if at is not None and at > self.now), default=None)


def due_at(schedule: Schedule, spec: Spec, now: int, limits: Limits) -> Due:
    """What is due for a schedule: nothing while it is paused; once its limit is reached, due slots are skipped."""
    state, policies = schedule.state, schedule.policies
    if state.paused:
        return Due((), (), schedule.cursor_ms, None)
    if state.remaining_actions == 0:
        return skip_due(spec, schedule.id, schedule.cursor_ms, now, Reason.LIMIT_REACHED)
    catch_up = _NOT_LATE if state.buffer_full else policies.catch_up
    return find_due(
        spec, schedule.id, schedule.cursor_ms, now, catch_up,
        limit=limits.catch_up_per_pass, consent=None if state.buffer_full else policies.backfill_limit,
    )  # fmt: skip


def has_begun(run: Run) -> bool:
    """Whether an attempt of a run was made. A run that no node has claimed yet has not begun."""
    return run.attempt > 0 or run.status is Status.RUNNING


def _is_expired(policies: Policies, run: Run, now: int) -> bool:
    """Whether an automatic start waited longer than the catch-up window allows for late slots."""
    window_ms = window_ms_of(policies.catch_up)
    if window_ms is None or not policies.expire_waiting:
        return False
    if not run.is_automatic or run.start_at_ms > run.fire_ms:
        return False
    return now - run.fire_ms > window_ms
