"""Horae beside the programs and libraries that people come from.

Where another implementation says when, and is right, Horae must say the same; where the two differ,
the difference must be known. So there are two kinds of tests here. Properties compare with cronsim,
with the main loop of Debian's cron, with croniter and with dateutil, on whatever hypothesis makes up.
And :data:`KNOWN_DISAGREEMENTS` lists every difference that these comparisons leave out, with what both
sides say; each of its entries is a row of ``docs/explanation/differences.md``.

APScheduler reads crontabs so differently that a comparison would only compare the exceptions; it
appears in the list alone.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import dateutil.rrule
from apscheduler.triggers.cron import CronTrigger
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim, CronSimError
from dateutil.rrule import rrulestr
from hypothesis import assume, event, given
from hypothesis import strategies as st

from horae import HoraeError, Spec
from horae.spec import load_zone
from horae.spec.calendar_bits import Calendar
from horae.spec.cron import parse_temporal
from tests.spec.oracle import instant, zoneinfo
from tests.spec.strategies import zone_moments
from tests.support.cases import each_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "differences.md"
DAY = 86400
HOUR = 3600
EPOCH = datetime(1970, 1, 1)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


# ── Expressions and moments ─────────────────────────────────────────────────────────────────────────


class Style(NamedTuple):
    """How a field may be written: what two libraries both read, and read alike."""

    one_value_ranges: bool = True
    """``5-5``, which croniter takes for the whole field."""
    open_steps: bool = True
    """``5/15``, from 5 to the end of the field, which is another one for croniter's weekdays."""
    stars_in_lists: bool = True
    """``5,*``"""


ANYTHING = Style()
CAREFUL = Style(one_value_ranges=False, stars_in_lists=False)
CAREFUL_WEEKDAYS = CAREFUL._replace(open_steps=False)


@st.composite
def value(draw: st.DrawFn, low: int, high: int, likely: tuple[int, ...], names: tuple[str, ...]) -> str:
    near = draw(st.booleans())
    number = draw(st.sampled_from(likely) if likely and near else st.integers(low, high))
    if number - low < len(names) and draw(st.booleans()):
        name = names[number - low]
        return draw(st.sampled_from([name, name.upper(), name.title()]))
    return str(number)


@st.composite
def item(
    draw: st.DrawFn,
    low: int,
    high: int,
    likely: tuple[int, ...] = (),
    names: tuple[str, ...] = (),
    style: Style = ANYTHING,
) -> str:
    """One item of a field: a value, a range, one with a step, perhaps a star."""
    kinds = ["value"] * 4 + ["range"] * 3 + ["range/step"] * 2
    kinds += ["value/step"] * style.open_steps + ["star"] * style.stars_in_lists
    kind = draw(st.sampled_from(kinds))
    step = draw(st.integers(1, high + 1))
    if kind == "star":
        return draw(st.sampled_from(["*", f"*/{step}"]))
    if kind == "value":
        return draw(value(low, high, likely, names))
    if kind == "value/step":
        return f"{draw(st.integers(low, high - 1))}/{step}"  # from the last value: see the list below
    shortest = 0 if style.one_value_ranges and kind == "range" else 1
    first = draw(st.integers(low, high - shortest))
    last = draw(st.integers(first + shortest, high))
    texts = [
        names[at - low] if at - low < len(names) and draw(st.booleans()) else str(at) for at in (first, last)
    ]
    return "-".join(texts) + (f"/{step}" if kind == "range/step" else "")


@st.composite
def one_field(draw: st.DrawFn, stars: int, items: st.SearchStrategy[str], longest_step: int) -> str:
    """A star, so many times out of ten, else a list of items."""
    if draw(st.integers(0, 9)) < stars:
        return draw(st.sampled_from(["*", "*", f"*/{draw(st.integers(1, longest_step))}"]))
    return ",".join(draw(st.lists(items, min_size=1, max_size=3)))


NEAR_CHANGES = (0, 1, 2, 3, 23)
"""The hours in which clocks are changed."""


@st.composite
def times(draw: st.DrawFn, style: Style = ANYTHING) -> str:
    """The fields minute and hour."""
    minute = one_field(2, item(0, 59, (0, 1, 30, 59), style=style), 60)
    hour = one_field(2, item(0, 23, NEAR_CHANGES, style=style), 24)
    return f"{draw(minute)} {draw(hour)}"


@st.composite
def debian_crons(draw: st.DrawFn) -> str:
    """Expressions of five fields that Horae and cronsim both read."""
    day = item(1, 31) | st.sampled_from(["L", "LW"])
    number = st.integers(0, 7)
    special = st.builds("{}L".format, number) | st.builds("{}#{}".format, number, st.integers(1, 5))
    month = one_field(8, item(1, 12, names=MONTHS), 12)
    weekday = one_field(7, item(0, 7, names=WEEKDAYS) | special, 8)
    return f"{draw(times())} {draw(one_field(7, day, 31))} {draw(month)} {draw(weekday)}"


def never_comes(day: str, month: str) -> bool:
    """Whether it is a date such as 30 February, which cronsim refuses."""
    try:
        CronSim(f"0 0 {day} {month} *", EPOCH)
    except CronSimError:
        return True
    return False


@st.composite
def croniter_crons(draw: st.DrawFn, *, last_weekday: int = 7) -> str:
    """Expressions of five fields that Horae and croniter read alike; the list below says what is left out."""
    month = draw(one_field(6, item(1, 12, names=MONTHS, style=CAREFUL), 12))
    kind = draw(st.sampled_from(["plain", "plain", "plain", "nth weekday", "nearest weekday"]))
    if kind == "nth weekday":
        nth = st.builds("{}#{}".format, st.integers(0, last_weekday), st.integers(1, 5))
        day, weekday = "*", ",".join(draw(st.lists(nth, min_size=1, max_size=2)))
    elif kind == "nearest weekday":
        day, weekday = f"{draw(st.integers(1, 28))}W", "*"
    else:
        day = draw(one_field(5, item(1, 31, style=CAREFUL) | st.just("L"), 31))
        weekday = draw(one_field(5, item(0, last_weekday, names=WEEKDAYS, style=CAREFUL_WEEKDAYS), 7))
        assume(weekday == "*" or not never_comes(day, month))
    return f"{draw(times(CAREFUL))} {day} {month} {weekday}"


class Place(NamedTuple):
    """A zone and a moment in it."""

    zone: str
    moment: int


@st.composite
def places(draw: st.DrawFn) -> Place:
    """Mostly within hours or days of a clock change, in any zone; often on the minute."""
    zone, change = draw(zone_moments())
    ahead = draw(st.integers(-2 * HOUR, 2 * HOUR) | st.integers(-3 * DAY, 3 * DAY))
    if draw(st.booleans()):
        ahead -= ahead % 60
    return Place(zone, change + ahead)


class Change(NamedTuple):
    """A change of a zone's clock: by how many seconds, and what the clock shows before and after."""

    at: int
    by: int
    before: int
    after: int


@cache
def all_changes(zone: str) -> list[Change]:
    found = load_zone(zone)
    return [
        Change(at, new - old, at + old, at + new)
        for at, old, new in zip(found.starts[1:], found.offsets, found.offsets[1:], strict=False)
    ]


def changes(zone: str, first: int, last: int) -> list[Change]:
    return [change for change in all_changes(zone) if first <= change.at <= last]


def aware(moment: int, zone: str = "UTC") -> datetime:
    return datetime.fromtimestamp(moment, zoneinfo(zone))


def runs_at_fixed_times(expression: str) -> bool:
    """Whether neither the minute nor the hour begins with a star: what Debian's cron makes good."""
    return not any(word.startswith("*") for word in expression.split()[:2])


def following(spec: Spec, moment: int, count: int) -> list[int]:
    """The next times, asked one by one."""
    found: list[int] = []
    while len(found) < count and (at := spec.next_instant(moment)) is not None:
        found.append(at)
        moment = at
    return found


def preceding(spec: Spec, moment: int, count: int) -> list[int]:
    """The times before a moment, latest first, asked one by one."""
    found: list[int] = []
    while len(found) < count and (at := spec.previous_instant(moment - 1)) is not None:
        found.append(at)
        moment = at
    return found


# ── cronsim, whose model is Debian's cron ───────────────────────────────────────────────────────────


class EndlessError(Exception):
    """A library would search for ever."""


class PatientCronSim(CronSim):
    """cronsim, stopped where it would go round in circles (see the list below)."""

    ticks = 0

    def tick(self, seconds: int = 1) -> None:
        self.ticks += 1
        if self.ticks > 20_000:
            raise EndlessError
        super().tick(seconds)


def ask_cronsim(expression: str, zone: str, moment: int, count: int, *, reverse: bool = False) -> list[int]:
    simulation = PatientCronSim(expression, aware(moment, zone), reverse=reverse)
    return [int(found.timestamp()) for found in islice(simulation, count)]


def cronsim_is_right(expression: str, place: Place, reached: list[int]) -> bool:
    """Whether cronsim can be trusted between a moment and the times that were found from it.

    Its arithmetic is on local time. For fixed times that goes wrong where the question is asked in
    the second pass through a repeated hour (it forgets which one), and for changes of three hours or
    more (it makes good what Debian's cron would not). For wildcards, which it walks in steps of whole
    hours and days, it goes wrong when a change is not by whole hours at a whole hour, or touches midnight.
    """
    zone, moment = place
    nearby = changes(zone, min([moment, *reached]) - DAY, max([moment, *reached]) + DAY)
    if runs_at_fixed_times(expression):
        return not aware(moment, zone).fold and all(abs(change.by) < 3 * HOUR for change in nearby)
    for change in nearby:
        first, last = sorted([change.before, change.after])
        touches_midnight = last // DAY > (first - 1) // DAY
        if change.by % HOUR or change.before % HOUR or touches_midnight:
            return False
    return True


def check_cronsim(expression: str, place: Place, *, reverse: bool) -> None:
    spec = Spec.cron(expression, timezone=place.zone, clock_change="debian")
    found = (preceding if reverse else following)(spec, place.moment, 5)
    try:
        CronSim(expression, EPOCH)
    except CronSimError:  # it refuses what never happens
        assert found == []
        return
    assume(cronsim_is_right(expression, place, found))
    event("fixed times" if runs_at_fixed_times(expression) else "wildcard")
    assert ask_cronsim(expression, *place, 5, reverse=reverse) == found


@given(debian_crons(), places())
def test_cronsim_finds_the_same_next_times(expression: str, place: Place):
    check_cronsim(expression, place, reverse=False)


@given(debian_crons(), places())
def test_cronsim_finds_the_same_previous_times(expression: str, place: Place):
    check_cronsim(expression, place, reverse=True)


# ── Debian's cron itself ────────────────────────────────────────────────────────────────────────────


def debian_starts(expression: str, zone: str, first: int, last: int) -> list[int]:
    """When Debian's cron would start a job, as often as it would: its main loop, told in Python.

    Once a minute it reads the local clock, and keeps a second, virtual clock up to which all jobs
    at fixed times have run. A clock that is up to three hours ahead of it makes it catch up at
    once, one that is behind makes it wait; anything more counts as a clock that was set right. Wildcard
    jobs run by the local clock, whatever the virtual one says. (Up to five minutes ahead, they catch
    up as well, but no zone has such a change.) cronsim lends its reading of the fields.
    """
    job = CronSim(expression, EPOCH)
    days = cache(job.match_day)

    def due(minute: int) -> bool:
        label = EPOCH + timedelta(minutes=minute)
        on_time = label.minute in job.minutes and label.hour in job.hours and label.month in job.months
        return on_time and days(label.date())

    fixed = runs_at_fixed_times(expression)
    started: list[int] = []
    virtual: int | None = None
    for at in range(first - first % 60, last + 1, 60):
        offset = aware(at, zone).utcoffset()
        assert offset is not None
        local = (at + int(offset.total_seconds())) // 60
        if virtual is None or not fixed or not -180 < local - virtual <= 180:
            virtual = local - 1
        started += [at for minute in range(virtual + 1, local + 1) if due(minute)]
        virtual = max(virtual, local)
    return [at for at in started if first < at <= last]


@given(debian_crons(), places())
def test_debian_cron_starts_the_same_jobs(expression: str, place: Place):
    """All zones and all changes, those included for which cronsim cannot be asked."""
    zone, moment = place
    first, last = moment - 2 * DAY, moment + 2 * DAY
    spec = Spec.cron(expression, timezone=zone, clock_change="debian")
    try:
        started = debian_starts(expression, zone, first, last)
    except CronSimError:
        assert spec.next_instant(first) is None
        return
    # The virtual clock begins with the walk, so no change may be under way; and see the list below.
    assume(not changes(zone, first - DAY, first))
    assume(all(change.by != -3 * HOUR for change in changes(zone, first, last)))
    expected = sorted(set(started))  # several starts in one minute are one time
    assert spec.instants(first, last, 100_000) == expected
    for asked in (first, moment):
        later = [at for at in expected if at > asked][:5]
        assert following(spec, asked, len(later)) == later
    for asked in (moment, last + 1):
        earlier = [at for at in expected if at < asked][::-1][:5]
        assert preceding(spec, asked, len(earlier)) == earlier


# ── croniter, where no clock changes ────────────────────────────────────────────────────────────────


def ask_croniter(
    expression: str, zone: str, moment: int, count: int, *, reverse: bool = False, **options: Any
) -> list[int]:
    # What croniter calls a bug of cron is its rule that a day field beginning with a star restricts nothing.
    options = {"implement_cron_bug": True, **options}
    iterator = croniter(expression, aware(moment, zone), ret_type=datetime, **options)
    step = iterator.get_prev if reverse else iterator.get_next
    found: list[int] = []
    with suppress(CroniterBadDateError):  # nothing within fifty years
        while len(found) < count:
            found.append(int(step().timestamp()))
    return found


@given(croniter_crons(), st.integers(instant("2000-01-01"), instant("2037-12-31")), st.booleans())
def test_croniter_finds_the_same_times_in_utc(expression: str, moment: int, reverse: bool):
    spec = Spec.cron(expression)
    expected = ask_croniter(expression, "UTC", moment, 5, reverse=reverse)
    assert (preceding if reverse else following)(spec, moment, 5) == expected


@given(
    st.sampled_from(["0", "*", "*/7", "5,10-50/9"]), croniter_crons(last_weekday=6),
    st.integers(instant("2000-01-01"), instant("2037-12-31")), st.booleans(),
)  # fmt: skip
def test_croniter_finds_the_same_seconds(seconds: str, rest: str, moment: int, reverse: bool):
    expression = f"{seconds} {rest}"
    expected = ask_croniter(expression, "UTC", moment, 5, reverse=reverse, second_at_beginning=True)
    assert (preceding if reverse else following)(Spec.cron(expression), moment, 5) == expected


@given(croniter_crons(), places(), st.booleans())
def test_croniter_finds_the_same_times_between_two_changes(expression: str, place: Place, reverse: bool):
    zone, moment = place
    spec = Spec.cron(expression, timezone=zone)
    bounds = [change.at for change in all_changes(zone)]
    first = max((at for at in bounds if at <= moment), default=moment - 100 * 365 * DAY)
    end = min((at for at in bounds if at > moment), default=moment + 100 * 365 * DAY)
    asked = ask_croniter(expression, zone, moment, 5, reverse=reverse)
    found = (preceding if reverse else following)(spec, moment, 5)
    assert [at for at in found if first < at < end] == [at for at in asked if first < at < end]


# ── Temporal's walk over a calendar ─────────────────────────────────────────────────────────────────


def go_instant(zone: str, label: datetime) -> int:
    """The instant that Go makes of a local time: of two it is the one by the offset that it looks up first."""
    found, as_utc = load_zone(zone), int(label.replace(tzinfo=UTC).timestamp())
    period = bisect_right(found.starts, as_utc) - 1
    start, end = found.starts[period], (*found.starts, 2**62)[period + 1]
    utc = as_utc - found.offsets[period]
    if not start <= utc < end:
        utc = as_utc - found.offsets[bisect_right(found.starts, utc) - 1]
    return utc


def temporal_next(fields: Calendar, zone: str, moment: int) -> int | None:
    """When a Temporal server would fire next by a calendar: its walk over the numbers of a local time, retold.

    A local time is made up from the year down, and looked up when all fields match. Two checks are about clock changes: an hour
    that comes out as another one is skipped; and where two hours that follow each other are more than an hour apart, the
    first of them is tried once more, an hour later.
    """
    local = aware(moment, zone)
    again = HOUR if aware(moment - HOUR, zone).hour == local.hour else 0
    at = local.replace(tzinfo=None, fold=0) + timedelta(seconds=1)
    limit = at + timedelta(days=400)
    while at < limit:
        weekday = (aware(go_instant(zone, at), zone).weekday() + 1) % 7
        hour, minute = at.replace(minute=0, second=0), at.replace(second=0)
        if not (fields.months >> at.month & fields.days >> at.day & fields.weekdays >> weekday & 1):
            at, again = at.replace(hour=0, minute=0, second=0) + timedelta(days=1), 0
        elif not fields.hours >> at.hour & 1:
            at, again = hour + timedelta(hours=1), 0
        elif not fields.minutes >> at.minute & 1 or not fields.seconds >> at.second:
            at = minute + timedelta(minutes=1)
            if at.minute == 0:
                apart = go_instant(zone, at) - go_instant(zone, hour)
                at, again = (hour, HOUR) if not again and apart > HOUR else (at, 0)
        elif not fields.seconds >> at.second & 1:
            at += timedelta(seconds=1)
        else:
            found = go_instant(zone, at)
            if aware(found, zone).hour == at.hour:
                return found + again
            at = hour + timedelta(hours=1)
    return None


def ask_temporal(expression: str, zone: str, moment: int, count: int) -> list[int]:
    fields = parse_temporal(expression).calendar
    assert fields is not None
    found: list[int] = []
    while len(found) < count and (at := temporal_next(fields, zone, moment)) is not None:
        found.append(at)
        moment = at
    return found


@st.composite
def temporal_crons(draw: st.DrawFn) -> str:
    """Expressions of five fields that the dialect ``temporal`` reads."""
    day, month = one_field(7, item(1, 31), 31), one_field(8, item(1, 12, names=MONTHS), 12)
    weekday = one_field(7, item(0, 7, names=WEEKDAYS), 8)
    return f"{draw(times())} {draw(day)} {draw(month)} {draw(weekday)}"


@given(temporal_crons(), st.integers(instant("2001-01-01"), instant("2098-01-01")))
def test_temporal_finds_the_same_times_in_utc(expression: str, moment: int):
    spec = Spec.parse({"crons": [expression], "dialect": "temporal"})
    asked = ask_temporal(expression, "UTC", moment, 3)
    assert following(spec, moment, len(asked)) == asked


# ── dateutil's recurrence rules ─────────────────────────────────────────────────────────────────────

RRULE_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SPANS = {
    "YEARLY": 20 * 366 * DAY, "MONTHLY": 60 * 31 * DAY, "WEEKLY": 100 * 7 * DAY, "DAILY": 400 * DAY,
    "HOURLY": 30 * DAY, "MINUTELY": 2 * DAY, "SECONDLY": 2 * HOUR,
}  # fmt: skip
"""How far dateutil, which walks from the start of a rule, is let walk for an interval of 1."""


class Rule(NamedTuple):
    text: str
    start: int
    horizon: int


@st.composite
def numbers(
    draw: st.DrawFn, low: int, high: int, wanted: int, most: int = 3, *, negative: bool = False
) -> str:
    """A list of numbers, usually with the one that is wanted."""
    found = draw(st.sets(st.integers(low, high), min_size=1, max_size=most))
    if draw(st.integers(0, 4)):
        found |= {wanted}
    if negative:
        found = {-number if draw(st.integers(0, 2)) == 0 else number for number in found}
    return ",".join(map(str, sorted(found)))


@st.composite
def weekdays(draw: st.DrawFn, wanted: datetime, highest: int = 0) -> str:
    """BYDAY: plain, or numbered up to a number; never both, which dateutil would combine by "and"."""
    if highest and draw(st.booleans()):
        sign = st.sampled_from(["", "+", "-"])
        numbered = st.builds("{}{}{}".format, sign, st.integers(1, highest), st.sampled_from(RRULE_DAYS))
        return ",".join(sorted(draw(st.sets(numbered, min_size=1, max_size=3))))
    plain = draw(st.sets(st.sampled_from(RRULE_DAYS), max_size=3))
    return ",".join(sorted(plain | {RRULE_DAYS[wanted.weekday()]}))


@st.composite
def day_parts(draw: st.DrawFn, frequency: str, wanted: datetime) -> dict[str, str]:
    """The parts that choose days. The wanted day matches each, usually, so that rules have times."""

    def chance(one_in: int) -> bool:
        return draw(st.integers(1, one_in)) == 1

    parts = {}
    if chance(5):
        parts["BYMONTH"] = draw(numbers(1, 12, wanted.month, 4))
    if frequency == "YEARLY" and chance(2):
        # Weeks 52 and 53, from either end, are compared with the standard library instead: see the list.
        parts["BYWEEKNO"] = draw(numbers(1, 51, min(wanted.isocalendar().week, 51), 4, negative=True))
        if chance(3):
            parts["BYDAY"] = draw(weekdays(wanted))
        return parts
    if chance(5):
        parts["BYMONTHDAY"] = draw(numbers(1, 31, wanted.day, 6, negative=True))
    if chance(8):
        parts["BYYEARDAY"] = draw(numbers(1, 366, wanted.timetuple().tm_yday, 8, negative=True))
    if chance(2):
        in_months = frequency == "MONTHLY" or "BYMONTH" in parts
        highest = (5 if in_months else 53) if frequency in {"YEARLY", "MONTHLY"} else 0
        parts["BYDAY"] = draw(weekdays(wanted, highest))
    return parts


@st.composite
def time_parts(draw: st.DrawFn, frequency: str, wanted: datetime) -> dict[str, str]:
    parts = {}
    for name, high, number in (
        ("BYHOUR", 23, wanted.hour), ("BYMINUTE", 59, wanted.minute), ("BYSECOND", 59, wanted.second),
    ):  # fmt: skip
        if draw(st.integers(0, 3)) == 0:
            parts[name] = draw(numbers(0, high, number))
    if SPANS[frequency] >= SPANS["DAILY"] and draw(st.integers(0, 3)) == 0:
        parts["BYSETPOS"] = draw(numbers(1, 6, 1, negative=True))
    return parts


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Rules of all frequencies, up to a horizon that dateutil can walk to."""
    frequency = draw(st.sampled_from([*SPANS, "YEARLY", "WEEKLY"]))  # weeks are what goes wrong
    day = draw(st.dates(date(2000, 1, 1), date(2030, 12, 31)))
    start = datetime(day.year, day.month, day.day, draw(st.sampled_from([0, 9, 22, 23])))
    start += timedelta(seconds=draw(st.integers(0, HOUR - 1) | st.just(0)))
    interval = draw(st.sampled_from([1, 1, 1, 2, 2, 3, 3, 4, 5, 7, 12, 24, 30, 60, 90]))
    span = SPANS[frequency] * min(interval, 6)
    wanted = start + timedelta(seconds=draw(st.integers(0, span // 2)))
    parts = draw(day_parts(frequency, wanted)) | draw(time_parts(frequency, wanted))
    if interval > 1 or draw(st.booleans()):
        parts["INTERVAL"] = str(interval)
    if week_start := draw(st.sampled_from(["", *RRULE_DAYS])):
        parts["WKST"] = week_start
    if frequency == "WEEKLY" and "BYSETPOS" in parts:
        # In the first week dateutil counts positions from the start, not from the week's first day.
        start -= timedelta(days=(start.weekday() - RRULE_DAYS.index(parts.get("WKST", "MO"))) % 7)
    end = draw(st.sampled_from(["never", "COUNT", "UNTIL"]))
    if end == "COUNT":
        parts["COUNT"] = str(draw(st.integers(1, 40)))
    elif end == "UNTIL":
        parts["UNTIL"] = f"{start + timedelta(seconds=draw(st.integers(0, span))):%Y%m%dT%H%M%S}"
    listed = "".join(f";{name}={parts[name]}" for name in draw(st.permutations(sorted(parts))))
    first = int(start.replace(tzinfo=UTC).timestamp())
    return Rule(f"DTSTART:{start:%Y%m%dT%H%M%S} RRULE:FREQ={frequency}{listed}", first, first + span)


class PastHorizonError(Exception):
    """dateutil is about to search days that the test did not ask for."""


def bounded_days(last: date) -> type:
    """dateutil's source of days, which a rule that never matches would ask up to the year 9999."""

    class Days(dateutil.rrule._iterinfo):
        def ydayset(self, year: int, month: int, day: int) -> Any:
            return self.guarded(super().ydayset, date(year, 1, 1), (year, month, day))

        def mdayset(self, year: int, month: int, day: int) -> Any:
            return self.guarded(super().mdayset, date(year, month, 1), (year, month, day))

        def wdayset(self, year: int, month: int, day: int) -> Any:
            return self.guarded(super().wdayset, date(year, month, day), (year, month, day))

        def ddayset(self, year: int, month: int, day: int) -> Any:
            return self.guarded(super().ddayset, date(year, month, day), (year, month, day))

        def guarded(self, source: Callable[..., Any], first: date, asked: tuple[int, int, int]) -> Any:
            if first > last:
                raise PastHorizonError
            return source(*asked)

    return Days


def ask_dateutil(text: str, horizon: int, most: int | None = None) -> list[int]:
    """The times of a rule up to a horizon, all of them or so many."""
    found: list[int] = []
    last = datetime.fromtimestamp(horizon, UTC).date()
    with mock.patch.object(dateutil.rrule, "_iterinfo", bounded_days(last)), suppress(PastHorizonError):
        for label in islice(rrulestr(text, tzids=zoneinfo), most):
            at = int((label if label.tzinfo else label.replace(tzinfo=UTC)).timestamp())
            if at > horizon:
                break
            found.append(at)
    return found


@given(rules(), st.floats(0, 1), st.booleans())
def test_dateutil_finds_the_same_recurrences(rule: Rule, share: float, on_one: bool):
    try:
        expected = ask_dateutil(rule.text, rule.horizon)
    except ValueError as error:  # it refuses what never happens, if it notices
        assert "empty" in str(error)
        expected = []
    event("has times" if expected else "has no times")
    if on_one and expected:
        moment = expected[int(share * (len(expected) - 1))]
    else:
        moment = int(rule.start - DAY + share * (rule.horizon - rule.start))
    spec = Spec.parse({"rrules": [rule.text], "timezone": "UTC"})
    later = [at for at in expected if at > moment][:20]
    earlier = [at for at in expected if at <= moment][-20:]
    assert spec.instants(moment, rule.horizon, 20) == later
    assert following(spec, moment, len(later)) == later
    assert preceding(spec, moment + 1, 20) == earlier[::-1]
    if len(later) < 20:
        after = spec.next_instant(later[-1] if later else moment)
        assert after is None or after > rule.horizon


@given(
    st.sets(st.integers(1, 53) | st.integers(-53, -1) | st.sampled_from([52, 53, -52, -53]), min_size=1, max_size=3),
    st.integers(2000, 2080),
)  # fmt: skip
def test_weeks_are_those_of_the_standard_library(wanted: set[int], year: int):
    """ISO weeks, for the numbers with which dateutil goes wrong around New Year, and all others."""
    weeks = ",".join(map(str, sorted(wanted)))
    spec = Spec.parse({"rrules": [f"DTSTART:{year}0101T090000 RRULE:FREQ=YEARLY;BYWEEKNO={weeks}"]})
    days = [date(year, 1, 1) + timedelta(days=n) for n in range(3 * 365)]
    expected = []
    for day in days:
        week = day.isocalendar()
        last_week = date(week.year, 12, 28).isocalendar().week
        if {week.week, week.week - last_week - 1} & wanted:
            expected.append(instant(f"{day}T09:00"))
    first, last = instant(f"{days[0]}"), instant(f"{days[-1]}T23:59")
    assert spec.instants(first, last) == expected


# ── What is known to differ ─────────────────────────────────────────────────────────────────────────


def ask_debian(expression: str, zone: str, moment: int, count: int) -> list[int]:
    """Debian's cron, which is asked about the past as well, so begin well before the moment."""
    started = debian_starts(expression, zone, moment - 2 * DAY, moment + 5 * DAY)
    return [at for at in started if at > moment][:count]


def ask_apscheduler(expression: str, zone: str, moment: int, count: int) -> list[int]:
    trigger = CronTrigger.from_crontab(expression, timezone=zoneinfo(zone))
    found: list[datetime] = []
    previous, now = None, aware(moment, zone)
    while len(found) < count and (previous := trigger.get_next_fire_time(previous, now)) is not None:
        found.append(previous)
        now = previous
    return [int(at.timestamp()) for at in found]


def told(ask: Callable[[], list[int]], zone: str) -> str:
    """What an answer looks like on the page: local times, or what happened instead."""
    try:
        found = ask()
    except EndlessError:
        return "does not return"
    except (ValueError, CronSimError, HoraeError):  # croniter, APScheduler and dateutil raise ValueErrors
        return "refused"
    texts = [aware(at, zone).isoformat(" ", "seconds" if at % 60 else "minutes") for at in found]
    return ", ".join(text.removesuffix("+00:00") if zone == "UTC" else text for text in texts) or "never"


@dataclass(frozen=True)
class Disagreement:
    """A row of the page: what is asked, and what both sides say."""

    key: str
    asked: str
    horae: str
    other: str
    zone: str
    ask_horae: Callable[[], list[int]]
    ask_other: Callable[[], list[int]]


def cron(
    key: str,
    expression: str,
    ask: Callable[..., list[int]],
    horae: str,
    other: str,
    *,
    zone: str = "UTC",
    at: str = "2026-01-01 00:00",
    reverse: bool = False,
    options: dict[str, Any] | None = None,
    **policy: Any,
) -> Disagreement:
    """As many times are asked for as the longer answer has."""
    moment, count = instant(at), max(horae.count(", "), other.count(", ")) + 1
    where = "" if zone == "UTC" else f", {zone}"
    how = "".join(f", `{name}: {setting}`" for name, setting in policy.items())
    backward = {"reverse": True} if reverse else {}

    def ask_horae() -> list[int]:
        dialect = "temporal" if ask is ask_temporal else "unix"
        spec = Spec.parse({"crons": [expression], "dialect": dialect, "timezone": zone, **policy})
        return (preceding if reverse else following)(spec, moment, count)

    def ask_other() -> list[int]:
        return ask(expression, zone, moment, count, **backward, **(options or {}))

    asked = f"`{expression}`{where}, {'before' if reverse else 'after'} {at}{how}"
    return Disagreement(key, asked, horae, other, zone, ask_horae, ask_other)


def recurrence(
    key: str, text: str, horae: str, other: str, *, zone: str = "UTC", until: str = "2100-01-01"
) -> Disagreement:
    count = max(horae.count(", "), other.count(", ")) + 1

    def ask_horae() -> list[int]:
        spec = Spec.parse({"rrules": [text], "timezone": zone})
        return spec.instants(instant("1950-01-01"), instant(until), count)

    def ask_other() -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return ask_dateutil(text, instant(until), count)

    where = "" if zone == "UTC" else f", {zone}"
    return Disagreement(key, f"`{text}`{where}", horae, other, zone, ask_horae, ask_other)


BERLIN, SPRING, AUTUMN = "Europe/Berlin", "2026-03-28 12:00+01:00", "2026-10-25 02:15+01:00"
START = "DTSTART:20260101T090000 RRULE:"

KNOWN_DISAGREEMENTS = [
    # Debian's cron
    cron("D1", "30 2 * * *", ask_debian, "2026-03-30 02:30+02:00", "2026-03-29 03:00+02:00",
         zone=BERLIN, at=SPRING),
    cron("D2", "0,30 2 * * *", ask_debian, "2026-03-29 03:00+02:00, 2026-03-30 02:00+02:00",
         "2026-03-29 03:00+02:00, 2026-03-29 03:00+02:00", zone=BERLIN, at=SPRING, clock_change="debian"),
    cron("D3", "30 23 * * *", ask_debian, "2010-03-04 23:30+08:00", "2010-03-05 23:30+08:00",
         zone="Antarctica/Casey", at="2010-03-05 00:00+11:00", clock_change="debian"),
    # cronsim
    cron("S1", "30 2 * * *", ask_cronsim, "2026-03-30 02:30+02:00", "2026-03-29 03:00+02:00",
         zone=BERLIN, at=SPRING),
    cron("S2", "30 2 * * *", ask_cronsim, "2026-10-26 02:30+01:00", "2026-10-25 02:30+02:00",
         zone=BERLIN, at=AUTUMN, clock_change="debian"),
    cron("S3", "30 2 * * *", ask_cronsim, "2026-10-25 02:30+02:00", "2026-10-24 02:30+02:00",
         zone=BERLIN, at=AUTUMN, reverse=True, clock_change="debian"),
    cron("S4", "0 30 2 * * *", ask_cronsim, "2026-03-29 03:00+02:00", "2026-03-30 02:30+02:00",
         zone=BERLIN, at=SPRING, clock_change="debian"),
    cron("S5", "0 12 30 12 *", ask_cronsim, "2012-12-30 12:00+14:00", "2011-12-31 00:00+14:00",
         zone="Pacific/Apia", at="2011-12-29 12:00-10:00", clock_change="debian"),
    cron("S6", "0 * * * *", ask_cronsim, "2016-05-01 03:00-04:00", "2016-05-01 04:00-04:00",
         zone="America/Caracas", at="2016-05-01 02:00-04:30", clock_change="debian"),
    cron("S7", "*/30 0 * * 0", ask_cronsim, "2018-11-11 00:00-02:00", "2018-11-04 01:00-02:00",
         zone="America/Sao_Paulo", at="2018-11-02 12:00-03:00", clock_change="debian"),
    cron("S8", "*/30 * 14 3 *", ask_cronsim, "2009-03-14 23:30-03:00", "2009-03-14 23:30-02:00",
         zone="America/Argentina/Buenos_Aires", at="2009-03-15 12:00-03:00", reverse=True,
         clock_change="debian"),
    cron("S9", "* 2 * * *", ask_cronsim, "2006-04-15 02:00+05:30", "does not return",
         zone="Asia/Colombo", at="2006-04-14 22:48+06:00", clock_change="debian"),
    cron("S10", "0 9 5-5/2 * *", ask_cronsim, "2026-01-05 09:00, 2026-02-05 09:00",
         "2026-01-05 09:00, 2026-01-07 09:00"),
    cron("S11", "0 9 30 2 *", ask_cronsim, "never", "refused"),
    cron("S12", "0 9 L/2 * *", ask_cronsim, "refused", "2026-01-31 09:00"),
    cron("S13", "@daily", ask_cronsim, "2026-01-02 00:00", "refused"),
    cron("S14", "0 9 15W * tuesday", ask_cronsim, "2026-01-06 09:00", "refused"),
    # croniter
    cron("C1", "30 2 * * *", ask_croniter, "2026-03-30 02:30+02:00", "2026-03-29 03:00+02:00",
         zone=BERLIN, at=SPRING),
    cron("C2", "30 */2 * * *", ask_croniter, "2026-03-29 04:30+02:00", "2026-03-29 03:00+02:00",
         zone=BERLIN, at="2026-03-29 00:45+01:00", clock_change="debian"),
    cron("C3", "0 * * * *", ask_croniter, "2026-10-04 03:00+11:00", "2026-10-04 02:30+11:00",
         zone="Australia/Lord_Howe", at="2026-10-04 01:00+10:30"),
    cron("C4", "0 9 */10 * 1", ask_croniter, "2026-05-11 09:00", "2026-01-01 09:00",
         options={"implement_cron_bug": False}),
    cron("C5", "0 9 1 * 1,*", ask_croniter, "2026-01-01 09:00, 2026-01-02 09:00",
         "2026-01-01 09:00, 2026-02-01 09:00"),
    cron("C6", "0 9 5-5 * *", ask_croniter, "2026-01-05 09:00", "2026-01-01 09:00"),
    cron("C7", "0 23/2 * * *", ask_croniter, "2026-01-01 23:00", "2026-01-01 02:00"),
    cron("C8", "0 9 * * 1/2", ask_croniter, "2026-01-02 09:00, 2026-01-04 09:00",
         "2026-01-02 09:00, 2026-01-05 09:00"),
    cron("C9", "0 9 15 * 1#2", ask_croniter, "2026-01-12 09:00, 2026-01-15 09:00", "never"),
    cron("C10", "0 9 15W * 1", ask_croniter, "2026-01-05 09:00, 2026-01-12 09:00",
         "2026-01-15 09:00, 2026-02-16 09:00"),
    cron("C11", "0 9 31W * *", ask_croniter, "2026-01-30 09:00, 2026-03-31 09:00",
         "2026-01-30 09:00, 2026-02-27 09:00"),
    cron("C12", "30 9 1 * * *", ask_croniter, "2026-01-01 01:09:30", "2026-01-01 09:30"),
    cron("C13", "0 0 9 * * 7", ask_croniter, "2026-01-04 09:00", "refused",
         options={"second_at_beginning": True}),
    cron("C14", "0 9 * * 5L", ask_croniter, "2026-01-30 09:00", "refused"),
    cron("C15", "0 9 * * L5", ask_croniter, "refused", "2026-01-30 09:00"),
    cron("C16", "0 9 * * 1,2#1", ask_croniter, "2026-01-05 09:00", "refused"),
    cron("C17", "0 9 LW * tuesday", ask_croniter, "2026-01-06 09:00", "refused"),
    cron("C18", "0 9 * * fri-mon", ask_croniter, "refused", "2026-01-02 09:00"),
    cron("C19", "0 9 ? * 1", ask_croniter, "refused", "2026-01-05 09:00"),
    cron("C20", "0 9 20-L * *", ask_croniter, "refused", "2026-01-20 09:00"),
    cron("C21", "0 9 1 1 * 0 2030", ask_croniter, "refused", "2030-01-01 09:00"),
    cron("C22", "0 9 30 2 0", ask_croniter, "2026-02-01 09:00", "never"),
    cron("C23", "H H * * *", ask_croniter, "refused", "2026-01-01 10:44", options={"hash_id": "report"}),
    # APScheduler 3
    cron("A1", "30 2 * * *", ask_apscheduler, "2026-03-30 02:30+02:00", "2026-03-29 03:30+02:00",
         zone=BERLIN, at=SPRING),
    cron("A2", "30 2 * * *", ask_apscheduler, "2026-03-29 03:00+02:00", "2026-03-29 03:30+02:00",
         zone=BERLIN, at=SPRING, gap="shift"),
    cron("A3", "0 9 * * 1", ask_apscheduler, "2026-01-05 09:00", "2026-01-06 09:00"),
    cron("A4", "0 9 * * 7", ask_apscheduler, "2026-01-04 09:00", "refused"),
    cron("A5", "0 9 1 * mon", ask_apscheduler, "2026-01-05 09:00", "2026-06-01 09:00", at="2026-01-02 00:00"),
    cron("A6", "0 9 * * *", ask_apscheduler, "2026-01-02 09:00", "2026-01-01 09:00", at="2026-01-01 09:00"),
    cron("A7", "0 */40 * * *", ask_apscheduler, "2026-01-02 00:00", "refused"),
    cron("A8", "0 9 L * *", ask_apscheduler, "2026-01-31 09:00", "refused"),
    cron("A9", "0 9 last * *", ask_apscheduler, "refused", "2026-01-31 09:00"),
    cron("A10", "@daily", ask_apscheduler, "2026-01-02 00:00", "refused"),
    cron("A11", "0 0 9 * * *", ask_apscheduler, "2026-01-01 09:00", "refused"),
    # Temporal
    cron("T1", "30 2 * * *", ask_temporal, "2026-10-25 02:30+02:00, 2026-10-25 02:30+01:00",
         "2026-10-25 02:30+01:00, 2026-10-26 02:30+01:00", zone=BERLIN, at="2026-10-24 12:00+02:00"),
    cron("T2", "30 1 * * *", ask_temporal, "2026-10-25 01:30+02:00, 2026-10-26 01:30+01:00",
         "2026-10-25 01:30+02:00, 2026-10-25 02:30+02:00", zone=BERLIN, at="2026-10-24 12:00+02:00"),
    cron("T3", "15 2 * * *", ask_temporal, "2026-10-05 02:15+11:00", "2026-10-04 02:45+11:00",
         zone="Australia/Lord_Howe", at="2026-10-03 12:00+10:30"),
    cron("T4", "15 1 * * *", ask_temporal, "2026-04-05 01:15+11:00, 2026-04-06 01:15+10:30",
         "2026-04-05 01:15+11:00, 2026-04-05 01:45+10:30", zone="Australia/Lord_Howe", at="2026-04-04 12:00+11:00"),
    cron("T5", "0 12 * * 0", ask_temporal, "2018-11-04 12:00-02:00", "2018-11-11 12:00-02:00",
         zone="America/Sao_Paulo", at="2018-11-01 12:00-03:00"),
    # dateutil
    recurrence("R1", f"{START}FREQ=MONTHLY;BYDAY=MO,1TU", "2026-01-05 09:00, 2026-01-06 09:00", "never"),
    recurrence("R2", "DTSTART:20260107T090000 RRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1",
               "2026-01-12 09:00", "2026-01-07 09:00"),
    recurrence("R3", f"{START}FREQ=YEARLY;BYWEEKNO=-53;BYDAY=MO", "2031-12-29 09:00", "never"),
    recurrence("R4", "DTSTART:20100101T090000 RRULE:FREQ=YEARLY;BYWEEKNO=52;BYDAY=SU",
               "2011-01-02 09:00", "2012-01-01 09:00"),
    recurrence("R5", f"{START}FREQ=DAILY;UNTIL=20260102",
               "2026-01-01 09:00, 2026-01-02 09:00", "2026-01-01 09:00"),
    recurrence("R6", f"{START}FREQ=DAILY;UNTIL=20260102T100000Z",
               "2026-01-01 09:00, 2026-01-02 09:00", "refused"),
    recurrence("R7", f"{START}FREQ=DAILY;COUNT=2;UNTIL=20270101T000000",
               "refused", "2026-01-01 09:00, 2026-01-02 09:00"),
    recurrence("R8", f"{START}FREQ=WEEKLY;BYDAY=2MO", "refused", "2026-01-05 09:00"),
    recurrence("R9", f"{START}FREQ=HOURLY;BYMINUTE=0,30;BYSETPOS=-1", "refused", "2026-01-01 09:30"),
    recurrence("R10", f"{START}FREQ=MONTHLY;BYWEEKNO=2;BYDAY=MO", "refused", "2026-01-05 09:00"),
    recurrence("R11", f"{START}FREQ=MONTHLY;BYMONTHDAY=0", "refused", "2026-01-01 09:00"),
    recurrence("R12", f"{START}FREQ=YEARLY;BYEASTER=0", "refused", "2026-04-05 09:00"),
    recurrence("R13", f"{START}FREQ=DAILY EXDATE:20260101T090000", "refused", "2026-01-02 09:00"),
    recurrence("R14", f"{START}FREQ=HOURLY;INTERVAL=4;BYHOUR=8", "never", "refused"),
    recurrence("R15", f"{START}FREQ=YEARLY;INTERVAL=200", "2026-01-01 09:00",
               "2026-01-01 09:00, 2226-01-01 09:00", until="2300-01-01"),
    recurrence("R16", "DTSTART;TZID=Europe/Berlin:20260329T023000 RRULE:FREQ=DAILY",
               "2026-03-30 02:30+02:00", "2026-03-29 03:30+02:00", zone=BERLIN),
    recurrence("R17", "DTSTART;TZID=Europe/Berlin:20261025T023000 RRULE:FREQ=DAILY",
               "2026-10-25 02:30+02:00, 2026-10-25 02:30+01:00",
               "2026-10-25 02:30+02:00, 2026-10-26 02:30+01:00", zone=BERLIN),
    recurrence("R18", "DTSTART;TZID=Europe/Berlin:20260329T020000 RRULE:FREQ=HOURLY",
               "2026-03-29 03:00+02:00, 2026-03-29 04:00+02:00",
               "2026-03-29 03:00+02:00, 2026-03-29 03:00+02:00", zone=BERLIN),
]  # fmt: skip


@each_of("known", KNOWN_DISAGREEMENTS)
def test_known_disagreements_are_as_stated(known: Disagreement):
    """If one side changes its mind, the list and the page must follow."""
    assert known.horae != known.other
    assert told(known.ask_horae, known.zone) == known.horae
    assert told(known.ask_other, known.zone) == known.other


def test_the_page_shows_the_known_disagreements():
    lines = PAGE.read_text("utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if re.match(r"\| [A-Z]\d+ \|", line)]
    shown = [(key, asked, horae, other) for key, _, asked, horae, other, _ in rows]
    assert shown == [(known.key, known.asked, known.horae, known.other) for known in KNOWN_DISAGREEMENTS]
