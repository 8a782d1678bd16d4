"""Specs as messages: what one says becomes a spec, and the spec shown again says the same."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from temporalio.api.schedule.v1 import CalendarSpec, IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec

from horae.errors import InvalidInputError
from horae.face.temporal.spec_message import changed_spec, cleaned, message_of, read_spec, says
from horae.spec import Spec
from tests.face.temporal.strategies import specs


def calendar(**fields: list[Range]) -> StructuredCalendarSpec:
    whole = {"second": [Range()], "minute": [Range()], "hour": [Range()], "day_of_month": [Range(start=1, end=31)],
             "month": [Range(start=1, end=12)], "day_of_week": [Range(end=6)]}  # fmt: skip
    return StructuredCalendarSpec(**(whole | fields))  # type: ignore[arg-type]


@pytest.mark.contract("SCHD-30", "SCHD-02", "SCHD-03")
@given(specs)
@settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
def test_a_shown_spec_says_what_was_sent_and_sending_it_back_changes_nothing(message: ScheduleSpec):
    spec = read_spec(message)
    shown, own = cleaned(message), message_of(spec)
    assert says(shown, spec)
    assert says(own, spec)
    assert cleaned(shown) == shown
    assert cleaned(own) == own
    assert changed_spec(shown, spec) is None
    assert changed_spec(message, spec) is None
    assert read_spec(own).between is not None
    assert message_of(Spec.parse(spec.text)) == own


def test_ranges_have_defaults_for_their_end_and_step():
    spec = read_spec(
        ScheduleSpec(structured_calendar=[calendar(hour=[Range(start=9), Range(start=12, end=18, step=3)])])
    )
    assert spec == Spec.parse({"calendars": [{"hour": "9,12-18/3"}]})


def test_texts_are_read_as_temporal_reads_them():
    message = ScheduleSpec(
        cron_string=["TZ=Europe/Berlin 0 30 9 * * mon-fri 2027 # standup"],
        calendar=[CalendarSpec(hour="8", day_of_week="sun")],
        interval=[IntervalSpec(interval=Duration(seconds=5400), phase=Duration(seconds=900))],
        exclude_calendar=[CalendarSpec(month="dec", day_of_month="25", hour="*")],
        start_time=Timestamp(seconds=1_800_000_000, nanos=500_000_000),
        end_time=Timestamp(seconds=1_900_000_000, nanos=1),
        jitter=Duration(seconds=1, nanos=500_000_000),
    )
    assert read_spec(message) == Spec.parse(
        {
            "crons": ["0 30 9 * * mon-fri 2027 # standup"], "dialect": "temporal", "timezone": "Europe/Berlin",
            "calendars": [{"hour": "8", "day_of_week": "sun"}], "intervals": [{"every": "90m", "phase": "15m"}],
            "exclude": [{"month": "dec", "day_of_month": "25", "hour": "*"}],
            "start_at": "2027-01-15T08:00:01Z", "end_at": "2030-03-17T17:46:40Z", "jitter": "1s500ms",
        }
    )  # fmt: skip
    shown = cleaned(message)
    assert shown.timezone_name == "Europe/Berlin"
    assert not shown.cron_string
    assert [each.comment for each in shown.structured_calendar] == ["standup", ""]
    assert shown.start_time.nanos == 500_000_000


def test_gos_zero_time_is_no_time():
    zero = Timestamp(seconds=-62_135_596_800)
    message = ScheduleSpec(
        interval=[IntervalSpec(interval=Duration(seconds=60))], start_time=zero, end_time=zero
    )
    assert read_spec(message) == Spec.parse({"intervals": [{"every": "1m"}]})
    assert not cleaned(message).HasField("start_time")


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (ScheduleSpec(cron_string=["0 9 * * *", "nonsense"]), "spec.cron_string[1]"),
        (ScheduleSpec(structured_calendar=[calendar(hour=[Range(start=25)])]), "spec.structured_calendar[0].hour[0]"),
        (ScheduleSpec(structured_calendar=[calendar(hour=[])]), "spec.structured_calendar[0].hour"),
        (ScheduleSpec(structured_calendar=[calendar()], calendar=[CalendarSpec(hour="x")]), "spec.calendar[0].hour"),
        (ScheduleSpec(exclude_calendar=[CalendarSpec(month="13")]), "spec.exclude_calendar[0].month"),
        (ScheduleSpec(structured_calendar=[calendar(minute=[Range(start=5, end=3)])]), "spec.structured_calendar[0].minute[0]"),
        (ScheduleSpec(interval=[IntervalSpec(interval=Duration(nanos=5))]), "spec.interval[0].interval"),
        (ScheduleSpec(interval=[IntervalSpec(interval=Duration(seconds=-5))]), "spec.interval[0].interval"),
        (ScheduleSpec(timezone_name="Mars/Olympus"), "spec.timezone_name"),
        (ScheduleSpec(timezone_data=b"TZif"), "spec.timezone_data"),
        (ScheduleSpec(start_time=Timestamp(seconds=2**60)), "spec.start_time"),
        (ScheduleSpec(jitter=Duration(seconds=2**50)), "spec.jitter"),
    ],
)  # fmt: skip
def test_an_error_names_the_field_of_the_message(message: ScheduleSpec, field: str):
    with pytest.raises(InvalidInputError) as caught:
        read_spec(message)
    assert caught.value.details["field"] == field


RICH = {
    "crons": ["0 9 L * *", "0 10 1 * 1", "0 8 * * 1-5"],
    "calendars": [{"hour": "7", "day_of_week": "1#2"}, {"hour": "6"}],
    "intervals": [{"every": "7h"}, {"every": "5h", "anchor": "start"}],
    "rrules": ["FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=12;BYMINUTE=0;BYSECOND=0"],
    "times": ["2027-05-05T05:05:05Z"],
    "exclude": [{"hour": "*", "day_of_month": "L"}, {"hour": "*", "month": "2"}],
    "start_at": "2026-01-01T00:00:00Z",
    "timezone": "Europe/Paris",
    "jitter": {"span": "30s", "centred": True},
    "gap": "shift",
    "fold": "first",
}


@pytest.mark.contract("SCHD-30")
def test_what_a_message_cannot_say_stays_when_it_says_something_else():
    stored = Spec.parse(RICH)
    shown = message_of(stored)
    assert changed_spec(shown, stored) is None
    assert len(shown.structured_calendar) == 4  # one is two: by the day of the month, or by the weekday
    shown.interval[0].interval.seconds = 6 * 3600
    changed = Spec.parse(changed_spec(shown, stored))  # type: ignore[arg-type]
    expected = Spec.parse(RICH | {
        "crons": ["0 9 L * *"],
        "calendars": [{"hour": "10", "day_of_month": "1"}, {"hour": "10", "day_of_week": "1"}, {"hour": "8", "day_of_week": "1-5"}, {"hour": "6"}, {"hour": "7", "day_of_week": "1#2"}],
        "intervals": [{"every": "6h"}, {"every": "5h", "anchor": "start"}],
        "exclude": [{"hour": "*", "month": "2"}, {"hour": "*", "day_of_month": "L"}],
    })  # fmt: skip
    assert changed == expected


def test_a_calendar_of_days_or_weekdays_names_the_same_times_as_the_two_that_are_shown():
    from datetime import UTC, datetime  # noqa: PLC0415

    stored = Spec.cron("0 10 1 * 1")
    told = read_spec(message_of(stored))
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    assert list(told.between(start, end)) == list(stored.between(start, end))
