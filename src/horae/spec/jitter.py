"""Jitter: the offset of a slot's fire time from its nominal time. It is a hash, so that it is the same on every node.

The offset is derived from the slot's key, ``sha256(schedule_id:epoch_seconds)``, which every
node computes alike. All values are milliseconds.
"""

from __future__ import annotations

from hashlib import sha256


def slot_key(schedule_id: str, nominal: int) -> str:
    """The key of an automatic slot: a hash of the schedule's id and the nominal UTC second."""
    return sha256(f"{schedule_id}:{nominal}".encode("utf-8", "surrogatepass")).hexdigest()


def offset_after(key: str, span: int, gap: int | None) -> int:
    """An offset of at least 0, below the span and below the gap to the next raw time."""
    width = span if gap is None else min(span, gap)
    return _share(key, width)


def offset_around(
    key: str, span: int, gap_before: int | None, gap_after: int | None, earliest: int | None
) -> int:
    """An offset within ± span, at most half a gap towards a neighbour, at least ``earliest``."""
    low = -span if gap_before is None else -min(span, gap_before // 2)
    high = span if gap_after is None else min(span, gap_after // 2)
    if earliest is not None:
        low = max(low, earliest)
    return low + _share(key, high - low + 1)


def _share(key: str, width: int) -> int:
    """A whole number from 0 up to but not including width, spread evenly over keys."""
    return int(key[:16], 16) * width >> 64
