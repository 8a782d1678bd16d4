"""What follows a failure of a flow: backoff, reconciliation, fixes, and when only a person can help."""

from __future__ import annotations

from typing import Literal

import msgspec

from horae.flow_model import FlowStatus, Mutation, MutationStatus, Recovery, Trouble
from horae.policy.retry import backoff

FIRST_DELAY_MS = 10_000
MAX_DELAY_MS = 600_000
MAX_RETRIES = 5
MAX_FIXES = 2
MAX_RECONCILIATIONS = 5
"""How often ``reconcile`` is tried: at once, and then by the backoff curve."""
_replace = msgspec.structs.replace


def backoff_ms(failures: int) -> int:
    """How long to wait after so many failures in a row: 10 s, doubling, at most 10 min."""
    return backoff(FIRST_DELAY_MS, 2.0, MAX_DELAY_MS, failures)


def after_failure(
    before: Trouble | None,
    failed: Trouble,
    now: int,
    *,
    has_fixer: bool,
    reconciles: bool,
    max_crashes: int,
) -> Trouble:
    """The trouble of a flow after a run failed, with the counts of the runs that failed since the last commit.

    ``failed`` names the run, its status and how the next one begins. ``reconciles``: its handler has a ``reconcile``.
    """
    counts = {
        name: getattr(before, name) if before is not None else 0
        for name in ("transients", "logic_failures", "fixes", "reconciliations", "crashes")
    }
    trouble = _replace(failed, **counts)
    match failed.status:
        case FlowStatus.TRANSIENT:
            return _after_transient(trouble, now)
        case FlowStatus.LOGIC:
            return _after_logic_failure(trouble, now, has_fixer=has_fixer)
        case FlowStatus.RECONCILIATION:
            return _replace(
                trouble, reconciliations=0, retry_at_ms=now if reconciles else None, exhausted=not reconciles
            )
        case FlowStatus.CRASHED:
            crashes = trouble.crashes + 1
            again = crashes <= max_crashes
            return _replace(trouble, crashes=crashes, retry_at_ms=now if again else None, exhausted=not again)
        case FlowStatus.INTERNAL:
            return _replace(trouble, retry_at_ms=None, exhausted=True)
        case FlowStatus.APPROVAL:
            return _replace(trouble, retry_at_ms=None)
        case FlowStatus.ACTIVE | FlowStatus.COMMITTED:
            raise ValueError(f"a run that is {failed.status} did not fail")


def _after_transient(trouble: Trouble, now: int) -> Trouble:
    failures = trouble.transients + 1
    again = failures <= MAX_RETRIES
    retry_at_ms = now + backoff_ms(failures) if again else None
    return _replace(trouble, transients=failures, retry_at_ms=retry_at_ms, exhausted=not again)


def _after_logic_failure(trouble: Trouble, now: int, *, has_fixer: bool) -> Trouble:
    fixing = has_fixer and trouble.fixes < MAX_FIXES
    return _replace(
        trouble, logic_failures=trouble.logic_failures + 1, fixing=fixing, retry_at_ms=now if fixing else None,
        exhausted=has_fixer and not fixing,
    )  # fmt: skip


def after_fix(trouble: Trouble, now: int, *, fixed: bool) -> Trouble:
    """The trouble after a fixer answered: with a new version the run is tried again, otherwise it waits for a deploy."""
    return _replace(trouble, fixes=trouble.fixes + 1, fixing=False, retry_at_ms=now if fixed else None)


Answer = Mutation | Literal["not_applied", "unknown"]
"""What ``reconcile``, or an operator, says about a mutation."""


def after_reconciliation(trouble: Trouble, now: int, answer: Answer) -> Trouble:
    """The trouble after ``reconcile``, or an operator, answered."""
    if isinstance(answer, Mutation):
        known = msgspec.json.encode(answer).decode()
        return _replace(
            trouble, recovery=Recovery.EMIT, mutation=known, retry_at_ms=now, exhausted=False, fixing=False
        )
    if answer == "not_applied":
        return _replace(
            trouble, recovery=Recovery.AFRESH, mutation=None, retry_at_ms=now, exhausted=False, fixing=False
        )
    tries = trouble.reconciliations + 1
    again = tries < MAX_RECONCILIATIONS
    retry_at_ms = now + backoff_ms(tries) if again else None
    return _replace(trouble, reconciliations=tries, retry_at_ms=retry_at_ms, exhausted=not again)


def retried(trouble: Trouble, now: int, *, reconciles: bool = True) -> Trouble:
    """The trouble after an operator asked for a retry, or a new version was deployed: all tries are available again. A run that must be
    reconciled and has no ``reconcile`` still waits for an operator.
    """
    waits = trouble.recovery is Recovery.RECONCILE and not reconciles
    return _replace(
        trouble, transients=0, logic_failures=0, fixes=0, reconciliations=0, crashes=0, fixing=False,
        exhausted=waits, retry_at_ms=None if waits else now,
    )  # fmt: skip


def without_handler(trouble: Trouble) -> Trouble | None:
    """The trouble of a handler that a deploy removed: none if nothing happened, otherwise it waits for a version that has it."""
    if trouble.recovery is Recovery.AFRESH:
        return None
    reason = f'this version has no handler "{trouble.handler}", whose effect happened, or may have'
    return _replace(trouble, retry_at_ms=None, exhausted=True, fixing=False, issue=reason)


def needs_person(trouble: Trouble) -> bool:
    """Whether the flow waits for an operator."""
    return trouble.retry_at_ms is None


SKIPPED = Mutation(MutationStatus.SKIPPED)
"""The outcome of a mutation that an operator decided to skip."""
