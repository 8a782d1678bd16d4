"""What questions cost: searches leap, budgets hold, and a spec that costs too much is refused with the part that does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given, settings, target
from hypothesis import strategies as st

from horae.errors import InvalidSpecError, SpecTooCostlyError
from horae.spec import Spec
from horae.spec.affordability import AFFORDABLE_STEPS, check_cost
from horae.spec.budget import LISTING_STEPS, QUESTION_STEPS, shared_budget
from horae.spec.civil import DAY
from horae.spec.day_search import DayRule, Group
from horae.spec.wall_clock_interval import Stride, first_multiple
from tests.support.specs import forget_specs

NOW = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp())
EVERYTHING = {"second": "*", "minute": "*", "hour": "*"}
ALL_BUT_MIDNIGHT = [
    EVERYTHING | {"hour": "1-23"},
    EVERYTHING | {"hour": "0", "minute": "1-59"},
    EVERYTHING | {"hour": "0", "minute": "0", "second": "1-59"},
]
PRIMES = (86413, 86423, 86441, 86453, 86461, 86467, 86477, 86491, 86501, 86509,
          86531, 86533, 86539, 86561, 86573, 86579, 86587, 86599, 86627, 86629)  # fmt: skip


def every(seconds: int, parts: str = "", start: str = "20260101T000000") -> str:
    return f"DTSTART:{start} RRULE:FREQ=SECONDLY;INTERVAL={seconds}{parts}"


HOSTILE: dict[str, dict[str, Any]] = {
    "one second in 236 years, six times, beside every second": {
        "rrules": [every(86399, f";BYHOUR=6;BYMINUTE=45;BYSECOND={n}") for n in range(6)],
        "intervals": [{"every": "1s"}],
    },
    "one hour in 236 years": {"rrules": [every(86399, ";BYHOUR=6")]},
    "two hours in 236 years": {"rrules": [every(86399, ";BYHOUR=6,7")]},
    "an interval that never meets what is left": {
        "intervals": [{"every": "1w"}], "exclude": [{"day_of_week": "thu"}],
    },
    "twenty prime intervals with four exclusions": {
        "intervals": [{"every": f"{prime}s", "phase": "7s"} for prime in PRIMES],
        "exclude": [*ALL_BUT_MIDNIGHT, {"day_of_week": "mon-sat"}],
        "timezone": "America/New_York",
    },
    "every minute, all of them excluded": {
        "rrules": ["FREQ=MINUTELY"], "exclude": [{"minute": "*", "hour": "*"}],
    },
    "a weekly place that no week has": {"rrules": ["FREQ=WEEKLY;BYDAY=FR,SU;BYSETPOS=-5"]},
    "an exclusion for each year": {
        "crons": ["0 * * * * *"],
        "exclude": [{"second": "0", "minute": "*", "hour": "*", "year": str(year)} for year in range(2001, 2101)],
    },
    "a hundred crons and a hundred exclusions by the second": {
        "crons": [f"{n % 7} {n % 60} {n % 24} {n % 28 + 1} * {n % 7}" for n in range(100)],
        "exclude": [
            {"second": "*", "minute": str(n % 60), "hour": str(n % 24), "day_of_month": str(n % 28 + 1)} for n in range(100)
        ],
    },
}  # fmt: skip


@pytest.mark.contract("SCHD-08")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_specs_are_answered_within_the_budget_of_one_decision(name: str):
    spec = Spec.parse(HOSTILE[name]).cold()
    with shared_budget(QUESTION_STEPS) as cold:
        spec.next_instant(NOW)
        spec.previous_instant(NOW)
    with shared_budget(QUESTION_STEPS) as warm:  # a second later, as for a schedule that fires each second
        spec.next_instant(NOW + 1)
    assert warm.steps <= max(cold.steps // 2, 100)


@pytest.mark.contract("SCHD-08", "SCHD-05")
def test_a_rare_second_is_found_without_a_walk_through_the_years_before_it():
    spec = Spec.parse({"rrules": [every(86399, ";BYHOUR=6;BYMINUTE=45;BYSECOND=3")]})
    with shared_budget(2_000):
        found = spec.next_instant(NOW)
        assert found is not None
        start = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
        assert (found - start) % 86399 == 0
        assert datetime.fromtimestamp(found, UTC).strftime("%H:%M:%S") == "06:45:03"
        assert spec.previous_instant(found) == found
        assert spec.previous_instant(found - 1) is None
        assert spec.count(NOW, found) == 1
        assert spec.names(found)


TOO_COSTLY: dict[str, tuple[dict[str, Any], str]] = {
    "a count that is seldom met": ({"crons": ["0 9 * * *"], "rrules": ["FREQ=DAILY", every(43201, ";COUNT=100000")]}, "rrules[1]"),
    "many times, nearly all of them excluded": (
        {
            "times": [f"{2027 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}T09:00:00Z" for n in range(1000)],
            "exclude": [EVERYTHING | {"month": str(n % 12 + 1), "day_of_month": str(n % 28 + 1)} for n in range(99)]
            + [EVERYTHING],
        },
        "times",
    ),
    "calendars that are long to read": (
        {
            "crons": ["0 9 * * *"],
            "exclude": [
                {"second": "1-59/7", "minute": "0,2,4,6,9,11,13,16,18,20,23,25,27,30,32,34,37,39,41,44,46,48", "hour": "1,4,6,9",
                 "day_of_month": "1,3,6,8,10,13,15,18,20,22,25,27", "month": "1,3,6,9", "year": "2001,2003,2006,2009"}
            ] * 100,
        },
        "exclude",
    ),
}  # fmt: skip


@pytest.mark.contract("SCHD-08", "SCHD-09")
@pytest.mark.parametrize("name", TOO_COSTLY)
def test_a_spec_that_costs_too_much_is_refused_with_the_part_that_does(name: str):
    document, part = TOO_COSTLY[name]
    spec = Spec.parse(document)
    for _ in range(2):  # the verdict does not depend on what was computed before
        with pytest.raises(SpecTooCostlyError) as caught:
            check_cost(spec)
        assert isinstance(caught.value, InvalidSpecError)
        assert caught.value.details["element"] == part
        assert caught.value.hint


LONG: dict[str, dict[str, Any]] = {
    "times": {"times": [f"2027-01-01T{n // 60:02}:{n % 60:02}:00Z" for n in range(1000)]},
    "wall-clock times": {"times": [f"2027-01-01T{n // 60:02}:{n % 60:02}:00" for n in range(1000)]},
    "dates": {"exclude": [{"calendar": "c"}], "shared": {"c": {"dates": ["2027-01-01"] * 1000}}},
    "crons": {"crons": [f"{n % 60} {n % 24} 1,3,5,7,9,11,13,15,17,19 * *" for n in range(100)]},
    "calendars": {"calendars": [{"hour": "1,3,6,9,12", "minute": str(n % 60)} for n in range(100)]},
    "shared calendars": {
        "exclude": [{"calendar": "c"}],
        "shared": {"c": {"calendars": [{"hour": "1,3,6,9,12", "minute": str(n % 60)} for n in range(100)]}},
    },
    "rules": {"rrules": [every(7 + n, ";BYHOUR=1,3,6,9,12") for n in range(20)]},
}


@pytest.mark.contract("SCHD-08")
@pytest.mark.parametrize("name", LONG)
def test_reading_a_stored_spec_costs_steps_once(name: str):
    text = Spec.parse(LONG[name]).text
    forget_specs()
    with shared_budget(QUESTION_STEPS) as read:
        Spec.parse(text)
    assert read.steps >= len(text) // 50  # a microsecond is good for less than fifty characters
    with shared_budget(QUESTION_STEPS) as again:
        Spec.parse(text)
    assert again.steps <= 1


def test_the_usual_specs_are_never_near_the_budget():
    usual: list[dict[str, Any]] = [
        {"crons": ["30 2 * * *"], "timezone": "America/New_York"},
        {"crons": ["0 0 29 2 1"]},
        {"calendars": [{"hour": "9", "day_of_week": "mon-fri"}], "intervals": [{"every": "6h"}],
         "exclude": [{"month": "12", "day_of_month": "24-26", "hour": "*", "minute": "*"}], "timezone": "Europe/Berlin"},
        {"rrules": ["FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17"], "exclude": [{"month": "8", "hour": "*"}]},
        {"rrules": ["DTSTART:20260101T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;COUNT=50"]},
    ]  # fmt: skip
    for document in usual:
        spec = Spec.parse(document).cold()
        with shared_budget(AFFORDABLE_STEPS // 4):
            first = spec.next_instant(NOW)
            assert first is not None
            spec.next_instant(first)
            spec.previous_instant(NOW)


@given(st.integers(0, 400), st.integers(1, 400), st.data())
def test_the_first_multiple_in_a_range_is_found(factor: int, modulus: int, data: st.DataObject):
    factor %= modulus
    low = data.draw(st.integers(0, modulus - 1))
    high = data.draw(st.integers(low, modulus - 1))
    expected = next((k for k in range(modulus) if low <= factor * k % modulus <= high), None)
    assert first_multiple(factor, modulus, low, high) == expected


class Days(DayRule):
    """Days that repeat, each with times of its own."""

    def __init__(self, days: list[int], stride: Stride | None) -> None:
        super().__init__(stride)
        self.days = days
        self.all = 0
        for times in days:
            self.all |= times

    @property
    def envelope(self) -> int:
        return self.all

    def times_of(self, day: int) -> int:
        return self.days[day % len(self.days)]

    def groups(self, first: int, width: int) -> list[Group]:
        found: dict[int, Group] = {}
        for place in range(width):
            if times := self.times_of(first + place):
                found[id(times)] = (found.get(id(times), (0, 0))[0] | 1 << place, times)
        return list(found.values())


@st.composite
def day_rules(draw: st.DrawFn) -> tuple[Days, int, int, int]:
    """A rule of few or many times a day, with a stride around the length of a day or below it."""
    unit = draw(st.sampled_from([1, 60, 3600]))
    near = DAY // unit
    interval = draw(
        st.one_of(st.integers(2, 30), st.integers(max(near - 30, 2), near + 30), st.integers(near, 4 * near))
    )
    phase = draw(st.integers(0, 10**6))
    moments = st.lists(st.integers(0, DAY - 1), max_size=4).map(
        lambda some: sum(1 << each for each in set(some))
    )
    spans = st.tuples(st.integers(0, DAY - 1), st.integers(1, 20_000)).map(
        lambda two: ((1 << two[1]) - 1 << two[0]) & (1 << DAY) - 1
    )
    days = draw(st.lists(st.one_of(moments, spans, st.just(0)), min_size=1, max_size=8))
    return Days(days, Stride(interval, phase, unit)), interval, phase % interval, unit


@given(day_rules(), st.integers(0, 20_000), st.integers(1, 40), st.integers(0, DAY - 1), st.integers(1, 50))
def test_a_stride_through_days_and_times_is_what_a_walk_finds(
    made: tuple[Days, int, int, int], day: int, length: int, second: int, limit: int
):
    rule, interval, phase, unit = made
    begin, end = day * DAY + second, (day + length) * DAY + second // 2
    walked = []
    units = range(begin // unit + (phase - begin // unit) % interval, end // unit + 1, interval)
    for each in {(begin // unit) // interval * interval + phase} | set(units):
        times = rule.times_of(each * unit // DAY)
        first = each * unit % DAY
        window = times >> first & (1 << unit) - 1
        walked += [each * unit + place for place in range(unit) if window >> place & 1] if window else []
    walked = sorted(
        label for label in set(walked) if begin <= label < end and label // unit % interval == phase
    )
    with shared_budget(10 * LISTING_STEPS):
        assert rule.first(begin, end) == (walked[0] if walked else None)
        assert rule.last(begin, end) == (walked[-1] if walked else None)
        assert rule.listed(begin, end, limit) == walked[:limit]
        assert rule.counted(begin, end) == len(walked)
        assert rule.bits_of(begin, end).bit_count() == len(walked)


RANGES = {"BYMONTH": 12, "BYMONTHDAY": 31, "BYYEARDAY": 366, "BYHOUR": 23, "BYMINUTE": 59, "BYSECOND": 59}


@st.composite
def costly_rrules(draw: st.DrawFn) -> str:
    frequency = draw(
        st.sampled_from(
            ["SECONDLY", "SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"]
        )
    )
    parts = {"FREQ": frequency}
    interval = st.one_of(
        st.integers(1, 100_000),
        st.sampled_from([1, 7, 59, 61, 1439, 1441, 10_080, 43_201, 86_399, 86_401, 99_991]),
    )
    parts["INTERVAL"] = str(draw(interval))
    if draw(st.booleans()) and frequency in {"WEEKLY", "MONTHLY", "YEARLY", "DAILY"}:
        parts["BYSETPOS"] = ",".join(
            map(str, draw(st.lists(st.integers(-366, 366).filter(bool), min_size=1, max_size=4)))
        )
    if draw(st.integers(0, 5)) == 0:
        parts["COUNT"] = str(draw(st.sampled_from([1, 1000, 100_000])))
    if draw(st.integers(0, 3)) == 0:
        parts["BYDAY"] = draw(st.sampled_from(["MO", "SA,SU", "MO,TU,WE,TH,FR"]))
    if frequency == "YEARLY" and draw(st.integers(0, 3)) == 0:
        parts["BYWEEKNO"] = str(draw(st.sampled_from([1, 53, -53, 20])))
    for key in draw(st.sets(st.sampled_from(sorted(RANGES)), max_size=4)):
        low = 1 if key in {"BYMONTH", "BYMONTHDAY", "BYYEARDAY"} else 0
        parts[key] = ",".join(map(str, draw(st.sets(st.integers(low, RANGES[key]), min_size=1, max_size=6))))
    start = draw(st.sampled_from(["20260101T000000", "20000229T235959", "19700101T064500"]))
    return f"DTSTART:{start} RRULE:" + ";".join(f"{key}={value}" for key, value in parts.items())


@st.composite
def costly_calendars(draw: st.DrawFn) -> dict[str, str]:
    fields = {}
    for name, low, high in (("second", 0, 59), ("minute", 0, 59), ("hour", 0, 23), ("day_of_month", 1, 31), ("month", 1, 12),
                            ("day_of_week", 0, 6), ("year", 2000, 2100)):  # fmt: skip
        first, last = draw(st.integers(low, high)), draw(st.integers(low, high))
        some = [
            f"{min(first, last)}-{max(first, last)}",
            str(first),
            f"{min(first, last)}-{max(first, last)}/{draw(st.integers(1, 7))}",
        ]
        if (field := draw(st.sampled_from(["", "*", "*", *some]))) and (field != "*" or high < 60):
            fields[name] = field
    return fields


COSTLY = st.fixed_dictionaries(
    {},
    optional={
        "crons": st.lists(st.sampled_from(["* * * * * *", "0 0 29 2 1", "*/7 * * * *", "0 0 31 2 *", "59 59 23 L * *"]), max_size=3),
        "calendars": st.lists(costly_calendars(), max_size=12),
        "intervals": st.lists(
            st.builds(lambda every, phase: {"every": f"{every}s", "phase": f"{phase % every}s"}, st.one_of(st.integers(1, 10**6), st.sampled_from(PRIMES)), st.integers(0, 10**6)),
            max_size=20,
        ),
        "rrules": st.lists(costly_rrules(), max_size=20),
        "exclude": st.lists(st.one_of(costly_calendars(), st.sampled_from(ALL_BUT_MIDNIGHT)), max_size=30),
        "jitter": st.sampled_from(["30s", "24h"]),
        "timezone": st.sampled_from(["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]),
        "gap": st.sampled_from(["skip", "shift"]),
    },
)  # fmt: skip


@pytest.mark.contract("SCHD-08")
@given(COSTLY, st.integers(NOW, NOW + 60 * 366 * DAY))
@settings(max_examples=max(settings().max_examples // 2, 1))  # each asks all questions of a decision
def test_no_spec_that_was_accepted_goes_over_the_budget_of_a_decision(document: dict[str, Any], moment: int):
    """The search for the worst case: Hypothesis drives the number of steps up, and finds none that is over."""
    try:
        spec = Spec.parse(document)
        check_cost(spec)
    except InvalidSpecError:
        assume(False)
    spec = spec.cold()
    with shared_budget(QUESTION_STEPS) as spent:
        following = spec.next_instant(moment)
        spec.previous_instant(moment)
        if following is not None:
            if spec.elements.jitter is not None:
                spec.fire_time(datetime.fromtimestamp(following, UTC), "schedule")
            spec.next_instant(following)
            assert spec.names(following)
        spec.count_within_budget(moment, moment + 366 * DAY)
    target(float(spent.steps))
    assert spent.steps <= QUESTION_STEPS


@given(COSTLY, st.integers(NOW, NOW + 20 * 366 * DAY), st.integers(1, 400 * DAY))
@settings(max_examples=max(settings().max_examples // 3, 1))  # each counts up to a year, three times
def test_a_count_in_parts_is_the_count(document: dict[str, Any], after: int, width: int):
    try:
        spec = Spec.parse(document)
        check_cost(spec)
        whole = spec.count(after, after + width)
    except InvalidSpecError:
        assume(False)
    total, parts, reached = 0, 0, after
    while reached < after + width:
        found, reached = spec.count_within_budget(reached, after + width)
        total, parts = total + found, parts + 1
    assert total == whole
    assert spec.cold().count(after, after + width) == whole
