"""The compiled form of a cron expression or a calendar: sets of seconds, minutes, hours and days, as bits.

All dialects compile to :class:`Calendar`. Bit *n* of a set stands for the value *n*; weekdays count
from Sunday = 0; bit *n* of ``years`` stands for :data:`~horae.spec.civil.FIRST_YEAR` + *n*.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from horae.spec.budget import charge
from horae.spec.civil import bit_range, lowest, members

EVERY_SECOND = EVERY_MINUTE = bit_range(0, 59)
EVERY_HOUR = bit_range(0, 23)
EVERY_DAY = bit_range(1, 31)
EVERY_MONTH = bit_range(1, 12)
EVERY_WEEKDAY = bit_range(0, 6)


class Special(msgspec.Struct, frozen=True, gc=False):
    """Days that depend on the month: ``L-2``, ``15W``, ``LW``, ``1#2`` and ``5L``."""

    from_last: int = 0
    """Bit *n*: the *n*-th day before the last day of the month."""
    nearest: int = 0
    """Bit *n*: the weekday (Monday to Friday) nearest to day *n*, in the same month."""
    last_workday: bool = False
    nth: int = 0
    """Bit 7 · (*n* - 1) + *w*: the *n*-th weekday *w* of the month."""
    last: int = 0
    """Bit *w*: the last weekday *w* of the month."""

    def merged(self, other: Special) -> Special:
        return Special(
            self.from_last | other.from_last,
            self.nearest | other.nearest,
            self.last_workday or other.last_workday,
            self.nth | other.nth,
            self.last | other.last,
        )


class Calendar(msgspec.Struct, frozen=True, gc=False):
    """One cron expression or calendar, whatever dialect it was written in.

    ``either`` is crontab's rule for two restricted day fields: a day matches when its day of month
    or its weekday does. Otherwise both must. ``stars`` are the fields that were written as ``*`` or
    ``*/n``, which crontab treats specially (bits :data:`STAR_MINUTE` and so on).
    """

    seconds: int = 1
    minutes: int = 1
    hours: int = 1
    days: int = EVERY_DAY
    months: int = EVERY_MONTH
    weekdays: int = EVERY_WEEKDAY
    years: int | None = None
    special: Special | None = None
    either: bool = False
    stars: int = 0
    comment: str = ""

    @property
    def follows_real_time(self) -> bool:
        """Whether Debian's cron ignores clock changes for it: its minute or hour is a wildcard."""
        return bool(self.stars & (STAR_MINUTE | STAR_HOUR))

    @property
    def covers_every_day(self) -> bool:
        """Whether it matches on every day of every month and year."""
        whole = (self.days, self.months, self.weekdays) == (EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY)
        return whole and self.years is None


STAR_MINUTE, STAR_HOUR, STAR_DAY, STAR_WEEKDAY = 1, 2, 4, 8

ALWAYS = Calendar(EVERY_SECOND, EVERY_MINUTE, EVERY_HOUR)
"""Every second of every day."""

_CHUNK_BITS = 4096
_CHUNK = (1 << _CHUNK_BITS) - 1
_HANDFUL = 16
"""Up to this many members are extracted from a bit set one by one; each extraction copies the whole set."""


def matching_days(calendar: Calendar, first_weekday: int, length: int) -> int:
    """The days of a month that match, bit 0 for the 1st; whether the month itself matches is not checked.

    ``first_weekday`` is the weekday of the 1st, ``length`` the number of days.
    """
    whole = (1 << length) - 1
    by_day = calendar.days >> 1
    by_weekday = _days_on(calendar.weekdays, first_weekday)
    if (special := calendar.special) is not None:
        for back in members(special.from_last):
            by_day |= 1 << (length - 1 - back) if back < length else 0
        for day in members(special.nearest):
            if day <= length:
                by_day |= 1 << (_nearest_workday(day, first_weekday, length) - 1)
        if special.last_workday:
            by_day |= 1 << (_nearest_workday(length, first_weekday, length) - 1)
        for place in members(special.nth):
            n, weekday = divmod(place, 7)
            by_weekday |= _days_on(1 << weekday, first_weekday) & (0b1111111 << (n * 7))
        if special.last:
            by_weekday |= _days_on(special.last, first_weekday) & (0b1111111 << (length - 7))
    days = by_day | by_weekday if calendar.either else by_day & by_weekday
    return days & whole


@lru_cache(maxsize=7 * 128)
def _days_on(weekdays: int, first_weekday: int) -> int:
    """The days (of a month of 31) that fall on any of some weekdays."""
    week = ((weekdays << 7 | weekdays) >> first_weekday) & 0b1111111
    return (week | week << 7 | week << 14 | week << 21 | week << 28) & ((1 << 31) - 1)


def _nearest_workday(day: int, first_weekday: int, length: int) -> int:
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:  # Saturday: the Friday before, unless that is in the previous month
        return day - 1 if day > 1 else day + 2
    if weekday == 0:  # Sunday: the Monday after, unless that is in the next month
        return day + 1 if day < length else day - 2
    return day


@lru_cache(maxsize=4096)
def times_of_day(seconds: int, minutes: int, hours: int, unit: int) -> int:
    """The matching times of a day as one bit set, a bit per second (unit 1) or minute (unit 60).

    With a bit per minute, only second 0 is considered.
    """
    if unit == 60:
        hour = minutes if seconds & 1 else 0
    else:
        hour = 0
        for minute in members(minutes):
            hour |= seconds << (minute * 60)
    width = 3600 // unit
    day = 0
    for number in members(hours):
        day |= hour << (number * width)
    return day


def decoded(bits: int, limit: int | None = None) -> list[int]:
    """The members of a large bit set, ascending, at most ``limit``; fast for dense and for sparse sets."""
    number = bits.bit_count()
    if limit is not None and limit < number:
        found: list[int] = []
        base = 0
        while len(found) < limit:
            found += [base + place for place in decoded(bits & _CHUNK)]
            bits, base = bits >> _CHUNK_BITS, base + _CHUNK_BITS
        return found[:limit]
    charge(number // 32)
    if number <= _HANDFUL:
        base = lowest(bits) if bits else 0
        return [base + place for place in members(bits >> base)]
    text = bin(bits)[:1:-1]
    if number * 8 > len(text):
        return [place for place, bit in enumerate(text) if bit == "1"]
    found, place = [], text.find("1")
    while place >= 0:
        found.append(place)
        place = text.find("1", place + 1)
    return found
