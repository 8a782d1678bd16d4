"""Facts about Temporal's schedules, restated as data: all of them hold here too."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horae.errors import FieldParseError, InvalidSpecError
from horae.spec import Spec
from horae.spec.calendar_bits import EVERY_DAY, Calendar, matching_days
from horae.spec.civil import members
from horae.spec.cron_field import MONTH, TEMPORAL, WEEKDAY, YEAR, Field, Parsed, parse_field
from tests.support.cases import each_of

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "spec.json").read_text("utf-8"))


def document(vector: dict[str, Any], timezone: str | None = None) -> dict[str, Any]:
    """A spec in the protocol's words as a Horae document."""
    names = {
        "cron_string": "crons", "start_time": "start_at", "end_time": "end_at", "jitter": "jitter",
        "timezone_name": "timezone",
    }  # fmt: skip
    translated: dict[str, Any] = {"dialect": "temporal"}
    for key, value in vector.items():
        if key in {"calendar", "structured_calendar"}:
            translated.setdefault("calendars", []).extend(value)
        elif key in {"exclude_calendar", "exclude_structured_calendar"}:
            translated.setdefault("exclude", []).extend(value)
        elif key == "interval":
            translated["intervals"] = [
                {"every": each["interval"], "phase": each.get("phase", "0s")} for each in value
            ]
        else:
            translated[names[key]] = value
    if timezone is not None:
        translated.setdefault("timezone", timezone)
    return translated


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.contract("SCHD-01", "SCHD-02", "SCHD-03", "SCHD-04", "SCHD-07", "SCHD-08")
@each_of("vector", VECTORS["vectors"])
def test_next_times(vector: dict[str, Any]):
    spec = Spec.parse(document(vector["spec"], vector["timezone"]))
    at = moment(vector["from"])
    for expected in vector.get("nominal", vector["expected"]):
        found = spec.next_after(at)
        assert found == (None if expected is None else moment(expected))
        if found is None:
            break
        assert spec.previous(found) == found
        at = found
    if "matches" in vector:
        asked = moment(vector["time"])
        assert (spec.next_after(asked - timedelta(seconds=1)) == asked) is vector["matches"]


@pytest.mark.contract("SCHD-07")
@pytest.mark.parametrize(
    "vector", [v for v in VECTORS["vectors"] if "jitter" in v["spec"]], ids=lambda vector: vector["id"]
)
def test_jitter_stays_within_its_bounds_and_keeps_the_order(vector: dict[str, Any]):
    """Bounds and order are those of the original; the hash is ours."""
    spec = Spec.parse(document(vector["spec"], vector["timezone"]))
    assert spec.elements.jitter is not None
    span = timedelta(milliseconds=spec.elements.jitter.span_ms)
    nominal = [moment(text) for text in vector["nominal"] if text is not None]
    fired = [spec.fire_time(time, "a schedule") for time in nominal]
    assert all(timedelta(0) <= fire - time < span for fire, time in zip(fired, nominal, strict=True))
    assert fired == sorted(fired)
    assert len(set(fired)) == len(fired)


@pytest.mark.contract("SCHD-09")
@pytest.mark.parametrize(
    "vector", VECTORS["canonical"], ids=lambda vector: vector["source"].rpartition("#")[2]
)
def test_canonical_forms(vector: dict[str, Any]):
    spec = Spec.parse(document(vector["spec"]))
    expected = Spec.parse(document(vector["canonical"]))
    assert spec is expected
    written = spec.canonical()
    assert written.get("calendars", []) == vector["canonical"].get("structured_calendar", [])
    assert written.get("timezone") == vector["canonical"].get("timezone_name")
    assert [i["every"] for i in written.get("intervals", [])] == [
        i["every"] for i in expected.canonical().get("intervals", [])
    ]


@pytest.mark.contract("SCHD-09", "SCHD-32")
@pytest.mark.parametrize("vector", VECTORS["errors"], ids=lambda vector: vector["reason"])
def test_errors(vector: dict[str, Any]):
    with pytest.raises(InvalidSpecError) as caught:
        Spec.parse(document(vector["spec"]))
    assert caught.value.details["element"].startswith(("intervals", "crons", "calendars"))


def parsed(vector: dict[str, Any]) -> list[int]:
    """The values of a field's text, in a field made for the vector's own range."""
    low, high = vector["min"], vector["max"]
    if vector["mode"] == "dow":
        field = WEEKDAY
    elif vector["mode"] == "month":
        field = MONTH
    elif (low, high) == (YEAR.low, YEAR.high):
        field = YEAR
    else:
        field = Field("number", low, high, Parsed(0), last=high, base=0, plain={})
    return [value + field.base for value in members(parse_field(vector["text"], field, TEMPORAL).bits)]


@pytest.mark.contract("SCHD-02")
@pytest.mark.parametrize("vector", VECTORS["range_parse"], ids=lambda vector: vector["text"])
def test_ranges(vector: dict[str, Any]):
    if "error" in vector:
        with pytest.raises(FieldParseError):
            parsed(vector)
        return
    expected: set[int] = set()
    for item in vector["ranges"]:
        start = item.get("start", 0)
        expected.update(range(start, item.get("end", start) + 1, item.get("step", 1)))
    if vector["mode"] == "dow":
        expected = {value % 7 for value in expected}
    assert parsed(vector) == sorted(expected)


@pytest.mark.contract("SCHD-02")
@pytest.mark.parametrize("vector", VECTORS["value_sets"], ids=lambda vector: vector["text"])
def test_value_sets(vector: dict[str, Any]):
    values = parsed(vector)
    assert set(vector["matches"]) <= set(values)
    assert not set(vector["not_matches"]) & set(values)


@pytest.mark.contract("SCHD-02")
@pytest.mark.parametrize("vector", VECTORS["parse_value"], ids=lambda vector: vector["text"])
def test_values(vector: dict[str, Any]):
    if vector.get("error"):
        with pytest.raises(FieldParseError):
            parsed(vector)
    else:
        assert parsed(vector) == [vector["value"]]


@pytest.mark.parametrize("vector", VECTORS["days_in_month"], ids=lambda v: f"{v['year']}-{v['month']}")
def test_lengths_of_months(vector: dict[str, Any]):
    spec = Spec.parse(
        {"calendars": [{"month": vector["month"], "year": vector["year"], "day_of_month": "L"}]}
    )
    found = spec.next_after(datetime(1999, 1, 1, tzinfo=UTC))
    assert found is not None
    assert found.date() == date(vector["year"], vector["month"], vector["days"])
    assert matching_days(Calendar(days=EVERY_DAY), 0, vector["days"]).bit_count() == vector["days"]
