"""Retry: whether an attempt that ended badly is followed by another, and when."""

from __future__ import annotations

from collections.abc import Sequence

from horae.model import RetryPolicy
from horae.spec.duration import milliseconds

FIRST_START_DELAY_MS = 1000
MAX_START_DELAY_MS = 60_000


def retry_at(policy: RetryPolicy, failures: int, errors: Sequence[str], now: int) -> int | None:
    """When the next attempt after ``failures`` failed ones may start; ``None`` if none follows.

    ``errors`` names the class of the error that the latest attempt raised, and its base classes.
    """
    if policy.attempts is not None and failures >= policy.attempts:
        return None
    if policy.retry_on and not set(policy.retry_on) & set(errors):
        return None
    return now + backoff(
        milliseconds(policy.initial_delay), policy.factor, milliseconds(policy.max_delay), failures
    )


def start_again_at(attempts: int, refusals: int, now: int) -> int | None:
    """When a run that could not begin is started again; ``None`` if all ``attempts`` are used up."""
    if refusals >= attempts:
        return None
    return now + backoff(FIRST_START_DELAY_MS, 2.0, MAX_START_DELAY_MS, refusals)


def backoff(first_ms: int, factor: float, longest_ms: int, times: int) -> int:
    """The delay after the given number of times (from 1): it grows from the first delay by a factor, up to the longest."""
    if first_ms == 0:
        return 0
    try:
        return int(min(first_ms * float(factor) ** (times - 1), longest_ms))
    except OverflowError:  # larger than any float
        return longest_ms
