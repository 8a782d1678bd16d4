"""The text of RRULE, the recurrence rules of calendars (RFC 5545), taken apart and checked; python-dateutil checks it too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from horae.errors import InvalidSpecError
from horae.spec.civil import DAY, FIRST_YEAR, LAST_YEAR, day_number

MAX_RULE_LENGTH = 1000
MAX_COUNTED = 100_000
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SUB_DAILY = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_PARTS = (
    "FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY",
    "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS",
)  # fmt: skip
_STAMP = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)


class Stamp(NamedTuple):
    """A date or time of iCalendar: its label, and whether it is in UTC or only a date."""

    text: str
    label: int
    utc: bool
    whole_day: bool


class RecurrenceText(NamedTuple):
    """A rule's text taken apart: where it starts, in which zone, and its parts in upper case."""

    start: Stamp | None
    until: Stamp | None
    timezone: str | None
    parts: tuple[tuple[str, str], ...]

    @property
    def canonical(self) -> str:
        """The rule in one way of writing; the zone is the spec's."""
        rule = ";".join(f"{key}={value}" for key, value in self.parts)
        return rule if self.start is None else f"DTSTART:{self.start.text} RRULE:{rule}"


def read_rrule(text: str, element: str) -> RecurrenceText:
    """Take a rule's text apart, checked by the library as well."""
    from dateutil.rrule import rrulestr  # noqa: PLC0415 - few specs have rules

    wrong = _Wrong(text, element)
    if len(text) > MAX_RULE_LENGTH or not text.isascii():
        raise wrong(f"an RRULE is ASCII text of at most {MAX_RULE_LENGTH} characters")
    start, timezone, rule = _read_lines(text, wrong)
    parts: dict[str, str] = {}
    for part in rule.split(";"):
        key, equals, value = part.partition("=")
        if not equals or not value or key not in _PARTS or key in parts:
            raise wrong(f'cannot have "{part[:60]}"', part)
        parts[key] = value
    until = _stamp(parts.get("UNTIL", ""))
    if "UNTIL" in parts and (until is None or "COUNT" in parts):
        raise wrong("UNTIL is a date or time, without COUNT", "UNTIL", hint="UNTIL=20261231T235959Z")
    _check_shape(parts, wrong)
    # The library would expand all times of a day, and judge an interval by another start than ours.
    own = {"UNTIL", "INTERVAL", "BYHOUR", "BYMINUTE", "BYSECOND"}
    checked = ";".join(f"{key}={value}" for key, value in parts.items() if key not in own)
    try:
        rrulestr(checked, dtstart=datetime(2000, 1, 1))  # noqa: DTZ001 - a label, not an instant
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise wrong(f"is not a valid rule: {error}") from error
    _check(parts, wrong)
    ordered = sorted(parts.items(), key=lambda part: _PARTS.index(part[0]))
    return RecurrenceText(start, until, timezone, tuple(ordered))


class _Wrong:
    """Makes the errors of one rule; each points at the part of the text that is at fault."""

    def __init__(self, text: str, element: str) -> None:
        self._text = text
        self._element = element

    def __call__(
        self, reason: str, part: str = "", hint: str = "for example FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9"
    ) -> InvalidSpecError:
        position = max(self._text.upper().rfind(part.upper()), 0) if part else 0
        return InvalidSpecError(self._element, reason, text=self._text, position=position, hint=hint)


def _read_lines(text: str, wrong: _Wrong) -> tuple[Stamp | None, str | None, str]:
    """Where the rule starts, in which zone, and the rule itself in upper case."""
    start, timezone, rule = None, None, ""
    for line in text.split():
        name, _, value = line.rpartition(":")
        if name.upper() in {"", "RRULE"}:
            if rule:
                raise wrong("has two rules", line, "give each rule an element of its own")
            rule = value.upper()
        elif name.upper().startswith("DTSTART"):
            start = _stamp(value.upper())
            head = re.fullmatch(r"DTSTART(;VALUE=DATE(-TIME)?)?(;TZID=(?P<zone>\S+))?", name, re.IGNORECASE)
            if start is None or head is None:
                raise wrong(f'cannot read "{line}"', line, "DTSTART:20260131T090000")
            timezone = head["zone"]
        else:
            raise wrong(f'cannot have "{name}"', name, "use times for extra dates, exclude for exceptions")
    return start, timezone, rule


RANGES = {
    "BYMONTH": (1, 12), "BYMONTHDAY": (-31, 31), "BYYEARDAY": (-366, 366), "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23), "BYMINUTE": (0, 59), "BYSECOND": (0, 59), "BYSETPOS": (-366, 366),
}  # fmt: skip


_LISTS = {key: re.compile(r"[+-]?\d{1,3}(,[+-]?\d{1,3})*" if low < 0 else r"\d{1,2}(,\d{1,2})*", re.ASCII)
          for key, (low, _) in RANGES.items()}  # fmt: skip
_LISTS["BYDAY"] = re.compile(r"([+-]?\d{0,2}(MO|TU|WE|TH|FR|SA|SU)(,|$))+", re.ASCII)


def _check_shape(parts: dict[str, str], wrong: _Wrong) -> None:
    """Refuse what the library accepts beyond the standard."""
    for key, value in parts.items():
        if key in _LISTS and not _LISTS[key].fullmatch(value):
            raise wrong(f'{key} has "{value}"', key)
    for key in ("INTERVAL", "COUNT"):
        digits = parts.get(key, "1").lstrip("0")
        if not digits.isdecimal() or len(digits) > 6 or not 1 <= int(digits) <= MAX_COUNTED:
            raise wrong(f"{key} is {parts[key][:20]}", key, hint=f"allowed are 1 to {MAX_COUNTED}")


def _check(parts: dict[str, str], wrong: _Wrong) -> None:
    """Refuse what the library accepts and the evaluation here does not support."""
    frequency = parts.get("FREQ", "")
    for key, (low, high) in RANGES.items():
        for number in numbers_of(parts, key):
            if not low <= number <= high or (number == 0 and low < 0):
                raise wrong(f"{key} has {number}", key, hint=f"allowed are {low} to {high}")
    if "BYSETPOS" in parts and frequency in SUB_DAILY:
        raise wrong(
            f"BYSETPOS does not go with {frequency}", "BYSETPOS", hint="use DAILY or a longer frequency"
        )
    if "BYWEEKNO" in parts and frequency != "YEARLY":
        raise wrong(f"BYWEEKNO does not go with {frequency}", "BYWEEKNO", hint="use YEARLY")
    for nth, _ in weekdays_of(parts):
        if nth and (frequency not in {"YEARLY", "MONTHLY"} or "BYWEEKNO" in parts or abs(nth) > 53):
            hint = "FREQ=MONTHLY;BYDAY=-1FR"
            raise wrong("BYDAY with a number goes with MONTHLY or YEARLY", "BYDAY", hint=hint)


def _stamp(text: str) -> Stamp | None:
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    try:
        civil = datetime.strptime(match[1] + (match[2] or "000000"), "%Y%m%d%H%M%S")  # noqa: DTZ007
    except ValueError:
        return None
    if not FIRST_YEAR <= civil.year <= LAST_YEAR:
        return None
    label = day_number(civil.date()) * DAY + civil.hour * 3600 + civil.minute * 60 + civil.second
    return Stamp(text, label, match[3] == "Z", match[2] is None)


def numbers_of(parts: Mapping[str, str], key: str) -> list[int]:
    return [int(number) for number in parts[key].split(",")] if key in parts else []


def weekdays_of(parts: dict[str, str]) -> list[tuple[int, int]]:
    """BYDAY as (n, weekday from Monday = 0); n is 0 where none was given."""
    items = parts["BYDAY"].split(",") if "BYDAY" in parts else []
    return [(int(item[:-2] or "0"), WEEKDAYS.index(item[-2:])) for item in items]
