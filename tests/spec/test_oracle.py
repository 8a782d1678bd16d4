"""Each dialect against the brute-force oracle, around clock changes of all zones.

Forward, backward and between must agree with the walk, and so with each other.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from horae.spec import Spec
from horae.spec.canonical import render_instant
from tests.spec.oracle import walk
from tests.spec.strategies import (
    Case,
    as_calendar,
    posix_crons,
    temporal_crons,
    unix_crons,
    zone_moments,
)

DAYS = 86400

NEAR = st.one_of(st.integers(-DAYS, DAYS), st.integers(-3 * DAYS, 3 * DAYS))
"""How far from a clock change one looks, in seconds."""


def agrees(spec: Spec, expected: list[int], after: int, until: int, asked: int) -> None:
    """All three questions give what the oracle found."""
    assert spec.instants(after, until, 100_000) == expected
    assert spec.count(after, until) == len(expected)
    forward: list[int] = []
    at = after
    while (found := spec.next_instant(at)) is not None and found <= until and len(forward) < 200:
        forward.append(found)
        at = found
    assert forward == expected[:200]
    backward: list[int] = []
    at = until
    while (found := spec.previous_instant(at)) is not None and found > after and len(backward) < 200:
        backward.append(found)
        at = found - 1
    assert backward == expected[::-1][:200]
    later = next((instant for instant in expected if instant > asked), None)
    earlier = next((instant for instant in reversed(expected) if instant <= asked), None)
    if later is not None:
        assert spec.next_instant(asked) == later
    if earlier is not None:
        assert spec.previous_instant(asked) == earlier


@pytest.mark.contract("DECL-05", "DECL-21", "DECL-23", "DECL-25")
@given(posix_crons(), zone_moments(), NEAR)
def test_posix_follows_the_civil_minutes_of_the_zone(case: Case, place: tuple[str, int], ahead: int):
    (text, meaning), (zone, moment) = case, place
    try:
        spec = Spec.cron(text, dialect="posix", timezone=zone)
    except Exception as error:  # an impossible date, such as 31 February, and nothing else
        assert "never comes" in str(error)
        return
    after, until = moment + ahead - DAYS, moment + ahead + DAYS
    agrees(spec, walk(meaning, zone, after, until), after, until, moment + ahead)


@pytest.mark.contract("SCHD-06", "SCHD-05", "CRON-02")
@given(
    unix_crons(),
    zone_moments(),
    st.sampled_from(["skip", "shift"]),
    st.sampled_from(["both", "first", "last"]),
    NEAR,
)
def test_unix_follows_gap_and_fold(case: Case, place: tuple[str, int], gap: str, fold: str, ahead: int):
    (text, meaning), (zone, moment) = case, place
    spec = Spec.parse({"crons": [text], "timezone": zone, "gap": gap, "fold": fold})
    after, until = moment + ahead - DAYS, moment + ahead + DAYS
    expected = walk(meaning, zone, after, until, gap=gap, fold=fold)
    agrees(spec, expected, after, until, moment + ahead)


@pytest.mark.contract("SCHD-06", "CRON-02")
@given(
    unix_crons(seconds=True),
    zone_moments(),
    st.sampled_from(["skip", "shift"]),
    st.sampled_from(["both", "first", "last"]),
    st.integers(-5400, 5400),
)
def test_seconds_follow_gap_and_fold(case: Case, place: tuple[str, int], gap: str, fold: str, ahead: int):
    (text, meaning), (zone, moment) = case, place
    spec = Spec.parse({"crons": [text], "timezone": zone, "gap": gap, "fold": fold})
    after, until = moment + ahead - 1200, moment + ahead + 1200
    expected = walk(meaning, zone, after, until, step=1, gap=gap, fold=fold)
    agrees(spec, expected, after, until, moment + ahead)


@pytest.mark.contract("SCHD-03", "SCHD-02")
@given(temporal_crons(), zone_moments(), NEAR)
def test_temporal_fields_combine_by_and(case: Case, place: tuple[str, int], ahead: int):
    (text, meaning), (zone, moment) = case, place
    spec = Spec.parse({"crons": [text], "dialect": "temporal", "timezone": zone})
    after, until = moment + ahead - DAYS, moment + ahead + DAYS
    agrees(spec, walk(meaning, zone, after, until), after, until, moment + ahead)


@pytest.mark.contract("SCHD-06")
@given(unix_crons(), zone_moments(), NEAR)
def test_debian_runs_fixed_times_once_and_wildcards_in_real_time(
    case: Case, place: tuple[str, int], ahead: int
):
    (text, meaning), (zone, moment) = case, place
    spec = Spec.parse({"crons": [text], "timezone": zone, "clock_change": "debian"})
    after, until = moment + ahead - DAYS, moment + ahead + DAYS
    gap, fold = ("skip", "both") if meaning.wildcard else ("shift", "first")
    # Debian's cron takes changes of three hours and more for a clock that was set right.
    expected = walk(meaning, zone, after, until, gap=gap, fold=fold, limit=timedelta(hours=3))
    agrees(spec, expected, after, until, moment + ahead)


@pytest.mark.contract("SCHD-01")
@given(st.lists(unix_crons(), min_size=2, max_size=3), zone_moments())
def test_a_union_is_all_times_of_its_parts_and_equal_ones_collapse(cases: list[Case], place: tuple[str, int]):
    zone, moment = place
    after, until = moment - DAYS, moment + DAYS
    spec = Spec.parse({"crons": [text for text, _ in cases], "timezone": zone})
    expected = set().union(*(walk(meaning, zone, after, until) for _, meaning in cases))
    agrees(spec, sorted(expected), after, until, moment)


@pytest.mark.contract("SCHD-01", "SCHD-02")
@given(
    st.lists(temporal_crons(), min_size=1, max_size=2),
    st.lists(unix_crons(seconds=True), min_size=1, max_size=2),
    zone_moments(),
)
def test_exclusions_take_away_what_they_match(
    included: list[Case], excluded: list[Case], place: tuple[str, int]
):
    zone, moment = place
    after, until = moment - DAYS // 2, moment + DAYS // 2
    spec = Spec.parse(
        {
            "crons": [text for text, _ in included],
            "dialect": "temporal",
            "exclude": [as_calendar(text) for text, _ in excluded],
            "timezone": zone,
        }
    )
    expected = set().union(*(walk(meaning, zone, after, until) for _, meaning in included))
    for text, _ in excluded:
        # Excluded calendars combine their day fields by "and", unlike the crons they were made of.
        alone = Spec.parse({"calendars": [as_calendar(text)], "timezone": zone})
        expected -= set(alone.instants(after, until, 100_000))
    agrees(spec, sorted(expected), after, until, moment)


@pytest.mark.contract("SCHD-04", "SCHD-01")
@given(
    st.one_of(st.integers(60, 4000), st.sampled_from([60, 300, 420, 3600, 5400, 7200, 25200, 86400])),
    st.integers(0, 86400),
    st.one_of(st.none(), unix_crons(seconds=True)),
    zone_moments(),
)
def test_intervals_count_real_seconds_and_respect_exclusions(
    every: int, phase: int, excluded: Case | None, place: tuple[str, int]
):
    zone, moment = place
    after, until = moment - DAYS // 2, moment + DAYS // 2
    document = {
        "intervals": [{"every": f"{every}s", "phase": f"{phase % every}s"}],
        "timezone": zone,
        "exclude": [as_calendar(excluded[0])] if excluded else [],
    }
    expected = {instant for instant in range(after + 1, until + 1) if (instant - phase) % every == 0}
    if excluded:
        alone = Spec.parse({"calendars": [as_calendar(excluded[0])], "timezone": zone})
        expected -= set(alone.instants(after, until, 100_000))
    agrees(Spec.parse(document), sorted(expected), after, until, moment)


@pytest.mark.contract("SCHD-01", "CRON-04")
@given(unix_crons(), zone_moments(), st.integers(-DAYS, DAYS), st.integers(0, DAYS))
def test_the_window_is_inclusive_at_both_ends(case: Case, place: tuple[str, int], begin: int, length: int):
    (text, meaning), (zone, moment) = case, place
    after, until = moment - 2 * DAYS, moment + 2 * DAYS
    start, end = moment + begin, moment + begin + length
    spec = Spec.parse(
        {"crons": [text], "timezone": zone, "start_at": render_instant(start), "end_at": render_instant(end)}
    )
    expected = [at for at in walk(meaning, zone, after, until) if start <= at <= end]
    agrees(spec, expected, after, until, moment)


@pytest.mark.contract("SCHD-02")
@given(unix_crons(seconds=True), zone_moments())
def test_a_calendar_means_what_its_fields_say_together(case: Case, place: tuple[str, int]):
    (text, meaning), (zone, moment) = case, place
    fields = text.split()
    assume(fields[3].startswith("*") or fields[5].startswith("*"))  # then crontab too combines by "and"
    meaning = replace(meaning, years=frozenset(range(2000, 2101)))  # all that calendars know
    after, until = moment - 1500, moment + 1500
    spec = Spec.parse({"calendars": [as_calendar(text)], "timezone": zone})
    agrees(spec, walk(meaning, zone, after, until, step=1), after, until, moment)
