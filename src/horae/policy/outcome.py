"""What the end of an attempt means for its run: the run ends, or another attempt follows."""

from __future__ import annotations

from typing import assert_never

import msgspec

from horae.model import AttemptEnd, AttemptResult, Limits, Outcome, Policies, Reason, Run, Status, Timeouts
from horae.policy.retry import retry_at, start_again_at
from horae.spec.duration import milliseconds

GONE = Policies(at_most_once=True, start_attempts=1)
"""The policies of a run whose schedule was deleted while it was running: no further attempt."""

REPORTED_WITHIN_MS = 60 * 60 * 1000
"""How long an external worker may take, if the schedule sets no ``timeouts.run``."""


_NEVER_BEGAN = {AttemptEnd.REFUSED, AttemptEnd.UNLAUNCHED, AttemptEnd.NOT_ADMITTED}


def judge_end(ended: AttemptResult, policies: Policies | None, now: int, limits: Limits) -> Outcome:
    """The outcome of an attempt under the policies of its schedule; ``policies`` is ``None`` if the schedule was deleted."""
    if _is_over(ended):
        return _asked_to_stop(ended, now)
    if policies is None and ended.ending is AttemptEnd.UNLAUNCHED:
        return _outcome(ended, Status.DROPPED, now, Reason.DELETED)
    return _judge_ending(ended, policies or GONE, now, limits)


def _judge_ending(ended: AttemptResult, policies: Policies, now: int, limits: Limits) -> Outcome:
    run = ended.run
    match ended.ending:
        case AttemptEnd.RETURNED:
            return _outcome(ended, Status.SUCCEEDED, now, "")
        case AttemptEnd.RAISED:
            again = retry_at(policies.retry, run.failures + 1, ended.errors, now)
            return _again_or(Status.FAILED, ended, again, now, ended.reason or Reason.FAILED, failed=True)
        case AttemptEnd.TIMED_OUT:
            again = retry_at(policies.retry, run.failures + 1, ("TimeoutError",), now)
            reason = ended.reason or Reason.RUN_TIMEOUT
            return _again_or(Status.TIMED_OUT, ended, again, now, reason, failed=True)
        case AttemptEnd.REFUSED:
            again = (
                None if ended.permanent else start_again_at(policies.start_attempts, run.refusals + 1, now)
            )
            return _again_or(Status.DROPPED, ended, again, now, Reason.NOT_STARTED)
        case AttemptEnd.STOPPED:  # its node could not continue it
            again = None if policies.at_most_once else now
            return _again_or(Status.FAILED, ended, again, now, ended.reason or Reason.SHUTDOWN)
        case AttemptEnd.CRASHED:
            over = policies.at_most_once or run.crashes + 1 >= limits.max_crashes
            return _again_or(Status.FAILED, ended, None if over else now, now, Reason.CRASHED)
        case AttemptEnd.UNLAUNCHED:
            return _outcome(ended, Status.RETRYING, now, "", start_at_ms=now)
        case AttemptEnd.NOT_ADMITTED:
            return _outcome(ended, Status.SKIPPED, now, ended.reason or Reason.NOT_ALLOWED)
        case AttemptEnd.ACCEPTED:
            return _accepted(ended, policies, now)
        case _:
            assert_never(ended.ending)


def report_by(run: Run, timeouts: Timeouts, now: int) -> int:
    """The time by which an external worker must report next, if it reported now."""
    by = _run_until(run, timeouts)
    heartbeat_ms = milliseconds(timeouts.heartbeat)
    if heartbeat_ms is not None:
        by = min(by, now + heartbeat_ms)
    return min(by, now + milliseconds(timeouts.cancel)) if run.stop else by


def _run_until(run: Run, timeouts: Timeouts) -> int:
    run_ms = milliseconds(timeouts.run)
    return (run.started_at_ms or 0) + (REPORTED_WITHIN_MS if run_ms is None else run_ms)


def overdue(run: Run, expected_by: int, timeouts: Timeouts) -> AttemptResult:
    """The result of an attempt whose external worker did not report in time."""
    if run.stop:
        return AttemptResult(run=run, ending=AttemptEnd.STOPPED, failure="no report said that it has stopped")
    silent = timeouts.heartbeat is not None and expected_by < _run_until(run, timeouts)
    return AttemptResult(
        run=run,
        ending=AttemptEnd.TIMED_OUT,
        reason=Reason.HEARTBEAT_TIMEOUT if silent else Reason.RUN_TIMEOUT,
        failure="no heartbeat was reported in time" if silent else "its end was not reported in time",
    )


def _is_over(ended: AttemptResult) -> bool:
    """Whether a run ends because it was asked to stop.

    An external worker that was just handed the work learns of a ``cancel`` and reports the end; a ``terminate`` ends the run now.
    """
    if ended.ending is AttemptEnd.ACCEPTED:
        return ended.run.stop == "terminate"
    if ended.ending is AttemptEnd.NOT_ADMITTED:  # there is nothing to stop
        return False
    return bool(ended.run.stop) and ended.ending is not AttemptEnd.RETURNED


def _asked_to_stop(ended: AttemptResult, now: int) -> Outcome:
    """The outcome of a run that was asked to stop: it ends, however its attempt ended."""
    if ended.ending is AttemptEnd.TIMED_OUT:
        return _outcome(ended, Status.TIMED_OUT, now, ended.reason or Reason.RUN_TIMEOUT, failed=True)
    if ended.ending is AttemptEnd.CRASHED:
        return _outcome(ended, Status.TERMINATED, now, Reason.CRASHED)
    terminated = ended.run.stop == "terminate"
    reason = ended.run.reason or ended.reason or (Reason.TERMINATED if terminated else Reason.CANCELLED)
    status = Status.TERMINATED if terminated else Status.CANCELLED
    return _outcome(ended, status, now, reason, failed=ended.ending is AttemptEnd.RAISED)


def _began(ended: AttemptResult, now: int) -> int | None:
    """When an attempt began: its launch, or its claim if no launch is known; ``None`` if it never began."""
    if ended.ending in _NEVER_BEGAN:
        return None
    began = ended.run.started_at_ms if ended.launched_at_ms is None else ended.launched_at_ms
    return None if began is None else min(began, now)


def _outcome(
    ended: AttemptResult,
    status: Status,
    now: int,
    reason: str,
    *,
    start_at_ms: int | None = None,
    failed: bool = False,
) -> Outcome:
    run = ended.run
    return Outcome(
        run_id=run.id, epoch=run.epoch, attempt=run.attempt, status=status, ended_at_ms=now,
        started_at_ms=_began(ended, now), result=ended.result, failure=ended.failure, reason=reason, start_at_ms=start_at_ms, failures=run.failures + failed,
        refusals=run.refusals + (ended.ending is AttemptEnd.REFUSED),
        crashes=run.crashes + (ended.ending is AttemptEnd.CRASHED),
    )  # fmt: skip


def _again_or(
    status: Status, ended: AttemptResult, again: int | None, now: int, reason: str, *, failed: bool = False
) -> Outcome:
    """The outcome with another attempt at ``again``; if that is ``None``, the run ends with ``status``."""
    follows = Status.RETRYING if again is not None else status
    return _outcome(ended, follows, now, reason, start_at_ms=again, failed=failed)


def _accepted(ended: AttemptResult, policies: Policies, now: int) -> Outcome:
    """The outcome of an attempt that an external worker accepted: the run is still running, without a node."""
    run = msgspec.structs.replace(ended.run, started_at_ms=_began(ended, now))
    return Outcome(
        run_id=run.id, epoch=run.epoch, attempt=run.attempt, status=Status.RUNNING, ended_at_ms=now,
        started_at_ms=run.started_at_ms,
        report_by_ms=report_by(run, policies.timeouts, now),
    )  # fmt: skip
