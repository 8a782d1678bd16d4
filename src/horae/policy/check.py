"""Whether policies make sense: what is wrong is said before anything is stored."""

from __future__ import annotations

from horae.errors import InvalidInputError
from horae.model import Policies

LONGEST = 366 * 24 * 60 * 60 * 1000
"""A year: longer delays are taken for a mistake of units."""

CENTURY = 100 * LONGEST
"""What is added to a time, or given to the store, is no larger: a database could not take the sum."""

_LARGEST = 2**63 - 1
"""What is only compared may be so large."""

_SPANS = {
    LONGEST: "it is in milliseconds, a year at most",
    CENTURY: "it is in milliseconds, a hundred years at most",
}


def check_policies(policies: Policies) -> None:
    """Raise an error that names the first field that cannot be."""
    retry, timeouts, catch_up, retention = (
        policies.retry, policies.timeouts, policies.catch_up, policies.retention
    )  # fmt: skip
    if not retry.factor >= 1:
        raise InvalidInputError("retry.factor", f"must be at least 1, and is {retry.factor}")
    for name, value, least, most in (
        ("max_concurrent", policies.max_concurrent, 1, _LARGEST),
        ("max_buffer_size", policies.max_buffer_size, 1, _LARGEST),
        ("backfill_limit", policies.backfill_limit, 0, _LARGEST),
        ("start_attempts", policies.start_attempts, 1, _LARGEST),
        ("finished_ttl", policies.finished_ttl, 1, CENTURY),
        ("retry.attempts", retry.attempts, 1, _LARGEST),
        ("retry.initial_delay", retry.initial_delay, 0, LONGEST),
        ("retry.max_delay", retry.max_delay, 0, LONGEST),
        ("catch_up.window", catch_up.window, 0, _LARGEST),
        ("catch_up.grace", catch_up.grace, 0, _LARGEST),
        ("catch_up.spread", catch_up.spread, 0, CENTURY),
        ("timeouts.start", timeouts.start, 1, CENTURY),
        ("timeouts.run", timeouts.run, 1, CENTURY),
        ("timeouts.heartbeat", timeouts.heartbeat, 1, CENTURY),
        ("timeouts.cancel", timeouts.cancel, 0, CENTURY),
        ("retention.age", retention.age, 1, CENTURY),
        ("retention.count", retention.count, 0, CENTURY),
    ):
        if value is not None and value < least:
            raise InvalidInputError(name, f"must be at least {least}, and is {value}")
        if value is not None and value > most:
            # A number that is too large is mostly one of the wrong unit.
            hint = _SPANS.get(most) if name != "retention.count" else None
            raise InvalidInputError(name, f"must be at most {most}, and is {value}", hint=hint)
