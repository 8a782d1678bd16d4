"""Where things end, meet and turn: what only a second look found."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from horae import errors
from horae.errors import HoraeError, InvalidCronExpressionError, InvalidSpecError, UnknownTimezoneError
from horae.spec import PosixCron, Spec, slot_key
from tests.spec.oracle import zoneinfo

NEW_YORK = "America/New_York"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def between(document: dict[str, Any], after: str, until: str, **more: Any) -> list[str]:
    """The times of a range, asked in all three ways."""
    spec = Spec.parse(document, **more)
    found = spec.between(utc(after), utc(until), 100)
    at, forward = utc(after), []
    while (time := spec.next_after(at)) is not None and time <= utc(until):
        forward.append(time)
        at = time
    at, backward = utc(until), []
    while (time := spec.previous(at)) is not None and time > utc(after):
        backward.append(time)
        at = time - timedelta(seconds=1)
    assert found == forward == backward[::-1]
    assert spec.count(int(utc(after).timestamp()), int(utc(until).timestamp())) == len(found)
    return [f"{time:%Y-%m-%dT%H:%M}" for time in found]


@pytest.mark.contract("SCHD-06", "SCHD-05")
@pytest.mark.parametrize(
    "element",
    [
        {"times": ["2026-11-01T01:30:00"]},
        {"calendars": [{"hour": 1, "minute": 30, "day_of_month": 1, "month": 11, "year": 2026}]},
        {"rrules": ["DTSTART:20261101T013000 RRULE:FREQ=DAILY;COUNT=1"]},
    ],
)
def test_the_last_label_of_a_rule_comes_twice_too(element: dict[str, Any]):
    """Asked between the two, the rule has no later label of its own."""
    document = element | {"timezone": NEW_YORK}
    assert between(document, "2026-11-01T00:00", "2026-11-02T00:00") == [
        "2026-11-01T05:30",
        "2026-11-01T06:30",
    ]
    assert between(document, "2026-11-01T05:45", "2026-11-02T00:00") == ["2026-11-01T06:30"]
    assert between(document, "2026-11-01T00:00", "2026-11-01T06:10") == ["2026-11-01T05:30"]


@pytest.mark.contract("SCHD-05")
def test_a_rare_recurrence_is_found_whatever_was_asked_before():
    rule = "DTSTART:20000101T000000 RRULE:FREQ=YEARLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=29;BYDAY=TU"
    spec = Spec.parse({"rrules": [rule]})
    assert spec.next_after(utc("2020-01-01")) == utc("2084-02-29")
    assert spec.next_after(utc("2060-01-01")) == utc("2084-02-29")
    assert spec.next_after(utc("2085-01-01")) == utc("2180-02-29")


@pytest.mark.contract("DECL-25", "DECL-05")
@pytest.mark.parametrize("fold", [0, 1])
def test_a_minute_matches_in_both_its_comings_given_in_local_time(fold: int):
    cron = PosixCron("30 1 * * *", NEW_YORK)
    assert cron.matches(datetime(2026, 11, 1, 1, 30, 59, tzinfo=zoneinfo(NEW_YORK), fold=fold))
    assert not cron.matches(datetime(2026, 11, 1, 1, 31, tzinfo=zoneinfo(NEW_YORK), fold=fold))


@pytest.mark.contract("SCHD-07")
def test_jitter_is_the_same_in_whatever_zone_the_time_is_given():
    spec = Spec.parse({"crons": ["59 1 * * *"], "timezone": NEW_YORK, "jitter": "1h"})
    local = datetime(2026, 11, 1, 1, 59, tzinfo=ZoneInfo(NEW_YORK))
    assert spec.fire_time(local, "a") == spec.fire_time(local.astimezone(UTC), "a")
    assert spec.fire_time(local, "a").tzinfo is UTC
    assert Spec.cron("59 1 * * *").fire_time(local, "a").tzinfo is UTC


@pytest.mark.contract("SCHD-05")
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("DTSTART:20261101T040000 RRULE:FREQ=MINUTELY;INTERVAL=30;UNTIL=20261101T093000Z", ["09:00", "09:30"]),
        ("DTSTART:20261101T000000 RRULE:FREQ=MINUTELY;INTERVAL=30;UNTIL=20261101T053000Z", ["04:00", "04:30", "05:00", "05:30"]),
        ("DTSTART:20261101T000000 RRULE:FREQ=MINUTELY;INTERVAL=30;UNTIL=20261101T060000Z", ["04:00", "04:30", "05:00", "05:30", "06:00"]),
        ("DTSTART:20261101T060000Z RRULE:FREQ=MINUTELY;INTERVAL=30;UNTIL=20261101T070000Z", ["06:00", "06:30", "07:00"]),
    ],
)  # fmt: skip
def test_utc_stamps_are_instants_also_in_a_fold(rule: str, expected: list[str]):
    document = {"rrules": [rule], "timezone": NEW_YORK}
    assert [time[11:] for time in between(document, "2026-10-31", "2026-11-02")] == expected


@pytest.mark.contract("SCHD-05")
def test_the_week_begins_where_the_rule_says():
    """The example of RFC 5545 itself: every other week, from another weekday on."""
    rule = "DTSTART:19970805T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST="
    days = {
        week_start: [
            time[8:10] for time in between({"rrules": [rule + week_start]}, "1997-08-01", "1997-10-01")
        ]
        for week_start in ("MO", "SU")
    }
    assert days == {"MO": ["05", "10", "19", "24"], "SU": ["05", "17", "19", "31"]}


@pytest.mark.contract("SCHD-06")
def test_under_debians_rule_an_hourly_recurrence_follows_real_time():
    rule = "DTSTART:20261024T003000 RRULE:FREQ=HOURLY"
    document = {"rrules": [rule], "timezone": "Europe/Berlin", "clock_change": "debian"}
    assert between(document, "2026-10-25T00:00", "2026-10-25T02:00") == [
        "2026-10-25T00:30",
        "2026-10-25T01:30",
    ]
    daily = {"rrules": ["DTSTART:20261024T023000 RRULE:FREQ=DAILY"]}
    assert between(document | daily, "2026-10-25T00:00", "2026-10-25T02:00") == ["2026-10-25T00:30"]


@pytest.mark.contract("SCHD-06", "SCHD-05")
@pytest.mark.parametrize(
    ("exclude", "calendars"),
    [
        ([{"hour": "3", "minute": "*", "second": "*"}], None),
        ([{"calendar": "day"}], {"day": {"dates": ["2026-03-29"]}}),
    ],
)
def test_nothing_is_moved_onto_an_excluded_time(exclude: list[Any], calendars: Any):
    document = {"crons": ["30 2 * * *"], "timezone": "Europe/Berlin", "gap": "shift", "exclude": exclude}
    found = between(document, "2026-03-28T00:00", "2026-03-31T00:00", calendars=calendars)
    assert found == ["2026-03-28T01:30", "2026-03-30T00:30"]


@pytest.mark.contract("SCHD-05")
def test_a_closed_day_is_closed_in_its_year_only():
    """2026 and 2037 have the same shape."""
    document = {"crons": ["0 9 25 12 *"], "exclude": [{"calendar": "c"}]}
    spec = Spec.parse(document, calendars={"c": {"dates": ["2026-12-25"]}})
    assert spec.next_after(utc("2026-12-01")) == utc("2027-12-25T09:00")
    assert spec.next_after(utc("2037-12-01")) == utc("2037-12-25T09:00")


@pytest.mark.contract("SCHD-06")
def test_debians_rule_holds_for_less_than_three_hours():
    """Casey set its clocks forward by exactly three hours, Vostok back by two."""
    casey = {"crons": ["30 3 * * *"], "timezone": "Antarctica/Casey", "clock_change": "debian"}
    literal = casey | {"clock_change": "literal"}
    window = ("2009-10-17T00:00", "2009-10-20T00:00")
    assert between(casey, *window) == between(literal, *window)
    vostok = {"crons": ["30 1 * * *"], "timezone": "Antarctica/Vostok", "clock_change": "debian"}
    assert len(between(vostok, "2023-12-17T12:00", "2023-12-18T12:00")) == 1
    assert len(between(vostok | {"clock_change": "literal"}, "2023-12-17T12:00", "2023-12-18T12:00")) == 2


@pytest.mark.contract("SCHD-05")
def test_the_last_friday_may_be_the_last_day():
    assert between({"crons": ["0 9 * 7 5L"]}, "2026-07-01", "2026-08-01") == ["2026-07-31T09:00"]
    assert between({"crons": ["0 9 * 2 6L"]}, "2026-02-01", "2026-03-01") == ["2026-02-28T09:00"]


@pytest.mark.contract("SCHD-01")
def test_single_instants_are_excluded_by_their_civil_time():
    document = {
        "times": ["2026-03-02T08:00:00Z", "2026-03-02T09:00:00Z"],
        "exclude": [{"hour": "9", "minute": "*"}],
        "timezone": "Europe/Berlin",
    }
    assert between(document, "2026-03-01", "2026-03-03") == ["2026-03-02T09:00"]


@pytest.mark.contract("SCHD-04")
def test_an_interval_is_searched_backwards_over_clock_changes():
    document = {
        "intervals": [{"every": "3h"}],
        "exclude": [{"hour": "0-20", "minute": "*"}],
        "timezone": NEW_YORK,
    }
    # 22:00 in winter, 23:00 in summer; all other multiples of three hours are before nine in the evening
    assert between(document, "2026-03-06", "2026-03-11") == [
        f"2026-03-{day:02}T03:00" for day in range(6, 11)
    ]


@pytest.mark.contract("CRON-09")
def test_centred_jitter_reaches_its_bounds():
    spec = Spec.parse({"times": ["2026-03-02T09:00:00Z"], "jitter": {"span": "1s", "centred": True}})
    nominal = utc("2026-03-02T09:00")
    offsets = {
        round((spec.fire_time(nominal, str(n)) - nominal).total_seconds() * 1000) for n in range(40_000)
    }
    assert (min(offsets), max(offsets)) == (-1000, 1000)


@pytest.mark.contract("CRON-04")
def test_a_civil_window_with_fractions_begins_after_them():
    document = {
        "crons": ["* * * * * *"],
        "start_at": "2026-03-02T09:00:00.5",
        "end_at": "2026-03-02T09:00:02.5",
    }
    spec = Spec.parse(document)
    assert [time.second for time in spec.between(utc("2026-03-01"), utc("2026-03-03"))] == [1, 2]


def test_the_three_questions_agree_at_both_ends_of_time():
    spec = Spec.cron("* * * * *")
    assert spec.next_after(utc("2199-12-30T23:58")) == utc("2199-12-30T23:59")
    assert spec.next_after(utc("2199-12-30T23:59")) is None
    assert spec.previous(utc("2199-12-31T12:01")) == utc("2199-12-30T23:59")
    assert spec.between(utc("2199-12-31T00:00"), utc("2199-12-31T12:00")) == []
    first = spec.next_after(utc("1899-01-01"))
    assert first is not None
    assert spec.previous(first) == first
    assert spec.previous(first - timedelta(seconds=1)) is None


@pytest.mark.contract("SCHD-09")
@pytest.mark.parametrize(
    "document",
    [
        {"times": ["2199-12-28T23:59:59-12:00"]},
        {"start_at": "1900-01-03T00:00:00+12:00", "crons": ["0 0 * * *"]},
        {
            "start_at": "1900-01-03T00:00:00",
            "end_at": "2199-12-28T23:59:59",
            "timezone": "Pacific/Kiritimati",
        },
    ],
)
def test_the_canonical_form_is_accepted_also_near_the_limits(document: dict[str, Any]):
    spec = Spec.parse(document)
    assert Spec.parse(spec.canonical()) is spec


@pytest.mark.parametrize("choice", [{"gap": "jump"}, {"fold": "x"}, {"clock_change": "x"}, {"dialect": "x"}])
def test_a_choice_that_does_not_exist_is_refused(choice: dict[str, Any]):
    with pytest.raises(InvalidSpecError) as caught:
        Spec.cron("* * * * *", **choice)
    assert caught.value.details["element"] == next(iter(choice))


@pytest.mark.contract("SCHD-03")
def test_a_zone_may_stand_in_a_temporal_expression():
    spec = Spec.cron("TZ=Europe/Berlin 0 9 * * *", dialect="temporal")
    assert spec.zone.name == "Europe/Berlin"
    with pytest.raises(InvalidSpecError, match="conflicting"):
        Spec.cron("TZ=Europe/Berlin 0 9 * * *", dialect="temporal", timezone="UTC")
    with pytest.raises(InvalidSpecError) as caught:
        Spec.parse({"crons": ["TZ=Asia/Tokyo a 0 * * *"], "dialect": "temporal"})
    assert caught.value.details["position"] == 14


@pytest.mark.parametrize(
    "policies", [{}, {"clock_change": "debian"}, {"gap": "shift"}, {"dialect": "temporal"}]
)
def test_a_bad_expression_or_zone_is_the_same_error_under_every_policy(policies: dict[str, Any]):
    with pytest.raises(InvalidCronExpressionError):
        Spec.cron("61 * * * *", **policies)
    with pytest.raises(UnknownTimezoneError):
        Spec.cron("0 * * * *", timezone="", **policies)


@pytest.mark.parametrize("zone", [5, [], "x" * 10_000_000])
def test_a_zone_that_is_none_is_refused_briefly(zone: Any):
    with pytest.raises(UnknownTimezoneError) as caught:
        Spec.cron("0 * * * *", timezone=zone)
    assert len(caught.value.message) < 200


@pytest.mark.contract("SCHD-09")
def test_special_days_beside_every_day_mean_every_day():
    for expression in ("0 0 *,L * *", "0 0 * * *,1#2", "0 0 1-31,15W * *"):
        assert "every day" in Spec.cron(expression).sentence()


@pytest.mark.contract("SCHD-09")
def test_rules_are_written_in_one_way():
    one = Spec.parse({"rrules": ["rrule:byhour=9;freq=daily"]})
    assert one.canonical() == {"rrules": ["FREQ=DAILY;BYHOUR=9"]}
    other = Spec.parse({"rrules": ["DTSTART;TZID=UTC:20260101T000000\nRRULE:INTERVAL=2;FREQ=DAILY"]})
    assert other.canonical() == {"rrules": ["DTSTART:20260101T000000 RRULE:FREQ=DAILY;INTERVAL=2"]}


@pytest.mark.parametrize(
    "rule", ["FREQ=MONTHLY;BYDAY=MO(+1)", "FREQ=DAILY;BYHOUR=1_0", "FREQ=DAILY;BYHOUR=+5", "FREQ=DAILY;COUNT=0000000013000000"]
)  # fmt: skip
def test_what_a_library_reads_generously_is_refused(rule: str):
    with pytest.raises(InvalidSpecError) as caught:
        Spec.parse({"rrules": [rule], "start_at": "2026-01-01T00:00:00Z"})
    assert caught.value.details["position"] == rule.index(";") + 1


@pytest.mark.parametrize(
    "document",
    [
        {"intervals": [{"every": 10**5000}]},
        {"calendars": [{"hour": 10**5000}]},
        {"calendars": [{"hour": [{"start": 10**5000}]}]},
        {"jitter": 10**5000},
        {"calendars": [{"comment": "\ud800"}]},
        {"calendars": [{"comment": "\x1b[31m"}]},
    ],
)
def test_monstrous_values_are_refused_like_any_other(document: dict[str, Any]):
    with pytest.raises(InvalidSpecError):
        Spec.parse(document)


@pytest.mark.contract("DECL-22")
def test_a_monstrous_expression_is_refused_like_any_other():
    with pytest.raises(InvalidCronExpressionError, match="must be a string"):
        PosixCron(10**5000)  # type: ignore[arg-type]
    assert PosixCron("0 0 * * *" + " " * 5000).expression
    assert len(slot_key("\ud800", 5)) == 64


def test_equal_specs_are_equal_however_they_travelled():
    spec = Spec.cron("0 9 * * *", timezone="Europe/Berlin")
    assert pickle.loads(pickle.dumps(spec)) is spec  # noqa: S301 - our own bytes
    assert copy.copy(spec) == spec
    assert hash(Spec(spec.elements)) == hash(spec)
    assert Spec(spec.elements) == spec != Spec.cron("0 9 * * *")
    assert spec != "0 9 * * *"


def test_errors_travel_between_processes():
    with pytest.raises(HoraeError) as caught:
        Spec.parse({"crons": ["61 * * * *"]})
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert type(again) is errors.InvalidSpecError
    assert (again.message, again.details, again.hint, str(again)) == (
        caught.value.message, caught.value.details, caught.value.hint, str(caught.value),
    )  # fmt: skip


def test_a_moment_in_any_zone_is_an_instant():
    spec = Spec.cron("0 9 * * *")
    plus_two = timezone(timedelta(hours=2))
    assert spec.next_after(datetime(2026, 3, 1, 10, 59, tzinfo=plus_two)) == utc("2026-03-01T09:00")
    with pytest.raises(errors.NaiveTimeError):
        spec.next_after("2026-03-01")  # type: ignore[arg-type]


def test_a_count_holds_for_whichever_thread_asks_first():
    rule = "DTSTART:20000101T000019 RRULE:FREQ=DAILY;BYMONTHDAY=13;BYDAY=FR;COUNT=100"
    spec = Spec.parse({"rrules": [rule]})
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(spec.next_after, [utc("2190-01-01")] * 8)) == {None}
