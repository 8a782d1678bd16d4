"""Every so many seconds: an arithmetic progression of instants, whatever clocks do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from math import gcd

from horae.spec.civil import DAY, END, START, every_nth_bit
from horae.spec.civilset import CivilSet
from horae.spec.zone import Zone


class Interval:
    """The instants that leave ``phase`` when divided by ``every``."""

    __slots__ = ("every", "phase")

    def __init__(self, every: int, phase: int) -> None:
        self.every = every
        self.phase = phase % every

    def next_after(self, instant: int) -> int | None:
        found = instant + self.every - (instant - self.phase) % self.every
        return found if found < END else None

    def previous(self, instant: int) -> int | None:
        found = instant - (instant - self.phase) % self.every
        return found if found >= START else None

    def count(self, after: int, until: int) -> int:
        until = min(until, END - 1)
        return max((until - self.phase) // self.every - (after - self.phase) // self.every, 0)

    def span(self, after: int, until: int, limit: int) -> list[int]:
        first = self.next_after(after)
        if first is None:
            return []
        until = min(until, END - 1, first + (limit - 1) * self.every)
        return list(range(first, until + 1, self.every))

    def bits(self, first: int, end: int) -> int:
        ahead = (self.phase - first) % self.every
        width = end - first
        return every_nth_bit(self.every, width) << ahead & ((1 << width) - 1) if ahead < width else 0


class ThinnedInterval:
    """An interval without the instants whose labels are excluded.

    An instant of the interval has, on a day with a given offset, only certain seconds of the day:
    those of one remainder modulo the greatest common divisor of interval and day. What the
    exclusions leave of these is a civil set, which can be searched; so that even an interval whose
    every instant is excluded is answered at once.
    """

    __slots__ = ("_allowed", "_divisor", "_interval", "_sets", "_zone")

    def __init__(self, interval: Interval, zone: Zone, allowed: Callable[[int], CivilSet]) -> None:
        self._interval = interval
        self._zone = zone
        self._allowed = allowed
        self._divisor = gcd(interval.every, DAY)
        self._sets: dict[int, CivilSet] = {}

    def next_after(self, instant: int) -> int | None:
        return self._next_within(instant, END)

    def _next_within(self, instant: int, until: int) -> int | None:
        """The first instant after one, up to and including ``until``: beyond that there may be none for decades."""
        found = self._interval.next_after(instant)
        starts, offsets = self._zone.starts, self._zone.offsets
        while found is not None and found <= until:
            k = bisect_right(starts, found) - 1
            label = self._set(offsets[k]).next(found + offsets[k])
            end = starts[k + 1] if k + 1 < len(starts) else END
            if label is None or label - offsets[k] >= end:
                candidate = end
            elif label - offsets[k] == found:
                return found
            else:
                candidate = label - offsets[k]
            found = self._interval.next_after(candidate - 1)
        return None

    def previous(self, instant: int) -> int | None:
        found = self._interval.previous(instant)
        starts, offsets = self._zone.starts, self._zone.offsets
        while found is not None:
            k = bisect_right(starts, found) - 1
            label = self._set(offsets[k]).previous(found + offsets[k])
            if label is None or label - offsets[k] < starts[k]:
                candidate = starts[k] - 1
            elif label - offsets[k] == found:
                return found
            else:
                candidate = label - offsets[k]
            found = self._interval.previous(candidate)
        return None

    def count(self, after: int, until: int) -> int:
        if after >= until:
            return 0
        if self._interval.every == self._divisor:
            # Every day has the same seconds, which are counted by months.
            return sum(
                self._set(offset).count(begin + offset, close + offset)
                for begin, close, offset in self._stretches(after + 1, until + 1)
            )
        if self._interval.every * 4 > DAY:  # so few that they are sooner walked
            return len(self.span(after, until, until - after))
        return sum(self.bits(*day).bit_count() for day in self._zone.days(after + 1, until + 1))

    def span(self, after: int, until: int, limit: int) -> list[int]:
        found: list[int] = []
        instant = self._next_within(after, until)
        while instant is not None and len(found) < limit:
            found.append(instant)
            instant = self._next_within(instant, until)
        return found

    def bits(self, first: int, end: int) -> int:
        found = self._interval.bits(first, end)
        left = 0
        for begin, close, offset in self._stretches(first, end) if found else ():
            left |= self._set(offset).bits(begin + offset, close + offset) << (begin - first)
        return found & left

    def _stretches(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a range with a constant offset each: where it begins and ends, and the offset."""
        starts, offsets = self._zone.starts, self._zone.offsets
        k = bisect_right(starts, first) - 1
        while first < end:
            close = min(end, starts[k + 1]) if k + 1 < len(starts) else end
            yield first, close, offsets[k]
            first, k = close, k + 1

    def _set(self, offset: int) -> CivilSet:
        """What is left of the seconds of the day that the interval can hit under an offset."""
        remainder = (self._interval.phase + offset) % self._divisor
        found = self._sets.get(remainder)
        if found is None:
            seconds = every_nth_bit(self._divisor, DAY) << remainder & ((1 << DAY) - 1)
            found = self._sets[remainder] = self._allowed(seconds)
        return found
