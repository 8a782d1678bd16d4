"""Intervals in seconds: an arithmetic progression of instants, unaffected by clock changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from horae.spec.civil import END, START, every_nth_bit
from horae.spec.civil_set import CivilSet
from horae.spec.day_search import NARROWEST, WIDEST, DayRule, Group
from horae.spec.wall_clock_interval import Stride
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

    Between two clock changes it is a stride of labels on the days and times that the exclusions leave.
    """

    __slots__ = ("_allowed", "_barren", "_interval", "_rules", "_zone")

    def __init__(self, interval: Interval, zone: Zone, allowed: CivilSet) -> None:
        self._interval = interval
        self._zone = zone
        self._allowed = allowed
        self._barren = END  # searches have shown that nothing follows from this instant on
        self._rules: dict[int, _Left] = {}

    def next_after(self, instant: int) -> int | None:
        if instant >= self._barren:
            return None
        soon = self._interval.next_after(instant)
        if soon is None or self._allowed.holds(soon + self._zone.offset_at(soon)):
            return soon
        width = NARROWEST
        for begin, close, offset in self._stretches(soon + 1, END):
            found = self._rule(offset).first(begin + offset, min(close + offset, END), width)
            if found is not None:
                return found - offset
            width = WIDEST
        self._barren = min(self._barren, instant)
        return None

    def previous(self, instant: int) -> int | None:
        starts, offsets = self._zone.starts, self._zone.offsets
        k, end, width = bisect_right(starts, instant) - 1, min(instant + 1, END), NARROWEST
        while k >= 0:
            found = self._rule(offsets[k]).last(max(starts[k] + offsets[k], START), end + offsets[k], width)
            if found is not None:
                return found - offsets[k]
            end, k, width = starts[k], k - 1, WIDEST
        return None

    def count(self, after: int, until: int) -> int:
        return sum(
            self._rule(offset).counted(begin + offset, close + offset)
            for begin, close, offset in self._stretches(after + 1, until + 1)
        )

    def span(self, after: int, until: int, limit: int) -> list[int]:
        found: list[int] = []
        for begin, close, offset in self._stretches(after + 1, until + 1):
            labels = self._rule(offset).listed(begin + offset, close + offset, limit - len(found))
            found += [label - offset for label in labels]
            if len(found) >= limit:
                break
        return found

    def bits(self, first: int, end: int) -> int:
        found = 0
        for begin, close, offset in self._stretches(first, end):
            found |= self._rule(offset).bits_of(begin + offset, close + offset) << (begin - first)
        return found

    def _stretches(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a range with a constant offset each: where it begins and ends, and the offset."""
        starts, offsets = self._zone.starts, self._zone.offsets
        k = bisect_right(starts, first) - 1
        while first < end:
            close = min(end, starts[k + 1]) if k + 1 < len(starts) else end
            yield first, close, offsets[k]
            first, k = close, k + 1

    def _rule(self, offset: int) -> _Left:
        """The interval as a stride of labels, under an offset."""
        phase = (self._interval.phase + offset) % self._interval.every
        found = self._rules.get(phase)
        if found is None:
            found = self._rules[phase] = _Left(self._allowed, Stride(self._interval.every, phase))
        return found


class _Left(DayRule):
    """A stride without its excluded labels."""

    __slots__ = ("_allowed",)

    def __init__(self, allowed: CivilSet, stride: Stride) -> None:
        super().__init__(stride)
        self._allowed = allowed

    @property
    def envelope(self) -> int:
        return self._allowed.envelope

    def groups(self, first: int, width: int) -> list[Group]:
        return self._allowed.groups(first, width)

    def times_of(self, day: int) -> int:
        return self._allowed.times_on(day)
