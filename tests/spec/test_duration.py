"""Durations: every text has one meaning, every meaning one short form, and a number is refused."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import InvalidInputError, InvalidSpecError
from horae.spec import Spec
from horae.spec.duration import (
    MAX_MS,
    Duration,
    DurationFields,
    duration_text,
    element_milliseconds,
    milliseconds,
)
from tests.support.cases import each_of

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SCHEMA = msgspec.json.schema(Duration)


@each_of(
    ("text", "expected"),
    [
        ("0s", 0), ("500ms", 500), ("90s", 90_000), ("1h30m", 90 * MINUTE), ("7d", 7 * DAY), ("1w", 7 * DAY),
        ("1w2d3h4m5s6ms", 9 * DAY + 3 * HOUR + 4 * MINUTE + 5006), ("1500ms", 1500), ("007s", 7000),
        ("PT1H30M", 90 * MINUTE), ("P7D", 7 * DAY), ("P1W", 7 * DAY), ("P1DT12H", 36 * HOUR), ("PT0.5S", 500),
        ("PT1.25S", 1250), ("PT0S", 0), ("PT90S", 90_000), ("36600d", MAX_MS),
    ],
)  # fmt: skip
def test_a_text_has_one_meaning(text: str, expected: int):
    assert milliseconds(text) == expected
    assert re.search(SCHEMA["pattern"], text)
    assert len(text) >= SCHEMA["minLength"]


@given(st.integers(0, MAX_MS))
def test_the_short_form_means_what_it_was_made_of(span: int):
    text = duration_text(span)
    assert milliseconds(text) == span
    assert milliseconds(timedelta(milliseconds=span)) == span
    assert milliseconds(msgspec.to_builtins(timedelta(milliseconds=span))) == span  # ISO 8601
    assert re.search(SCHEMA["pattern"], text)


@pytest.mark.parametrize(
    ("span", "expected"),
    [(0, "0s"), (1, "1ms"), (1500, "1s500ms"), (90 * MINUTE, "1h30m"), (7 * DAY, "7d"), (365 * DAY, "365d")],
)
def test_the_short_form(span: int, expected: str):
    assert duration_text(span) == expected


@pytest.mark.parametrize("number", [0, 10, 30_000, "10", "0"])
def test_a_number_has_no_unit(number: Any):
    with pytest.raises(InvalidInputError) as refused:
        milliseconds(number, "timeouts.run")
    assert refused.value.message == f"timeouts.run is {number}, a number without a unit"
    assert refused.value.hint == f'write "{number}s", "{number}m" or "{number}ms"'


@each_of(
    "given",
    [
        "", " ", "1h30", "-5s", "+5s", "1.5h", "30m1h", "5s5s", "10 s", " 10s", "10s\n", "10S", "5y", "1M", "s", "forever", "١s",
        "P", "PT", "P1DT", "P1Y", "P1M", "PT1.5H", "PT0.0001S", "P1H", "-PT1S", "pt1h", "T1H", "9" * 5000 + "s",
        1.5, -1, 10**200, True, float("nan"), [], {}, b"10s", ("10s",),
    ],
)  # fmt: skip
def test_what_is_no_duration(given: Any):
    with pytest.raises(InvalidInputError, match=r"^jitter ") as refused:
        milliseconds(given, "jitter")
    assert '"1h30m"' in str(refused.value.hint)
    assert len(refused.value.message) < 200
    if isinstance(given, str):
        assert not re.search(SCHEMA["pattern"] + r"(?<!\n)\Z", given) or len(given) < 2


@pytest.mark.parametrize(
    "given", ["36600d1ms", "9999999999999w", timedelta(days=36601), timedelta(seconds=-1)]
)
def test_a_duration_is_at_most_a_century_and_not_negative(given: Duration):
    with pytest.raises(InvalidInputError, match="must be from 0s to 36600d"):
        milliseconds(given)


def test_a_millisecond_has_no_parts():
    with pytest.raises(InvalidInputError, match="fraction of a millisecond"):
        milliseconds(timedelta(microseconds=1500))


def test_no_duration_is_none():
    assert milliseconds(None) is None


def test_a_spec_says_which_element_and_where():
    with pytest.raises(InvalidSpecError) as refused:
        element_milliseconds("1h30x", "intervals[0].every")
    assert refused.value.details == {
        "element": "intervals[0].every", "text": "1h30x", "position": 2,
        "reason": 'is "1h30x", which is not a duration',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("document", "element"),
    [
        ({"intervals": [{"every": 60}]}, "intervals[0].every"),
        ({"intervals": [{"every": "60"}]}, "intervals[0].every"),
        ({"intervals": [{"every": "1h", "phase": 60}]}, "intervals[0].phase"),
        ({"crons": ["* * * * *"], "jitter": 60}, "jitter"),
        ({"crons": ["* * * * *"], "jitter": {"span": 60}}, "jitter"),
    ],
)
def test_a_spec_has_no_bare_numbers(document: dict[str, Any], element: str):
    for source in (document, msgspec.json.encode(document)):
        with pytest.raises(InvalidSpecError) as refused:
            Spec.parse(source)
        assert refused.value.details["element"] == element
        assert refused.value.hint == 'write "60s", "60m" or "60ms"'


def test_a_spec_takes_a_timedelta_and_iso_8601():
    texts = Spec.parse({"intervals": [{"every": "90m", "phase": "PT15M"}], "jitter": {"span": "PT30S"}})
    deltas = Spec.parse(
        {
            "intervals": [{"every": timedelta(minutes=90), "phase": timedelta(minutes=15)}],
            "jitter": timedelta(seconds=30),
        }
    )
    assert texts == deltas
    assert texts.canonical()["intervals"] == [{"every": "1h30m", "phase": "15m"}]
    assert texts.canonical()["jitter"] == "30s"


def test_an_interval_has_whole_seconds():
    with pytest.raises(InvalidSpecError, match=r"intervals\[0\].every must be whole seconds"):
        Spec.parse({"intervals": [{"every": "1s500ms"}]})


class Pause(DurationFields, frozen=True, kw_only=True):
    """A value with durations."""

    length: Duration = "1s"
    most: Duration | None = None
    name: str = ""


def test_a_value_keeps_its_durations_in_the_short_form():
    assert Pause(length="60s") == Pause(length=timedelta(minutes=1)) == Pause(length="PT1M")
    assert Pause(length="60s", most="PT36H", name="60s") == msgspec.json.decode(
        b'{"length": "PT60S", "most": "1d12h", "name": "60s"}', type=Pause
    )
    assert msgspec.json.encode(Pause(length="60s")) == b'{"length":"1m","most":null,"name":""}'
    assert msgspec.structs.replace(Pause(), most=timedelta(hours=25)).most == "1d1h"
    with pytest.raises(InvalidInputError, match=r"^length is 60, a number without a unit"):
        Pause(length=60)  # type: ignore[arg-type]
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(b'[{"most": 60}]', type=list[Pause])
    assert str(refused.value) == "most is 60, a number without a unit - at `$[0]`"
    assert isinstance(refused.value.__cause__, InvalidInputError)
