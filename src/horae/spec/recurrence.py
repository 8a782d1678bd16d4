"""Recurrence rules: the times that an RRULE names.

The iterator of ``python-dateutil`` is not used: it walks from the rule's first day each time it is
asked, and a rule that never matches keeps it walking. Here a rule is, like a calendar, the days of a month as bits and the
times of a day as bits; so that a question about any time costs about the same, and "never" is an answer.
"""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from itertools import takewhile

from horae.spec.calendar import EVERY_HOUR, EVERY_MINUTE, EVERY_SECOND, decoded, times_of_day
from horae.spec.civil import (
    DAY,
    END,
    EPOCH_ORDINAL,
    LAST_YEAR,
    START,
    CivilRule,
    day_number,
    every_nth_bit,
    joined,
    lowest,
    members,
)
from horae.spec.civilset import CivilSet
from horae.spec.rule import RANGES, SUB_DAILY, WEEKDAYS, numbers_of, weekdays_of

MOST_KEPT = 512


class Recurrence(CivilRule):
    """A rule as labels, without those that are not allowed.

    ``start`` is its first label at the earliest, ``until`` its last at the latest. As with the exceptions
    of iCalendar, what is not allowed counts towards COUNT and BYSETPOS all the same.
    """

    __slots__ = (
        "_allowed", "_barren", "_by", "_chosen", "_count", "_days", "_frequency", "_interval", "_kept",
        "_placed_times", "_shapes", "_start", "_times", "_until", "_week_start", "_weekdays",
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
        self._week_start = WEEKDAYS.index(given.get("WKST", "MO"))
        self._start = start
        self._by = {key: frozenset(numbers_of(given, key)) for key in RANGES}
        self._weekdays = weekdays_of(given)
        self._fill_in(_civil(start // DAY))
        self._barren = END  # from this label on there is nothing, as searches have shown
        self._times = lru_cache(maxsize=64)(self._times_of_day)
        self._days = lru_cache(maxsize=4096)(self._days_of_month)
        self._chosen = lru_cache(maxsize=64)(self._chosen_in)
        self._kept: dict[tuple[int, int], int] = {}
        self._shapes: dict[tuple[int, int, bool, bool, bool], int] = {}
        self._placed_times: dict[int, int] | None = None
        self._allowed: CivilSet | None = None  # what is not allowed counts, so count before it is set
        self._until = END if until is None else until
        self._count = int(given["COUNT"]) if "COUNT" in given else None
        self._allowed = allowed

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
        label = max(label, self._start)
        if label >= self._barren:
            return None
        until = self._last()
        for day in self._from(label // DAY):
            if day * DAY > until:
                break
            bits = self._bits(day)
            if day == label // DAY:
                bits &= -1 << (label % DAY)
            if bits:
                found = day * DAY + lowest(bits)
                if found <= until:
                    return found
                break
        self._barren = label
        return None

    def previous(self, label: int) -> int | None:
        """The last label at or before one."""
        label = min(label, self._last())
        for day in self._back_from(label // DAY):
            if day < self._start // DAY:
                break
            bits = self._bits(day)
            if day == label // DAY:
                bits &= (2 << (label % DAY)) - 1
            if bits:
                found = day * DAY + bits.bit_length() - 1
                return found if found >= self._start else None
        return None

    def span(self, first: int, end: int, limit: int) -> list[int]:
        """The labels from ``first`` up to but not including ``end``; at most ``limit``."""
        found: list[int] = []
        first, end = max(first, self._start), min(end, self._last() + 1)
        for day in self._from(first // DAY):
            if day * DAY >= end or len(found) >= limit:
                break
            found += [day * DAY + time for time in decoded(self._bits_within(day, first, end))]
        return found[:limit]

    def count(self, first: int, end: int) -> int:
        """How many labels there are from ``first`` up to but not including ``end``."""
        first, end = max(first, self._start), min(end, self._last() + 1)
        days = takewhile(lambda day: day * DAY < end, self._from(first // DAY))
        return sum(self._bits_within(day, first, end).bit_count() for day in days)

    def bits(self, first: int, end: int) -> int:
        """The labels from ``first`` up to but not including ``end`` as a bit set, bit 0 for ``first``."""
        begin, stop = max(first, self._start), min(end, self._last() + 1)
        if begin >= stop:
            return 0

        def times_on(day: int) -> int:
            civil = _civil(day)
            return self._bits(day) if self._days(civil.year, civil.month) >> (civil.day - 1) & 1 else 0

        return joined(times_on, begin, stop) << (begin - first)

    def excludes(self, label: int) -> bool:
        return self._allowed is not None and not self._allowed.allows(label)

    def _last(self) -> int:
        """The last label at the latest: of a rule with a count, the one that fulfils it."""
        if (wanted := self._count) is not None:
            self._until = min(self._until, self._counted(wanted))
            self._count = None  # last, so that another thread that asks meanwhile counts for itself
        return self._until

    def _counted(self, wanted: int) -> int:
        for day in self._from(self._start // DAY):
            bits = self._bits(day, only_allowed=False)
            if day == self._start // DAY:
                bits &= -1 << (self._start % DAY)
            if bits.bit_count() >= wanted:
                return day * DAY + decoded(bits)[wanted - 1]
            wanted -= bits.bit_count()
        return END

    def _from(self, day: int) -> Iterator[int]:
        """The days at or after one on which something may happen."""
        civil = _civil(max(day, START // DAY))
        year, month, days = civil.year, civil.month, -1 << (civil.day - 1)
        while year <= LAST_YEAR:
            days &= self._days(year, month)
            if days:
                first = day_number(date(year, month, 1))
                yield from (first + place for place in members(days))
            year, month, days = (year, month + 1, -1) if month < 12 else (year + 1, 1, -1)

    def _back_from(self, day: int) -> Iterator[int]:
        """The days at or before one on which something may happen, latest first."""
        civil = _civil(min(day, END // DAY - 1))
        year, month, days = civil.year, civil.month, (1 << civil.day) - 1
        first = _civil(self._start // DAY)
        while (year, month) >= (first.year, first.month):
            days &= self._days(year, month)
            if days:
                start = day_number(date(year, month, 1))
                yield from (start + place for place in reversed(members(days)))
            year, month, days = (year, month - 1, -1) if month > 1 else (year - 1, 12, -1)

    def _days_of_month(self, year: int, month: int) -> int:
        """The days of a month on which something may happen, bit 0 for the 1st."""
        days = self._aligned_days(year, month)
        if not days or not self._by["BYSETPOS"] or self._frequency not in {"YEARLY", "MONTHLY"}:
            return days
        # Of a long period few days are chosen: the others need not be looked at one by one.
        first = day_number(date(year, month, 1))
        chosen = (day - first for day in self._chosen(self._period(first)))
        return sum(1 << place for place in chosen if 0 <= place < monthrange(year, month)[1])

    def _aligned_days(self, year: int, month: int) -> int:
        """The days of a month that match and that the interval does not pass over, bit 0 for the 1st."""
        first = day_number(date(year, month, 1))
        by_month = self._frequency in {"YEARLY", "MONTHLY"}
        if by_month and not self._is_aligned(first):
            return 0
        bits = self._matching_days(year, month)
        if by_month or self._interval == 1 or self._frequency in SUB_DAILY:
            return bits
        return sum(1 << place for place in members(bits) if self._is_aligned(first + place))

    def _matching_days(self, year: int, month: int) -> int:
        """The days of a month that match, bit 0 for the 1st: the same in all years of one shape.

        The weeks of a year begin in the year before and end in the one after, so those belong to its shape.
        """
        key = (month, date(year, 1, 1).weekday(), isleap(year - 1), isleap(year), isleap(year + 1))
        found = self._shapes.get(key)
        if found is None:
            length = monthrange(year, month)[1]
            matching = (place for place in range(length) if self._matches(date(year, month, place + 1)))
            found = self._shapes[key] = sum(1 << place for place in matching)
        return found

    def _is_aligned(self, day: int) -> bool:
        """Whether the interval does not pass over the period of a day; below a day it counts otherwise."""
        if self._interval == 1 or self._frequency in SUB_DAILY:
            return True
        return (self._period(day) - self._period(self._start // DAY)) % self._interval == 0

    def _period(self, day: int) -> int:
        """The number of the year, month, week or day that a day lies in."""
        if self._frequency == "WEEKLY":
            return (day + 3 - self._week_start) // 7  # 1970-01-01 was a Thursday
        if self._frequency in {"YEARLY", "MONTHLY"}:
            civil = _civil(day)
            return civil.year if self._frequency == "YEARLY" else civil.year * 12 + civil.month - 1
        return day

    def _bits_within(self, day: int, first: int, end: int) -> int:
        """The times of a day, cut to a range of labels."""
        bits = self._bits(day)
        if first > day * DAY:
            bits &= -1 << (first - day * DAY)
        return bits & ((1 << (end - day * DAY)) - 1) if end < (day + 1) * DAY else bits

    def _bits(self, day: int, *, only_allowed: bool = True) -> int:
        """The times of a day that matches, a bit per second."""
        allowed = self._allowed.times_on(day) if only_allowed and self._allowed is not None else -1
        if self._by["BYSETPOS"]:
            return self._chosen(self._period(day)).get(day, 0) & allowed
        remainder = self._remainder(day)
        if allowed == -1:
            return self._times(remainder)
        # Days that are alike share their allowed times as one object, which the set keeps alive.
        key = (remainder, id(allowed))
        if key not in self._kept:
            if len(self._kept) == MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self._times(remainder) & allowed
        return self._kept[key]

    def _chosen_in(self, period: int) -> dict[int, int]:
        """What BYSETPOS chooses of a period: its places among all times of the period, by day."""
        days = self._days_in(period)
        chosen: dict[int, int] = {}
        for place, times in self._positions().items():
            if -len(days) <= place < len(days):
                day = days[place]
                chosen[day] = chosen[day] | times if day in chosen else times
        return chosen

    def _positions(self) -> dict[int, int]:
        """The places of BYSETPOS as days of a period, counted from its front or (negative) back, with times.

        They are the same in every period, since its days have the same times; only their number differs.
        """
        if self._placed_times is None:
            times = decoded(self._times(0))
            by_day: dict[int, int] = {}
            for place in self._by["BYSETPOS"]:
                day, time = divmod(place - 1 if place > 0 else place, len(times))
                by_day[day] = by_day.get(day, 0) | 1 << times[time]
            alike: dict[int, int] = {}  # days with the same times share them as one object
            self._placed_times = {day: alike.setdefault(bits, bits) for day, bits in by_day.items()}
        return self._placed_times

    def _days_in(self, period: int) -> list[int]:
        """The matching days of a period."""
        if self._frequency == "WEEKLY":
            first = period * 7 - 3 + self._week_start
            return [day for day in range(first, first + 7) if self._matches(_civil(day))]
        if self._frequency == "DAILY":
            return [period]
        months = [divmod(period, 12)] if self._frequency == "MONTHLY" else [(period, m) for m in range(12)]
        days: list[int] = []
        for year, month in months:
            first = day_number(date(year, month + 1, 1))
            days += [first + place for place in members(self._aligned_days(year, month + 1))]
        return days

    def _matches(self, day: date) -> bool:
        by, weekdays = self._by, self._weekdays
        if by["BYMONTH"] and day.month not in by["BYMONTH"]:
            return False
        if by["BYMONTHDAY"] and not _placed(by["BYMONTHDAY"], day.day, monthrange(day.year, day.month)[1]):
            return False
        if weekdays and not any(self._on(nth, weekday, day) for nth, weekday in weekdays):
            return False
        if by["BYWEEKNO"] and not _placed(by["BYWEEKNO"], *_week(day, self._week_start)):
            return False
        return not by["BYYEARDAY"] or _placed(by["BYYEARDAY"], *_day_of_year(day))

    def _on(self, nth: int, weekday: int, day: date) -> bool:
        """Whether a day is the n-th of its weekday, counted in the month or else in the year."""
        if day.weekday() != weekday or nth == 0:
            return day.weekday() == weekday
        if self._frequency == "MONTHLY" or self._by["BYMONTH"]:
            place, length = day.day, monthrange(day.year, day.month)[1]
        else:
            place, length = _day_of_year(day)
        return nth in {(place - 1) // 7 + 1, -((length - place) // 7 + 1)}

    def _remainder(self, day: int) -> int:
        """What tells one day's times from another's: where the interval stands at midnight."""
        if self._frequency not in SUB_DAILY:
            return 0
        unit = SUB_DAILY[self._frequency]
        return (self._start // unit - day * (DAY // unit)) % self._interval

    def _times_of_day(self, remainder: int) -> int:
        """The times of a day, a bit per second."""
        hours, minutes, seconds = (self._by[key] for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
        start = self._start % DAY
        unit = SUB_DAILY.get(self._frequency, DAY)
        if unit > 3600:
            hours = hours or frozenset([start // 3600])
        if unit > 60:
            minutes = minutes or frozenset([start // 60 % 60])
        if unit > 1:
            seconds = seconds or frozenset([start % 60])
        every = times_of_day(
            _bit_set(seconds) or EVERY_SECOND,
            _bit_set(minutes) or EVERY_MINUTE,
            _bit_set(hours) or EVERY_HOUR,
            1,
        )
        if unit == DAY or self._interval == 1:
            return every
        if remainder >= DAY // unit:  # the interval passes over this day
            return 0
        starts = every_nth_bit(self._interval * unit, DAY) << (remainder * unit)
        return every & ((starts << unit) - starts)  # each start, and the rest of its hour or minute


def _civil(day: int) -> date:
    return date.fromordinal(day + EPOCH_ORDINAL)


def _bit_set(values: frozenset[int]) -> int:
    return sum(1 << value for value in values)


def _placed(places: frozenset[int], place: int, length: int) -> bool:
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
