"""Recurrence rules: the times that an RRULE names.

The iterator of ``python-dateutil`` is not used: it walks from the rule's first day each time it is
asked, and a rule that never matches keeps it walking. Here a rule is, like a calendar, the days of a month as bits and the
times of a day as bits; so that a question about any time costs about the same, and "never" is an answer.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from functools import lru_cache

from horae.spec.budget import charge
from horae.spec.calendar_bits import EVERY_HOUR, EVERY_MINUTE, EVERY_SECOND, decoded, times_of_day
from horae.spec.civil import (
    DAY,
    END,
    EPOCH_ORDINAL,
    CivilRule,
    day_number,
    every_nth_bit,
    lowest,
    members,
    months_of,
)
from horae.spec.civil_set import CivilSet
from horae.spec.day_search import NARROWEST, WIDEST, DayRule, Group
from horae.spec.rrule_days import RuleDays
from horae.spec.rrule_parser import RANGES, SUB_DAILY, WEEKDAYS, numbers_of, weekdays_of
from horae.spec.wall_clock_interval import Stride

_NARROWED_KEPT = 128
DAY_PARTS = ("BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS")


class Recurrence(DayRule, CivilRule):
    """A rule as labels, without those that are not allowed.

    ``start`` is its first label at the earliest, ``until`` its last at the latest. As with the exceptions
    of iCalendar, what is not allowed counts towards COUNT and BYSETPOS all the same.
    """

    __slots__ = (
        "_alike", "_allowed", "_barren", "_by", "_chosen", "_count", "_days_by_rule", "_days_in_month", "_every_day", "_frequency", "_interval", "_narrowed",
        "_placed_times", "_start", "_times", "_until", "_week_start", "_weekdays",
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
        unit = SUB_DAILY.get(self._frequency)
        super().__init__(Stride(self._interval, start // unit, unit) if unit and self._interval > 1 else None)
        self._week_start = WEEKDAYS.index(given.get("WKST", "MO"))
        self._start = start
        self._by = {key: frozenset(numbers_of(given, key)) for key in RANGES}
        self._weekdays = weekdays_of(given)
        self._fill_in(_civil(start // DAY))
        in_month = self._frequency == "MONTHLY" or bool(self._by["BYMONTH"])
        self._days_by_rule = RuleDays(self._by, self._weekdays, self._week_start, in_month=in_month)
        self._every_day = self._names_every_day()
        self._barren = END  # searches have shown that nothing follows from this label on
        self._times = self._times_of_day()
        self._days_in_month = lru_cache(maxsize=4096)(self._days_of_month)
        self._chosen = lru_cache(maxsize=64)(self._chosen_in)
        self._narrowed: dict[tuple[int, int], tuple[int, int]] = {}
        self._alike: dict[int, int] = {}
        self._placed_times: dict[int, int] | None = None
        self._until = END - 1 if until is None else until
        self._count = int(given["COUNT"]) if "COUNT" in given else None
        self._allowed = allowed

    def _fill_in(self, first: date) -> None:
        """Fill in the parts that the rule leaves open from its start (RFC 5545, 3.3.10)."""
        by = self._by
        if not (by["BYWEEKNO"] or by["BYYEARDAY"] or by["BYMONTHDAY"] or self._weekdays):
            if self._frequency == "WEEKLY":
                self._weekdays = [(0, first.weekday())]
            elif self._frequency in {"MONTHLY", "YEARLY"}:
                by["BYMONTHDAY"] = frozenset([first.day])
                if self._frequency == "YEARLY" and not by["BYMONTH"]:
                    by["BYMONTH"] = frozenset([first.month])

    def _names_every_day(self) -> bool:
        if self._weekdays or any(self._by[key] for key in DAY_PARTS):
            return False
        return self._frequency in SUB_DAILY or (self._frequency == "DAILY" and self._interval == 1)

    def next(self, label: int) -> int | None:
        """The first label at or after one."""
        label = max(label, self._start)
        if label >= self._barren:
            return None
        found = self.first(label, self._last() + 1)
        if found is None:
            self._barren = label
        return found

    def previous(self, label: int) -> int | None:
        """The last label at or before one."""
        return self.last(self._start, min(label, self._last()) + 1)

    def span(self, first: int, end: int, limit: int) -> list[int]:
        """The labels from ``first`` up to but not including ``end``; at most ``limit``."""
        return self.listed(max(first, self._start), min(end, self._last() + 1), limit)

    def count(self, first: int, end: int) -> int:
        """How many labels there are from ``first`` up to but not including ``end``."""
        return self.counted(max(first, self._start), min(end, self._last() + 1))

    def bits(self, first: int, end: int) -> int:
        """The labels from ``first`` up to but not including ``end`` as a bit set, bit 0 for ``first``."""
        begin, stop = max(first, self._start), min(end, self._last() + 1)
        return self.bits_of(begin, stop) << (begin - first) if begin < stop else 0

    def excludes(self, label: int) -> bool:
        return self._allowed is not None and self._allowed.excludes(label)

    @property
    def envelope(self) -> int:
        return self._times

    def groups(self, first: int, width: int) -> list[Group]:
        """The days of a window that the rule names, with those of their times that are allowed."""
        own = self._own_groups(first, width)
        if self._allowed is None or not own:
            return own
        left = []
        for days, times in self._allowed.groups(first, width):
            for own_days, own_times in own:
                if (both := days & own_days) and (kept := self._narrow(own_times, times)):
                    left.append((both, kept))
        return left

    def times_of(self, day: int) -> int:
        """The times of a day that the rule names and that are allowed."""
        times = self._named_times(day)
        return self._narrow(times, self._allowed.times_on(day)) if times and self._allowed else times

    def _named_times(self, day: int) -> int:
        """The times of a day that the rule names, whether or not they are allowed, or hit by its stride."""
        if not self._every_day:
            civil = _civil(day)
            if not self._days_in_month(civil.year, civil.month) >> (civil.day - 1) & 1:
                return 0
        return self._chosen(self._period(day)).get(day, 0) if self._by["BYSETPOS"] else self._times

    def _own_groups(self, first: int, width: int) -> list[Group]:
        """The days of a window that the rule names, whether or not they are allowed."""
        if self._every_day:
            return [((1 << width) - 1, self._times)]
        if self._by["BYSETPOS"] and not self._positions():
            return []
        days, place = 0, 0
        for year, month, part in months_of(first, first + width - 1):
            shift = lowest(part)
            days |= (self._days_in_month(year, month) & part) >> shift << place
            place += part.bit_count()
            charge(2)
        if not self._by["BYSETPOS"] or not days:
            return [(days, self._times)] if days and self._times else []
        charge(3 * days.bit_count())
        groups: dict[int, Group] = {}
        for day in members(days):
            if times := self._chosen(self._period(first + day)).get(first + day, 0):
                groups[id(times)] = (groups.get(id(times), (0, 0))[0] | 1 << day, times)
        return list(groups.values())

    def _narrow(self, times: int, allowed: int) -> int:
        """Some times without those that are not allowed; the same two inputs give the same object, so that it can be compared by identity."""
        key = (id(times), id(allowed))
        found = self._narrowed.get(key)
        if found is None:
            charge(2)
            if len(self._narrowed) == _NARROWED_KEPT:
                self._narrowed.clear()
            found = self._narrowed[key] = (times & allowed, allowed)  # kept, for its identity
        return found[0]

    def _last(self) -> int:
        """The last label at the latest: of a rule with a count, the one that fulfils it."""
        if (wanted := self._count) is not None:
            self._until = min(self._until, self._counted_out(wanted))
            self._count = None  # set last, so that a concurrent thread counts for itself
        return self._until

    def _counted_out(self, wanted: int) -> int:
        """The label that fulfils a count. Labels that are not allowed count as well."""
        day, second = divmod(self._start, DAY)
        times = self._named_on(day) & -1 << second
        if times.bit_count() >= wanted:
            return day * DAY + decoded(times, wanted)[-1]
        wanted, day, width = wanted - times.bit_count(), day + 1, NARROWEST
        while day < END // DAY:
            number = sum(self._number(days, each, day) for days, each in self._own_groups(day, width))
            if number < wanted:
                wanted, day, width = wanted - number, day + width, min(width * 4, WIDEST)
            elif width == 1:
                return day * DAY + decoded(self._named_on(day), wanted)[-1]
            else:  # it lies in this window: search a part of it
                width //= 2
                continue
            width = min(width, max(END // DAY - day, 1))
        return END - 1

    def _named_on(self, day: int) -> int:
        """The times of a day that the rule names, whether or not they are allowed."""
        times = self._named_times(day)
        return times & self.stride.hits(self.stride.remainder(day)) if self.stride else times

    def _days_of_month(self, year: int, month: int) -> int:
        """The days of a month on which something may happen, bit 0 for the 1st."""
        days = self._aligned_days(year, month)
        if not days or not self._by["BYSETPOS"] or self._frequency not in {"YEARLY", "MONTHLY"}:
            return days
        # BYSETPOS chooses few days of a long period: skip the others.
        first = day_number(date(year, month, 1))
        chosen = (day - first for day in self._chosen(self._period(first)))
        return sum(1 << place for place in chosen if 0 <= place < monthrange(year, month)[1])

    def _aligned_days(self, year: int, month: int) -> int:
        """The days of a month that match and that the interval does not skip, bit 0 for the 1st."""
        if self._interval == 1 or self._frequency in SUB_DAILY:
            return self._days_by_rule.matching(year, month)
        first = day_number(date(year, month, 1))
        if self._frequency in {"YEARLY", "MONTHLY"}:
            unstarted = (self._period(first) - self._period(self._start // DAY)) % self._interval
            return 0 if unstarted else self._days_by_rule.matching(year, month)
        return self._days_by_rule.matching(year, month) & self._counted_days(first)

    def _counted_days(self, first: int) -> int:
        """The days from ``first`` on, as bits, that an interval of days or weeks does not skip; a month of them."""
        start = self._start // DAY
        if self._frequency == "DAILY":
            ahead = (start - first) % self._interval
            return every_nth_bit(self._interval, 31) << ahead
        cycle = 7 * self._interval
        ahead = (self._period(start) * 7 - 3 + self._week_start - first) % cycle
        under_way = 127 >> (cycle - ahead) if cycle - ahead < 7 else 0
        return (every_nth_bit(cycle, 35) * 127) << ahead | under_way

    def _period(self, day: int) -> int:
        """The number of the year, month, week or day that a day lies in."""
        if self._frequency == "WEEKLY":
            return (day + 3 - self._week_start) // 7  # 1970-01-01 was a Thursday
        if self._frequency in {"YEARLY", "MONTHLY"}:
            civil = _civil(day)
            return civil.year if self._frequency == "YEARLY" else civil.year * 12 + civil.month - 1
        return day

    def _chosen_in(self, period: int) -> dict[int, int]:
        """The times that BYSETPOS chooses of a period, by day."""
        days = self._days_in(period)
        charge(len(days))
        chosen: dict[int, int] = {}
        for place, times in self._positions().items():
            if -len(days) <= place < len(days):
                day = days[place]
                chosen[day] = self._same(chosen[day] | times) if day in chosen else times
        return chosen

    def _positions(self) -> dict[int, int]:
        """The places of BYSETPOS as days of a period, counted from its front or (negative) back, with times.

        They are the same in every period, since its days have the same times; only their number differs. Places that no period has
        are left out.
        """
        if self._placed_times is None:
            times = decoded(self._times)
            weekdays = len({weekday for _, weekday in self._weekdays}) or 7
            most = {"DAILY": 1, "WEEKLY": weekdays, "MONTHLY": 31}.get(self._frequency, 366)
            by_day: dict[int, int] = {}
            for place in self._by["BYSETPOS"]:
                day, time = divmod(place - 1 if place > 0 else place, len(times))
                if -most <= day < most:
                    by_day[day] = by_day.get(day, 0) | 1 << times[time]
            charge(len(times) // 16)
            self._placed_times = {day: self._same(bits) for day, bits in by_day.items()}
        return self._placed_times

    def _same(self, times: int) -> int:
        """Return one object for equal times, so that days with the same times can be grouped by identity."""
        return self._alike.setdefault(times, times)

    def _days_in(self, period: int) -> list[int]:
        """The matching days of a period."""
        if self._frequency == "WEEKLY":
            first = period * 7 - 3 + self._week_start
            matching = self._days_by_rule.matching
            civil = [(day, _civil(day)) for day in range(first, first + 7)]
            return [day for day, on in civil if matching(on.year, on.month) >> (on.day - 1) & 1]
        if self._frequency == "DAILY":
            return [period]
        months = [divmod(period, 12)] if self._frequency == "MONTHLY" else [(period, m) for m in range(12)]
        days: list[int] = []
        for year, month in months:
            first = day_number(date(year, month + 1, 1))
            days += [first + place for place in members(self._aligned_days(year, month + 1))]
        return days

    def _times_of_day(self) -> int:
        """The times of a day, a bit per second; a stride leaves some of them."""
        hours, minutes, seconds = (self._by[key] for key in ("BYHOUR", "BYMINUTE", "BYSECOND"))
        start = self._start % DAY
        unit = SUB_DAILY.get(self._frequency, DAY)
        if unit > 3600:
            hours = hours or frozenset([start // 3600])
        if unit > 60:
            minutes = minutes or frozenset([start // 60 % 60])
        if unit > 1:
            seconds = seconds or frozenset([start % 60])
        return times_of_day(
            _bit_set(seconds) or EVERY_SECOND,
            _bit_set(minutes) or EVERY_MINUTE,
            _bit_set(hours) or EVERY_HOUR,
            1,
        )


def _civil(day: int) -> date:
    return date.fromordinal(day + EPOCH_ORDINAL)


def _bit_set(values: frozenset[int]) -> int:
    return sum(1 << value for value in values)
