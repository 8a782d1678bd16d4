"""Civil time as plain numbers, and the limits of what Horae computes.

An *instant* is a number of seconds since 1970-01-01T00:00:00Z. A *label* is what a wall clock
shows, as the number of seconds since 1970-01-01T00:00:00 on that clock: the label of an instant is
the instant plus the offset in force. Dates before :data:`FIRST_YEAR` and after :data:`LAST_YEAR`
are never searched, so that every search ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date
from functools import lru_cache

DAY = 86400
FIRST_YEAR = 1900
LAST_YEAR = 2199
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def day_number(day: date) -> int:
    """Days since 1970-01-01 (negative before)."""
    return day.toordinal() - EPOCH_ORDINAL


START = day_number(date(FIRST_YEAR, 1, 1)) * DAY
"""The first instant, and the first label, that Horae considers."""

END = day_number(date(LAST_YEAR + 1, 1, 1)) * DAY
"""The end of the instants and labels that Horae considers (exclusive)."""


class CivilRule(ABC):
    """A rule that names labels."""

    __slots__ = ()

    @abstractmethod
    def next(self, label: int) -> int | None:
        """The first label at or after one."""

    @abstractmethod
    def previous(self, label: int) -> int | None:
        """The last label at or before one."""

    @abstractmethod
    def span(self, first: int, end: int, limit: int) -> list[int]:
        """The labels from ``first`` up to but not including ``end``; at most ``limit``."""

    def count(self, first: int, end: int) -> int:
        """How many labels there are from ``first`` up to but not including ``end``."""
        return len(self.span(first, end, end - first)) if first < end else 0

    def bits(self, first: int, end: int) -> int:
        """The labels from ``first`` up to but not including ``end`` as a bit set, bit 0 for ``first``."""
        return sum(1 << (label - first) for label in self.span(first, end, end - first))

    def excludes(self, label: int) -> bool:  # noqa: ARG002 - most rules exclude nothing
        """Whether a label is excluded, even for a time that a clock change moved there."""
        return False


def joined(times_on: Callable[[int], int], first: int, end: int) -> int:
    """The seconds from ``first`` up to but not including ``end`` as a bit set, from the bit sets of days."""
    day, second = divmod(first, DAY)
    if second == 0 and end - first == DAY:
        return times_on(day)
    bits = 0
    for later in range((end - 1) // DAY - day + 1):
        bits |= times_on(day + later) << (later * DAY)
    return bits >> second & ((1 << (end - first)) - 1)


def months_of(first_day: int, last_day: int) -> Iterator[tuple[int, int, int]]:
    """The months that some days lie in, each with those of its days: (year, month, bits)."""
    while first_day <= last_day:
        civil = date.fromordinal(first_day + EPOCH_ORDINAL)
        left = monthrange(civil.year, civil.month)[1] - civil.day + 1
        count = min(left, last_day - first_day + 1)
        yield civil.year, civil.month, ((1 << count) - 1) << (civil.day - 1)
        first_day += left


@lru_cache(maxsize=256)
def every_nth_bit(step: int, length: int) -> int:
    """The bits 0, step, 2 · step, … below a length, by doubling."""
    bits, width = 1, step
    while width < length:
        bits |= bits << width
        width *= 2
    return bits & ((1 << length) - 1)


def lowest(bits: int) -> int:
    """The position of the lowest set bit."""
    return (bits & -bits).bit_length() - 1


def members(bits: int) -> list[int]:
    """The positions of all set bits, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def bit_range(first: int, last: int, step: int = 1) -> int:
    """The bit set {first, first + step, …} up to and including last."""
    if step == 1:
        return (2 << last) - (1 << first)
    bits = 0
    for value in range(first, last + 1, step):
        bits |= 1 << value
    return bits
