"""Time zones as lists of instants at which the offset from UTC changes.

The standard library's ``zoneinfo`` answers "what is the offset at this time?" but does not say when
the answer changes, and everything about clock changes follows from exactly that. So the same
compiled files (TZif, RFC 9636) are read here, always from the installed ``tzdata`` package, and the
rule at their end is written out up to the last year that Horae computes. The tests compare every
zone with ``zoneinfo``.
"""

from __future__ import annotations

import pkgutil
import re
import struct
from bisect import bisect_right
from calendar import isleap, monthrange
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, timezone, tzinfo
from functools import lru_cache
from typing import Any

import tzdata

from horae.errors import UnknownTimezoneError
from horae.spec.civil import DAY, END, FIRST_YEAR, LAST_YEAR, START, day_number
from horae.spec.zone_suggestions import suggestion

TZDATA_VERSION: str = tzdata.IANA_VERSION
ZoneLike = str | tzinfo
"""A zone by its name, or a ``ZoneInfo``."""


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A zone's history and future: ``offsets[k]`` holds from ``starts[k]`` until ``starts[k + 1]``.

    ``starts[0]`` lies before everything; all values are seconds.
    """

    name: str
    starts: tuple[int, ...]
    offsets: tuple[int, ...]

    def offset_at(self, instant: int) -> int:
        """The offset from UTC, in seconds, in force at an instant."""
        return self.offsets[bisect_right(self.starts, instant) - 1]

    def days(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """A range of instants, cut at midnight: where the parts begin, and where they end (not included).

        On the day of a clock change the cut may miss midnight; no part is longer than 24 hours.
        """
        while first < end:
            close = min(first + DAY - (first + self.offset_at(first)) % DAY, end)
            yield first, close
            first = close


@lru_cache(maxsize=1)
def installed_zones() -> frozenset[str]:
    """The names of all zones in the installed time-zone database."""
    return frozenset(_file("zones").decode().split())


def _file(path: str) -> bytes:
    """A file of the time-zone database. ``importlib.resources`` would load ten modules for it."""
    return pkgutil.get_data("tzdata", path) or b""


def zone_name(given: ZoneLike) -> str:
    """The name of a zone: as it was given, or that of a ``ZoneInfo``, of ``datetime.UTC``, or of another offset as a ``timezone``."""
    if isinstance(given, timezone):
        nameless = timezone(given.utcoffset(None))  # it shows as UTC or UTC+05:30
        return nameless.tzname(None).removeprefix("UTC") or "UTC"
    name: Any = given if isinstance(given, str) else getattr(given, "key", given)
    return name  # type: ignore[no-any-return]  # the zone of another library has no name, and is refused


def load_zone(given: ZoneLike, allowed: Collection[str] | None = None) -> Zone:
    """The zone of an IANA name (``Europe/Berlin``), of a fixed offset (``+05:30``), or of a ``ZoneInfo``.

    With ``allowed``, only the zones named there.
    """
    name = zone_name(given)
    if not isinstance(name, str):
        raise UnknownTimezoneError(name, hint="a zone is named by a string, such as Europe/Berlin")
    if allowed is not None and name not in allowed:
        raise UnknownTimezoneError(name, hint=suggestion(name, allowed))
    return _load(name)


@lru_cache(maxsize=1024)
def _load(name: str) -> Zone:
    if name == "UTC":
        return Zone("UTC", (START,), (0,))
    if name in installed_zones():
        return Zone(name, *_merged(_transitions(_file(f"zoneinfo/{name}"))))
    if fixed := re.fullmatch(r"([+-])(\d\d):([0-5]\d)", name, re.ASCII):
        sign, hours, minutes = fixed.groups()
        offset = int(hours) * 3600 + int(minutes) * 60
        if offset < DAY:
            return Zone(name, (START,), (offset if sign == "+" else -offset,))
    raise UnknownTimezoneError(name, hint=suggestion(name, installed_zones()))


def _merged(changes: list[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Drop the changes that move no clock (a new abbreviation, say)."""
    starts: list[int] = []
    offsets: list[int] = []
    for start, offset in changes:
        if not offsets or offsets[-1] != offset:
            starts.append(start)
            offsets.append(offset)
    return tuple(starts), tuple(offsets)


def _transitions(data: bytes) -> list[tuple[int, int]]:
    """All (instant, offset from then on) of a TZif file, its closing rule written out."""
    first_header = struct.unpack_from(">4sc15x6l", data, 0)
    if first_header[0] != b"TZif" or first_header[1] < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    utc, standard, leaps, times, types, letters = first_header[2:]
    # The first block has 32-bit times and is there for old readers; the second one follows it.
    second = 44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
    utc, standard, leaps, times, types, letters = struct.unpack_from(">20x6l", data, second)
    at = second + 44
    instants = struct.unpack_from(f">{times}q", data, at)
    indexes = struct.unpack_from(f">{times}B", data, at + times * 8)
    at += times * 9
    offsets = [struct.unpack_from(">lBB", data, at + index * 6)[0] for index in range(types)]
    at += types * 6 + letters + leaps * 12 + standard + utc
    rule = data[at:].strip(b"\n").decode("ascii")

    changes = [(START, offsets[0])]
    for instant, index in zip(instants, indexes, strict=True):
        if instant <= START:  # no question concerns earlier times: only the offset at the start counts
            changes = [(START, offsets[index])]
        elif instant < END:
            changes.append((instant, offsets[index]))
    return changes + _from_rule(rule, changes[-1][0])


_OFFSET = r"[+-]?\d{1,3}(?::\d\d){0,2}"
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_RULE = re.compile(
    rf"{_NAME}(?P<standard>{_OFFSET})"
    rf"(?:{_NAME}(?P<summer>{_OFFSET})?,(?P<begin>[^,]+),(?P<end>[^,]+))?"
)


def _from_rule(rule: str, after: int) -> list[tuple[int, int]]:
    """The changes later than ``after`` that a POSIX TZ rule (``CET-1CEST,M3.5.0,M10.5.0/3``) makes."""
    match = _RULE.fullmatch(rule)
    if match is None:
        raise ValueError(f"unreadable time-zone rule {rule!r}")
    standard = -_seconds(match["standard"])  # POSIX counts west of Greenwich as positive
    if match["begin"] is None:
        return [(after, standard)]
    summer = standard + 3600 if match["summer"] is None else -_seconds(match["summer"])
    changes = []
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        changes.append((_rule_instant(match["begin"], year) - standard, summer))
        changes.append((_rule_instant(match["end"], year) - summer, standard))
    return sorted(change for change in changes if change[0] > after)


def _seconds(text: str) -> int:
    """``-9:30`` is minus nine and a half hours; the hours may exceed a day."""
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def _rule_instant(text: str, year: int) -> int:
    """The civil second at which a rule's date (``M3.2.0/2``, ``J60`` or ``59``) falls in a year."""
    when, _, time = text.partition("/")
    if when.startswith("M"):
        month, week, weekday = (int(part) for part in when[1:].split("."))
        first = date(year, month, 1)
        ahead = (weekday - first.isoweekday()) % 7 + (week - 1) * 7
        if ahead >= monthrange(year, month)[1]:  # the fifth week means the last one
            ahead -= 7
        day = day_number(first) + ahead
    elif when.startswith("J"):  # counted as if 29 February did not exist
        number = int(when[1:])
        day = day_number(date(year, 1, 1)) + number - 1 + (number > 59 and isleap(year))
    else:
        day = day_number(date(year, 1, 1)) + int(when)
    return day * DAY + _seconds(time or "2")
