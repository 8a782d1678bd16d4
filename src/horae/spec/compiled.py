"""The compiled form of a spec: its document split into elements, each checked and compiled to bits."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import date, datetime

import msgspec

from horae.errors import FieldParseError, InvalidCronExpressionError, InvalidSpecError, UnknownTimezoneError
from horae.spec import cron_field
from horae.spec.budget import charge
from horae.spec.calendar_bits import STAR_HOUR, STAR_MINUTE, Calendar
from horae.spec.civil import DAY, END, EPOCH_ORDINAL, FIRST_YEAR, LAST_YEAR, START, bit_range
from horae.spec.clock_change import Fold, Gap, timeline
from horae.spec.cron import both_specials, parse_cron, parse_temporal
from horae.spec.cron_field import Field, Parsed, parse_field
from horae.spec.document import (
    Anchor,
    CalendarDocument,
    ClockChange,
    ExcludeDocument,
    FieldDocument,
    IntervalDocument,
    JitterDocument,
    RangeDocument,
    SharedCalendar,
    SpecDocument,
)
from horae.spec.duration import Duration, element_milliseconds
from horae.spec.rrule_parser import read_rrule
from horae.spec.zone import load_zone

MOST = {"crons": 100, "calendars": 100, "intervals": 20, "rrules": 20, "exclude": 100, "times": 1000}
"""How many elements of a kind a spec may have."""

MAX_SHARED = {"dates": 2000, "calendars": 100}
"""How many elements of a kind a shared calendar may have."""

_CRON_STEPS = _CALENDAR_STEPS = 8
_RRULE_STEPS = 25
_TIME_STEPS = 3
_RANGE_STEPS = 2
_CHARACTERS = 4
"""The steps that reading an element costs; and how many characters of an element cost a step."""

MAX_COMMENT_LENGTH = 200
MAX_JITTER = 86400
"""Seconds; a day."""


class Jitter(msgspec.Struct, frozen=True):
    """How far a fire time may lie after its nominal time, or around it."""

    span_ms: int
    centred: bool


class Every(msgspec.Struct, frozen=True):
    """An interval, in seconds."""

    every: int
    phase: int
    anchor: Anchor


class Elements(msgspec.Struct, frozen=True):
    """The meaning of a spec. Specs with equal elements are the same, however they were written."""

    crons: tuple[Calendar, ...] = ()
    calendars: tuple[Calendar, ...] = ()
    intervals: tuple[Every, ...] = ()
    rrules: tuple[str, ...] = ()
    instants: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    exclude: tuple[Calendar, ...] = ()
    exclude_shared: tuple[str, ...] = ()
    start_at: int | None = None
    end_at: int | None = None
    timezone: str = "UTC"
    jitter: Jitter | None = None
    gap: Gap = "skip"
    fold: Fold = "both"
    clock_change: ClockChange = "literal"


def elements_of(document: SpecDocument, zones: Collection[str] | None = None) -> Elements:
    """Check a document and compile it. With ``zones``, only these time zones are allowed."""
    check_sizes(document, MOST)
    crons, calendars, intervals, timezone = _read_crons(document)
    named = timezone if document.timezone is None else document.timezone
    zone = _zone("UTC" if named is None else named, zones)
    calendars += [read_calendar(calendar, f"calendars[{n}]") for n, calendar in enumerate(document.calendars)]
    start_at = _moment(document.start_at, "start_at", zone, last=False)
    end_at = _moment(document.end_at, "end_at", zone, last=True)
    if start_at is not None and end_at is not None and end_at < start_at:
        raise InvalidSpecError("end_at", "is before start_at", text=document.end_at)
    for n, interval in enumerate(document.intervals):
        intervals.append(_read_interval(interval, f"intervals[{n}]", start_at))
    rrules = tuple(
        _read_rrule(rrule, f"rrules[{n}]", zone, anchored=start_at is not None)
        for n, rrule in enumerate(document.rrules)
    )
    instants, labels = _read_times(document.times)
    if document.clock_change == "debian" and (document.gap, document.fold) != ("skip", "both"):
        raise InvalidSpecError(
            "clock_change", "debian decides gap and fold itself", hint="leave gap and fold out"
        )
    own, shared = _read_exclude(document.exclude)
    return Elements(
        tuple(crons), tuple(calendars), tuple(intervals),
        rrules,
        instants, labels,
        own, shared,
        start_at, end_at, zone, _read_jitter(document.jitter),
        document.gap, document.fold, document.clock_change,
    )  # fmt: skip


def check_sizes(document: SpecDocument | SharedCalendar, sizes: Mapping[str, int], within: str = "") -> None:
    """Refuse a document with more elements of a kind than it may have."""
    for name, most in sizes.items():
        if len(getattr(document, name)) > most:
            raise InvalidSpecError(
                f"{within}{name}", f"has more than {most} elements", hint="use several schedules or calendars"
            )


def _read_crons(
    document: SpecDocument,
) -> tuple[list[Calendar], list[Calendar], list[Every], str | None]:
    """The crons; the calendars and intervals that temporal crons become; and the zone that they name."""
    crons, calendars, intervals = [], [], []
    zones: list[str | None] = []
    for n, expression in enumerate(document.crons):
        charge(_CRON_STEPS + len(expression) // _CHARACTERS)
        try:
            if document.dialect != "temporal":
                crons.append(parse_cron(expression, document.dialect))
                continue
            found = parse_temporal(expression)
        except InvalidCronExpressionError as error:
            raise InvalidSpecError(
                f"crons[{n}]",
                error.message,
                text=expression,
                position=error.position,
                hint=error.hint_handed_on(),
            ) from error
        zones.append(found.timezone)
        if found.calendar is None:
            intervals.append(Every(found.every, found.phase, "epoch"))
        else:
            _check_comment(found.calendar.comment, f"crons[{n}]")
            calendars.append(found.calendar)
        expected = zones[0] if document.timezone is None else document.timezone
        if (document.timezone if found.timezone is None else found.timezone) != expected:
            raise InvalidSpecError(
                f"crons[{n}]", f"conflicting time zones: {found.timezone or 'none'} and {expected or 'none'}",
                text=expression, position=0, hint="a spec has one time zone: give it as timezone",
            )  # fmt: skip
    return crons, calendars, intervals, zones[0] if zones else None


CALENDAR_FIELDS: tuple[tuple[str, Field], ...] = (
    ("second", cron_field.SECOND),
    ("minute", cron_field.MINUTE),
    ("hour", cron_field.HOUR),
    ("day_of_month", cron_field.DAY_OF_MONTH),
    ("month", cron_field.MONTH),
    ("day_of_week", cron_field.WEEKDAY),
    ("year", cron_field.YEAR),
)
_ZERO = Parsed(1)


def read_calendar(document: CalendarDocument, element: str) -> Calendar:
    """Compile a calendar; all its fields must match."""
    charge(_CALENDAR_STEPS)
    _check_comment(document.comment, element)
    parsed = {}
    for name, field in CALENDAR_FIELDS:
        value: FieldDocument = getattr(document, name)
        if value is None:
            parsed[name] = _ZERO if name in {"second", "minute", "hour"} else field.every
        else:
            parsed[name] = _read_field(value, field, f"{element}.{name}")
    stars = (STAR_MINUTE if parsed["minute"].spans else 0) | (STAR_HOUR if parsed["hour"].spans else 0)
    return Calendar(
        parsed["second"].bits,
        parsed["minute"].bits,
        parsed["hour"].bits,
        parsed["day_of_month"].bits,
        parsed["month"].bits,
        parsed["day_of_week"].bits,
        None if parsed["year"].bits == cron_field.YEAR.every.bits else parsed["year"].bits,
        special=both_specials(parsed["day_of_month"].special, parsed["day_of_week"].special),
        stars=stars,
        comment=document.comment,
    )


def _check_comment(comment: str, element: str) -> None:
    if len(comment) > MAX_COMMENT_LENGTH:
        raise InvalidSpecError(element, f"has a comment of more than {MAX_COMMENT_LENGTH} characters")
    if not comment.isprintable():
        raise InvalidSpecError(element, "has a comment with control characters", hint="use plain text")


def _read_field(value: FieldDocument, field: Field, element: str) -> Parsed:
    if isinstance(value, tuple):
        return _read_ranges(value, field, element)
    if isinstance(value, int) and not field.low <= value <= field.high:
        reason = f"has {value}, which is not in the range {field.numbers}"
        raise InvalidSpecError(element, reason, text=value, hint=f"allowed are {field.valid}")
    text = str(value)
    charge(len(text) // _CHARACTERS)
    try:
        return parse_field(text, field, cron_field.UNIX)
    except FieldParseError as error:
        raise InvalidSpecError(
            element, error.reason, text=value, position=error.start, hint=error.hint_handed_on()
        ) from error


def _read_ranges(ranges: tuple[RangeDocument, ...], field: Field, element: str) -> Parsed:
    high, base = field.last, field.base
    bits, spans = 0, False
    charge(_RANGE_STEPS * len(ranges))
    if not ranges:
        raise InvalidSpecError(element, "is an empty list", hint="leave the field out for its default")
    for n, item in enumerate(ranges):
        start = 0 if item.start is msgspec.UNSET else item.start
        end = start if item.end is None else item.end
        if not (field.low <= start <= end <= high and item.step >= 1):
            raise InvalidSpecError(
                f"{element}[{n}]", f"the range {start} to {end}, step {item.step}, is not valid",
                hint=f"{field.low} ≤ start ≤ end ≤ {high}, and a step from 1 up",
            )  # fmt: skip
        bits |= bit_range(start - base, end - base, min(item.step, 4096))
        spans = spans or (start, end) == (field.low, high)
    return Parsed(bits, spans=spans or bits == field.every.bits)


def _zone(name: str, zones: Collection[str] | None) -> str:
    try:
        return load_zone(name, zones).name
    except UnknownTimezoneError as error:
        raise InvalidSpecError(
            "timezone", error.message, text=name, position=0, hint=error.hint_handed_on()
        ) from error


def _read_interval(document: IntervalDocument, element: str, start_at: int | None) -> Every:
    every = _whole_seconds(document.every, f"{element}.every")
    phase = _whole_seconds(document.phase, f"{element}.phase")
    if every < 1:
        raise InvalidSpecError(f"{element}.every", "is shorter than 1s", text=document.every)
    if phase >= every:
        raise InvalidSpecError(f"{element}.phase", "is not below every", text=document.phase)
    if document.anchor == "start" and start_at is None:
        raise InvalidSpecError(f"{element}.anchor", "start needs a start_at", hint="give start_at")
    return Every(every, phase, document.anchor)


def _whole_seconds(duration: Duration, element: str) -> int:
    seconds, rest = divmod(element_milliseconds(duration, element), 1000)
    if rest:
        raise InvalidSpecError(element, "must be whole seconds", text=duration)
    return seconds


def _read_rrule(text: str, element: str, zone: str, *, anchored: bool) -> str:
    """A recurrence rule, checked, in its canonical writing."""
    charge(_RRULE_STEPS)
    rule = read_rrule(text, element)
    if rule.timezone is not None and rule.timezone != zone:
        raise InvalidSpecError(
            element, f"conflicting time zones: {rule.timezone} and {zone}", text=text, position=0,
            hint="a spec has one time zone: give it as timezone",
        )  # fmt: skip
    keys = dict(rule.parts)
    if rule.start is None and not anchored and ("COUNT" in keys or keys.get("INTERVAL", "1") != "1"):
        raise InvalidSpecError(
            element, "COUNT and INTERVAL need a beginning to count from", text=text, position=0,
            hint="begin the rule with DTSTART:20260131T090000, or give the spec a start_at",
        )  # fmt: skip
    return rule.canonical


def parse_time(text: str, element: str) -> datetime:
    """An ISO-8601 time, naive if it names no offset."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = label_of(moment) if moment.tzinfo is None else math.floor(moment.timestamp())
        margin = 2 * DAY if moment.tzinfo is None else DAY  # for any offset of the zone
        if START + margin <= seconds < END - margin:
            return moment
        reason = f"the time is not between {FIRST_YEAR}-01-03 and {LAST_YEAR}-12-29"
    except (ValueError, OverflowError):
        reason = f'"{text[:60]}" is not a time'
    raise InvalidSpecError(
        element, reason, text=text, position=0,
        hint="ISO 8601, such as 2026-03-08T09:00:00Z, or 2026-03-08T09:00:00 in the spec's zone",
    )  # fmt: skip


def label_of(moment: datetime) -> int:
    """The label of a naive time."""
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return (moment.toordinal() - EPOCH_ORDINAL) * DAY + seconds


def _moment(text: str | None, element: str, zone: str, *, last: bool) -> int | None:
    """A limit of the window. A naive time is civil; if it occurs twice, the wider window is meant."""
    if text is None:
        return None
    moment = parse_time(text, element)
    if moment.tzinfo is not None:
        seconds = moment.timestamp()
        return math.floor(seconds) if last else math.ceil(seconds)
    label = label_of(moment) + (0 if last or not moment.microsecond else 1)
    return resolve(label, zone, last=last)


def resolve(label: int, zone: str, *, last: bool) -> int:
    """The instant of a label: of two, the first or the last; in a gap, where the clock jumped."""
    line = timeline(zone)
    found = line.instants(label)
    if not found:
        return next(b for b, f in zip(line.begins, line.firsts, strict=True) if f > label) - last
    return found[-1 if last else 0]


def _read_times(texts: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """One-shot times: instants, and labels for those that name no offset."""
    instants, labels = set(), set()
    charge(_TIME_STEPS * len(texts))
    for n, text in enumerate(texts):
        moment = parse_time(text, f"times[{n}]")
        if moment.microsecond:
            raise InvalidSpecError(f"times[{n}]", "has a fraction of a second", text=text, position=0)
        if moment.tzinfo is None:
            labels.add(label_of(moment))
        else:
            instants.add(math.floor(moment.timestamp()))
    return tuple(sorted(instants)), tuple(sorted(labels))


def _read_exclude(
    documents: tuple[ExcludeDocument, ...],
) -> tuple[tuple[Calendar, ...], tuple[str, ...]]:
    """The calendars to exclude, and the names of the shared ones."""
    own, shared = [], []
    for n, exclude in enumerate(documents):
        if exclude.calendar is None:
            own.append(read_calendar(exclude, f"exclude[{n}]"))
        elif not exclude.calendar or msgspec.structs.replace(exclude, calendar=None) != ExcludeDocument():
            reason = "must name a shared calendar and nothing else"
            raise InvalidSpecError(f"exclude[{n}]", reason, hint='{"calendar": "us-holidays"} stands alone')
        else:
            shared.append(exclude.calendar)
    return tuple(own), tuple(shared)


def _read_jitter(jitter: Duration | JitterDocument | None) -> Jitter | None:
    if jitter is None:
        return None
    document = jitter if isinstance(jitter, JitterDocument) else JitterDocument(jitter)
    span = element_milliseconds(document.span, "jitter")
    if span > MAX_JITTER * 1000:
        raise InvalidSpecError("jitter", "is longer than 24h", text=document.span)
    return Jitter(span, document.centred) if span else None


def closed_days(shared: SharedCalendar, element: str) -> dict[tuple[int, int], int]:
    """The whole days of a shared calendar, as bits by (year, month)."""
    closed: dict[tuple[int, int], int] = {}
    charge(len(shared.dates))
    for n, text in enumerate(shared.dates):
        try:
            day = date.fromisoformat(text)
        except ValueError:
            raise InvalidSpecError(
                f"{element}.dates[{n}]",
                f'"{text}" is not a date',
                text=text,
                position=0,
                hint="such as 2026-12-25",
            ) from None
        key = (day.year, day.month)
        closed[key] = closed.get(key, 0) | 1 << (day.day - 1)
    return closed
