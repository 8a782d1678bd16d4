"""Each element of a spec beyond crons: intervals, one-shot times, recurrences, shared calendars, windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horae.spec import Spec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def times(document: dict[str, Any], count: int, after: datetime = NOW, **more: Any) -> list[str]:
    found = Spec.parse(document, **more).between(after, after + timedelta(days=36_500), count)
    return [time.strftime("%Y-%m-%dT%H:%M:%S") for time in found]


@pytest.mark.contract("SCHD-04")
def test_an_interval_counts_from_the_epoch():
    document = {"intervals": [{"every": "90m", "phase": "15m"}]}
    assert times(document, 3) == ["2026-03-01T12:15:00", "2026-03-01T13:45:00", "2026-03-01T15:15:00"]


@pytest.mark.contract("SCHD-04")
def test_an_interval_may_count_from_the_start():
    document = {
        "intervals": [{"every": "7d", "anchor": "start"}],
        "start_at": "2026-03-03T08:30:00",
        "timezone": "America/New_York",
    }
    assert times(document, 2) == ["2026-03-03T13:30:00", "2026-03-10T13:30:00"]


@pytest.mark.contract("SCHD-04")
def test_an_interval_pays_no_heed_to_clock_changes():
    document = {"intervals": [{"every": "6h"}], "timezone": "America/New_York", "gap": "shift"}
    before = datetime(2026, 3, 8, 5, tzinfo=UTC)
    assert times(document, 3, before) == ["2026-03-08T06:00:00", "2026-03-08T12:00:00", "2026-03-08T18:00:00"]


@pytest.mark.contract("SCHD-05")
def test_one_shot_times_are_instants_or_civil():
    document = {
        "times": ["2026-12-24T18:00:00", "2026-06-01T00:00:00Z", "2026-06-01T02:00:00+02:00"],
        "timezone": "Europe/Berlin",
    }
    assert times(document, 5) == ["2026-06-01T00:00:00", "2026-12-24T17:00:00"]


@pytest.mark.contract("SCHD-05", "SCHD-06")
@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, ["2026-10-25T00:30:00", "2026-10-25T01:30:00"]),
        ({"gap": "shift", "fold": "first"}, ["2026-03-29T01:00:00", "2026-10-25T00:30:00"]),
        ({"fold": "last"}, ["2026-10-25T01:30:00"]),
        ({"clock_change": "debian"}, ["2026-03-29T01:00:00", "2026-10-25T00:30:00"]),
    ],
)
def test_a_civil_one_shot_follows_the_clock_change_policy(policies: dict[str, str], expected: list[str]):
    document = {"times": ["2026-03-29T02:30:00", "2026-10-25T02:30:00"], "timezone": "Europe/Berlin"}
    assert times(document | policies, 5) == expected


@pytest.mark.contract("SCHD-05")
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=30", ["2026-03-02T09:30:00", "2026-03-04T09:30:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17", ["2026-03-27T17:00:00", "2026-04-24T17:00:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2026-03-31T00:00:00", "2026-04-30T00:00:00"]),
        ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("DTSTART:20260228T090000 RRULE:FREQ=DAILY;INTERVAL=3", ["2026-03-03T09:00:00", "2026-03-06T09:00:00"]),
        ("DTSTART:20260131T090000\nRRULE:FREQ=MONTHLY", ["2026-03-31T09:00:00", "2026-05-31T09:00:00"]),
        ("DTSTART:20260228T090000Z RRULE:FREQ=DAILY;COUNT=3", ["2026-03-02T09:00:00"]),
        ("DTSTART:20260228T090000 RRULE:FREQ=DAILY;UNTIL=20260303", ["2026-03-02T09:00:00", "2026-03-03T09:00:00"]),
        ("DTSTART:20260228T090000 RRULE:FREQ=DAILY;UNTIL=20260302T085959Z", []),
        ("DTSTART;TZID=UTC:20260301T120000 RRULE:FREQ=HOURLY;INTERVAL=5", ["2026-03-01T17:00:00", "2026-03-01T22:00:00"]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", ["2026-05-11T00:00:00", "2027-05-17T00:00:00"]),
    ],
)  # fmt: skip
def test_recurrences(rule: str, expected: list[str]):
    assert times({"rrules": [rule]}, 2) == expected


@pytest.mark.contract("SCHD-05", "SCHD-06")
def test_a_recurrence_lives_in_civil_time():
    rule = "DTSTART:20260327T023000 RRULE:FREQ=DAILY"
    document = {"rrules": [rule], "timezone": "Europe/Berlin"}
    after = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert times(document, 1, after) == ["2026-03-30T00:30:00"]
    assert times(document | {"gap": "shift"}, 2, after) == ["2026-03-29T01:00:00", "2026-03-30T00:30:00"]
    spec = Spec.parse(document)
    assert spec.previous(datetime(2026, 3, 29, 12, tzinfo=UTC)) == datetime(2026, 3, 28, 1, 30, tzinfo=UTC)
    assert spec.previous(datetime(2026, 3, 26, tzinfo=UTC)) is None


@pytest.mark.contract("SCHD-05")
def test_a_recurrence_starts_with_the_window_if_it_names_no_start():
    document = {"rrules": ["FREQ=WEEKLY;INTERVAL=2"], "start_at": "2026-03-03T08:30:00Z"}
    assert times(document, 3) == ["2026-03-03T08:30:00", "2026-03-17T08:30:00", "2026-03-31T08:30:00"]


HOLIDAYS = {"dates": ["2026-12-25", "2026-12-26", "2027-01-01"]}


@pytest.mark.contract("SCHD-05")
def test_a_shared_calendar_takes_whole_days_away():
    document = {
        "crons": ["0 9 25-27 12 *"],
        "exclude": [{"calendar": "holidays"}],
        "timezone": "Europe/Berlin",
    }
    found = times(document, 2, calendars={"holidays": HOLIDAYS})
    assert found == ["2026-12-27T08:00:00", "2027-12-25T08:00:00"]


@pytest.mark.contract("SCHD-05")
def test_shared_calendars_hold_calendars_too_and_several_add_up():
    shared = {
        "holidays": HOLIDAYS,
        "nights": {"calendars": [{"second": "*", "minute": "*", "hour": "0-5"}]},
    }
    document = {
        "intervals": [{"every": "6h"}],
        "exclude": [{"calendar": "holidays"}, {"calendar": "nights"}],
        "timezone": "UTC",
    }
    after = datetime(2026, 12, 24, 12, tzinfo=UTC)
    found = times(document, 3, after, calendars=shared)
    assert found == ["2026-12-24T18:00:00", "2026-12-27T06:00:00", "2026-12-27T12:00:00"]


@pytest.mark.contract("SCHD-05")
def test_many_specs_refer_to_one_shared_calendar():
    """The same document under another calendar is another spec; under the same one, the same."""
    document = {"crons": ["0 9 25 12 *"], "exclude": [{"calendar": "holidays"}]}
    one = Spec.parse(document, calendars={"holidays": HOLIDAYS})
    assert Spec.parse(document, calendars={"holidays": dict(HOLIDAYS), "unused": {}}) is one
    other = Spec.parse(document, calendars={"holidays": {"dates": []}})
    assert other is not one
    assert one.next_after(NOW) == datetime(2027, 12, 25, 9, tzinfo=UTC)
    assert other.next_after(NOW) == datetime(2026, 12, 25, 9, tzinfo=UTC)
    assert one.canonical()["exclude"] == [{"calendar": "holidays"}]


@pytest.mark.contract("SCHD-01", "SCHD-05")
@pytest.mark.parametrize("element", [{"times": ["2026-03-02T09:00:00Z", "2026-03-03T09:00:00Z"]},
                                     {"times": ["2026-03-02T09:00:00", "2026-03-03T09:00:00"]},
                                     {"rrules": ["DTSTART:20260302T090000 RRULE:FREQ=DAILY;COUNT=2"]},
                                     {"rrules": ["DTSTART:20260302T090000 RRULE:FREQ=DAILY;UNTIL=20260303T090000"]},
                                     {"rrules": ["DTSTART:20260302T090000 RRULE:FREQ=DAILY;BYSETPOS=1;UNTIL=20260303T090000"]},
                                     {"intervals": [{"every": "1d", "phase": "9h"}], "end_at": "2026-03-03T12:00:00Z"},
                                     {"calendars": [{"hour": 9, "day_of_month": "2-3", "month": "mar", "year": 2026}]}])  # fmt: skip
def test_exclusions_hold_for_every_kind_of_element(element: dict[str, Any]):
    assert times(element, 5) == ["2026-03-02T09:00:00", "2026-03-03T09:00:00"]
    excluded = element | {"exclude": [{"hour": "*", "minute": "*", "second": "*", "day_of_week": "mon"}]}
    assert times(excluded, 5) == ["2026-03-03T09:00:00"]
    spec = Spec.parse(excluded)
    third = datetime(2026, 3, 3, 9, tzinfo=UTC)
    assert spec.next_after(NOW) == spec.previous(third) == third
    assert spec.previous(third - timedelta(seconds=1)) in {None, datetime(2026, 3, 1, 9, tzinfo=UTC)}


@pytest.mark.contract("SCHD-01", "CRON-04")
def test_the_window_includes_both_its_ends():
    document = {"crons": ["0 9 * * *"], "start_at": "2026-03-02T09:00:00Z", "end_at": "2026-03-04T09:00:00Z"}
    assert times(document, 9) == ["2026-03-02T09:00:00", "2026-03-03T09:00:00", "2026-03-04T09:00:00"]
    spec = Spec.parse(document)
    assert spec.next_after(datetime(2026, 3, 4, 9, tzinfo=UTC)) is None
    assert spec.previous(datetime(2026, 3, 2, 8, tzinfo=UTC)) is None
    assert spec.previous(datetime(2030, 1, 1, tzinfo=UTC)) == datetime(2026, 3, 4, 9, tzinfo=UTC)


@pytest.mark.contract("SCHD-01", "CRON-04")
def test_a_window_in_civil_time_is_as_wide_as_its_words():
    """01:30 comes twice that night in London: from its first coming, until its last."""
    document = {
        "crons": ["*/30 * * * *"],
        "start_at": "2026-10-25T01:30:00",
        "end_at": "2026-10-25T01:30:00",
        "timezone": "Europe/London",
    }
    assert times(document, 9) == ["2026-10-25T00:30:00", "2026-10-25T01:00:00", "2026-10-25T01:30:00"]
    gap = {"crons": ["*/30 * * * *"], "timezone": "Europe/London", "start_at": "2026-03-29T01:15:00"}
    assert times(gap, 1) == ["2026-03-29T01:00:00"]
    ended = {"crons": ["*/30 * * * *"], "timezone": "Europe/London", "end_at": "2026-03-29T01:15:00"}
    spec = Spec.parse(ended)
    assert spec.previous(datetime(2030, 1, 1, tzinfo=UTC)) == datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    fraction = {
        "crons": ["* * * * * *"],
        "start_at": "2026-03-02T09:00:00.5Z",
        "end_at": "2026-03-02T09:00:02.5Z",
    }
    assert times(fraction, 9) == ["2026-03-02T09:00:01", "2026-03-02T09:00:02"]


@pytest.mark.contract("SCHD-01")
def test_an_empty_spec_is_legal_and_never_fires():
    spec = Spec.parse({})
    assert spec.next_after(NOW) is None
    assert spec.previous(NOW) is None
    assert spec.between(NOW, NOW + timedelta(days=1)) == []
    assert spec.canonical() == {}


@pytest.mark.contract("SCHD-02")
@pytest.mark.parametrize(
    ("calendar", "expected"),
    [
        ({}, "2026-03-02T00:00:00"),
        ({"hour": 9}, "2026-03-02T09:00:00"),
        ({"hour": "9", "day_of_week": "mon-fri"}, "2026-03-02T09:00:00"),
        ({"hour": [{"start": 8, "end": 18, "step": 5}]}, "2026-03-01T13:00:00"),
        ({"day_of_month": "13", "day_of_week": "fri"}, "2026-03-13T00:00:00"),
        ({"month": "Sept", "day_of_week": "th"}, "2026-09-03T00:00:00"),
        ({"day_of_week": "7"}, "2026-03-08T00:00:00"),
        ({"day_of_month": "L"}, "2026-03-31T00:00:00"),
        ({"day_of_month": "L", "day_of_week": "fri"}, "2026-07-31T00:00:00"),
        ({"day_of_week": "1#1", "year": "2030"}, "2030-01-07T00:00:00"),
        ({"second": "30", "minute": "*", "hour": "*"}, "2026-03-01T12:00:30"),
    ],
)
def test_calendars(calendar: dict[str, Any], expected: str):
    assert times({"calendars": [calendar]}, 1) == [expected]
