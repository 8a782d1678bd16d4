"""Records the results of attempts: what each means for its run, and which schedules have runs that waited for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from horae.engine.attempt_failure_log import log_failures
from horae.model import (
    GRAPH,
    Attempt,
    AttemptEnd,
    AttemptResult,
    Counts,
    Limits,
    Outcome,
    Policies,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
)
from horae.policy.admission import give_back, has_begun
from horae.policy.grants import with_attention
from horae.policy.outcome import judge_end
from horae.store.port import Advance, Transaction

Recorded = list[tuple[AttemptResult, Outcome]]
"""Results of attempts, and what each meant for its run."""
_replace = msgspec.structs.replace


async def record(
    transaction: Transaction, ended: Sequence[AttemptResult], now: int, limits: Limits
) -> Recorded:
    """Write results under their claims; in the same transaction, make schedules due whose runs waited for these."""
    if not ended:
        return []
    keys = {each.run.schedule_key for each in ended}
    await transaction.lock(keys)
    troubled = [each for each in ended if each.ending is not AttemptEnd.RETURNED]
    graphs = [each for each in ended if each.run.action.partition(":")[0] == GRAPH]
    judged_by = {each.run.schedule_key for each in (*troubled, *graphs)}
    found = await transaction.schedules(judged_by) if judged_by else ()
    schedules = {schedule.key: schedule for schedule in found}
    if troubled:
        ended = await _as_stored(transaction, ended)
    judged = [(each, judge_end(each, _policies(each.run, schedules), now, limits)) for each in ended]
    begun = await _begun_before(transaction, ended)
    await transaction.write_logs(each.log for each in ended if each.log is not None)
    outcomes = [outcome for _, outcome in judged]
    if await transaction.finish(outcomes) < len(outcomes):
        judged = await _written(transaction, judged)
    if troubled:
        await transaction.insert_attempts(
            _attempt(each, outcome) for each, outcome in judged if _has_failed(each)
        )
    await transaction.keep_last_outcomes(
        (each.run, outcome)
        for each, outcome in judged
        if outcome.status in {Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT}
    )
    await transaction.advance(_advances(judged, schedules, begun, now))
    await transaction.wake_waiting(keys, now)
    if troubled:  # a run that an external worker continues has not ended
        judged = [(each, outcome) for each, outcome in judged if outcome.status is not Status.RUNNING]
        transaction.on_commit += (lambda: log_failures(judged),)
    if transaction.recorded is not None:
        transaction.recorded += judged
    return judged


async def _as_stored(transaction: Transaction, ended: Sequence[AttemptResult]) -> list[AttemptResult]:
    """The results whose claims still hold, with the stop requests that their runs have got since the claim.

    An attempt that returned has succeeded, whatever was requested: its run is not read.
    """
    troubled = [each.run.id for each in ended if each.ending is not AttemptEnd.RETURNED]
    stored_runs = await transaction.claims_of(troubled)
    held = {(run.id, run.epoch, run.attempt): run for run in stored_runs if run.status is Status.RUNNING}
    ours = []
    for each in ended:
        if each.ending is AttemptEnd.RETURNED:
            ours.append(each)
            continue
        stored = held.get((each.run.id, each.run.epoch, each.run.attempt))
        if stored is not None:
            stop = each.run.stop or stored.stop  # its node may have terminated it since
            reason = stored.reason if stored.stop else each.run.reason
            ours.append(_replace(each, run=_replace(each.run, stop=stop, reason=reason)))
    return ours


async def _written(transaction: Transaction, judged: Recorded) -> Recorded:
    """The results that were written, because their claims were not stale."""
    runs = await transaction.claims_of([outcome.run_id for _, outcome in judged])
    ends = {(run.id, run.epoch, run.attempt, run.status) for run in runs}
    return [
        (each, outcome)
        for each, outcome in judged
        if (outcome.run_id, outcome.epoch, outcome.attempt, outcome.status) in ends
    ]


def _policies(run: Run, schedules: dict[ScheduleKey, Schedule]) -> Policies | None:
    schedule = schedules.get(run.schedule_key)
    return schedule.policies if schedule is not None and schedule.generation == run.generation else None


def _has_failed(ended: AttemptResult) -> bool:
    """Whether an attempt of its own ended without success."""
    return ended.ending not in {AttemptEnd.RETURNED, AttemptEnd.ACCEPTED, AttemptEnd.NOT_ADMITTED}


def _attempt(ended: AttemptResult, outcome: Outcome) -> Attempt:
    run = ended.run
    return Attempt(
        run_id=run.id, attempt=run.attempt, epoch=run.epoch, reason=outcome.reason, failure=ended.failure,
        started_at_ms=outcome.started_at_ms, ended_at_ms=outcome.ended_at_ms, traceback=ended.traceback,
    )  # fmt: skip


async def _begun_before(transaction: Transaction, ended: Sequence[AttemptResult]) -> set[str]:
    """The ids of runs that were not admitted now, but had an earlier attempt that began."""
    again = [each.run for each in ended if each.ending is AttemptEnd.NOT_ADMITTED and each.run.attempt > 1]
    return {run.id for run in again if has_begun(await transaction.attempts(run.id, run.attempt))}


def _advances(
    judged: Recorded, schedules: dict[ScheduleKey, Schedule], begun: set[str], now: int
) -> Iterator[Advance]:
    """Pause schedules with ``pause_on_failure`` whose run failed for good; give back what runs that never began were charged."""
    states: dict[ScheduleKey, State] = {}
    unstarted: dict[ScheduleKey, Counter[Reason]] = defaultdict(Counter)
    for each, outcome in judged:
        schedule = schedules.get(each.run.schedule_key)
        if schedule is None or schedule.generation != each.run.generation:
            continue
        key = schedule.key
        state = before = states.get(key, schedule.state)
        if outcome.status in {Status.FAILED, Status.TIMED_OUT} and schedule.policies.pause_on_failure:
            state = _paused_by(each.run, outcome, state)
        elif each.ending is AttemptEnd.NOT_ADMITTED and each.run.id not in begun:
            state = give_back(state, each.run)
            unstarted[key][Reason(outcome.reason)] += 1
        state = with_attention(state, each, outcome)
        if state != before or key in unstarted:
            states[key] = state
    for key, state in states.items():
        counts = Counts(started=-unstarted[key].total(), unstarted=unstarted[key])
        yield Advance(key, schedules[key].cursor_ms, now, state, counts)


def _paused_by(run: Run, outcome: Outcome, state: State) -> State:
    """The state of a schedule that is paused because a run failed for good; its note names the run."""
    why = outcome.failure or outcome.reason
    note = f"paused because the run {run.id} {outcome.status.replace('_', ' ')}: {why}"
    return _replace(state, paused=True, paused_until_ms=None, note=note)
