"""Retry: whether a failed attempt is followed by another, and when."""

from __future__ import annotations

from horae.model import RetryPolicy


def retry_at(policy: RetryPolicy, attempt: int, now: int) -> int | None:
    """When the attempt after a failed one (counted from 1) may start; ``None`` if that was the last."""
    if attempt >= policy.attempts:
        return None
    delay = policy.first_delay
    for _ in range(attempt - 1):
        delay = min(int(delay * policy.factor), policy.longest_delay)
        if delay == policy.longest_delay:
            break
    return now + delay
