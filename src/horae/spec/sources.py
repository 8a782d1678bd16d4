"""The sources of a spec's instants, with the exclusions applied."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import msgspec

from horae.spec import cron_field
from horae.spec.calendar_bits import ALWAYS, Calendar
from horae.spec.civil import DAY, END, START, CivilRule
from horae.spec.civil_set import CivilSet
from horae.spec.clock_change import DEBIAN_LIMIT, Timeline, timeline
from horae.spec.compiled import Elements, Every
from horae.spec.interval import Interval, ThinnedInterval
from horae.spec.listed_times import Instants, Labels
from horae.spec.rrule import Recurrence
from horae.spec.rrule_parser import SUB_DAILY, read_rrule
from horae.spec.zone import load_zone


class Source(Protocol):
    """A source of instants."""

    def next_after(self, instant: int) -> int | None:
        """The first instant strictly after one."""

    def previous(self, instant: int) -> int | None:
        """The last instant at or before one."""

    def count(self, after: int, until: int) -> int:
        """How many instants there are later than ``after``, up to and including ``until``."""

    def span(self, after: int, until: int, limit: int) -> list[int]:
        """The instants later than ``after``, up to and including ``until``; at most ``limit``."""

    def bits(self, first: int, end: int) -> int:
        """The instants from ``first`` up to but not including ``end`` as a bit set, bit 0 for ``first``."""


class CivilSource:
    """A rule in civil time, on the timeline of a zone, from one instant to another (both included)."""

    __slots__ = ("_first", "_last", "line", "rule")

    def __init__(self, rule: CivilRule, line: Timeline, first: int = START, last: int = END) -> None:
        self.rule = rule
        self.line = line
        self._first = first
        self._last = last

    def next_after(self, instant: int) -> int | None:
        if instant < self._first:
            instant = self._first - 1
        found = self.line.next_after(self.rule, instant)
        return None if found is None or found > self._last else found

    def previous(self, instant: int) -> int | None:
        found = self.line.previous(self.rule, min(instant, self._last))
        return None if found is None or found < self._first else found

    def count(self, after: int, until: int) -> int:
        return self.line.count(self.rule, max(after, self._first - 1), min(until, self._last))

    def span(self, after: int, until: int, limit: int) -> list[int]:
        return self.line.span(self.rule, max(after, self._first - 1), min(until, self._last), limit)

    def bits(self, first: int, end: int) -> int:
        begin, stop = max(first, self._first), min(end, self._last + 1)
        return self.line.bits(self.rule, begin, stop) << (begin - first) if begin < stop else 0


class Union:
    """Several sources as one. It caches the last answer of each, because most answers are the same for the next question."""

    __slots__ = ("_following", "_preceding", "_sources")

    def __init__(self, sources: tuple[Source, ...]) -> None:
        self._sources = sources
        # For each source: the next, or previous, instant for all questions from one instant up to but not including another.
        self._following = [(1, 0)] * len(sources)
        self._preceding = [(1, 0, 0)] * len(sources)

    def next_after(self, instant: int) -> int | None:
        """The first instant strictly after one."""
        if len(self._sources) == 1:
            return self._sources[0].next_after(instant)
        earliest = END
        for place, source in enumerate(self._sources):
            first, found = self._following[place]
            if not first <= instant < found:
                at = source.next_after(instant)
                found = END if at is None else at
                self._following[place] = (instant, found)
            earliest = min(earliest, found)
        return None if earliest == END else earliest

    def previous(self, instant: int) -> int | None:
        """The last instant at or before one."""
        latest = START - 1
        for place, source in enumerate(self._sources):
            first, end, found = self._preceding[place]
            if not first <= instant < end:
                at = source.previous(instant)
                found = START - 1 if at is None else at
                first, following = self._following[place]
                end = following if first <= instant < following else instant + 1
                self._preceding[place] = (found, end, found)
            latest = max(latest, found)
        return None if latest < START else latest


Closed = tuple[tuple[tuple[int, int], int], ...]
"""Days on which nothing happens: ((year, month), bits of days), …"""


def sources_of(
    elements: Elements, excluded: tuple[Calendar, ...], closed: Closed, *, cold: bool = False
) -> list[tuple[str, Source]]:
    """The sources of a spec's instants, without what the given calendars and days exclude, each with its element's name.

    With ``cold``, they share no cached work with other specs.
    """
    sources: list[tuple[str, Source]] = []
    civil_set = _civil_set.__wrapped__ if cold else _civil_set
    fixed, running = _lines(elements)
    calendars = elements.crons + tuple(_limited(calendar) for calendar in elements.calendars)
    for line in dict.fromkeys((fixed, running)):
        own = tuple(c for c in calendars if (running if c.follows_real_time else fixed) is line)
        if own:
            name = "crons" if elements.crons else "calendars"
            sources.append((name, CivilSource(civil_set(own, excluded, closed), line)))
    allowed = CivilSet((ALWAYS,), excluded, dict(closed)) if excluded or closed else None
    for n, text in enumerate(elements.rrules):
        sources.append((f"rrules[{n}]", _recurrence(text, elements, allowed, fixed, running)))
    if elements.labels:
        sources.append(("times", CivilSource(Labels(elements.labels, allowed), fixed)))
    zone = load_zone(elements.timezone)
    for n, every in enumerate(elements.intervals):
        interval = Interval(every.every, _phase(every, elements.start_at))
        thinned = interval if allowed is None else ThinnedInterval(interval, zone, allowed)
        sources.append((f"intervals[{n}]", thinned))
    if elements.instants:
        sources.append(("times", Instants(elements.instants, zone, allowed)))
    return sources


def _limited(calendar: Calendar) -> Calendar:
    """Calendars know the years 2000 to 2100, crons any."""
    if calendar.years is not None:
        return calendar
    return msgspec.structs.replace(calendar, years=cron_field.YEAR.every.bits)


@lru_cache(maxsize=16384)
def _civil_set(own: tuple[Calendar, ...], excluded: tuple[Calendar, ...], closed: Closed) -> CivilSet:
    """Specs that differ only in their zone share the work on days and times."""
    return CivilSet(own, excluded, dict(closed))


def _lines(elements: Elements) -> tuple[Timeline, Timeline]:
    """The timelines for fixed times and for those that follow real time (wildcards)."""
    if elements.clock_change == "debian":
        fixed = timeline(elements.timezone, "shift", "first", DEBIAN_LIMIT)
        return fixed, timeline(elements.timezone)
    line = timeline(elements.timezone, elements.gap, elements.fold)
    return line, line


def _phase(every: Every, start_at: int | None) -> int:
    return every.phase + (start_at or 0 if every.anchor == "start" else 0)


def _recurrence(
    text: str, elements: Elements, allowed: CivilSet | None, fixed: Timeline, running: Timeline
) -> CivilSource:
    """A recurrence. It starts where its text says, else with the window; UTC stamps are instants."""
    rule = read_rrule(text, "rrules")
    zone = load_zone(elements.timezone)

    def civil(instant: int) -> int:
        return instant + zone.offset_at(instant)

    start, first, until, last = START - START % DAY, START, None, END
    if rule.start is not None:
        start = civil(rule.start.label) if rule.start.utc else rule.start.label
        first = rule.start.label if rule.start.utc else START
    elif elements.start_at is not None:
        start = civil(elements.start_at)
    if rule.until is not None and rule.until.utc:
        last = rule.until.label
    elif rule.until is not None:
        until = rule.until.label + (DAY - 1 if rule.until.whole_day else 0)
    line = running if dict(rule.parts)["FREQ"] in SUB_DAILY else fixed
    return CivilSource(Recurrence(rule.parts, start, until, allowed), line, first, last)
