"""Whether policies make sense: what is wrong is said before anything is stored."""

from __future__ import annotations

from horae.errors import InvalidInputError
from horae.model import Policies

LONGEST = 366 * 24 * 60 * 60 * 1000
"""A year: longer spans are taken for a mistake of units."""


def check_policies(policies: Policies) -> None:
    """Raise an error that names the first field that cannot be."""
    retry, timeouts, catch_up = policies.retry, policies.timeouts, policies.catch_up
    _at_least("max_concurrent", policies.max_concurrent, 1)
    _at_least("max_pending", policies.max_pending, 1)
    _at_least("backfill_limit", policies.backfill_limit, 0)
    _at_least("start_attempts", policies.start_attempts, 1)
    _at_least("retry.attempts", retry.attempts, 1)
    if not retry.factor >= 1:
        raise InvalidInputError("retry.factor", f"must be at least 1, and is {retry.factor}")
    for name, span in (
        ("retry.first_delay", retry.first_delay),
        ("retry.longest_delay", retry.longest_delay),
        ("catch_up.window", catch_up.window),
        ("catch_up.grace", catch_up.grace),
        ("catch_up.spread", catch_up.spread),
        ("timeouts.cancel", timeouts.cancel),
        ("retention.count", policies.retention.count),
    ):
        _at_least(name, span, 0)
    for name, span in (
        ("timeouts.start", timeouts.start),
        ("timeouts.run", timeouts.run),
        ("timeouts.heartbeat", timeouts.heartbeat),
        ("retention.age", policies.retention.age),
        ("keep_finished", policies.keep_finished),
    ):
        _at_least(name, span, 1)
    for name, span in (
        ("retry.first_delay", retry.first_delay),
        ("retry.longest_delay", retry.longest_delay),
    ):
        if span > LONGEST:
            raise InvalidInputError(name, f"is longer than a year: {span} ms")


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise InvalidInputError(name, f"must be at least {least}, and is {value}")
