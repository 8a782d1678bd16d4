"""Zones against the standard library's, reading the same database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import InvalidSpecError, UnknownTimezoneError
from horae.spec import TZDATA_VERSION, Spec, installed_zones, load_zone
from horae.spec.clock_change import timeline
from horae.spec.zone import Zone, _from_rule
from tests.spec.oracle import instant, zoneinfo

ALL = sorted(installed_zones())


def offset(zone: str, at: int) -> int:
    found = datetime.fromtimestamp(at, zoneinfo(zone)).utcoffset()
    assert found is not None
    return int(found.total_seconds())


@pytest.mark.contract("SCHD-06")
def test_every_change_of_every_zone_is_the_standard_librarys():
    for name in ALL:
        zone = load_zone(name)
        for before, at, after in zip(zone.offsets, zone.starts[1:], zone.offsets[1:], strict=False):
            assert (offset(name, at - 1), offset(name, at)) == (before, after), (name, at)


@pytest.mark.contract("SCHD-06")
@given(st.sampled_from(ALL), st.integers(instant("1900-01-02"), instant("2199-12-30")))
def test_offsets_agree_at_any_time(name: str, at: int):
    assert load_zone(name).offset_at(at) == offset(name, at)


def test_stretches_keep_their_order():
    """The search rests on this: the labels at which stretches begin and end are in order."""
    for name, fold in product(ALL, ("both", "first", "last")):
        line = timeline(name, "skip", fold)
        assert line.firsts == sorted(line.firsts), (name, fold)
        assert line.ends == sorted(line.ends), (name, fold)


@pytest.mark.contract("SCHD-06")
def test_the_installed_database_has_a_version():
    assert TZDATA_VERSION[:2] == "20"
    assert len(ALL) > 400


@pytest.mark.contract("CRON-02")
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("America/NewYork", "America/New_York"),
        ("Europe/Lodnon", "Europe/London"),
    ],
)
def test_an_unknown_zone_is_refused_with_what_was_probably_meant(wrong: str, meant: str):
    with pytest.raises(UnknownTimezoneError, match=wrong) as caught:
        load_zone(wrong)
    assert meant in (caught.value.hint or "")


@pytest.mark.contract("CRON-02")
@pytest.mark.parametrize(
    "name",
    ["", "..", "../../etc/passwd", "Europe", "/etc/localtime", "Europe/Berlin\0", "x" * 10_000, "+25:00"],
)
def test_nothing_but_a_zone_is_a_zone(name: str):
    with pytest.raises(UnknownTimezoneError):
        load_zone(name)
    with pytest.raises(InvalidSpecError, match="Unknown time zone"):
        Spec.parse({"timezone": name or "?"})


@pytest.mark.contract("CRON-02")
def test_zones_can_be_limited_to_an_allowlist():
    document = {"crons": ["0 9 * * *"], "timezone": "Europe/Paris"}
    with pytest.raises(InvalidSpecError) as caught:
        Spec.parse(document, zones={"Europe/Berlin", "UTC"})
    assert caught.value.details["element"] == "timezone"
    assert Spec.parse(document, zones={"Europe/Paris"}).zone.name == "Europe/Paris"
    assert Spec.parse(document).zone.name == "Europe/Paris"


def test_a_fixed_offset_is_a_zone():
    assert load_zone("+05:30").offset_at(0) == 19800
    spec = Spec.cron("0 9 * * *", timezone="-03:30")
    assert spec.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rule", "year", "expected"),
    [
        ("EST5EDT,M3.2.0,M11.1.0", 2050, ["2050-03-13T07:00:00", "2050-11-06T06:00:00"]),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2050, ["2050-03-27T01:00:00", "2050-10-30T01:00:00"]),
        ("EET-2EEST,M3.4.4/50,M10.4.4/50", 2050, ["2050-03-26T00:00:00", "2050-10-28T23:00:00"]),
        ("AAA0BBB,J60/0,J300/0", 2024, ["2024-03-01T00:00:00", "2024-10-26T23:00:00"]),
        ("AAA0BBB,59/0,300/0", 2023, ["2023-03-01T00:00:00", "2023-10-27T23:00:00"]),
    ],
)
def test_closing_rules_of_all_forms(rule: str, year: int, expected: list[str]):
    found = [
        datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()
        for at, _ in _from_rule(rule, instant(f"{year}-01-01"))
        if at < instant(f"{year + 1}-01-01")
    ]
    assert found == expected


def test_a_zone_is_a_value_loaded_once():
    assert load_zone("Europe/Berlin") is load_zone("Europe/Berlin")
    assert isinstance(load_zone("UTC"), Zone)
