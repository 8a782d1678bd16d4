"""The days of a month that the BY-parts of an RRULE name, as bits: bit 0 for the 1st."""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from horae.spec.budget import charge

_WEEK = 0b1111111


class RuleDays:
    """Which days match, whatever interval, count and times the rule has.

    ``weekdays`` are pairs of a number (0 for every) and a weekday from Monday = 0; ``in_month`` says that the number counts in the
    month, and not in the year.
    """

    __slots__ = ("_by", "_in_month", "_shapes", "_week_start", "_weekdays")

    def __init__(
        self,
        by: Mapping[str, frozenset[int]],
        weekdays: Iterable[tuple[int, int]],
        week_start: int,
        *,
        in_month: bool,
    ) -> None:
        self._by = by
        self._weekdays = tuple(weekdays)
        self._week_start = week_start
        self._in_month = in_month
        self._shapes: dict[tuple[int, int, bool, bool, bool], int] = {}

    def matching(self, year: int, month: int) -> int:
        """The days of a month that match: the same in all years of one shape.

        The weeks of a year begin in the year before and end in the one after, so those belong to its shape.
        """
        by = self._by
        if by["BYMONTH"] and month not in by["BYMONTH"]:
            return 0
        key = (month, date(year, 1, 1).weekday(), isleap(year - 1), isleap(year), isleap(year + 1))
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = self._computed(year, month)
        return found

    def _computed(self, year: int, month: int) -> int:
        by = self._by
        charge(
            (20 if by["BYWEEKNO"] else 5)
            + (len(by["BYMONTHDAY"]) + len(self._weekdays) + len(by["BYYEARDAY"])) // 4
        )
        length = monthrange(year, month)[1]
        days = (1 << length) - 1
        if by["BYMONTHDAY"]:
            days &= _placed(by["BYMONTHDAY"], length)
        if self._weekdays:
            days &= self._on_weekdays(year, month, length)
        if by["BYYEARDAY"]:
            days &= _cut(_placed(by["BYYEARDAY"], _days_of(year)), year, month)
        return days & self._in_weeks(year, month, length) if by["BYWEEKNO"] and days else days

    def _on_weekdays(self, year: int, month: int, length: int) -> int:
        """The days on any of the weekdays, or the n-th of these in the month or else in the year."""
        first = date(year, month, 1)
        found = 0
        for nth, weekday in self._weekdays:
            if nth == 0:
                found |= _every_seventh((weekday - first.weekday()) % 7, length)
            elif self._in_month:
                found |= _nth((weekday - first.weekday()) % 7, nth, length)
            else:
                ahead = (weekday - date(year, 1, 1).weekday()) % 7
                found |= _cut(_nth(ahead, nth, _days_of(year)), year, month)
        return found

    def _in_weeks(self, year: int, month: int, length: int) -> int:
        """The days in any of the weeks, which are counted as in ISO 8601 from another first weekday."""
        weeks = self._by["BYWEEKNO"]
        first = date(year, month, 1)
        place = -((first.weekday() - self._week_start) % 7)
        found = 0
        while place < length:
            number, of = _week(first + timedelta(days=place))
            if number in weeks or number - of - 1 in weeks:
                found |= _WEEK << place if place >= 0 else _WEEK >> -place
            place += 7
        return found


def _placed(places: frozenset[int], length: int) -> int:
    """The bits at some places, counted from 1 at the front or from -1 at the back, of so many."""
    found = 0
    for place in places:
        at = place - 1 if place > 0 else length + place
        if 0 <= at < length:
            found |= 1 << at
    return found


def _every_seventh(first: int, length: int) -> int:
    return sum(1 << place for place in range(first, length, 7))


def _nth(first: int, nth: int, length: int) -> int:
    """The n-th of the places first, first + 7, … below a length; from the back if negative."""
    last = first + (length - 1 - first) // 7 * 7
    at = first + 7 * (nth - 1) if nth > 0 else last + 7 * (nth + 1)
    return 1 << at if 0 <= at < length else 0


def _days_of(year: int) -> int:
    return 365 + isleap(year)


def _cut(days: int, year: int, month: int) -> int:
    """The days of a year, bit 0 for 1 January, cut to a month."""
    before = date(year, month, 1).timetuple().tm_yday - 1
    return days >> before & (1 << monthrange(year, month)[1]) - 1


def _week(start: date) -> tuple[int, int]:
    """The number of the week that starts on a day, and how many weeks its year has; week 1 has four days at least."""
    middle = start + timedelta(days=3)
    number = (middle.timetuple().tm_yday - 1) // 7 + 1
    # The year has another week after its 52nd if that one, too, has four days in it.
    return number, 53 if (middle + timedelta(weeks=53 - number)).year == middle.year else 52
