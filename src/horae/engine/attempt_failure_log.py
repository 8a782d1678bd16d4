"""Logs failed attempts with the standard library, so that a failure is heard even in a program that configured no logging."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from horae.model import AttemptEnd, AttemptResult, Outcome, Reason, Status, instant
from horae.spec.duration import duration_text

MAX_FAILURE_LENGTH = 200
"""Characters of a failure in a line; the ledger has the rest."""
_log = logging.getLogger("horae")
_UNSUCCESSFUL = {Status.FAILED, Status.TIMED_OUT, Status.DROPPED}
_NEVER_BEGAN = {AttemptEnd.UNLAUNCHED, AttemptEnd.NOT_ADMITTED}


def is_failure(ended: AttemptResult, outcome: Outcome) -> bool:
    """Whether an attempt failed: it was not stopped on request, nor by a node that ends."""
    if outcome.status is Status.RETRYING:
        return ended.ending not in {*_NEVER_BEGAN, AttemptEnd.STOPPED}
    return outcome.status in _UNSUCCESSFUL and ended.ending not in _NEVER_BEGAN


def log_failures(judged: Iterable[tuple[AttemptResult, Outcome]]) -> None:
    """Log each failed attempt, with its traceback: a warning if another attempt follows, an error if none does."""
    for ended, outcome in judged:
        if is_failure(ended, outcome):
            level = logging.WARNING if outcome.status is Status.RETRYING else logging.ERROR
            _log_failure(level, ended, outcome.status, str(outcome.reason), _what_follows(outcome))


def log_unrecorded(ended: Iterable[AttemptResult]) -> None:
    """Log attempts that failed and whose result could not be stored before the program ended."""
    for each in ended:
        if each.ending in {AttemptEnd.RAISED, AttemptEnd.TIMED_OUT}:
            reason = Reason.FAILED if each.reason is None else each.reason
            follows = "its end could not be recorded, so it counts as crashed"
            _log_failure(logging.ERROR, each, Status.RUNNING, reason, follows)


def _log_failure(level: int, ended: AttemptResult, status: Status, reason: str, follows: str) -> None:
    run = ended.run
    how = "timed out" if ended.ending is AttemptEnd.TIMED_OUT else "failed"
    sentence = f"{_why(ended, reason)}; {follows}"
    error = ended.error if ended.traceback else None
    _log.log(
        level, 'schedule "%s": attempt %d of the run %s, action "%s", %s: %s',
        run.schedule_id, run.attempt, run.id, run.action, how, sentence,
        exc_info=error and (type(error), error, error.__traceback__),
        extra={
            "schedule": run.schedule_id, "slot": f"{instant(run.nominal_ms):%Y-%m-%dT%H:%M:%SZ}", "run": run.id, "attempt": run.attempt,
            "action": run.action, "status": status.value, "reason": str(reason), "sentence": sentence, "follows": follows,
        },
    )  # fmt: skip


def _why(ended: AttemptResult, reason: str) -> str:
    first, _, more = (ended.failure or reason.replace("_", " ")).partition("\n")
    cut = "…" if more or len(first) > MAX_FAILURE_LENGTH else ""
    return f"{first[:MAX_FAILURE_LENGTH]}{cut}"


def _what_follows(outcome: Outcome) -> str:
    if outcome.status is not Status.RETRYING:
        return "gave up"
    wait_ms = (outcome.start_at_ms or 0) - outcome.ended_at_ms
    return f"retry in {duration_text(wait_ms)}" if wait_ms > 0 else "retry now"
