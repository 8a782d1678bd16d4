"""Times that were given one by one: instants, and labels."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from horae.spec.civil import CivilRule
from horae.spec.civilset import CivilSet


class Instants:
    """A sorted list of instants."""

    __slots__ = ("_instants",)

    def __init__(self, instants: tuple[int, ...]) -> None:
        self._instants = instants

    def next_after(self, instant: int) -> int | None:
        at = bisect_right(self._instants, instant)
        return self._instants[at] if at < len(self._instants) else None

    def previous(self, instant: int) -> int | None:
        at = bisect_right(self._instants, instant)
        return self._instants[at - 1] if at else None

    def count(self, after: int, until: int) -> int:
        return max(bisect_right(self._instants, until) - bisect_right(self._instants, after), 0)

    def span(self, after: int, until: int, limit: int) -> list[int]:
        first = bisect_right(self._instants, after)
        last = bisect_right(self._instants, until)
        return list(self._instants[first : min(last, first + limit)])

    def bits(self, first: int, end: int) -> int:
        return sum(1 << (instant - first) for instant in self.span(first - 1, end - 1, end - first))


class Labels(CivilRule):
    """A sorted list of labels: times of a clock on a wall, without those that are not allowed."""

    __slots__ = ("_allowed", "_labels")

    def __init__(self, labels: tuple[int, ...], allowed: CivilSet | None = None) -> None:
        self._allowed = allowed
        self._labels = tuple(label for label in labels if not self.excludes(label))

    def excludes(self, label: int) -> bool:
        return self._allowed is not None and not self._allowed.allows(label)

    def next(self, label: int) -> int | None:
        at = bisect_left(self._labels, label)
        return self._labels[at] if at < len(self._labels) else None

    def previous(self, label: int) -> int | None:
        at = bisect_right(self._labels, label)
        return self._labels[at - 1] if at else None

    def span(self, first: int, end: int, limit: int) -> list[int]:
        begin, stop = bisect_left(self._labels, first), bisect_left(self._labels, end)
        return list(self._labels[begin : min(stop, begin + limit)])
