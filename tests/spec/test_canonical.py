"""One canonical form per meaning; reading it again gives the same spec, and so does its sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import InvalidSpecError, UnknownCalendarError
from horae.spec import Spec
from tests.spec.strategies import Case, as_calendar, posix_crons, temporal_crons, unix_crons
from tests.support.cases import each_of

DURATIONS = st.sampled_from(["1s", "90s", "5m", "1h30m", "2d", "1w", "PT1H"])
TIMES = st.datetimes(datetime(2001, 1, 1), datetime(2099, 1, 1)).map(lambda t: t.replace(microsecond=0))


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Any spec, with all kinds of elements."""
    temporal = draw(st.booleans())
    crons = draw(st.lists(temporal_crons() if temporal else unix_crons(), max_size=2))
    start, end = sorted(draw(st.tuples(TIMES, TIMES)))
    document: dict[str, Any] = {
        "crons": [text for text, _ in crons],
        "dialect": "temporal" if temporal else "unix",
        "calendars": [as_calendar(text) for text, _ in draw(st.lists(unix_crons(seconds=True), max_size=2))],
        "intervals": draw(
            st.lists(st.fixed_dictionaries({"every": DURATIONS, "anchor": st.sampled_from(["epoch", "start"])}), max_size=2)
        ),
        "rrules": draw(st.lists(st.sampled_from(["FREQ=DAILY;BYHOUR=9", "freq=weekly;byday=mo"]), max_size=2)),
        "times": [t.isoformat() + draw(st.sampled_from(["", "Z", "+02:00"])) for t in draw(st.lists(TIMES, max_size=3))],
        "exclude": [as_calendar(text) for text, _ in draw(st.lists(unix_crons(seconds=True), max_size=1))],
        "start_at": f"{start.isoformat()}Z",
        "timezone": draw(st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])),
    }  # fmt: skip
    if draw(st.booleans()):
        document["end_at"] = f"{end.isoformat()}Z"
    if draw(st.booleans()):
        document["jitter"] = draw(
            st.sampled_from(["30s", {"span": "5m", "centred": True}, "7s", "1500ms", "1h7ms"])
        )
    if draw(st.booleans()):
        document["clock_change"] = "debian"
    else:
        document["gap"] = draw(st.sampled_from(["skip", "shift"]))
        document["fold"] = draw(st.sampled_from(["both", "first", "last"]))
    return document


@pytest.mark.contract("SCHD-09")
@given(documents())
def test_the_canonical_form_is_stable(document: dict[str, Any]):
    spec = Spec.parse(document)
    written = json.dumps(spec.canonical())
    again = Spec.parse(written)
    assert again is spec
    assert json.dumps(again.canonical()) == written
    sentence = spec.sentence()
    assert sentence[0].isupper()
    assert spec.elements.timezone in sentence or "empty" in sentence


@pytest.mark.contract("SCHD-09")
@pytest.mark.parametrize(
    "hour", ["0,1/1", "0-11,12-23", [{"start": 0, "end": 11}, {"start": 12, "end": 23}], "*"]
)
def test_every_hour_is_every_hour_however_it_is_pieced_together(hour: Any):
    spec = Spec.parse({"calendars": [{"hour": hour}]})
    assert spec is Spec.parse({"calendars": [{"hour": "*"}]})
    assert Spec.parse(spec.canonical()) is spec


@pytest.mark.contract("SCHD-09")
@given(st.one_of(posix_crons(), unix_crons(), unix_crons(seconds=True)))
def test_a_canonical_cron_is_a_cron_that_means_the_same(case: Case):
    spec = Spec.parse({"crons": [case[0]]})
    assert Spec.cron(spec.document.crons[0]) is spec


@pytest.mark.contract("SCHD-09")
@pytest.mark.parametrize(
    ("expression", "canonical"),
    [
        ("  0   9 * *  MON-FRI ", "0 9 * * 1-5"),
        ("@daily", "0 0 * * *"),
        ("0 0 9 * * *", "0 9 * * *"),
        ("00 09 * * sun,7,0", "0 9 * * 0"),
        ("5,1,3,2 * * * *", "1-3,5 * * * *"),
        ("*/15 * * jan,apr,jul,oct *", "*/15 * * */3 *"),
        ("*/1 * * * *", "* * * * *"),
        ("0-59/15 * * * *", "0-45/15 * * * *"),
        ("0 0 */2,5 * *", "0 0 */2 * *"),
        ("0 0 */3,5 * *", "0 0 */3,5 * *"),
        ("*/20 * * * * *", "*/20 * * * * *"),
        ("0 0 lw,L-1,l,3w * fri#1,5l", "0 0 L,L-1,3W,LW * 5#1,5L"),
    ],
)
def test_canonical_crons(expression: str, canonical: str):
    assert Spec.cron(expression).canonical() == {"crons": [canonical]}


@pytest.mark.contract("SCHD-09")
@each_of(
    ("document", "sentence"),
    [
        ({"crons": ["* * * * *"]}, "Every minute, UTC time"),
        ({"crons": ["*/5 * * * *"]}, "Every 5 minutes, UTC time"),
        ({"crons": ["0 * * * *"]}, "At minute 0 of every hour, UTC time"),
        ({"crons": ["30 2 * * *"]}, "At 02:30 every day, UTC time"),
        ({"crons": ["0 9 * * 1-5"]}, "At 09:00 on Monday to Friday, UTC time"),
        ({"crons": ["0 9,17 * * 1,3"]}, "At 09:00 and 17:00 on Monday and Wednesday, UTC time"),
        ({"crons": ["0 0 1,15 * 1"]}, "At 00:00 on day 1 and 15 of the month or on Monday, UTC time"),
        ({"crons": ["15 8-18 * 6-8 *"]}, "At minute 15 of the hour 8 to 18 every day in June to August, UTC time"),
        ({"crons": ["0 9 * * 1#2,5L"]}, "At 09:00 on the second Monday of the month and the last Friday of the month, UTC time"),
        ({"crons": ["0 9 L-2 * *"]}, "At 09:00 on 2 days before the last day of the month, UTC time"),
        ({"crons": ["*/10 * * * * *"]}, "Every 10 seconds, UTC time"),
        ({"crons": ["0 9 13 * 5"], "dialect": "temporal"}, "At 09:00 on day 13 of the month if also on Friday, UTC time"),
        ({"crons": ["TZ=Europe/Berlin 0 9 * * * # rise"], "dialect": "temporal"}, "At 09:00 every day (rise), Europe/Berlin time"),
        ({"intervals": [{"every": "15m"}]}, "Every 15m, UTC time"),
        ({"intervals": [{"every": "90m", "phase": "15m"}]}, "Every 1h30m, counted from midnight UTC plus 15m, UTC time"),
        ({"intervals": [{"every": "7m"}]}, "Every 7m, counted from 1970-01-01T00:00:00Z, UTC time"),
        ({"times": ["2026-12-24T18:00:00"], "timezone": "Europe/Berlin"}, "Once at 2026-12-24T18:00:00, Europe/Berlin time"),
        ({"rrules": ["FREQ=DAILY"], "jitter": "30s"}, "By the rule FREQ=DAILY, UTC time, delayed by up to 30s"),
        ({"crons": ["0 9 * * *"], "exclude": [{"month": "12", "day_of_month": "25", "hour": "9"}]},
         "At 09:00 every day; except at 09:00 on day 25 of the month in December, UTC time"),
        ({"crons": ["0 9 * * *"], "gap": "shift", "fold": "first"},
         "At 09:00 every day, UTC time; when a clock change skips a time, it fires right after the change; when a clock change repeats a time, it fires the first time only"),
        ({"crons": ["0 9 * * *"], "clock_change": "debian", "jitter": {"span": "60s", "centred": True}},
         "At 09:00 every day, UTC time, clock changes as in Debian's cron, moved by up to 1m either way"),
        ({}, "Never by itself: the spec is empty"),
    ],
)  # fmt: skip
def test_sentences(document: dict[str, Any], sentence: str):
    assert Spec.parse(document).sentence() == sentence


@pytest.mark.contract("SCHD-09")
@each_of(
    ("document", "element"),
    [
        ({"cron": ["0 9 * * *"]}, "cron"),
        ({"crons": "0 9 * * *"}, "crons"),
        ({"crons": [5]}, "crons[0]"),
        ({"calendars": [{"hour": "25"}]}, "calendars[0].hour"),
        ({"calendars": [{}, {"day_of_month": [{"start": 5, "end": 3}]}]}, "calendars[1].day_of_month[0]"),
        ({"calendars": [{"minute": []}]}, "calendars[0].minute"),
        ({"calendars": [{"minute": [{"start": 1, "step": 0}]}]}, "calendars[0].minute[0]"),
        ({"calendars": [{"comment": "x" * 201}]}, "calendars[0]"),
        ({"intervals": [{"every": "0s"}]}, "intervals[0].every"),
        ({"intervals": [{"every": "500ms"}]}, "intervals[0].every"),
        ({"intervals": [{"every": "1h", "phase": "1h"}]}, "intervals[0].phase"),
        ({"intervals": [{"every": "1h", "anchor": "start"}]}, "intervals[0].anchor"),
        ({"intervals": [{"every": "99999d"}]}, "intervals[0].every"),
        ({"rrules": ["FREQ=DAILY;INTERVAL=0"]}, "rrules[0]"),
        ({"rrules": ["FREQ=NOW"]}, "rrules[0]"),
        ({"rrules": ["DTSTART:20260101T000000 RRULE:FREQ=DAILY RRULE:FREQ=WEEKLY"]}, "rrules[0]"),
        ({"rrules": ["FREQ=DAILY;COUNT=3"]}, "rrules[0]"),
        ({"rrules": ["FREQ=DAILY EXDATE:20260101T000000"]}, "rrules[0]"),
        ({"rrules": ["DTSTART;TZID=Europe/Paris:20260101T000000 RRULE:FREQ=DAILY"]}, "rrules[0]"),
        ({"times": ["tomorrow"]}, "times[0]"),
        ({"times": ["2026-01-01T00:00:00.5Z"]}, "times[0]"),
        ({"times": ["1850-01-01T00:00:00Z"]}, "times[0]"),
        ({"start_at": "soon"}, "start_at"),
        ({"start_at": "2026-01-02T00:00:00Z", "end_at": "2026-01-01T00:00:00Z"}, "end_at"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"jitter": "25h"}, "jitter"),
        ({"jitter": "-5s"}, "jitter"),
        ({"jitter": "24h1ms"}, "jitter"),
        ({"jitter": "ms"}, "jitter"),
        ({"jitter": "1ms2ms"}, "jitter"),
        ({"jitter": "5ms1s"}, "jitter"),
        ({"gap": "jump"}, "gap"),
        ({"clock_change": "debian", "gap": "shift"}, "clock_change"),
        ({"exclude": [{"calendar": "us", "hour": "3"}]}, "exclude[0]"),
        ({"exclude": [{}, {"hour": "x"}]}, "exclude[1].hour"),
        ({"crons": ["0 9 * * *"] * 101}, "crons"),
        ("{", "spec"),
        ("[]", "spec"),
        (b"\xff", "spec"),
    ],
)
def test_errors_name_their_element(document: Any, element: str):
    with pytest.raises(InvalidSpecError) as caught:
        Spec.parse(document)
    assert caught.value.details["element"] == element
    assert caught.value.message.startswith(element)


def test_an_unknown_shared_calendar_is_named():
    with pytest.raises(UnknownCalendarError) as caught:
        Spec.parse({"exclude": [{"calendar": "us"}]}, calendars={"uk": {}})
    assert caught.value.details == {"calendar": "us"}
    assert "uk" in (caught.value.hint or "")
    with pytest.raises(InvalidSpecError) as bare:
        Spec.parse({"exclude": ["us"]})
    assert '{"calendar": "holidays"}' in (bare.value.hint or "")
    with pytest.raises(InvalidSpecError, match=r"uk.dates\[0\]"):
        Spec.parse({"exclude": [{"calendar": "uk"}]}, calendars={"uk": {"dates": ["2026-13-01"]}})


def test_equal_specs_are_one_object_however_they_were_written():
    """100,000 schedules with 1,000 distinct specs hold 1,000 compiled ones."""
    made = [
        Spec.parse({"crons": [f"{n % 50} {n // 50 % 20} * * *"], "timezone": "Europe/Berlin"})
        for n in range(100_000)
    ]
    assert len({id(spec) for spec in made}) == 1000
    assert Spec.cron("0 9 * * mon-fri") is Spec.parse('{"crons": [" 0  9 * * 1-5"]}')


def test_what_a_spec_says_about_itself():
    spec = Spec.cron("0 9 * * *", timezone="Europe/Berlin")
    assert repr(spec) == 'Spec({"crons":["0 9 * * *"],"timezone":"Europe/Berlin"})'
    assert spec.zone.name == "Europe/Berlin"
    assert spec.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, 8, tzinfo=UTC)
