"""What each dialect accepts, what it refuses, and what it says then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from horae.errors import (
    CronCalculationError,
    CronExpressionInvalidError,
    FieldParseError,
    HoraeError,
    InvalidCronExpressionError,
    InvalidSpecError,
)
from horae.spec import PosixCron, Spec
from horae.spec.cron import parse_temporal
from tests.support.cases import each_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def first(expression: str, dialect: str = "unix") -> str:
    found = Spec.parse({"crons": [expression], "dialect": dialect}).next_after(NOW)
    return "never" if found is None else found.strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.contract("DECL-21")
@pytest.mark.parametrize(
    "expression",
    [
        "0 0 * * *", "59 23 31 12 6", "0,30 * * * *", "15 3 * * 1-5", "00 007 01 02 00", "1,1,1 2-2 * * *",
        "  0\t 0  *\t* * ", "45,5-10,3 * * * *", "0-59 0-23 1-31 1-12 0-6",
    ],
)  # fmt: skip
def test_posix_accepts(expression: str):
    assert PosixCron(expression).next(NOW) > NOW


@pytest.mark.contract("DECL-22", "DECL-31")
@each_of(
    ("expression", "field", "said"),
    [
        ("", "expression", "is empty"),
        ("* * * *", "expression", "4 fields"),
        ("* * * * * *", "expression", "6 fields"),
        ("@daily", "expression", "macro"),
        ("*/15 * * * *", "minute", "step"),
        ("0 1-9/2 * * *", "hour", "step"),
        ("0 0 * jan *", "month", "name"),
        ("0 0 * * mon", "weekday", "name"),
        ("0 0 ? * *", "day", "Quartz"),
        ("0 0 L * *", "day", '"L"'),
        ("0 0 15W * *", "day", '"15W"'),
        ("0 0 * * 1#2", "weekday", '"1#2"'),
        ("0 0 * * 7", "weekday", "Sunday is 0"),
        ("0 0 * * 5-7", "weekday", "Sunday is 0"),
        ("0 0 * * 8", "weekday", "0-6"),
        ("30-10 * * * *", "minute", "end is before its start"),
        ("60 * * * *", "minute", "0-59"),
        ("0 24 * * *", "hour", "0-23"),
        ("0 0 0 * *", "day", "1-31"),
        ("0 0 32 * *", "day", "1-31"),
        ("0 0 * 13 *", "month", "1-12"),
        ("0 0 * 0 *", "month", "1-12"),
        ("1e1 * * * *", "minute", "1e1"),
        ("0x10 * * * *", "minute", "0x10"),
        ("+5 * * * *", "minute", '"+5"'),
        ("-5 * * * *", "minute", "without a value"),
        ("1.5 * * * *", "minute", '"1.5"'),
        ("1,,2 * * * *", "minute", "empty list item"),
        (",1 * * * *", "minute", "empty list item"),
        ("1, * * * *", "minute", "empty list item"),
        ("*,5 * * * *", "minute", "among other values"),
        ("٣ * * * *", "minute", "٣"),
        ("0 0 * * *\n", "weekday", "range"),
        ("0\xa00 * * * *", "minute", "range"),
        ("9" * 500 + " * * * *", "minute", "0-59"),
    ],
)
def test_posix_refuses(expression: str, field: str, said: str):
    with pytest.raises(InvalidCronExpressionError) as caught:
        PosixCron(expression)
    error = caught.value
    assert error.details["field"] == field
    assert said in error.details["reason"]
    assert error.message == f'Invalid cron expression "{expression}": {field} field {error.details["reason"]}'
    assert set(error.details) == {"expression", "field", "reason"}
    assert error.details["expression"] == expression
    cause = error.__cause__
    assert isinstance(cause, FieldParseError)
    assert set(cause.details) == {"fieldValue", "fieldName"}
    assert cause.details["fieldName"] == field


@pytest.mark.contract("DECL-22")
@pytest.mark.parametrize("value", [None, 5, ["* * * * *"], b"* * * * *"])
def test_a_cron_expression_is_a_string(value: object):
    with pytest.raises(InvalidCronExpressionError, match="must be a string") as caught:
        PosixCron(value)  # type: ignore[arg-type]
    assert caught.value.details["field"] == "expression"


@pytest.mark.contract("DECL-24")
@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30,31 2 *", "0 0 31 2,4,6,9,11 *"])
def test_posix_refuses_what_never_comes(expression: str):
    with pytest.raises(InvalidCronExpressionError, match="never comes") as caught:
        PosixCron(expression)
    assert caught.value.details["field"] == "day"


@pytest.mark.contract("DECL-24", "DECL-23")
@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 31 2 1", "0 0 31 2 0-6", "0 0 30 2,4 *"])
def test_posix_accepts_what_comes_at_some_time(expression: str):
    assert PosixCron(expression).next(NOW) > NOW


@pytest.mark.contract("DECL-23")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 13 * 5", [6, 13, 20, 27]),  # either may match
        ("0 0 * * 5", [6, 13, 20, 27]),
        ("0 0 13 * *", [13]),
        ("0 0 1-31 * 5", list(range(2, 32))),  # written out, a field is restricted: any day or a Friday
        ("0 0 13 * 0-6", list(range(2, 32))),
    ],
)
def test_day_and_weekday(expression: str, expected: list[int]):
    spec = Spec.cron(expression, dialect="posix")
    found = spec.between(NOW, NOW.replace(month=4, day=1, hour=0) - timedelta(seconds=1))
    assert [time.day for time in found] == expected


@pytest.mark.contract("DECL-25")
def test_next_is_exclusive_and_previous_inclusive():
    cron = PosixCron("30 9 * * *")
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert cron.next(at) == at + timedelta(days=1)
    assert cron.previous(at) == at
    assert cron.next(at + timedelta(seconds=30)) == at + timedelta(days=1)
    assert cron.previous(at + timedelta(seconds=30)) == at
    assert cron.matches(at + timedelta(seconds=59))
    assert not cron.matches(at + timedelta(minutes=1))
    assert cron.previous(at - timedelta(seconds=1)) == at - timedelta(days=1)


@pytest.mark.contract("DECL-25")
def test_leap_years_and_ends_of_months():
    assert PosixCron("0 0 29 2 *").next(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2104, 2, 29, tzinfo=UTC)
    assert PosixCron("0 0 29 2 *").previous(datetime(2104, 2, 28, tzinfo=UTC)) == datetime(
        2096, 2, 29, tzinfo=UTC
    )
    cron, found = PosixCron("0 0 31 * *"), []
    at = NOW
    for _ in range(4):
        at = cron.next(at)
        found.append(at.month)
    assert found == [3, 5, 7, 8]


@pytest.mark.contract("DECL-31")
def test_a_registration_names_the_parsers_error_as_its_cause():
    with pytest.raises(CronExpressionInvalidError) as caught:
        PosixCron.registered("61 * * * *")
    error, parser = caught.value, caught.value.__cause__
    assert isinstance(parser, InvalidCronExpressionError)
    assert isinstance(parser.__cause__, FieldParseError)
    assert (error.message, error.details) == (parser.message, parser.details)
    assert error.message.startswith('Invalid cron expression "61 * * * *": minute field ')
    assert parser.__cause__.details == {"fieldValue": "61", "fieldName": "minute"}


@pytest.mark.contract("DECL-33")
def test_no_occurrence_is_an_error_of_the_calculator():
    late, early = datetime(2199, 12, 31, 23, 59, tzinfo=UTC), datetime(1899, 12, 31, tzinfo=UTC)
    cron = PosixCron("0 0 1 1 *")
    with pytest.raises(CronCalculationError) as caught:
        cron.next(late)
    error = caught.value
    assert error.message == f"Failed to calculate next occurrence: {error.details['cause']}"
    assert set(error.details) == {"expression", "currentTime", "cause"}
    assert error.details["expression"] == "0 0 1 1 *"
    assert error.details["currentTime"] == late.isoformat()
    assert isinstance(error.details["cause"], Exception)
    with pytest.raises(CronCalculationError):
        cron.previous(early)


@pytest.mark.contract("CRON-02", "SCHD-05")
@each_of(
    ("expression", "expected"),
    [
        ("@yearly", "2027-01-01T00:00:00"),
        ("@annually", "2027-01-01T00:00:00"),
        ("@monthly", "2026-04-01T00:00:00"),
        ("@weekly", "2026-03-08T00:00:00"),
        ("@daily", "2026-03-02T00:00:00"),
        ("@midnight", "2026-03-02T00:00:00"),
        ("@HOURLY", "2026-03-01T13:00:00"),
        ("*/7 * * * *", "2026-03-01T12:07:00"),
        ("30 0 9 * * *", "2026-03-02T09:00:30"),
        ("0 9 * mar-may mon", "2026-03-02T09:00:00"),
        ("0 9 * * 7", "2026-03-08T09:00:00"),
        ("0 9 * * 5-7", "2026-03-06T09:00:00"),
        ("0 9 L * *", "2026-03-31T09:00:00"),
        ("0 9 L-2 * *", "2026-03-29T09:00:00"),
        ("0 9 LW * *", "2026-03-31T09:00:00"),
        ("0 9 LW 5 *", "2026-05-29T09:00:00"),  # 31 May 2026 is a Sunday
        ("0 9 1W 8 *", "2026-08-03T09:00:00"),  # 1 August 2026 is a Saturday
        ("0 9 15W 3 *", "2026-03-16T09:00:00"),  # 15 March 2026 is a Sunday
        ("0 9 * * 1#2", "2026-03-09T09:00:00"),
        ("0 9 * * mon#2", "2026-03-09T09:00:00"),
        ("0 9 * * 5L", "2026-03-27T09:00:00"),
        ("0 9 * * friL", "2026-03-27T09:00:00"),
        ("0 9 * 2 1#5", "2044-02-29T09:00:00"),
        ("0 0 13 * 5", "2026-03-06T00:00:00"),
        ("0 0 */5 * 5", "2026-03-06T00:00:00"),  # crontab: a star's field restricts nothing, so both
        ("5/20 * * * *", "2026-03-01T12:05:00"),
        ("0 0 31 2 *", "never"),
    ],
)
def test_unix(expression: str, expected: str):
    assert first(expression) == expected


@pytest.mark.contract("CRON-02", "SCHD-09")
@each_of(
    ("expression", "dialect", "character", "hint"),
    [
        ("0 9 * * 1 2027", "unix", 11, "in temporal, they end with the year"),
        ("0 9 * * 1 *", "posix", 1, "unix (seconds first) or temporal (year last)"),
        ("30 0 9 * * 1", "posix", 1, "dialect unix"),
        ("30 0 9 * * 1", "temporal", 12, "in unix, they begin with the seconds"),
        ("0 0 9 * * 1 2027", "unix", 1, "dialect temporal"),
        ("TZ=Europe/Berlin 0 9 * * *", "unix", 1, "only the dialect temporal has a TZ= prefix"),
        ("@every 5m", "unix", 1, "interval"),
        ("@reboot", "unix", 1, "when your program starts"),
        ("@fortnightly", "unix", 1, "@weekly"),
        ("0 9 * * fri-sun", "unix", 9, "5-7"),
        ("0 22-4 * * *", "unix", 3, "22-23,0-4"),
        ("0 9 ? * *", "unix", 5, 'write "*"'),
        ("0 9 * * L", "unix", 9, "last Friday"),
        ("0 9 * * 1#6", "unix", 9, "second Monday"),
        ("0 9 L-40 * *", "unix", 5, "L-30"),
        ("*/0 * * * *", "unix", 3, "from 1 up"),
        ("0 9 * febtober *", "unix", 7, "1-12 or jan-dec"),
        ("0 9 1,,3 * *", "unix", 7, "extra comma"),
        ("0 9 L * *", "temporal", 5, "dialect unix"),
        ("TZ= 0 9 * * *", "temporal", 1, "TZ=Europe/Berlin"),
        ("@every 5x", "temporal", 1, "90m"),
        ("0 9 * *", "unix", 1, None),
    ],
)
def test_errors_name_the_element_the_character_and_what_would_be_right(
    expression: str, dialect: str, character: int, hint: str | None
):
    with pytest.raises(InvalidSpecError) as caught:
        Spec.parse(
            {
                "crons": ["0 0 * * *", expression] if dialect != "temporal" else [expression],
                "dialect": dialect,
            }
        )
    error = caught.value
    assert error.details["element"] == ("crons[1]" if dialect != "temporal" else "crons[0]")
    assert error.details["text"] == expression
    assert error.details["position"] == character - 1
    assert f"(character {character})" in error.message
    assert hint is None or hint in (error.hint or "")


@pytest.mark.contract("SCHD-03")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * mon", "2026-03-02T09:00:00"),
        ("0 0 13 * 5", "2026-03-13T00:00:00"),  # Friday the 13th: both must match
        ("0 9 1 1 * 2030", "2030-01-01T09:00:00"),
        ("30 0 9 1 1 * 2030", "2030-01-01T09:00:30"),
        ("0 9 * * * # every morning", "2026-03-02T09:00:00"),
        ("@every 6h", "2026-03-01T18:00:00"),
        ("@every 6h/30m", "2026-03-01T12:30:00"),
        ("@daily", "2026-03-02T00:00:00"),
        ("TZ=Europe/Berlin 0 9 * * *", "2026-03-02T08:00:00"),
        ("CRON_TZ=Asia/Kolkata 0 9 * * *", "2026-03-02T03:30:00"),
        ("0 9 * sept tues", "2026-09-01T09:00:00"),
        ("0 9 * * 7", "2026-03-08T09:00:00"),
        ("0 0 1 1 * 2000", "never"),
    ],
)
def test_temporal(expression: str, expected: str):
    assert first(expression, "temporal") == expected


def every(expression: str) -> tuple[int, int]:
    """The interval and the phase of an expression, in seconds."""
    found = parse_temporal(expression)
    assert found.calendar is None
    return found.every, found.phase


@pytest.mark.contract("SCHD-03")
@each_of(
    ("expression", "interval", "phase"),
    [
        ("@every 5m", 300, 0),
        ("@every 1h30m", 5400, 0),
        ("@every 30m1h", 5400, 0),  # units in any order, and more than once
        ("@every 1s1s", 2, 0),
        ("@every 1.5h", 5400, 0),
        ("@every .5h", 1800, 0),
        ("@every 1.h", 3600, 0),
        ("@every 5d", 432_000, 0),
        ("@every 1.5d", 129_600, 0),
        ("@every 5.25d15m", 454_500, 0),
        ("@every 3m2h1d", 93_780, 0),
        ("@every +5m", 300, 0),
        ("@every 0005m", 300, 0),
        # whole seconds remain: what is beyond them is cut off
        ("@every 1500ms", 1, 0),
        ("@every 1.999999999s", 1, 0),
        ("@every 2s999ms", 2, 0),
        ("@every 90000ms", 90, 0),
        ("@every 1000000us", 1, 0),
        ("@every 1000000\u00b5s", 1, 0),  # both letters that look like mu
        ("@every 1000000\u03bcs", 1, 0),
        ("@every 60000000000ns", 60, 0),
        # phases
        ("@every 5h/45m", 18_000, 2700),
        ("@every 1.5h/0.5h", 5400, 1800),
        ("@every 5m/", 300, 0),
        ("@every 5m/0", 300, 0),
        ("@every 5m/0s", 300, 0),
        ("@every 5m/+1m", 300, 60),
        ("@every 5m/1500ms", 300, 1),
        ("@every 10.9s/10.5s", 10, 0),  # 10 s every 10 s
        # around it
        ("  @every 5m  ", 300, 0),
        ("@every 5m # often", 300, 0),
        ("@every 5m#often", 300, 0),
        ("TZ=Europe/Berlin @every 5m", 300, 0),
        ("CRON_TZ=Europe/Berlin   @every 5m", 300, 0),
    ],
)
def test_temporal_reads_durations_as_go_does(expression: str, interval: int, phase: int):
    assert every(expression) == (interval, phase)


@pytest.mark.contract("SCHD-03")
@each_of(
    "expression",
    [
        "@every", "@every ", "@every # 5m", "@every\t5m", "@every  5m", "@every 1h 30m", "@every 5m /1m", "@every 5m/ 1m",
        "@every 90", "@every 1h30", "@every 5m/30", "@every 5m/1m/1m", "@every /5m",
        "@every 1w", "@every 5M", "@every 5H", "@every 5min", "@every 5 m", "@every 5m,", "@every h", "@every .h", "@every 1..5h",
        "@every 1_0m", "@every 1e3s", "@every 0x10s", "@every \u0665m", "@every --5m", "@every 5m-1m", "@every 5dd", "@every P1D",
        "@every 0", "@every 0s", "@every 999ms", "@every -5m", "@every 5m/-1m", "@every 5m/5m", "@every 5m/6m", "@every 1.5s/1.5s",
        "@every 10000000h", "@every 99999999999999999999h", "@every " + "9" * 5000 + "h", "@every " + "9" * 5000 + "d", "@every 200000d",
        "@Every 5m", "@EVERY 5m", "@every5m",
        "@Daily", "@DAILY", "@Hourly", "@daily @daily", "@reboot", "@fortnightly",
    ],
)  # fmt: skip
def test_temporal_refuses_what_temporal_does(expression: str):
    with pytest.raises(InvalidCronExpressionError) as refused:
        parse_temporal(expression)
    assert len(refused.value.message) < 11_000


@pytest.mark.contract("SCHD-03")
@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("@every 90", "90s"),
        ("@every 1h 30m", "without a blank"),
        ("@every 1w", "7d"),
        ("@Daily", "@daily"),
        ("@EVERY 5m", "@every"),
    ],
)
def test_temporal_says_how_it_would_be_right(expression: str, hint: str):
    with pytest.raises(InvalidCronExpressionError) as refused:
        parse_temporal(expression)
    assert hint in (refused.value.hint or "")


def test_only_temporal_reads_durations_as_go_does():
    """Intervals are Horae's own, and read what people write; macros of crontabs have no case."""
    assert Spec.parse({"intervals": [{"every": "90s"}]}).instants(0, 180, 9) == [90, 180]
    assert Spec.parse({"intervals": [{"every": "1w"}]}).instants(0, 604_800, 9) == [604_800]
    with pytest.raises(InvalidSpecError):
        Spec.parse({"intervals": [{"every": "1.5h"}]})
    assert first("@Daily") == first("@daily")


@pytest.mark.contract("SCHD-02")
def test_calendars_end_with_the_year_2100():
    spec = Spec.parse({"calendars": [{"hour": "9"}]})
    assert spec.next_after(datetime(2100, 12, 31, 9, tzinfo=UTC)) is None
    assert spec.previous(datetime(2000, 1, 1, tzinfo=UTC)) is None
    with pytest.raises(InvalidSpecError, match=r"calendars\[0\].year"):
        Spec.parse({"calendars": [{"year": "1999"}]})


def test_every_error_is_of_one_tree():
    for error in (
        InvalidCronExpressionError,
        FieldParseError,
        CronCalculationError,
        CronExpressionInvalidError,
    ):
        assert issubclass(error, HoraeError)
