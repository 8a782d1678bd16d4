"""From labels to instants: what a clock change does to a rule written in civil time.

A zone's history is a row of stretches with a constant offset. Within one, a label is an instant
minus the offset, without ambiguity. A clock set forward leaves a hole between the labels of
two stretches (a gap); one set back makes the labels of two stretches overlap (a fold). The policies
for both are settled once, when the timeline is made: ``fold`` by cutting the overlap off one of the
two stretches, ``gap`` by what a label in the hole stands for.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from functools import lru_cache
from typing import Literal

from horae.spec.civil import END, CivilRule
from horae.spec.duration import duration_text
from horae.spec.zone import Zone, load_zone

Gap = Literal["skip", "shift"]
Fold = Literal["both", "first", "last"]

DEBIAN_LIMIT = 3 * 3600
"""Debian's cron treats a change of this many seconds or more as a corrected clock, and does not adjust for it."""


class Timeline:
    """The stretches of a zone, cut to a fold policy, and the holes that a gap policy fills.

    Stretch *k* covers the labels from ``firsts[k]`` up to but not including ``ends[k]``; an instant in
    it is the label minus ``offsets[k]``. ``moved[k]`` says that the labels in the hole before it happen
    at its first instant.
    """

    __slots__ = ("begins", "closes", "ends", "firsts", "moved", "offsets")

    def __init__(self, zone: Zone, gap: Gap, fold: Fold, limit: int | None = None) -> None:
        count = len(zone.offsets)
        bounds = [*zone.starts, END]
        trims = [zone.offsets[k - 1] - zone.offsets[k] for k in range(1, count)]
        begins, closes = bounds[:-1], bounds[1:]
        self.moved = [False] * count
        for k, overlap in enumerate(trims, start=1):
            if limit is not None and abs(overlap) >= limit:
                continue
            if overlap < 0:
                self.moved[k] = gap == "shift"
            elif fold == "first":
                begins[k] = min(begins[k] + overlap, closes[k])
            elif fold == "last":
                closes[k - 1] = max(closes[k - 1] - overlap, begins[k - 1])
        self.begins = begins
        self.closes = closes
        self.offsets = list(zone.offsets)
        self.firsts = [begin + offset for begin, offset in zip(begins, zone.offsets, strict=True)]
        self.ends = [close + offset for close, offset in zip(closes, zone.offsets, strict=True)]

    def next_after(self, rule: CivilRule, instant: int) -> int | None:
        """The first instant strictly after one at which a rule happens."""
        k = bisect_right(self.closes, instant)
        if k == len(self.closes):
            return None
        begin = self.begins[k]
        searched = (begin if begin > instant else instant + 1) + self.offsets[k]
        label = rule.next(searched)
        while True:
            if label is not None and label < self.ends[k]:
                return label - self.offsets[k]
            k += 1
            if k == len(self.ends):
                return None
            if self.firsts[k] < searched:
                # A fold: labels before the start of the search repeat.
                searched = self.firsts[k]
                label = rule.next(searched)
                continue
            if label is None:
                return None
            # Nothing happens between the labels searched and found, so go to the stretch that
            # holds the label found, or to the one after the hole that holds it.
            k = bisect_right(self.ends, label, k)
            if k == len(self.ends):
                return None
            if label < self.firsts[k]:
                if self.moved[k] and not rule.excludes(self.firsts[k]):
                    return self.begins[k]
                searched = self.firsts[k]
                label = rule.next(searched)

    def previous(self, rule: CivilRule, instant: int) -> int | None:
        """The last instant at or before one at which a rule happens."""
        k = bisect_right(self.begins, instant) - 1
        if k < 0:
            return None
        searched = min(instant, self.closes[k] - 1) + self.offsets[k]
        label = rule.previous(searched)
        while True:
            if label is not None and label >= self.firsts[k]:
                return label - self.offsets[k]
            if k > 0 and self.ends[k - 1] - 1 > searched:
                k -= 1
                searched = self.ends[k] - 1
                label = rule.previous(searched)
                continue
            if label is None:
                return None
            k = bisect_right(self.firsts, label, 0, k) - 1
            if k < 0:
                return None
            if label >= self.ends[k]:
                after = k + 1
                if self.moved[after] and not rule.excludes(self.firsts[after]):
                    return self.begins[after]
                searched = self.ends[k] - 1
                label = rule.previous(searched)

    def span(self, rule: CivilRule, after: int, until: int, limit: int) -> list[int]:
        """The instants later than ``after``, up to and including ``until``; at most ``limit``."""
        found: list[int] = []
        k = bisect_right(self.closes, after + 1)
        while k < len(self.closes) and len(found) < limit and self.begins[k] <= until:
            offset = self.offsets[k]
            first = max(after + 1, self.begins[k]) + offset
            end = min(until + 1, self.closes[k]) + offset
            labels = rule.span(first, end, limit - len(found))
            if self._moved_here(rule, k, after) and (not labels or labels[0] != self.firsts[k]):
                found.append(self.begins[k])
            found += [label - offset for label in labels]
            k += 1
        return found[:limit]

    def count(self, rule: CivilRule, after: int, until: int) -> int:
        """How many instants there are later than ``after``, up to and including ``until``."""
        total = 0
        k = bisect_right(self.closes, after + 1)
        while k < len(self.closes) and self.begins[k] <= until:
            offset, first = self.offsets[k], max(after + 1, self.begins[k])
            total += rule.count(first + offset, min(until + 1, self.closes[k]) + offset)
            if self._moved_here(rule, k, after) and rule.next(self.firsts[k]) != self.firsts[k]:
                total += 1
            k += 1
        return total

    def bits(self, rule: CivilRule, first: int, end: int) -> int:
        """The instants from ``first`` up to but not including ``end`` as a bit set, bit 0 for ``first``."""
        found = 0
        k = bisect_right(self.closes, first)
        while k < len(self.closes) and self.begins[k] < end:
            begin, close = max(first, self.begins[k]), min(end, self.closes[k])
            if begin < close:
                labels = rule.bits(begin + self.offsets[k], close + self.offsets[k])
                found |= labels << (begin - first)
            if self._moved_here(rule, k, first - 1):
                found |= 1 << (self.begins[k] - first)
            k += 1
        return found

    def _moved_here(self, rule: CivilRule, k: int, after: int) -> bool:
        """Whether the hole before a stretch moved something to its first instant."""
        if not self.moved[k] or self.begins[k] <= after or rule.excludes(self.firsts[k]):
            return False
        label = rule.next(self.ends[k - 1])
        return label is not None and label < self.firsts[k]

    def instants(self, label: int) -> list[int]:
        """The instants at which a clock shows a label: one, two in a fold, none in a gap."""
        k = bisect_right(self.ends, label)
        found = []
        while k < len(self.ends) and self.firsts[k] <= label:
            found.append(label - self.offsets[k])
            k += 1
        return found


@lru_cache(maxsize=2048)
def timeline(zone: str, gap: Gap = "skip", fold: Fold = "both", limit: int | None = None) -> Timeline:
    """The timeline of a zone under the stated policies; shared by all specs that ask for it."""
    return Timeline(load_zone(zone), gap, fold, limit)


def clock_note(zone: str, previous: datetime, time: datetime) -> str:
    """Describe the clock changes of a zone between two times, and which of two equal local times the later is; empty if neither."""
    instant, offsets = int(time.timestamp()), load_zone(zone)
    offset = offsets.offset_at(instant)
    moved = offset - offsets.offset_at(int(previous.timestamp()))
    notes = []
    if moved:
        notes.append(f"clocks went {'forward' if moved > 0 else 'back'} {duration_text(abs(moved) * 1000)}")
    same = timeline(zone).instants(instant + offset)
    if len(same) > 1:
        notes.append("first of two" if instant == same[0] else "second of two")
    return ", ".join(notes)
