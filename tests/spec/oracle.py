"""A brute-force oracle: it walks civil time and asks "does it match?".

It shares nothing with the code it judges. Expressions are made together with the plain sets that
they mean, so no parser is trusted; offsets come from ``zoneinfo``, reading the same database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo


@cache
def zoneinfo(name: str) -> ZoneInfo:
    """A zone from the installed tzdata package, whatever database the system has."""
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


DayTest = Callable[[date], bool]


@dataclass(frozen=True)
class Meaning:
    """What an expression means, as plain sets and tests of days."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    day: DayTest = field(repr=False)
    """Whether a day matches by its day of month, its weekday, and how these combine."""
    years: frozenset[int] | None = None
    wildcard: bool = False
    """Whether minute or hour was written with a star: Debian's cron lets clock changes pass by."""

    def matches(self, label: datetime) -> bool:
        return (
            label.second in self.seconds
            and label.minute in self.minutes
            and label.hour in self.hours
            and label.month in self.months
            and (self.years is None or label.year in self.years)
            and self.day(label.date())
        )


def walk(
    meaning: Meaning,
    zone: str,
    after: int,
    until: int,
    step: int = 60,
    gap: str = "skip",
    fold: str = "both",
    limit: timedelta = timedelta(days=3),
) -> list[int]:
    """The instants in (after, until] at which the clock of a zone shows a matching time.

    The policies hold for changes shorter than the limit.
    """
    tz = zoneinfo(zone)
    found: list[int] = []
    expected = None  # what the clock would show next if it were not changed
    for at in range(after - after % step, until + 1, step):
        local = datetime.fromtimestamp(at, tz)
        if gap == "shift":
            label = local.replace(tzinfo=None, fold=0)
            if expected is not None and timedelta(0) < label - expected < limit:
                skipped = _labels(expected, label, step)
                if any(meaning.matches(each) for each in skipped):
                    found.append(at)
            expected = label + timedelta(seconds=step)
        if meaning.matches(local) and _is_wanted(local, fold, limit) and (not found or found[-1] != at):
            found.append(at)
    return [at for at in found if after < at <= until]


def _is_wanted(local: datetime, fold: str, limit: timedelta) -> bool:
    """Whether a policy wants this one of two instants with the same label."""
    first, second = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    assert first is not None
    assert second is not None
    if fold == "both" or not timedelta(0) < first - second < limit:
        return True
    return local.fold == {"first": 0, "last": 1}[fold]


def _labels(first: datetime, end: datetime, step: int) -> Iterator[datetime]:
    while first < end:
        yield first
        first += timedelta(seconds=step)


def instant(text: str) -> int:
    """Seconds since the epoch of an ISO time; naive is UTC."""
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def days_in_month(day: date) -> int:
    following = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return (following - timedelta(days=1)).day


def weekday(day: date) -> int:
    """Sunday is 0."""
    return (day.weekday() + 1) % 7


def nearest_workday(day: date, wanted: int) -> bool:
    """Whether a day is the Monday to Friday nearest to the wanted day of its month."""
    if wanted > days_in_month(day):
        return False
    target = day.replace(day=wanted)
    candidates = [target + timedelta(days=ahead) for ahead in range(-2, 3)]
    candidates = [c for c in candidates if c.month == day.month and c.weekday() < 5]
    return day == min(candidates, key=lambda c: (abs((c - target).days), c))
