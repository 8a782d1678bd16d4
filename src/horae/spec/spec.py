"""A spec: when a schedule fires. An immutable value with one question, asked in three ways.

``next_after`` (exclusive), ``previous`` (inclusive) and ``between`` (after the first, up to and
including the second) agree with each other. The same questions in plain seconds since the epoch,
for the engine, are ``next_instant``, ``previous_instant`` and ``instants``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from horae.errors import (
    InvalidCronExpressionError,
    InvalidSpecError,
    NaiveTimeError,
    UnknownCalendarError,
    UnknownTimezoneError,
)
from horae.spec.budget import LISTING_STEPS, begin_question, charge, steps_left
from horae.spec.calendar_bits import Calendar
from horae.spec.canonical import document_of, render_instant
from horae.spec.civil import DAY, END, START
from horae.spec.clock_change import Fold, Gap
from horae.spec.compiled import MAX_SHARED, Elements, check_sizes, closed_days, elements_of, read_calendar
from horae.spec.cron import Dialect, parse_cron
from horae.spec.document import (
    ClockChange,
    SharedCalendar,
    SpecDocument,
    read_document,
    read_shared,
)
from horae.spec.english import sentence_of
from horae.spec.jitter import offset_after, offset_around, slot_key
from horae.spec.sources import Closed, Source, Union, sources_of
from horae.spec.zone import Zone, ZoneLike, load_zone

MAX_AT_ONCE = 100_000
"""The maximum number of times in one answer."""

_REMEMBERED = 4
_SPARSE = 8
"""With fewer times a day than this, listing them costs less than a bit for each second of the day."""

_STRETCH = 32 * DAY
"""How many seconds are counted by one method, before the faster one is chosen anew."""

_SHORT_STRETCH = 4 * DAY
"""Like ``_STRETCH``, where a budget may end the count."""

SPECS_KEPT = 16_384
"""How many distinct specs are kept compiled."""

_TEXT = (str, bytes)  # a union would be created anew each time
SHORT_TEXT = 4096
"""Stored texts of up to so many characters are cached like specs; of longer texts only ``LONG_TEXTS_KEPT`` are."""

LONG_TEXTS_KEPT = 1024

Shared = tuple[tuple[str, SharedCalendar], ...]
_PLAIN = ("unix", "skip", "both", "literal")
_FIRST, _LAST = START + DAY, END - DAY - 1


class Spec:
    """When a schedule fires. Made by :meth:`parse` or :meth:`cron`, which share compiled work between equal specs.

    >>> spec = Spec.cron("30 2 * * *", timezone="America/New_York")
    >>> spec.next_after(datetime(2026, 3, 7, 12, tzinfo=UTC)).isoformat()
    '2026-03-09T06:30:00+00:00'
    """

    __slots__ = (
        "_cold",
        "_next",
        "_raw_union",
        "_sentence",
        "_sources",
        "_text",
        "_union",
        "affordable",
        "elements",
        "shared",
    )

    def __init__(self, elements: Elements, shared: Shared = (), *, cold: bool = False) -> None:
        self.elements = elements
        self.shared = shared
        """The shared calendars that it excludes, by name."""
        self._cold = cold
        self.affordable = False
        """Whether its cost was checked."""
        self._sources: tuple[Source, ...] | None = None
        self._union: Union | None = None
        self._raw_union: Union | None = None
        self._text: str | None = None
        self._sentence: str | None = None
        self._next: dict[int, int | None] = {}

    @classmethod
    def parse(
        cls,
        document: str | bytes | Mapping[str, Any] | SpecDocument,
        *,
        calendars: Mapping[str, SharedCalendar | Mapping[str, Any]] | None = None,
        zones: Collection[str] | None = None,
    ) -> Spec:
        """The spec of a JSON document (text or decoded).

        ``calendars`` are the shared calendars it may exclude by name; ``zones`` the time zones it may
        use, all installed ones by default.
        """
        if isinstance(document, _TEXT) and not calendars and zones is None:
            return (_parsed_short_text if len(document) <= SHORT_TEXT else _parsed_long_text)(document)
        return _read(document, calendars or {}, zones)

    @classmethod
    def cron(
        cls,
        expression: str,
        *,
        dialect: Dialect = "unix",
        timezone: ZoneLike | None = None,
        gap: Gap = "skip",
        fold: Fold = "both",
        clock_change: ClockChange = "literal",
    ) -> Spec:
        """The spec of one cron expression; in UTC if neither it nor ``timezone`` says otherwise."""
        if (dialect, gap, fold, clock_change) == _PLAIN or dialect == "posix":
            calendar = parse_cron(expression, dialect)
            name = "UTC" if timezone is None else load_zone(timezone).name
            if (gap, fold, clock_change) == _PLAIN[1:]:
                return _interned(Elements((calendar,), timezone=name), ())
        document = {"crons": [expression], "dialect": dialect, "timezone": timezone} | {
            "gap": gap, "fold": fold, "clock_change": clock_change
        }  # fmt: skip
        try:
            return cls.parse(document)
        except InvalidSpecError as error:
            cause = error.__cause__
            if isinstance(cause, InvalidCronExpressionError | UnknownTimezoneError):
                cause.show_hint()
                raise cause from cause.__cause__
            raise

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Spec):
            return NotImplemented
        return (self.elements, self.shared) == (other.elements, other.shared)

    def __hash__(self) -> int:
        return hash((self.elements, self.shared))

    def __reduce__(self) -> tuple[Any, ...]:
        return _interned, (self.elements, self.shared)

    @property
    def is_empty(self) -> bool:
        """Whether it names no times at all, and so never fires by itself."""
        e = self.elements
        return not (e.crons or e.calendars or e.intervals or e.rrules or e.instants or e.labels)

    @property
    def zone(self) -> Zone:
        """The time zone in which civil times are meant."""
        return load_zone(self.elements.timezone)

    @property
    def document(self) -> SpecDocument:
        """The canonical document, with the shared calendars that it excludes: parsing it gives this spec again."""
        begin_question()
        document = document_of(self.elements)
        return msgspec.structs.replace(document, shared=dict(self.shared)) if self.shared else document

    @property
    def text(self) -> str:
        """The canonical document, as JSON: what is stored."""
        if self._text is None:
            self._text = msgspec.json.encode(self.document).decode()
        return self._text

    def canonical(self) -> dict[str, Any]:
        """The canonical document as JSON values."""
        return msgspec.json.decode(self.text, type=dict[str, Any])

    def sentence(self) -> str:
        """The spec as an English sentence."""
        if self._sentence is None:
            begin_question()
            self._sentence = sentence_of(self.elements)
        return self._sentence

    def __repr__(self) -> str:
        return f"Spec({self.text})"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first nominal time strictly after a moment; ``None`` if there is none."""
        found = self.next_instant(_second(moment))
        return None if found is None else datetime.fromtimestamp(found, UTC)

    def previous(self, moment: datetime) -> datetime | None:
        """The last nominal time at or before a moment; ``None`` if there is none."""
        found = self.previous_instant(_second(moment))
        return None if found is None else datetime.fromtimestamp(found, UTC)

    def between(self, after: datetime, until: datetime, limit: int = 1000) -> list[datetime]:
        """The nominal times later than ``after``, up to and including ``until``; at most ``limit``."""
        found = self.instants(_second(after), _second(until), limit)
        make = datetime.fromtimestamp
        return [make(instant, UTC) for instant in found]

    def next_instant(self, instant: int) -> int | None:
        """The first nominal second strictly after one.

        The latest few answers are remembered: schedules that share a spec ask the same questions at the same time.
        """
        remembered = self._next
        known = remembered.get(instant, -1)  # one lookup: another thread may drop the entry between two
        if known != -1:
            return known
        found = self._next_instant(instant)
        if len(remembered) >= _REMEMBERED:
            remembered.clear()
        remembered[instant] = found
        return found

    def _next_instant(self, instant: int) -> int | None:
        begin_question()
        elements = self.elements
        if elements.start_at is not None and instant < elements.start_at:
            instant = elements.start_at - 1
        instant = max(instant, _FIRST)
        found = (self._union or self._united()).next_after(instant)
        if found is None or found > (_LAST if elements.end_at is None else elements.end_at):
            return None
        return found

    def previous_instant(self, instant: int) -> int | None:
        """The last nominal second at or before one."""
        begin_question()
        elements = self.elements
        if elements.end_at is not None and instant > elements.end_at:
            instant = elements.end_at
        found = (self._union or self._united()).previous(min(instant, _LAST))
        if found is None or found <= _FIRST or (elements.start_at is not None and found < elements.start_at):
            return None
        return found

    def instants(self, after: int, until: int, limit: int = 1000) -> list[int]:
        """The nominal seconds later than ``after``, up to and including ``until``; at most ``limit``."""
        begin_question(LISTING_STEPS)
        return self._listed(*self._within(after, until), limit)

    def _listed(self, after: int, until: int, limit: int) -> list[int]:
        limit = min(limit, MAX_AT_ONCE)
        if limit < 1 or until <= after:
            return []
        sources = self._sources or self._compile()
        if len(sources) == 1:
            return sources[0].span(after, until, limit)
        found: set[int] = set()
        for source in sources:
            times = source.span(after, until, limit)
            charge(1 + len(times) // 8)
            found.update(times)
            if len(times) == limit:  # later times cannot be among the first ``limit``
                until = times[-1]
        return sorted(found)[:limit]

    def count(self, after: int, until: int, most: int | None = None) -> int:
        """How many nominal seconds there are later than ``after``, up to and including ``until``.

        Beyond ``most`` the exact number does not matter: some number above it is the answer.
        """
        begin_question(LISTING_STEPS)
        after, until = self._within(after, until)
        total = few = 0
        while after < until and (most is None or total <= most):
            found, few, after = self._count_stretch(after, until, few)
            total += found
        return total

    def count_within_budget(self, after: int, until: int) -> tuple[int, int]:
        """Like :meth:`count`, with about half of the remaining budget; return the count, and up to where it goes."""
        begin_question()
        keep = steps_left() // 2
        asked = until
        after, until = self._within(after, until)
        total = few = 0
        while after < until:
            found, few, after = self._count_stretch(after, until, few, _SHORT_STRETCH)
            total += found
            if steps_left() < keep:
                break
        return total, after if after < until else asked

    def _count_stretch(
        self, after: int, until: int, few: int, stretch: int = _STRETCH
    ) -> tuple[int, int, int]:
        """Count a part of a range; return the count, how many to list in the next part, and where the rest begins."""
        sources = self._sources or self._compile()
        if len(sources) <= 1:
            until = min(after + 12 * stretch, until)
            return sources[0].count(after, until) if sources else 0, 0, until
        last = min(after + stretch, until)
        found = self._count_together(sources, after, last, few)
        sparse = (last - after) // DAY * len(sources) * _SPARSE
        return found, sparse if found < sparse else 0, last  # the next part will be similar

    def _count_together(self, sources: tuple[Source, ...], after: int, until: int, few: int) -> int:
        """How many instants several sources have together, which may coincide.

        They are listed if there are fewer than ``few``, else the sources' days are laid over each other.
        """
        listed = self._listed(after, until, few)
        total = len(listed)
        if total == few:
            for first, end in self.zone.days((listed[-1] if listed else after) + 1, until + 1):
                day = 0
                for source in sources:
                    day |= source.bits(first, end)
                charge(2 * len(sources))
                total += day.bit_count()
        return total

    def names(self, instant: int) -> bool:
        """Whether an instant is a nominal time."""
        begin_question()
        after, until = self._within(instant - 1, instant)
        sources = self._sources or self._compile()
        return after < until and any(source.bits(instant, instant + 1) for source in sources)

    def _within(self, after: int, until: int) -> tuple[int, int]:
        """A range, cut to the spec's window and to the years that are computed."""
        elements = self.elements
        if elements.start_at is not None:
            after = max(after, elements.start_at - 1)
        if elements.end_at is not None:
            until = min(until, elements.end_at)
        return max(after, _FIRST), min(until, _LAST)

    def fire_time(self, nominal: datetime, schedule_id: str) -> datetime:
        """When the slot of a nominal time fires: the nominal time, moved by the spec's jitter."""
        jitter = self.elements.jitter
        second = _second(nominal)
        nominal = nominal.astimezone(UTC)  # adding to a local time would ignore clock changes
        if jitter is None:
            return nominal
        key = slot_key(schedule_id, second)
        span = jitter.span_ms
        begin_question()
        raw = self._raw()
        after = raw.next_after(second)
        gap_after = None if after is None else (after - second) * 1000
        if not jitter.centred:
            return nominal + timedelta(milliseconds=offset_after(key, span, gap_after))
        before = raw.previous(second - 1)
        gap_before = None if before is None else (second - before) * 1000
        start = self.elements.start_at
        earliest = None if start is None else min(start - second, 0) * 1000
        offset = offset_around(key, span, gap_before, gap_after, earliest)
        return nominal + timedelta(milliseconds=offset)

    def why_never(self, moment: datetime) -> str | None:
        """Why there is no time after a moment; ``None`` if there is one."""
        second = _second(moment)
        if self.next_instant(second) is not None:
            return None
        elements = self.elements
        if self.is_empty:
            return "the spec is empty: it has no crons, calendars, intervals, rrules or times"
        if elements.end_at is not None and elements.end_at <= second:
            return f"its end_at, {render_instant(elements.end_at)}, has passed"
        start = second if elements.start_at is None else max(second, elements.start_at - 1)
        raw = self._raw().next_after(max(start, _FIRST))
        if raw is None:
            return "no such date comes any more"
        if elements.end_at is not None and raw > elements.end_at:
            return f"its next time, {render_instant(raw)}, is after its end_at"
        return f"all its times are excluded, the first of them {render_instant(raw)}"

    def _compile(self) -> tuple[Source, ...]:
        self._sources = tuple(source for _, source in self.named_sources())
        return self._sources

    def named_sources(self) -> list[tuple[str, Source]]:
        """Its sources, compiled anew, each with the name of its element."""
        excluded, closed = _exclusions(self.elements.exclude, self.shared)
        return sources_of(self.elements, excluded, closed, cold=self._cold)

    def cold(self) -> Spec:
        """The same spec with nothing cached."""
        return Spec(self.elements, self.shared, cold=True)

    def read_anew(self) -> None:
        """Read its stored text as a process would that has nothing cached."""
        _parsed_text(self.text)

    def _united(self) -> Union:
        self._union = Union(self._sources or self._compile())
        return self._union

    def _raw(self) -> Union:
        """The sources without exclusions; jitter stays clear of their instants."""
        if self._raw_union is None:
            if self.elements.exclude or self.shared:
                found = sources_of(self.elements, (), (), cold=self._cold)
                self._raw_union = Union(tuple(source for _, source in found))
            else:
                self._raw_union = self._union or self._united()
        return self._raw_union


def _read(
    document: str | bytes | Mapping[str, Any] | SpecDocument,
    calendars: Mapping[str, SharedCalendar | Mapping[str, Any]],
    zones: Collection[str] | None,
) -> Spec:
    """Read a document. That costs steps, as a question does: a long one takes longer than most questions."""
    begin_question()
    read = read_document(document)
    elements = elements_of(read, zones)
    known = {**read.shared, **calendars}
    return _interned(elements, tuple((name, _shared(name, known)) for name in elements.exclude_shared))


def _parsed_text(document: str | bytes) -> Spec:
    """Read a stored spec; cached, because the same text is read again and again."""
    return _read(document, {}, None)


_parsed_short_text = lru_cache(maxsize=SPECS_KEPT)(_parsed_text)
_parsed_long_text = lru_cache(maxsize=LONG_TEXTS_KEPT)(_parsed_text)


@lru_cache(maxsize=SPECS_KEPT)
def _interned(elements: Elements, shared: Shared) -> Spec:
    """Return one object for all equal specs, so that they share compiled work."""
    return Spec(elements, shared)


def _second(moment: datetime) -> int:
    try:
        if moment.tzinfo is not None:
            return math.floor(moment.timestamp())
    except AttributeError:  # not a datetime
        pass
    raise NaiveTimeError(moment)


def _shared(name: str, calendars: Mapping[str, SharedCalendar | Mapping[str, Any]]) -> SharedCalendar:
    if name not in calendars:
        raise UnknownCalendarError(name, calendars)
    shared = read_shared(calendars[name], name)
    check_sizes(shared, MAX_SHARED, f"{name}.")
    for n, calendar in enumerate(shared.calendars):
        read_calendar(calendar, f"{name}.calendars[{n}]")
    closed_days(shared, name)
    return shared


def _exclusions(own: tuple[Calendar, ...], shared: Shared) -> tuple[tuple[Calendar, ...], Closed]:
    """All excluded calendars, and the days on which nothing happens at all."""
    excluded = list(own)
    closed: dict[tuple[int, int], int] = {}
    for name, calendar in shared:
        excluded += [read_calendar(each, name) for each in calendar.calendars]
        for month, days in closed_days(calendar, name).items():
            closed[month] = closed.get(month, 0) | days
    return tuple(excluded), tuple(sorted(closed.items()))
