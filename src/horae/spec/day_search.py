"""Rules that name days and the times of these days, both as bits: how such a rule is searched, listed and counted.

A search handles a window of days as a whole: the rule names groups of days with equal times, and a stride, if there is one, says which
of them it hits. So a search skips empty years in a few steps, and examines a single day only if something happens on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from horae.spec.budget import charge
from horae.spec.calendar_bits import decoded
from horae.spec.civil import DAY, joined, lowest, members
from horae.spec.wall_clock_interval import Stride

NARROWEST, WIDEST = 32, 8192
"""The width in days of a search's first window, and of its widest one after windows without a match."""

_COUNTS_KEPT = 1024

Group = tuple[int, int]
"""Days, bit 0 for the first of a window, and the times of each, a bit per second."""


class DayRule(ABC):
    """A rule that names certain times of certain days, or those of them that a stride hits."""

    __slots__ = ("_counts", "stride")

    def __init__(self, stride: Stride | None = None) -> None:
        self.stride = stride
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    @abstractmethod
    def envelope(self) -> int:
        """A superset of the times of all days; always the same object."""

    @abstractmethod
    def groups(self, first: int, width: int) -> list[Group]:
        """The days of a window on which something may happen, grouped by their times; never without any."""

    @abstractmethod
    def times_of(self, day: int) -> int:
        """The times of a day, whether or not the stride hits them."""

    def times_on(self, day: int) -> int:
        """The times of a day at which something happens, a bit per second."""
        charge(2)
        times = self.times_of(day)
        return times & self.stride.hits(self.stride.remainder(day)) if times and self.stride else times

    def first(self, begin: int, end: int, width: int = NARROWEST) -> int | None:
        """The first label from ``begin`` up to but not including ``end``; ``width`` days are looked at first."""
        day, second = divmod(begin, DAY)
        last = (end - 1) // DAY
        while day <= last:
            if self.stride is not None:
                leapt = self.stride.next_day(self.envelope, day)
                if leapt is None or leapt > last:
                    return None
                if leapt > day:
                    # A long leap shows that hits are rare: expect few near this one.
                    day, second, width = leapt, 0, width if leapt - day < width else NARROWEST
            if second:
                if times := self.times_on(day) & -1 << second:
                    return _before(day * DAY + lowest(times), end)
                day, second = day + 1, 0
                continue
            width = min(width, last - day + 1)
            if days := self._days(day, width):
                day += lowest(days)
                return _before(day * DAY + lowest(self.times_on(day)), end)
            day, width = day + width, min(width * 4, WIDEST)
        return None

    def last(self, begin: int, end: int, width: int = NARROWEST) -> int | None:
        """The last label from ``begin`` up to but not including ``end``; ``width`` days are looked at first."""
        day, second = divmod(end - 1, DAY)
        first = begin // DAY
        while day >= first:
            if self.stride is not None:
                leapt = self.stride.previous_day(self.envelope, day)
                if leapt is None or leapt < first:
                    return None
                if leapt < day:
                    day, second, width = leapt, DAY - 1, width if day - leapt < width else NARROWEST
            if second < DAY - 1:
                if times := self.times_on(day) & (2 << second) - 1:
                    return _from(day * DAY + times.bit_length() - 1, begin)
                day, second = day - 1, DAY - 1
                continue
            width = min(width, day - first + 1)
            if days := self._days(day - width + 1, width):
                day += days.bit_length() - width
                return _from(day * DAY + self.times_on(day).bit_length() - 1, begin)
            day, width = day - width, min(width * 4, WIDEST)
        return None

    def listed(self, begin: int, end: int, limit: int) -> list[int]:
        """The labels from ``begin`` up to but not including ``end``; at most ``limit``."""
        found: list[int] = []
        for day, times in self._each(begin, end) if limit > 0 else ():
            found += [day * DAY + place for place in decoded(times, limit - len(found))]
            if len(found) == limit:
                break
        return found

    def counted(self, begin: int, end: int) -> int:
        """How many labels there are from ``begin`` up to but not including ``end``."""
        if begin >= end:
            return 0
        first, last = -(-begin // DAY), end // DAY
        if first > last:  # within one day
            return self._within(begin // DAY, begin, end).bit_count()
        total = 0
        if begin < first * DAY:
            total += self._within(first - 1, begin, end).bit_count()
        if end > last * DAY:
            total += self._within(last, begin, end).bit_count()
        while first < last:
            width = min(WIDEST, last - first)
            total += sum(self._number(days, times, first) for days, times in self.groups(first, width))
            first += width
        return total

    def bits_of(self, begin: int, end: int) -> int:
        """The labels from ``begin`` up to but not including ``end`` as a bit set, bit 0 for ``begin``."""
        charge(2 * ((end - begin) // DAY + 1))
        return joined(self.times_on, begin, end)

    def _days(self, first: int, width: int) -> int:
        """The days of a window on which something happens, bit 0 for the first."""
        found = 0
        for days, times in self.groups(first, width):
            found |= days if self.stride is None else self.stride.days_hit(times, days, first)
        return found

    def _number(self, days: int, times: int, first: int) -> int:
        """How many labels some days have, bit 0 for ``first``, whose times are alike."""
        if self.stride is None:
            return days.bit_count() * times.bit_count()
        hit = self.stride.days_hit(times, days, first)
        if self.stride.is_single:
            return hit.bit_count()
        return sum(self._hits_on(first + day, times) for day in members(hit))

    def _hits_on(self, day: int, times: int) -> int:
        """How many of some times the stride hits on a day: the same on all days with its remainder."""
        stride = self.stride
        if stride is None:
            return times.bit_count()
        key = (stride.remainder(day), id(times))
        found = self._counts.get(key)
        if found is None:
            charge(8)
            if len(self._counts) == _COUNTS_KEPT:
                self._counts.clear()
            # The times are kept with it, so that no other object gets the same ``id()``.
            found = self._counts[key] = ((times & stride.hits(key[0])).bit_count(), times)
        return found[0]

    def _each(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The days of a range on which something happens, each with its times in the range."""
        day, last, width = begin // DAY, (end - 1) // DAY, NARROWEST
        while day <= last:
            width = min(width, last - day + 1)
            for place in members(self._days(day, width)):
                if times := self._within(day + place, begin, end):
                    yield day + place, times
            day, width = day + width, min(width * 4, WIDEST)

    def _within(self, day: int, begin: int, end: int) -> int:
        """The times of a day, cut to a range of labels."""
        times = self.times_on(day)
        if begin > day * DAY:
            times &= -1 << (begin - day * DAY)
        return times & ((1 << (end - day * DAY)) - 1) if end < (day + 1) * DAY else times


def _before(label: int, end: int) -> int | None:
    return label if label < end else None


def _from(label: int, begin: int) -> int | None:
    return label if label >= begin else None
