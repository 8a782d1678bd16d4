"""Every search ends, soon, with a reason: fuzzed text, impossible dates, exclusions of everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import HoraeError, NaiveTimeError
from horae.spec import DIALECTS, Spec
from horae.spec.budget import shared_budget
from horae.spec.civil_set import CivilSet
from tests.spec.strategies import Case, as_calendar, unix_crons
from tests.support.cases import each_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVERYTHING = {"second": "*", "minute": "*", "hour": "*"}

NEVER: list[tuple[dict[str, Any], str]] = [
    ({}, "empty"),
    ({"crons": ["0 0 31 2 *"]}, "no such date"),
    ({"crons": ["0 0 30 2 *", "0 0 31 4,6,9,11 *"]}, "no such date"),
    ({"crons": ["0 0 29 2 1 2027"], "dialect": "temporal"}, "no such date"),
    ({"calendars": [{"year": "2020"}]}, "no such date"),
    ({"times": ["2020-01-01T00:00:00Z"]}, "no such date"),
    ({"crons": ["* * * * * *"], "exclude": [EVERYTHING]}, "excluded"),
    ({"crons": ["* * * * *"], "exclude": [{"minute": "*", "hour": "*"}]}, "excluded"),
    ({"crons": ["* * * * * *"], "exclude": [EVERYTHING | {"month": "1-6"}, EVERYTHING | {"month": "7-12"}]}, "excluded"),
    ({"crons": ["*/2 * * * * *"], "exclude": [EVERYTHING | {"second": "*/2"}]}, "excluded"),
    ({"intervals": [{"every": "1s"}], "exclude": [EVERYTHING]}, "excluded"),
    ({"intervals": [{"every": "1m"}], "exclude": [{"minute": "*", "hour": "*"}]}, "excluded"),
    ({"intervals": [{"every": "1h"}], "exclude": [{"hour": "*"}], "timezone": "America/New_York"}, "excluded"),
    ({"intervals": [{"every": "7h"}], "exclude": [{"hour": "*"}], "timezone": "America/New_York"}, "excluded"),
    ({"intervals": [{"every": "61s"}], "exclude": [EVERYTHING]}, "excluded"),
    ({"intervals": [{"every": "1w"}], "exclude": [{"day_of_week": "thu"}]}, "excluded"),
    ({"rrules": ["FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"]}, "no such date"),
    ({"rrules": ["FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"]}, "no such date"),
    ({"rrules": ["FREQ=YEARLY;BYWEEKNO=1;BYMONTH=6"]}, "no such date"),
    ({"rrules": ["DTSTART:20260101T000000 RRULE:FREQ=DAILY;INTERVAL=7;BYDAY=MO"]}, "no such date"),
    ({"rrules": ["DTSTART:20260101T000000 RRULE:FREQ=SECONDLY;INTERVAL=2;BYSECOND=1"]}, "no such date"),
    ({"rrules": ["DTSTART:20200101T000000 RRULE:FREQ=DAILY;COUNT=10"]}, "no such date"),
    ({"rrules": ["FREQ=MINUTELY"], "exclude": [{"minute": "*", "hour": "*"}]}, "excluded"),
    ({"crons": ["0 9 * * *"], "end_at": "2026-01-01T00:00:00Z"}, "end_at"),
    ({"crons": ["0 9 1 4 *"], "end_at": "2026-03-20T00:00:00Z"}, "after its end_at"),
]  # fmt: skip


@pytest.mark.contract("SCHD-08", "SCHD-01")
@each_of(("document", "reason"), NEVER)
def test_never_is_an_answer_with_a_reason(document: dict[str, Any], reason: str):
    spec = Spec.parse(document)
    assert spec.next_after(NOW) is None
    assert reason in (spec.why_never(NOW) or "")
    assert spec.between(NOW, NOW + timedelta(days=3650), 10) == []


@pytest.mark.contract("SCHD-08")
def test_a_search_that_finds_nothing_checks_each_shape_of_month_once(monkeypatch: pytest.MonkeyPatch):
    """Not a timer but a count: three centuries come down to fourteen shapes of a year."""
    looked = 0
    computed = CivilSet._computed

    def counted(self: CivilSet, year: int, month: int) -> Any:
        nonlocal looked
        looked += 1
        return computed(self, year, month)

    monkeypatch.setattr(CivilSet, "_computed", counted)
    spec = Spec.parse({"crons": ["* * * * * *"], "exclude": [EVERYTHING | {"comment": "counted"}]})
    assert spec.next_after(NOW) is None
    assert 0 < looked <= 14 * 12


@pytest.mark.contract("SCHD-08")
def test_a_year_is_counted_and_listed_without_searching_beyond_it():
    """Of an interval that seldom meets what exclusions leave, the next time may be decades away."""
    all_but_midnight = [
        EVERYTHING | {"hour": "1-23"},
        EVERYTHING | {"hour": "0", "minute": "1-59"},
        EVERYTHING | {"hour": "0", "minute": "0", "second": "1-59"},
    ]
    intervals = [{"every": f"{every}s", "phase": "7s"} for every in (86_401, 86_403)]
    spec = Spec.parse({"intervals": intervals, "exclude": all_but_midnight, "timezone": "America/New_York"})
    now = int(NOW.timestamp())
    with shared_budget(2_000) as spent:
        assert spec.count(now, now + 366 * 86_400) == 0
        assert spec.instants(now, now + 366 * 86_400) == []
    assert spent.steps > 0


@pytest.mark.contract("SCHD-08")
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_an_excluded_interval_is_searched_up_to_the_first_and_the_last_year(zone: str):
    """The first label of a zone west of Greenwich lies before the first instant, and the last of one east of it after the last."""
    # Each week at midnight of a Thursday, which is Wednesday evening in the west; a year makes each year a case of its own.
    days = [EVERYTHING | {"day_of_week": "wed"}, EVERYTHING | {"day_of_week": "thu"}, {"year": "2020"}]
    spec = Spec.parse({"intervals": [{"every": "1w"}], "exclude": days, "timezone": zone})
    assert spec.previous(NOW) is None
    assert spec.next_after(NOW) is None


@pytest.mark.contract("SCHD-08")
@given(
    st.lists(unix_crons(seconds=True), min_size=1, max_size=2),
    st.lists(unix_crons(seconds=True), min_size=1, max_size=2),
    st.integers(1, 10**6),
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
)
def test_any_exclusion_is_answered(included: list[Case], excluded: list[Case], every: int, zone: str):
    spec = Spec.parse(
        {
            "calendars": [as_calendar(text) for text, _ in included],
            "intervals": [{"every": f"{every}s"}],
            "exclude": [as_calendar(text) for text, _ in excluded],
            "timezone": zone,
        }
    )
    found = spec.next_after(NOW)
    assert found is None or found > NOW
    assert (spec.why_never(NOW) is None) == (found is not None)


@pytest.mark.contract("SCHD-09", "DECL-22")
@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="0123456789*/,-#LW? @abjmnTZ=:\t", max_size=60),
        st.lists(st.text(alphabet="0123456789*/,-LW#", max_size=8), min_size=4, max_size=8).map(" ".join),
    ),
    st.sampled_from(DIALECTS),
)
def test_any_text_is_a_spec_or_a_clear_error(text: str, dialect: str):
    try:
        spec = Spec.parse({"crons": [text], "dialect": dialect})
    except HoraeError as error:
        assert error.message
        assert error.details["element"] in {"crons[0]", "timezone"}
        assert 0 <= error.details.get("position", 0) <= len(text)
        return
    found = spec.next_after(NOW)
    assert found is None or found > NOW
    assert Spec.parse(spec.document) is spec


@given(st.text(alphabet="FREQ=DAILYWKMONTHSBYCU;,:0123456789-+Z \n", max_size=80))
def test_any_text_is_a_recurrence_or_a_clear_error(text: str):
    for rule in (text, f"FREQ=DAILY;{text}", f"DTSTART:20260101T000000\nRRULE:FREQ=MONTHLY;BYDAY={text}"):
        try:
            found = Spec.parse({"rrules": [rule]}).next_after(NOW)
        except HoraeError as error:
            assert error.details["element"] == "rrules[0]"
        else:
            assert found is None or found > NOW


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=10), st.floats(allow_nan=False)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["crons", "calendars", "hour", "every", "intervals", "times", "jitter", "gap", "start"]),
                inner,
                max_size=3,
            ),
        ),
        max_leaves=8,
    )
)  # fmt: skip
def test_any_json_is_a_spec_or_a_clear_error(value: Any):
    try:
        Spec.parse(value)
    except HoraeError as error:
        assert error.message


def test_a_spec_answers_within_the_years_it_computes():
    spec = Spec.cron("0 0 1 1 *")
    assert spec.next_after(datetime(1, 1, 1, tzinfo=UTC)) == datetime(1901, 1, 1, tzinfo=UTC)
    assert spec.next_after(datetime(9999, 12, 31, tzinfo=UTC)) is None
    assert spec.previous(datetime(9999, 12, 31, tzinfo=UTC)) == datetime(2199, 1, 1, tzinfo=UTC)
    assert spec.previous(datetime(1, 1, 1, tzinfo=UTC)) is None
    assert (
        spec.between(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), 10**9)[-1].year == 2199
    )


def test_between_respects_its_limit_and_an_empty_range():
    spec = Spec.cron("* * * * *")
    assert len(spec.between(NOW, NOW + timedelta(days=1), 7)) == 7
    assert spec.between(NOW, NOW + timedelta(days=1), 0) == []
    assert spec.between(NOW, NOW) == []
    assert spec.between(NOW, NOW - timedelta(days=1)) == []


@pytest.mark.parametrize("method", ["next_after", "previous", "why_never"])
def test_a_time_without_a_zone_is_refused(method: str):
    with pytest.raises(NaiveTimeError) as caught:
        getattr(Spec.cron("* * * * *"), method)(datetime(2026, 1, 1))
    assert "tzinfo" in (caught.value.hint or "")


def test_fractions_of_a_second_count_as_later():
    spec = Spec.cron("0 9 * * *")
    nine = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert spec.next_after(nine - timedelta(microseconds=1)) == nine
    assert spec.next_after(nine) == nine + timedelta(days=1)
    assert spec.previous(nine + timedelta(microseconds=1)) == nine
    assert spec.previous(nine - timedelta(microseconds=1)) == nine - timedelta(days=1)
    old = Spec.cron("0 0 * * *")
    assert old.next_after(datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)) == datetime(
        1970, 1, 1, tzinfo=UTC
    )
