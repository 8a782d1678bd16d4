"""Times as people write them: ISO 8601, or relative to now. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from horae.errors import InvalidInputError, InvalidSpecError
from horae.spec import load_zone
from horae.spec.clock_change import timeline
from horae.spec.compiled import label_of, parse_time, resolve
from horae.spec.duration import milliseconds

FORMS = '2026-03-08T07:30:00Z, "2026-03-08 09:00", "in 2h", -1d, now, today or "tomorrow 9:00"'
"""The forms of a time; without an offset it is in a zone."""

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DAY = re.compile(r"(yesterday|today|tomorrow)(?:\s+(\d{1,2}):(\d\d)(?::(\d\d))?)?", re.IGNORECASE)
_SPAN = re.compile(r"(?:in\s+|\+)(?P<ahead>.+)|-(?P<back>.+)|(?P<ago>.+)\s+ago", re.IGNORECASE)
_WHOLE_DAY = re.compile(r"yesterday|today|tomorrow|\d{4}-\d\d-\d\d", re.IGNORECASE)


def is_day(text: str) -> bool:
    """Whether a text names a whole day: ``2026-12-25``, ``tomorrow``."""
    return _WHOLE_DAY.fullmatch(text.strip()) is not None


def needs_zone(text: str) -> bool:
    """Whether a text names a different instant in each zone."""
    try:
        return read_time(text, "", "UTC", datetime.fromtimestamp(0, UTC)).tzinfo is None
    except InvalidInputError:
        return False


def instant_of(text: str, option: str, zone: str, now: datetime) -> datetime:
    """The instant that a text names: the first if the zone's clocks show it twice, the last second before if they skip it."""
    time = read_time(text, option, zone, now)
    if time.tzinfo is not None:
        return time.astimezone(UTC)
    instants = timeline(zone).instants(label_of(time)) or [resolve(label_of(time), zone, last=True)]
    return datetime.fromtimestamp(instants[0], UTC)


def read_time(given: str, option: str, zone: str, now: datetime) -> datetime:
    """The time that a text names: an instant, or a naive local time if it has no offset. Relative times have whole seconds."""
    text, now = given.strip(), now.replace(microsecond=0)
    try:
        if text.lower() == "now":
            return now
        if span := _SPAN.fullmatch(text):
            length = milliseconds("".join((span[1] or span[2] or span[3]).split()), option)
            return now + timedelta(milliseconds=length if span["ahead"] else -length)
        if day := _DAY.fullmatch(text):
            local = now + timedelta(seconds=load_zone(zone).offset_at(int(now.timestamp())))
            hour, minute, second = (int(each or 0) for each in day.groups()[1:])
            return datetime.combine(local + timedelta(days=_DAYS[day[1].lower()]), time(hour, minute, second))
        return parse_time(text.upper(), option)
    except (InvalidSpecError, ValueError, OverflowError):
        raise InvalidInputError(option, f'is "{given}", which is no time', hint=f"such as {FORMS}") from None
