"""Validate policies before they are stored."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from horae.errors import InvalidInputError
from horae.model import Policies, Retention, RetryPolicy, Timeouts
from horae.spec.duration import milliseconds

_LARGEST = 2**63 - 1
"""The upper bound of values that are only compared."""

BOUNDS: dict[type[msgspec.Struct], dict[str, tuple[float, float] | tuple[str, str]]] = {
    Policies: {
        "max_concurrent": (1, _LARGEST), "max_buffer_size": (1, _LARGEST), "backfill_limit": (0, _LARGEST),
        "start_attempts": (1, _LARGEST), "finished_ttl": ("1ms", "36600d"),
    },
    RetryPolicy: {
        "attempts": (1, _LARGEST), "initial_delay": ("0s", "366d"), "factor": (1, 1_000_000), "max_delay": ("0s", "366d"),
    },
    Timeouts: {"start": ("1ms", "36600d"), "run": ("1ms", "36600d"), "heartbeat": ("1ms", "36600d")},
    Retention: {"age": ("1ms", "36600d"), "count": (0, 2**53 - 1)},
}  # fmt: skip
"""The bounds of every policy that has any. Every duration is also between 0 and a hundred years."""


@lru_cache(maxsize=4096)
def check_policies(policies: Policies) -> None:
    """Raise an error that names the first field out of its bounds. Many schedules have the same policies."""
    for path, part in (
        ("policies.", policies), ("policies.retry.", policies.retry), ("policies.timeouts.", policies.timeouts),
        ("policies.retention.", policies.retention),
    ):  # fmt: skip
        for field, (least, most) in BOUNDS[type(part)].items():
            value = getattr(part, field)
            if value is None:
                continue
            if not _size(value) >= _size(least):
                raise InvalidInputError(path + field, f"must be at least {least}, and is {value}")
            if _size(value) > _size(most):
                raise InvalidInputError(path + field, f"must be at most {most}, and is {value}")


def _size(value: float | str) -> float:
    return milliseconds(value) if isinstance(value, str) else value
