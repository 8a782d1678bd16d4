"""The labels (civil seconds) that some calendars match and others do not exclude.

This makes searches fast and bounded. A year has one of fourteen shapes (the weekday of
1 January, leap or not), so the days of a month that match are computed once per shape. The times of
a day are one large integer, a bit per minute (per second, if any calendar names seconds), so that
union is ``|``, exclusion is ``& ~`` and the next match is a shift: a day on which everything is
excluded has no bits, a month with only such days has none either, and three centuries of such
months are skipped in a millisecond.
"""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Mapping
from datetime import date
from functools import lru_cache

from horae.spec.budget import charge
from horae.spec.calendar_bits import (
    Calendar,
    decoded,
    matching_days,
    times_of_day,
)
from horae.spec.civil import (
    DAY,
    END,
    EPOCH_ORDINAL,
    FIRST_YEAR,
    LAST_YEAR,
    START,
    CivilRule,
    joined,
    lowest,
    members,
    months_of,
)

Group = tuple[int, int]
Month = tuple[int, tuple[Group, ...]]
"""The days that match (bit 0 is the 1st), and groups of days with the times that match on them."""

EVERY_TIME = (1 << DAY) - 1
"""All seconds of a day."""

_AS_SECONDS = str.maketrans({"0": "0" * 60, "1": "0" * 59 + "1"})

_MAX_TIMES = {1: 128, 60: 4096}
"""How many distinct sets of times are cached, by unit (second or minute); a set of seconds takes 11 kB."""

_CHUNK = 3600
"""How many bits of a day are decoded at once: an hour of seconds, or a whole day of minutes."""


class CivilSet(CivilRule):
    """The union of calendars minus the union of excluded calendars and closed days.

    ``closed`` maps (year, month) to the days of that month, bit 0 for the 1st, on which nothing matches.
    """

    __slots__ = (
        "_alike",
        "_barren",
        "_closed",
        "_counting",
        "_envelope",
        "_excluded",
        "_included",
        "_months",
        "_shapes",
        "_unit",
        "_yearly",
        "_years",
    )

    def __init__(
        self,
        included: tuple[Calendar, ...],
        excluded: tuple[Calendar, ...] = (),
        closed: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        self._included = included
        self._excluded = excluded
        self._closed = closed or {}
        self._unit = 60 if all(calendar.seconds == 1 for calendar in included) else 1
        self._barren = END  # searches have shown that nothing matches from this label on
        self._months = 0
        for calendar in included:
            self._months |= calendar.months
        self._years: dict[int, list[Month | None]] = {}
        self._shapes: dict[tuple[object, ...], list[Month | None]] = {}
        self._alike: dict[int, int] = {}
        self._counting: dict[int, int] = {}
        self._yearly: dict[int, list[tuple[int, Calendar]]] = {}
        self._envelope: int | None = None

    def next(self, label: int) -> int | None:
        """The first matching label at or after one."""
        if label >= self._barren:
            return None
        label = max(label, START)
        day, second = divmod(label, DAY)
        civil = date.fromordinal(day + EPOCH_ORDINAL)
        year, month, place = civil.year, civil.month, civil.day - 1
        months = self._years.get(year)  # written out, not called: this is the hot path
        days, groups = (months and months[month - 1]) or self._month(year, month)
        days >>= place
        if days & 1:
            unit = self._unit
            first = -(-second // unit)
            times = (groups[0][1] if len(groups) == 1 else _times(groups, place)) >> first
            if times:
                return day * DAY + (first + (times & -times).bit_length() - 1) * unit
        days >>= 1
        if days:
            ahead = lowest(days) + 1
            return (day + ahead) * DAY + lowest(_times(groups, place + ahead)) * self._unit
        found = self._first_after(year, month)
        if found is None:
            self._barren = min(self._barren, label)
        return found

    def _first_after(self, year: int, month: int) -> int | None:
        """The first matching label after a month."""
        while self._months:
            later = self._months >> (month + 1)
            if later:
                month += 1 + lowest(later)
            elif year == LAST_YEAR:
                return None
            else:
                year, month = year + 1, lowest(self._months)
            charge(1)
            days, groups = self._month(year, month)
            if days:
                place = lowest(days)
                day = date(year, month, place + 1).toordinal() - EPOCH_ORDINAL
                return day * DAY + lowest(_times(groups, place)) * self._unit
        return None

    def previous(self, label: int) -> int | None:
        """The last matching label at or before one."""
        if label < START:
            return None
        day, second = divmod(min(label, END - 1), DAY)
        civil = date.fromordinal(day + EPOCH_ORDINAL)
        year, month, place = civil.year, civil.month, civil.day - 1
        days, groups = self._month(year, month)
        if days >> place & 1:
            times = _times(groups, place) & ((2 << (second // self._unit)) - 1)
            if times:
                return day * DAY + (times.bit_length() - 1) * self._unit
        days &= (1 << place) - 1
        while not days:
            earlier = self._months & ((1 << month) - 1)
            if not earlier:
                year, earlier = year - 1, self._months
                if year < FIRST_YEAR or not earlier:
                    return None
            month = earlier.bit_length() - 1
            charge(1)
            days, groups = self._month(year, month)
        place = days.bit_length() - 1
        day = date(year, month, place + 1).toordinal() - EPOCH_ORDINAL
        return day * DAY + (_times(groups, place).bit_length() - 1) * self._unit

    def span(self, first: int, end: int, limit: int) -> list[int]:
        """The matching labels from ``first`` up to but not including ``end``; at most ``limit``."""
        found: list[int] = []
        unit = self._unit
        while len(found) < limit and first < end:
            start = self.next(first)
            if start is None or start >= end:
                break
            midnight = start - start % DAY
            times = self.times_on(midnight // DAY)
            charge(4)
            first = min(midnight + DAY, start + _CHUNK * unit)
            wanted = (1 << -(-(min(first, end) - start) // unit)) - 1
            places = decoded(times >> ((start - midnight) // unit) & wanted)
            found += [start + place * unit for place in places]
        return found[:limit]

    def count(self, first: int, end: int) -> int:
        """How many labels match from ``first`` up to but not including ``end``; without a walk over the days."""
        first, end = max(first, START), min(end, END)
        if first >= end:
            return 0
        first_day, first_second = divmod(first, DAY)
        last_day, last_second = divmod(end - 1, DAY)
        before = self.times_on(first_day) & ((1 << -(-first_second // self._unit)) - 1)
        after = self.times_on(last_day) >> (last_second // self._unit + 1)
        whole = sum(self._count_days(*span) for span in months_of(first_day, last_day))
        return whole - before.bit_count() - after.bit_count()

    def _count_days(self, year: int, month: int, days: int) -> int:
        """How many labels match on some days of a month, bit 0 for the 1st."""
        _, groups = self._month(year, month)
        charge(len(groups) + 1)
        return sum((group & days).bit_count() * times.bit_count() for group, times in groups)

    def bits(self, first: int, end: int) -> int:
        """The matching labels from ``first`` up to but not including ``end`` as a bit set, bit 0 for ``first``."""
        charge(4 * ((end - first) // DAY + 1))
        if self._unit == 1:
            return joined(self.times_on, first, end)
        return joined(lambda day: _seconds_of(self.times_on(day)), first, end)

    @property
    def envelope(self) -> int:
        """The times that are not excluded on every day: a superset of the times of any day. Only for a set with a bit per second."""
        if self._envelope is None:
            left = EVERY_TIME
            for calendar in self._excluded:
                if calendar.covers_every_day:
                    left &= ~self._bits(calendar)
            self._envelope = left
        return self._envelope

    def groups(self, first: int, width: int) -> list[Group]:
        """The days of a window, bit 0 for ``first``, grouped by the times that match on them. Only for a set with a bit per second."""
        found: dict[int, Group] = {}
        place = 0
        for year, month, part in months_of(first, first + width - 1):
            shift = lowest(part)
            groups = self._month(year, month)[1]
            charge(1 + len(groups) // 2)
            for days, times in groups:
                if days := (days & part) >> shift << place:
                    found[id(times)] = (found[id(times)][0] | days if id(times) in found else days, times)
            place += part.bit_count()
        return list(found.values())

    def times_on(self, day: int) -> int:
        """The matching times of a day, a bit per second or minute."""
        civil = date.fromordinal(day + EPOCH_ORDINAL)
        return _times(self._month(civil.year, civil.month)[1], civil.day - 1)

    def holds(self, label: int) -> bool:
        """Whether a label matches. Only for a set with a bit per second."""
        day, second = divmod(label, DAY)
        return bool(self.times_on(day) >> second & 1)

    def excludes(self, label: int) -> bool:
        """Whether a label is excluded, even if a calendar matches it."""
        if not self._excluded and not self._closed:
            return False
        day, second = divmod(label, DAY)
        civil = date.fromordinal(day + EPOCH_ORDINAL)
        bit = 1 << (civil.day - 1)
        if self._closed.get((civil.year, civil.month), 0) & bit:
            return True
        charge(1 + len(self._excluded) // 2)
        return any(
            calendar.hours >> second // 3600 & 1
            and calendar.minutes >> second // 60 % 60 & 1
            and calendar.seconds >> second % 60 & 1
            and _days_in(calendar, civil.year, civil.month) & bit
            for calendar in self._excluded
        )

    def _month(self, year: int, month: int) -> Month:
        months = self._years.get(year)
        if months is None:
            months = self._years[year] = self._shape(year)
        found = months[month - 1]
        if found is None:
            found = months[month - 1] = self._computed(year, month)
        return found

    def _shape(self, year: int) -> list[Month | None]:
        """The months of a year, shared by all years of one shape in which the same calendars count."""
        dated = any((year, month) in self._closed for month in range(1, 13))
        key = (
            year if dated else None,
            date(year, 1, 1).weekday(),
            isleap(year),
            *(calendar.years >> (year - FIRST_YEAR) & 1 for calendar in self._included + self._excluded
              if calendar.years is not None),
        )  # fmt: skip
        charge(1 + len(key) // 8)
        return self._shapes.setdefault(key, [None] * 12)

    def _computed(self, year: int, month: int) -> Month:
        """Which days of a month match, and when: days on which the same calendars count have the same times."""
        calendars = self._in_year(year)
        charge(4 + len(calendars) // 2)
        closed = self._closed.get((year, month), 0)
        counting = [0] * 31  # by day, the calendars that count on it, as bits
        for number, calendar in calendars:
            if days := _days_in(calendar, year, month) & ~closed:
                charge(1)
                for place in members(days):
                    counting[place] |= 1 << number
        alike: dict[int, int] = {}
        for place, numbers in enumerate(counting):
            if numbers:
                alike[numbers] = alike.get(numbers, 0) | 1 << place
        kept: dict[int, Group] = {}
        for numbers, days in alike.items():
            if times := self._times_of(numbers):
                kept[id(times)] = (kept.get(id(times), (0, 0))[0] | days, times)
        return sum(days for days, _ in kept.values()), tuple(kept.values())

    def _in_year(self, year: int) -> list[tuple[int, Calendar]]:
        """The calendars that count in a year, each with its number."""
        found = self._yearly.get(year)
        if found is None:
            calendars = self._included + self._excluded
            charge(1 + len(calendars) // 8)
            found = self._yearly[year] = [
                (number, calendar)
                for number, calendar in enumerate(calendars)
                if calendar.years is None or calendar.years >> (year - FIRST_YEAR) & 1
            ]
        return found

    def _times_of(self, numbers: int) -> int:
        """The times of a day on which some calendars count; equal times are one object, so that they can be compared by identity."""
        found = self._counting.get(numbers)
        if found is None:
            charge(1 + numbers.bit_count() // (1 if self._unit == 1 else 4))
            times = excluded = 0
            for number in members(numbers):
                if number < len(self._included):
                    times |= self._bits(self._included[number])
                else:
                    excluded |= self._bits(self._excluded[number - len(self._included)])
            times &= ~excluded
            if len(self._alike) >= _MAX_TIMES[self._unit]:
                # There are very many kinds of days: bound the cache. Dropped times are computed, and charged for, again.
                for kept in (self._years, self._shapes, self._counting, self._alike):
                    kept.clear()
            found = self._counting[numbers] = self._alike.setdefault(times, times)
        return found

    def _bits(self, calendar: Calendar) -> int:
        return times_of_day(calendar.seconds, calendar.minutes, calendar.hours, self._unit)


@lru_cache(maxsize=256)
def _seconds_of(minutes: int) -> int:
    """The minutes of a day as its seconds: each is its second 0."""
    return int(f"{minutes:b}".translate(_AS_SECONDS), 2)


def _times(groups: tuple[tuple[int, int], ...], place: int) -> int:
    """The times of a day that is known to be in one of the groups."""
    for days, times in groups:
        if days >> place & 1:
            return times
    return 0


def _days_in(calendar: Calendar, year: int, month: int) -> int:
    if not calendar.months >> month & 1:
        return 0
    if calendar.years is not None and not calendar.years >> (year - FIRST_YEAR) & 1:
        return 0
    monday_first, length = monthrange(year, month)
    return matching_days(calendar, (monday_first + 1) % 7, length)
