"""Why a moment is, or is not, a nominal time of a spec."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horae.spec import Spec
from horae.spec.clock_change import DEBIAN_LIMIT
from horae.spec.compiled import label_of
from horae.spec.why import Code, Standing, why_instant, why_label
from tests.spec.oracle import instant, walk, zoneinfo
from tests.spec.strategies import Case, transitions, unix_crons
from tests.support.cases import each_of

NEW_YORK = "America/New_York"


def label(text: str) -> int:
    return label_of(datetime.fromisoformat(text))


def ask(spec: Spec, text: str) -> Standing:
    """By what the clock shows if the text names no offset, else by the instant."""
    moment = datetime.fromisoformat(text)
    return why_label(spec, label(text)) if moment.tzinfo is None else why_instant(spec, instant(text))


@each_of(
    ("document", "time", "code", "by"),
    [
        ({"crons": ["0 9 * * 1-5"]}, "2026-03-09T09:00:00Z", "named", 'cron "0 9 * * 1-5"'),
        ({"crons": ["0 9 * * 1-5"]}, "2026-03-09T09:00:01Z", "not_named", ""),
        ({"crons": ["0 8 * * *", "0 9 * * *"]}, "2026-03-09T09:00:00Z", "named", 'cron "0 9 * * *"'),
        ({"calendars": [{"hour": "9"}]}, "2026-03-09T09:00:00Z", "named", 'calendar "at 09:00 every day"'),
        ({"intervals": [{"every": "90m"}]}, "2026-03-09T09:00:00Z", "named", 'interval "1h30m"'),
        ({"rrules": ["FREQ=DAILY;BYHOUR=9"]}, "2026-03-09T09:00:00Z", "named", 'rrule "FREQ=DAILY;BYHOUR=9"'),
        ({"times": ["2026-03-09T09:00:00Z"]}, "2026-03-09T09:00:00Z", "named", 'time "2026-03-09T09:00:00Z"'),
        ({"times": ["2026-03-09T09:00:00"]}, "2026-03-09T09:00:00Z", "named", 'time "2026-03-09T09:00:00"'),
        (
            {"crons": ["0 9 * * *"], "exclude": [{"hour": "8-10", "day_of_week": "mon"}]},
            "2026-03-09T09:00:00Z", "excluded", 'exclusion "at 08:00, 09:00 and 10:00 on Monday"',
        ),
        (
            {"crons": ["0 9 * * *"], "exclude": [{"calendar": "b"}], "shared": {"b": {"dates": ["2026-03-09"]}}},
            "2026-03-09T09:00:00Z", "excluded", 'shared calendar "b"',
        ),
        (
            {"intervals": [{"every": "1h"}], "exclude": [{"calendar": "b"}],
             "shared": {"b": {"calendars": [{"hour": "9"}]}}},
            "2026-03-09T09:00:00Z", "excluded", 'shared calendar "b"',
        ),
        ({"crons": ["0 9 * * *"], "start_at": "2026-03-09T09:00:01Z"}, "2026-03-09T09:00:00Z", "before_start", ""),
        ({"crons": ["0 9 * * *"], "start_at": "2026-03-09T09:00:00Z"}, "2026-03-09T09:00:00Z", "named", 'cron "0 9 * * *"'),
        ({"crons": ["0 9 * * *"], "end_at": "2026-03-09T08:59:59Z"}, "2026-03-09T09:00:00Z", "after_end", ""),
        ({}, "2026-03-09T09:00:00Z", "not_named", ""),
    ],
)  # fmt: skip
@pytest.mark.contract("SCHD-28")
def test_what_names_or_excludes_a_time(document: dict[str, Any], time: str, code: str, by: str):
    found = why_instant(Spec.parse(document), instant(time))
    assert (found.code, found.by) == (code, by)
    assert why_label(Spec.parse(document), label(time.removesuffix("Z"))) == found


def test_the_nearest_times_are_named():
    found = why_instant(Spec.cron("0 9 * * *"), instant("2026-03-09T10:00:00Z"))
    assert (found.before, found.after) == (instant("2026-03-09T09:00:00Z"), instant("2026-03-10T09:00:00Z"))
    found = why_instant(Spec.cron("0 9 * * *"), instant("2026-03-09T09:00:00Z"))
    assert (found.before, found.after) == (instant("2026-03-08T09:00:00Z"), instant("2026-03-10T09:00:00Z"))


GAPS = [
    (NEW_YORK, "30 2 * * *", "2026-03-08T02:30:00", "2026-03-08T07:00:00Z"),
    ("Europe/London", "15 1 * * *", "2026-03-29T01:15:00", "2026-03-29T01:00:00Z"),
    ("Australia/Lord_Howe", "10 2 * * *", "2026-10-04T02:10:00", "2026-10-03T15:30:00Z"),
    ("America/Santiago", "0 0 * * *", "2026-09-06T00:00:00", "2026-09-06T04:00:00Z"),
]


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize(("zone", "cron", "local", "jump"), GAPS)
def test_a_time_in_a_clock_gap(zone: str, cron: str, local: str, jump: str):
    for policies, moves in (({}, False), ({"gap": "shift"}, True), ({"clock_change": "debian"}, True)):
        found = ask(Spec.parse({"crons": [cron], "timezone": zone, **policies}), local)
        assert (found.code, found.exists, found.instant) == (Code.GAP, False, instant(jump))
        assert found.moved_to == (instant(jump) if moves else None)
        assert found.label == label(local)
    other = ask(Spec.cron("59 23 * * *", timezone=zone), local)
    assert (other.code, other.exists) == (Code.NOT_NAMED, False)
    wildcard = ask(Spec.cron("*/5 * * * *", timezone=zone, clock_change="debian"), local)
    assert (wildcard.code, wildcard.moved_to) == (Code.GAP, None)
    excluded = {"crons": [cron], "timezone": zone, "gap": "shift"}
    for by, exclude in (("exclusion", {"hour": "*", "minute": "*"}), ("shared", {"calendar": "b"})):
        document = {**excluded, "exclude": [exclude], "shared": {"b": {"dates": [local[:10]]}}}
        found = ask(Spec.parse(document if by == "shared" else {**excluded, "exclude": [exclude]}), local)
        assert found.code is Code.EXCLUDED
        assert found.by.startswith(by)


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize(
    ("zone", "cron", "local", "first", "second"),
    [
        (NEW_YORK, "30 1 * * *", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"),
        ("Europe/London", "15 1 * * *", "2026-10-25T01:15:00", "2026-10-25T00:15:00Z", "2026-10-25T01:15:00Z"),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05T01:45:00", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"),
        ("America/Santiago", "0 23 * * *", "2026-04-04T23:00:00", "2026-04-05T02:00:00Z", "2026-04-05T03:00:00Z"),
    ],
)  # fmt: skip
def test_a_time_that_comes_twice(zone: str, cron: str, local: str, first: str, second: str):
    left_out = {"both": None, "first": second, "last": first, "debian": second}
    for policy, out in left_out.items():
        change = {"clock_change": "debian"} if policy == "debian" else {"fold": policy}
        spec = Spec.parse({"crons": [cron], "timezone": zone, **change})
        for one, other in ((first, second), (second, first)):
            found = ask(spec, one)
            assert found.code is (Code.FOLD if one == out else Code.NAMED)
            assert found.other == instant(other)
        assert ask(spec, local).instant == instant(second if out == first else first)
        closed = Spec.parse(
            {"crons": [cron], "timezone": zone, **change, "exclude": [{"hour": "*", "minute": "*"}]}
        )
        assert {ask(closed, one).code for one in (first, second)} == {Code.EXCLUDED}


POLICIES = st.sampled_from(
    [{"gap": gap, "fold": fold} for gap in ("skip", "shift") for fold in ("both", "first", "last")]
    + [{"clock_change": "debian"}]
)


@pytest.mark.contract("SCHD-28")
@settings(max_examples=max(settings().max_examples // 3, 1))  # each of them asks for 361 minutes
@given(unix_crons(), st.deferred(lambda: st.sampled_from(transitions())), POLICIES, st.booleans())
def test_every_minute_around_a_clock_change_stands_as_the_clock_shows(
    case: Case, change: tuple[str, int], policies: dict[str, Any], closed: bool
):
    """The oracle reads a clock on a wall, minute by minute, and knows no sources."""
    expression, meaning = case
    zone, at = change
    first, last = at - at % 60 - 3 * 3600, at - at % 60 + 3 * 3600
    exclude: dict[str, Any] = {"exclude": [{"minute": "*", "hour": "*/2"}]} if closed else {}
    spec = Spec.parse({"crons": [expression], "timezone": zone, **policies, **exclude})
    gap, fold, limit = policies.get("gap", "skip"), policies.get("fold", "both"), timedelta(days=3)
    if "clock_change" in policies and not meaning.wildcard:
        gap, fold, limit = "shift", "first", timedelta(seconds=DEBIAN_LIMIT)
    raw = set(walk(meaning, zone, first - 1, last, gap=gap, fold=fold, limit=limit))
    every = set(walk(meaning, zone, first - 1, last))
    named = {each for each in range(first, last + 1, 60) if spec.instants(each - 1, each)}
    assert named <= raw
    for each in range(first, last + 1, 60):
        found = why_instant(spec, each)
        local = datetime.fromtimestamp(each, zoneinfo(zone))
        assert found.label == label_of(local.replace(tzinfo=None))
        is_closed = closed and local.hour % 2 == 0 and local.second == 0
        if each in named:
            assert found.code is Code.NAMED
        elif each in raw:
            assert found.code is Code.EXCLUDED
        elif each in every:
            assert found.code is (Code.EXCLUDED if is_closed else Code.FOLD)
        else:
            assert found.code is Code.NOT_NAMED
        assert found.before == spec.previous_instant(each - 1)
        assert found.after == spec.next_instant(each)


@given(unix_crons(), st.deferred(lambda: st.sampled_from(transitions())), POLICIES)
def test_every_minute_of_a_gap_stands_as_the_expression_means(
    case: Case, change: tuple[str, int], policies: dict[str, Any]
):
    expression, meaning = case
    zone, at = change
    spec = Spec.parse({"crons": [expression], "timezone": zone, **policies})
    tz = zoneinfo(zone)
    before, after = (datetime.fromtimestamp(each, tz).replace(tzinfo=None) for each in (at - 1, at))
    label_at, missing = before + timedelta(seconds=1), after - before - timedelta(seconds=1)
    minutes = min(int(missing.total_seconds()) // 60, 24 * 60)
    debian = "clock_change" in policies and not meaning.wildcard and missing < timedelta(seconds=DEBIAN_LIMIT)
    for n in range(minutes):
        each = label_at + timedelta(minutes=n)
        found = why_label(spec, label_of(each))
        assert not found.exists
        assert found.instant == at
        assert found.code is (Code.GAP if meaning.matches(each) else Code.NOT_NAMED)
        moves = found.code is Code.GAP and (debian or policies.get("gap") == "shift")
        assert found.moved_to == (at if moves else None)


def test_a_recurrence_that_began_by_the_clock_of_greenwich():
    document = {"rrules": ["DTSTART:20250701T063000Z\nRRULE:FREQ=DAILY"], "timezone": NEW_YORK}
    assert ask(Spec.parse(document), "2026-03-08T02:30:00").code is Code.GAP  # 02:30 by the clock of July
    assert ask(Spec.parse(document), "2025-06-30T02:30:00").code is Code.NOT_NAMED


def test_a_single_time_that_a_clock_change_moved_is_named():
    """Though by none that the clock shows then."""
    spec = Spec.parse({"times": ["2026-03-08T02:30:00"], "timezone": NEW_YORK, "gap": "shift"})
    found = why_instant(spec, instant("2026-03-08T07:00:00Z"))
    assert (found.code, found.by) == (Code.NAMED, "")
