"""Times that were given one by one: instants, and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right

from horae.spec.civil import CivilRule
from horae.spec.civil_set import CivilSet
from horae.spec.zone import Zone


class _Listed(ABC):
    """A sorted list of times, without those that are excluded; exclusions are evaluated when a question needs them."""

    __slots__ = ("_allowed", "_times")

    def __init__(self, times: tuple[int, ...], allowed: CivilSet | None = None) -> None:
        self._times = times
        self._allowed = allowed

    @abstractmethod
    def _is_excluded(self, time: int) -> bool:
        """Whether one of the times is excluded."""

    def _first_from(self, place: int) -> int | None:
        while place < len(self._times) and self._is_excluded(self._times[place]):
            place += 1
        return self._times[place] if place < len(self._times) else None

    def _last_before(self, place: int) -> int | None:
        while place and self._is_excluded(self._times[place - 1]):
            place -= 1
        return self._times[place - 1] if place else None

    def _some(self, begin: int, end: int, limit: int) -> list[int]:
        if self._allowed is None:
            return list(self._times[begin : min(end, begin + limit)])
        found: list[int] = []
        for time in self._times[begin:end]:
            if len(found) == limit:
                break
            if not self._is_excluded(time):
                found.append(time)
        return found


class Instants(_Listed):
    """A sorted list of instants."""

    __slots__ = ("_zone",)

    def __init__(self, instants: tuple[int, ...], zone: Zone, allowed: CivilSet | None = None) -> None:
        super().__init__(instants, allowed)
        self._zone = zone

    def _is_excluded(self, time: int) -> bool:
        return self._allowed is not None and self._allowed.excludes(time + self._zone.offset_at(time))

    def next_after(self, instant: int) -> int | None:
        return self._first_from(bisect_right(self._times, instant))

    def previous(self, instant: int) -> int | None:
        return self._last_before(bisect_right(self._times, instant))

    def count(self, after: int, until: int) -> int:
        begin, end = bisect_right(self._times, after), bisect_right(self._times, until)
        return max(end - begin, 0) if self._allowed is None else len(self._some(begin, end, end))

    def span(self, after: int, until: int, limit: int) -> list[int]:
        return self._some(bisect_right(self._times, after), bisect_right(self._times, until), limit)

    def bits(self, first: int, end: int) -> int:
        return sum(1 << (instant - first) for instant in self.span(first - 1, end - 1, end - first))


class Labels(_Listed, CivilRule):
    """A sorted list of labels: wall-clock times, without those that are not allowed."""

    __slots__ = ()

    def _is_excluded(self, time: int) -> bool:
        return self.excludes(time)

    def excludes(self, label: int) -> bool:
        return self._allowed is not None and self._allowed.excludes(label)

    def next(self, label: int) -> int | None:
        return self._first_from(bisect_left(self._times, label))

    def previous(self, label: int) -> int | None:
        return self._last_before(bisect_right(self._times, label))

    def span(self, first: int, end: int, limit: int) -> list[int]:
        return self._some(bisect_left(self._times, first), bisect_left(self._times, end), limit)
