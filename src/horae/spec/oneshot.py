"""Times that were given one by one: instants, and labels."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from horae.spec.civil import CivilRule


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

    def span(self, after: int, until: int, limit: int) -> list[int]:
        first = bisect_right(self._instants, after)
        last = bisect_right(self._instants, until)
        return list(self._instants[first : min(last, first + limit)])


class Labels(CivilRule):
    """A sorted list of labels: times of a clock on a wall, in whatever zone the spec has."""

    __slots__ = ("_labels",)

    def __init__(self, labels: tuple[int, ...]) -> None:
        self._labels = labels

    def next(self, label: int) -> int | None:
        at = bisect_left(self._labels, label)
        return self._labels[at] if at < len(self._labels) else None

    def previous(self, label: int) -> int | None:
        at = bisect_right(self._labels, label)
        return self._labels[at - 1] if at else None

    def span(self, first: int, end: int, limit: int) -> list[int]:
        begin, stop = bisect_left(self._labels, first), bisect_left(self._labels, end)
        return list(self._labels[begin : min(stop, begin + limit)])
