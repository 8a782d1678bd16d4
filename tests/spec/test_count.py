"""Counting agrees with walking, whatever a spec is made of and wherever clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.spec import Spec, load_zone
from horae.spec.canonical import render_instant
from horae.spec.spec import MAX_AT_ONCE
from tests.spec.oracle import instant
from tests.spec.strategies import transitions

DAY = 86400

ZONES = ("Australia/Lord_Howe", "America/Santiago", "America/New_York", "Europe/Dublin")

PARTS: dict[str, st.SearchStrategy[Any]] = {
    "crons": st.sampled_from(
        ["* * * * *", "*/7 1-4 * * *", "30 2 * * *", "0 0 * * *", "15,45 23,0 * * sun", "0 12 1 * *"]
    ),
    "intervals": st.one_of(st.integers(60, 4000), st.integers(4000, 3 * DAY)).map(
        lambda seconds: {"every": f"{seconds}s", "phase": f"{seconds // 3}s"}
    ),
    "rrules": st.sampled_from(
        [
            "DTSTART:20260101T003000 RRULE:FREQ=MINUTELY;INTERVAL=7",
            "FREQ=MINUTELY;INTERVAL=67",
            "FREQ=MINUTELY;INTERVAL=1999",
            "FREQ=HOURLY;INTERVAL=31;BYMINUTE=0,10",
            "FREQ=DAILY;BYHOUR=0,1,2,3;BYMINUTE=0,30;BYSECOND=0",
            "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=15;BYSECOND=5",
        ]
    ),
    "exclude": st.sampled_from(
        [
            {"hour": "2", "minute": "*", "second": "*"},
            {"day_of_week": "sat,sun", "hour": "*", "minute": "*", "second": "*"},
            {"minute": "*/2", "hour": "*"},
        ]
    ),
}


@st.composite
def documents(draw: st.DrawFn, zone: str, moment: int) -> dict[str, Any]:
    """Specs of several sources, most of them with something in the hours in which clocks change."""
    document: dict[str, Any] = {
        name: draw(st.lists(part, max_size=1 if name == "exclude" else 2)) for name, part in PARTS.items()
    }
    shown = moment + load_zone(zone).offset_at(moment)
    missing = datetime.fromtimestamp(shown - 900, UTC)  # a clock set forward skips this label
    document["crons"] += draw(st.sampled_from([[], [f"{missing.minute} {missing.hour} * * *"]]))
    half_hours = st.lists(st.integers(-6, 6), max_size=2)
    document["times"] = [render_instant(moment + 1800 * each) for each in draw(half_hours)]
    document["times"] += [render_instant(shown + 1800 * each).rstrip("Z") for each in draw(half_hours)]
    document["timezone"] = zone
    document["start_at"] = render_instant(moment + draw(st.integers(-50 * DAY, 0)))
    if draw(st.booleans()):
        document["clock_change"] = "debian"
    else:
        document["gap"] = draw(st.sampled_from(["skip", "shift"]))
        document["fold"] = draw(st.sampled_from(["both", "first", "last"]))
    return document


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Spec, int, int]:
    """A spec, and a range around a clock change: within a day of it, or over months."""
    zone = draw(st.sampled_from(ZONES))
    changes = [at for name, at in transitions() if name == zone and instant("2024-01-01") < at]
    moment = draw(st.sampled_from(changes))
    document = draw(documents(zone, moment))
    far = draw(st.sampled_from([3 * 3600, DAY, 40 * DAY]))
    after = moment - draw(st.integers(0, far))
    return Spec.parse(document), after, moment + draw(st.integers(0, far))


def walked(spec: Spec, after: int, until: int) -> int:
    """How many there are, one by one."""
    total = 0
    while found := spec.instants(after, until, MAX_AT_ONCE):
        total += len(found)
        after = found[-1]
    return total


@pytest.mark.contract("SCHD-12")
@given(ranges(), st.integers(0, 3000))
def test_counting_is_walking(case: tuple[Spec, int, int], most: int):
    spec, after, until = case
    number = walked(spec, after, until)
    assert spec.count(after, until) == number
    counted = spec.count(after, until, most)
    assert counted == number if number <= most else most < counted <= number


@pytest.mark.parametrize("exclude", [[], [{"day_of_week": "sat", "hour": "*", "minute": "*", "second": "*"}]])
def test_what_is_dense_for_a_while_is_counted_to_the_last(exclude: list[dict[str, str]]):
    """Few a day, then one a second for some hours, then few again, then one a minute, with a clock change between."""
    spec = Spec.parse(
        {
            "crons": ["* * 3-5 17-19 10 *"],
            "intervals": [{"every": "13h"}, {"every": "77777s"}],
            "rrules": ["FREQ=SECONDLY;INTERVAL=61;BYMONTH=11;BYMONTHDAY=1,2,29"],
            "exclude": exclude,
            "timezone": "America/New_York",
            "start_at": "2026-01-01T00:00:00Z",
        }
    )
    after, until = instant("2026-07-01"), instant("2027-02-01")
    assert spec.count(after, until) == walked(spec, after, until)
