"""RRULE, the recurrence rules of calendars (RFC 5545).

``python-dateutil`` reads and checks the text. Its iterator is not used: it walks from the rule's first
day, and a rule that never matches keeps it walking for ever. Here a rule is asked period by
period (year, month, week or day), starting with the one that holds the time in question, and the
search ends after :data:`FURTHEST` years.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import islice, product, takewhile
from typing import NamedTuple

from dateutil.rrule import rrulestr

from horae.errors import InvalidSpecError
from horae.spec.civil import DAY, END, EPOCH_ORDINAL, FIRST_YEAR, LAST_YEAR, CivilRule, day_number
from horae.spec.civilset import CivilSet
from horae.spec.oneshot import Labels

FURTHEST = 50
LONGEST_RULE = 1000
MOST_COUNTED = 100_000
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SUB_DAILY = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_PARTS = frozenset(
    [
        "FREQ",
        "INTERVAL",
        "COUNT",
        "UNTIL",
        "WKST",
        "BYSETPOS",
        "BYMONTH",
        "BYMONTHDAY",
        "BYYEARDAY",
        "BYWEEKNO",
        "BYDAY",
        "BYHOUR",
        "BYMINUTE",
        "BYSECOND",
    ]
)
_STAMP = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)


class Stamp(NamedTuple):
    """A date or time of iCalendar: its label, and whether it is UTC or a mere date."""

    label: int
    utc: bool
    whole_day: bool


class RecurrenceText(NamedTuple):
    """A rule's text taken apart: where it starts, in which zone, and its parts in upper case."""

    start: Stamp | None
    until: Stamp | None
    timezone: str | None
    parts: tuple[tuple[str, str], ...]


def read_rrule(text: str, element: str) -> RecurrenceText:
    """Take a rule's text apart, checked by the library as well."""
    wrong = _Wrong(text, element)
    if len(text) > LONGEST_RULE or not text.isascii():
        raise wrong(f"an RRULE is ASCII text of at most {LONGEST_RULE} characters")
    start, timezone, rule = _read_lines(text, wrong)
    parts: dict[str, str] = {}
    for part in rule.split(";"):
        key, equals, value = part.partition("=")
        if not equals or not value or key not in _PARTS or key in parts:
            raise wrong(f'cannot have "{part}"', part)
        parts[key] = value
    until = _stamp(parts.get("UNTIL", ""))
    if "UNTIL" in parts and (until is None or "COUNT" in parts):
        raise wrong("UNTIL is a date or time, without COUNT", "UNTIL", hint="UNTIL=20261231T235959Z")
    # The interval and the end are checked below; whether they leave anything depends on the start.
    checked = ";".join(f"{key}={parts[key]}" for key in parts if key not in {"UNTIL", "INTERVAL"})
    try:
        rrulestr(checked, dtstart=datetime(2000, 1, 1))  # noqa: DTZ001 - a label, not an instant
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise wrong(f"is no valid rule: {error}") from error
    _check(parts, wrong)
    return RecurrenceText(start, until, timezone, tuple(parts.items()))


class _Wrong:
    """Makes the errors of one rule; each points at the part of the text that is at fault."""

    def __init__(self, text: str, element: str) -> None:
        self._text = text
        self._element = element

    def __call__(
        self, reason: str, part: str = "", hint: str = "for example FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9"
    ) -> InvalidSpecError:
        position = max(self._text.upper().find(part.upper()), 0)
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


_RANGES = {
    "BYMONTH": (1, 12), "BYMONTHDAY": (-31, 31), "BYYEARDAY": (-366, 366), "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23), "BYMINUTE": (0, 59), "BYSECOND": (0, 59), "BYSETPOS": (-366, 366),
}  # fmt: skip


def _check(parts: dict[str, str], wrong: _Wrong) -> None:
    """What the library lets pass and the evaluation here cannot mean."""
    frequency = parts.get("FREQ", "")
    for key, (low, high) in _RANGES.items():
        for number in _numbers(parts, key):
            if not low <= number <= high or (number == 0 and low < 0):
                raise wrong(f"{key} has {number}", hint=f"allowed are {low} to {high}")
    for key in ("INTERVAL", "COUNT"):
        if key in parts and not (parts[key].isdecimal() and 1 <= int(parts[key][:9]) <= MOST_COUNTED):
            raise wrong(f"{key} is {parts[key]}", hint=f"allowed are 1 to {MOST_COUNTED}")
    if "BYSETPOS" in parts and frequency in SUB_DAILY:
        raise wrong(f"BYSETPOS does not go with {frequency}", hint="use DAILY or a longer frequency")
    if "BYWEEKNO" in parts and frequency != "YEARLY":
        raise wrong(f"BYWEEKNO does not go with {frequency}", hint="use YEARLY")
    for nth, _ in _weekdays(parts):
        if nth and (frequency not in {"YEARLY", "MONTHLY"} or "BYWEEKNO" in parts or abs(nth) > 53):
            raise wrong("BYDAY with a number goes with MONTHLY or YEARLY", hint="FREQ=MONTHLY;BYDAY=-1FR")


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
    return Stamp(label, match[3] == "Z", match[2] is None)


def _numbers(parts: dict[str, str], key: str) -> list[int]:
    return [int(number) for number in parts[key].split(",")] if key in parts else []


def _weekdays(parts: dict[str, str]) -> list[tuple[int, int]]:
    """BYDAY as (n, weekday from Monday = 0); n is 0 where none was given."""
    items = parts["BYDAY"].split(",") if "BYDAY" in parts else []
    return [(int(item[:-2] or "0"), WEEKDAYS.index(item[-2:])) for item in items]


class Recurrence(CivilRule):
    """A rule as labels, without those that are not allowed.

    ``start`` is its first label at the earliest, ``until`` its last at the latest. As with the exceptions
    of iCalendar, what is not allowed counts towards COUNT and BYSETPOS all the same.
    """

    __slots__ = (
        "_allowed", "_barren", "_by", "_count", "_counted", "_frequency", "_interval", "_kept",
        "_occurrences", "_start", "_times", "_until", "_week_start", "_weekdays",
    )  # fmt: skip

    def __init__(
        self,
        parts: tuple[tuple[str, str], ...],
        start: int,
        until: int | None = None,
        allowed: CivilSet | None = None,
    ) -> None:
        given = dict(parts)
        self._frequency = given["FREQ"]
        self._interval = int(given.get("INTERVAL", "1"))
        self._count = int(given["COUNT"]) if "COUNT" in given else None
        self._week_start = WEEKDAYS.index(given.get("WKST", "MO"))
        self._start = start
        self._until = until if until is not None else END
        self._by = {key: frozenset(_numbers(given, key)) for key in _RANGES}
        self._weekdays = _weekdays(given)
        self._fill_in(_civil(start // DAY))
        self._allowed = allowed
        self._barren = END  # from this label on there is nothing, as far as searches have shown
        self._counted: Labels | None = None
        self._times = lru_cache(maxsize=4096)(self._times_of_day)
        self._kept = lru_cache(maxsize=64)(self._allowed_times)
        self._occurrences = lru_cache(maxsize=64)(self._in_period)

    def _fill_in(self, first: date) -> None:
        """What the rule leaves open, its start decides (RFC 5545, 3.3.10)."""
        by = self._by
        if not (by["BYWEEKNO"] or by["BYYEARDAY"] or by["BYMONTHDAY"] or self._weekdays):
            if self._frequency == "WEEKLY":
                self._weekdays = [(0, first.weekday())]
            elif self._frequency in {"MONTHLY", "YEARLY"}:
                by["BYMONTHDAY"] = frozenset([first.day])
                if self._frequency == "YEARLY" and not by["BYMONTH"]:
                    by["BYMONTH"] = frozenset([first.month])

    def next(self, label: int) -> int | None:
        """The first label at or after one."""
        if self._count is not None:
            return self._all_counted().next(label)
        label = max(label, self._start)
        if label >= self._barren:
            return None
        found = next(self._from(label), None)
        if found is None or found > self._until:
            self._barren = label
            return None
        return found

    def previous(self, label: int) -> int | None:
        """The last label at or before one."""
        if self._count is not None:
            return self._all_counted().previous(label)
        label = min(label, self._until)
        period = self._aligned(self._period(label // DAY))
        first = max(self._period(self._start // DAY), period - self._reach())
        for number in range(period, first - 1, -self._interval if self._by_periods else -1):
            labels = self._occurrences(number)
            at = bisect_right(labels, label)
            if at and labels[at - 1] >= self._start:
                return labels[at - 1]
        return None

    def span(self, first: int, end: int, limit: int) -> list[int]:
        """The labels from ``first`` up to but not including ``end``; at most ``limit``."""
        if self._count is not None:
            return self._all_counted().span(first, end, limit)
        end = min(end, self._until + 1)
        found = takewhile(lambda label: label < end, self._from(max(first, self._start)))
        return list(islice(found, limit))

    def _all_counted(self) -> Labels:
        if self._counted is None:
            self._counted = Labels(tuple(islice(self._from(self._start), self._count)), self._allowed)
        return self._counted

    def _from(self, label: int) -> Iterator[int]:
        """All labels at or after one, until a long time passes without any."""
        period = self._aligned(self._period(label // DAY))
        step = self._interval if self._by_periods else 1
        last = self._period(day_number(date(LAST_YEAR, 12, 31)))
        barren = 0
        while period <= last and barren <= self._reach():
            labels = self._occurrences(period)
            fresh = labels[bisect_left(labels, label) :]
            yield from fresh
            barren = 0 if fresh else barren + step
            period += step

    @property
    def _by_periods(self) -> bool:
        """Whether the interval counts periods; below a day it counts hours, minutes or seconds."""
        return self._frequency not in SUB_DAILY

    def _reach(self) -> int:
        """How many periods a search goes on without finding anything."""
        years = {"YEARLY": 1, "MONTHLY": 12, "WEEKLY": 53}.get(self._frequency, 366)
        return max(FURTHEST * years, 10 * self._interval if self._by_periods else 0)

    def _period(self, day: int) -> int:
        """The number of the period that holds a day."""
        if self._frequency == "WEEKLY":
            return (day + 3 - self._week_start) // 7  # 1970-01-01 was a Thursday
        if self._frequency in {"YEARLY", "MONTHLY"}:
            civil = _civil(day)
            return civil.year if self._frequency == "YEARLY" else civil.year * 12 + civil.month - 1
        return day

    def _aligned(self, period: int) -> int:
        """The last period at or before one that the interval does not pass over."""
        if not self._by_periods:
            return period
        return period - (period - self._period(self._start // DAY)) % self._interval

    def _days(self, period: int) -> range:
        if self._frequency == "YEARLY":
            first = day_number(date(period, 1, 1))
            return range(first, first + 365 + isleap(period))
        if self._frequency == "MONTHLY":
            year, month = divmod(period, 12)
            first = day_number(date(year, month + 1, 1))
            return range(first, first + monthrange(year, month + 1)[1])
        if self._frequency == "WEEKLY":
            first = period * 7 - 3 + self._week_start
            return range(first, first + 7)
        return range(period, period + 1)

    def _in_period(self, period: int) -> list[int]:
        """All labels of a period that are allowed, also those before the rule's start."""
        days = [day for day in self._days(period) if self._matches(_civil(day))]
        allowed = None if self._count is not None else self._allowed
        if allowed is not None and not self._by["BYSETPOS"]:
            return [
                day * DAY + time
                for day in days
                for time in self._kept(self._remainder(day), allowed.times_on(day))
            ]
        labels = [day * DAY + time for day in days for time in self._times(self._remainder(day))]
        if chosen := self._by["BYSETPOS"]:
            places = {place - 1 if place > 0 else len(labels) + place for place in chosen}
            labels = [label for place, label in enumerate(labels) if place in places]
        return labels if allowed is None else [label for label in labels if not allowed.excludes(label)]

    def _allowed_times(self, remainder: int, allowed: int) -> list[int]:
        """The times of a day that are allowed; computed once for all days that are alike."""
        return [time for time in self._times(remainder) if allowed >> time & 1]

    def excludes(self, label: int) -> bool:
        return self._allowed is not None and self._allowed.excludes(label)

    def _matches(self, day: date) -> bool:
        by, weekdays = self._by, self._weekdays
        if by["BYMONTH"] and day.month not in by["BYMONTH"]:
            return False
        if by["BYMONTHDAY"] and not _chosen(by["BYMONTHDAY"], day.day, monthrange(day.year, day.month)[1]):
            return False
        if weekdays and not any(self._on(nth, weekday, day) for nth, weekday in weekdays):
            return False
        if by["BYWEEKNO"] and not _chosen(by["BYWEEKNO"], *_week(day, self._week_start)):
            return False
        return not by["BYYEARDAY"] or _chosen(by["BYYEARDAY"], *_day_of_year(day))

    def _on(self, nth: int, weekday: int, day: date) -> bool:
        """Whether a day is the n-th of its weekday, counted in the month or else in the year."""
        if day.weekday() != weekday or nth == 0:
            return day.weekday() == weekday
        if self._frequency == "MONTHLY" or self._by["BYMONTH"]:
            place, length = day.day, monthrange(day.year, day.month)[1]
        else:
            place, length = _day_of_year(day)
        return nth == (place - 1) // 7 + 1 or nth == -((length - place) // 7 + 1)

    def _remainder(self, day: int) -> int:
        """What tells one day's times from another's: where the interval stands at midnight."""
        if self._by_periods:
            return 0
        unit = SUB_DAILY[self._frequency]
        return (self._start // unit - day * (DAY // unit)) % self._interval

    def _times_of_day(self, remainder: int) -> list[int]:
        """The times of a day, as seconds, ascending."""
        hours, minutes, seconds = (self._by[key] for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
        start = self._start % DAY
        if self._by_periods:
            hours = hours or frozenset([start // 3600])
        if self._frequency not in {"MINUTELY", "SECONDLY"}:
            minutes = minutes or frozenset([start // 60 % 60])
        if self._frequency != "SECONDLY":
            seconds = seconds or frozenset([start % 60])
        if self._by_periods:
            return sorted(h * 3600 + m * 60 + s for h, m, s in product(hours, minutes, seconds))
        unit = SUB_DAILY[self._frequency]
        within = {3600: product(minutes, seconds), 60: product([0], seconds), 1: product([0], [0])}
        inner = sorted(minute * 60 + second for minute, second in within[unit])
        return [
            step * unit + time
            for step in range(remainder, DAY // unit, self._interval)
            if (not hours or step * unit // 3600 in hours)
            and (unit == 3600 or not minutes or step * unit // 60 % 60 in minutes)
            and (unit > 1 or not seconds or step % 60 in seconds)
            for time in inner
        ]


def _civil(day: int) -> date:
    return date.fromordinal(day + EPOCH_ORDINAL)


def _chosen(places: frozenset[int], place: int, length: int) -> bool:
    """Whether a place is chosen, counted from the front or, negative, from the back."""
    return place in places or place - length - 1 in places


def _day_of_year(day: date) -> tuple[int, int]:
    """The number of a day in its year, and how many days that year has."""
    return day.timetuple().tm_yday, 365 + isleap(day.year)


def _week(day: date, week_start: int) -> tuple[int, int]:
    """The number of a day's week, and how many weeks its year has; week 1 has four days at least."""
    start = day - timedelta(days=(day.weekday() - week_start) % 7)
    year = (start + timedelta(days=3)).year
    first, following = (_first_week(y, week_start) for y in (year, year + 1))
    return (start - first).days // 7 + 1, (following - first).days // 7


def _first_week(year: int, week_start: int) -> date:
    fourth = date(year, 1, 4)
    return fourth - timedelta(days=(fourth.weekday() - week_start) % 7)
