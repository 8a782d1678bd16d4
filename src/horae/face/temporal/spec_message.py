"""Converts specs between Temporal's message and Horae's document. Pure.

What the message cannot express (recurrence rules, single times, shared calendars, special days, clock changes …) is the *rest* of a spec,
which :func:`changed_spec` keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from temporalio.api.schedule.v1 import (
    CalendarSpec,
    IntervalSpec,
    Range,
    ScheduleSpec,
    StructuredCalendarSpec,
)

from horae.errors import HoraeError, InvalidInputError, InvalidSpecError
from horae.face.temporal.times import (
    duration_of,
    is_set,
    milliseconds_of,
    moment_of,
    text_of,
    timestamp_of,
)
from horae.model import instant
from horae.spec import Spec
from horae.spec.calendar_bits import EVERY_DAY, EVERY_WEEKDAY, Calendar
from horae.spec.canonical import ranges_of
from horae.spec.compiled import CALENDAR_FIELDS, Elements
from horae.spec.document import SpecDocument, read_document
from horae.spec.duration import duration_text

_FIELDS = [name for name, _ in CALENDAR_FIELDS]
_replace = msgspec.structs.replace


def document_of(message: ScheduleSpec) -> dict[str, Any]:
    """The document of a message, in the dialect ``temporal``."""
    if message.timezone_data:
        raise InvalidInputError("spec.timezone_data", "cannot be used", hint="name the zone: timezone_name")
    document: dict[str, Any] = {
        "crons": list(message.cron_string),
        "dialect": "temporal",
        "calendars": [*map(_structured, message.structured_calendar), *map(_written, message.calendar)],
        "intervals": [
            {
                "every": text_of(each.interval, f"spec.interval[{number}].interval"),
                "phase": text_of(each.phase, f"spec.interval[{number}].phase"),
            }
            for number, each in enumerate(message.interval)
        ],
        "exclude": [
            *map(_structured, message.exclude_structured_calendar),
            *map(_written, message.exclude_calendar),
        ],
    }
    if message.HasField("start_time") and is_set(message.start_time):
        document["start_at"] = moment_of(message.start_time, "spec.start_time").isoformat()
    if message.HasField("end_time") and is_set(message.end_time):
        document["end_at"] = moment_of(message.end_time, "spec.end_time").isoformat()
    if message.timezone_name:
        document["timezone"] = message.timezone_name
    jitter_ms = milliseconds_of(message.jitter, "spec.jitter")
    if jitter_ms:
        document["jitter"] = duration_text(jitter_ms)
    return document


def _structured(calendar: StructuredCalendarSpec) -> dict[str, Any]:
    """A structured calendar. A field without ranges matches nothing, and is refused when the document is read."""
    fields: dict[str, Any] = {name: [_range(each) for each in getattr(calendar, name)] for name in _FIELDS}
    if not fields["year"]:
        del fields["year"]
    return fields | {"comment": calendar.comment}


def _range(given: Range) -> dict[str, int]:
    """A range; an end of 0 means the start, and a step of 0 means 1."""
    written = {"start": given.start, "step": given.step or 1}
    return written if given.end == 0 else written | {"end": given.end}


def _written(calendar: CalendarSpec) -> dict[str, str]:
    fields = {name: getattr(calendar, name) for name in (*_FIELDS, "comment")}
    return {name: text for name, text in fields.items() if text}


def read_spec(message: ScheduleSpec) -> Spec:
    """The spec of a message; errors name the message's field."""
    document = document_of(message)
    try:
        return Spec.parse(document)
    except InvalidSpecError as error:
        field = _field(str(error.details["element"]), message)
        raise InvalidInputError(f"spec.{field}", str(error.details["reason"]), hint=error.hint) from None


_NAMES = {
    "crons": "cron_string",
    "intervals": "interval",
    "start_at": "start_time",
    "end_at": "end_time",
    "timezone": "timezone_name",
}
_LISTS = {
    "calendars": ("structured_calendar", "calendar"),
    "exclude": ("exclude_structured_calendar", "exclude_calendar"),
}


def _field(element: str, message: ScheduleSpec) -> str:
    """The field of a message that became an element of its document."""
    found = re.match(r"(\w+)(?:\[(\d+)\])?", element)
    if found is None:
        return element
    name, rest = found[1], element[found.end() :].replace(".every", ".interval")
    if found[2] is None:
        return f"{_NAMES.get(name, name)}{rest}"
    number = int(found[2])
    if name not in _LISTS:
        return f"{_NAMES.get(name, name)}[{number}]{rest}"
    first, second = _LISTS[name]
    before = len(getattr(message, first))
    return f"{first}[{number}]{rest}" if number < before else f"{second}[{number - before}]{rest}"


def message_of(spec: Spec) -> ScheduleSpec:
    """The message for a spec, as far as a message can express it."""
    elements = spec.elements
    message = ScheduleSpec(
        structured_calendar=_all_structured((*elements.crons, *elements.calendars)),
        exclude_structured_calendar=_all_structured(elements.exclude),
        interval=[
            IntervalSpec(interval=duration_of(each.every * 1000), phase=duration_of(each.phase * 1000))
            for each in elements.intervals
            if each.anchor == "epoch"
        ],
        timezone_name="" if elements.timezone == "UTC" else elements.timezone,
    )
    if elements.start_at is not None:
        message.start_time.CopyFrom(timestamp_of(instant(elements.start_at * 1000)))
    if elements.end_at is not None:
        message.end_time.CopyFrom(timestamp_of(instant(elements.end_at * 1000)))
    if elements.jitter is not None:
        message.jitter.CopyFrom(duration_of(elements.jitter.span_ms))
    return message


def cleaned(message: ScheduleSpec) -> ScheduleSpec:
    """A message as it is shown: texts become structured calendars and intervals, and every range has an end and a step."""
    shown = ScheduleSpec()
    shown.CopyFrom(message)
    shown.ClearField("cron_string")
    shown.ClearField("calendar")
    shown.ClearField("exclude_calendar")
    if not is_set(message.start_time):
        shown.ClearField("start_time")
    if not is_set(message.end_time):
        shown.ClearField("end_time")
    texts = ScheduleSpec(
        cron_string=message.cron_string, calendar=message.calendar, exclude_calendar=message.exclude_calendar
    )
    read = message_of(read_spec(texts))
    shown.structured_calendar.extend(read.structured_calendar)
    shown.exclude_structured_calendar.extend(read.exclude_structured_calendar)
    shown.interval.extend(read.interval)
    shown.timezone_name = message.timezone_name or read.timezone_name
    for calendar in (*shown.structured_calendar, *shown.exclude_structured_calendar):
        for name in _FIELDS:
            for each in getattr(calendar, name):
                each.end, each.step = max(each.end, each.start), each.step or 1
    return shown


def _meaning(spec: Spec) -> tuple[object, ...]:
    """The meaning of a message, regardless of its order and form."""
    elements = spec.elements
    calendars = frozenset(_replace(each, stars=0) for each in (*elements.crons, *elements.calendars))
    plain = _replace(elements, crons=(), calendars=(), intervals=(), exclude=())
    excluded = frozenset(_replace(each, stars=0) for each in elements.exclude)
    return calendars, excluded, frozenset(elements.intervals), plain


def says(message: ScheduleSpec, spec: Spec) -> bool:
    """Whether a message means what the message of a spec means."""
    try:
        return _meaning(read_spec(message)) == _meaning(read_spec(message_of(spec)))
    except HoraeError:
        return False


def changed_spec(message: ScheduleSpec, stored: Spec) -> Mapping[str, Any] | None:
    """The spec after an update: the message's, with the rest of the stored one; ``None`` if nothing changes."""
    given = read_spec(message)
    if _meaning(given) == _meaning(read_spec(message_of(stored))):
        return None
    rest, own = _rest(stored), given.canonical()
    for name in ("crons", "calendars", "intervals", "rrules", "times", "exclude"):
        if more := rest.pop(name, None):
            own[name] = [*own.get(name, []), *more]
    if rest.pop("centred", False) and "jitter" in own:
        own["jitter"] = {"span": own["jitter"], "centred": True}
    return own | rest


def _rest(spec: Spec) -> dict[str, Any]:
    """The rest of a spec, as a document; shared calendars by name, without their contents."""
    elements, document = spec.elements, read_document(spec.text)
    kept = SpecDocument(
        crons=_inexpressible(document.crons, elements.crons),
        calendars=_inexpressible(document.calendars, elements.calendars),
        intervals=tuple(each for each in document.intervals if each.anchor == "start"),
        rrules=document.rrules,
        times=document.times,
        exclude=tuple(
            each
            for each, calendar in _paired_exclude(document, elements)
            if calendar is None or not is_expressible(calendar)
        ),
        gap=document.gap,
        fold=document.fold,
        clock_change=document.clock_change,
    )
    rest: dict[str, Any] = msgspec.to_builtins(kept)
    centred = elements.jitter is not None and elements.jitter.centred
    return rest | {"centred": True} if centred else rest


def _inexpressible(written: Iterable[Any], calendars: Iterable[Calendar]) -> tuple[Any, ...]:
    return tuple(
        each for each, calendar in zip(written, calendars, strict=True) if not is_expressible(calendar)
    )


def _paired_exclude(document: SpecDocument, elements: Elements) -> list[tuple[Any, Calendar | None]]:
    own = [each for each in document.exclude if each.calendar is None]
    shared = [each for each in document.exclude if each.calendar is not None]
    return [*zip(own, elements.exclude, strict=True), *((each, None) for each in shared)]


def is_expressible(calendar: Calendar) -> bool:
    """Whether a structured calendar can express a calendar: it has no days that depend on the month."""
    return calendar.special is None


def _all_structured(calendars: Iterable[Calendar]) -> list[StructuredCalendarSpec]:
    return [each for calendar in calendars if is_expressible(calendar) for each in _structured_of(calendar)]


def _structured_of(calendar: Calendar) -> list[StructuredCalendarSpec]:
    """A calendar as structured calendars: two if a day matches by its date or by its weekday."""
    if calendar.either:
        by_day = _replace(calendar, weekdays=EVERY_WEEKDAY, either=False)
        by_weekday = _replace(calendar, days=EVERY_DAY, either=False)
        return [*_structured_of(by_day), *_structured_of(by_weekday)]
    sets = (calendar.seconds, calendar.minutes, calendar.hours, calendar.days, calendar.months, calendar.weekdays, calendar.years)  # fmt: skip
    message = StructuredCalendarSpec(comment=calendar.comment)
    for (name, field), bits in zip(CALENDAR_FIELDS, sets, strict=True):
        if bits is not None:
            ranges = ranges_of(bits, field, star=False)
            getattr(message, name).extend(Range(start=a, end=b, step=c) for a, b, c in ranges)
    return [message]
