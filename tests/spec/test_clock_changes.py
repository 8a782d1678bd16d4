"""Named clock changes, one by one: the hard cases by hand, beside the oracle's many."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from horae.spec import Spec
from tests.spec.oracle import instant
from tests.support.cases import each_of


def times(expression: str, zone: str, after: str, count: int, **policies: str) -> list[str]:
    spec = Spec.parse({"crons": [expression], "timezone": zone, **policies})
    found = spec.instants(instant(after), instant(after) + 10_000 * 86400, count)
    return [datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S") for at in found]


CASES = [
    # New York, a gap of an hour at 02:00 and a fold at 01:00
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00", {}, ["2026-03-09T06:30:00"]),
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00", {"gap": "shift"}, ["2026-03-08T07:00:00"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00", {}, ["2026-11-01T05:30:00", "2026-11-01T06:30:00"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00", {"fold": "first"}, ["2026-11-01T05:30:00", "2026-11-02T06:30:00"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00", {"fold": "last"}, ["2026-11-01T06:30:00", "2026-11-02T06:30:00"]),
    # Several labels of one gap are one instant after it
    ("0,15,30 2 * * *", "America/New_York", "2026-03-07T12:00", {"gap": "shift"}, ["2026-03-08T07:00:00", "2026-03-09T06:00:00"]),
    ("0 2,3 * * *", "America/New_York", "2026-03-07T12:00", {"gap": "shift"}, ["2026-03-08T07:00:00", "2026-03-09T06:00:00"]),
    # Lord Howe moves by half an hour
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00", {}, ["2026-10-04T15:15:00"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00", {"gap": "shift"}, ["2026-10-03T15:30:00"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", {}, ["2026-04-04T14:45:00", "2026-04-04T15:15:00"]),
    # Santiago and Havana have no midnight on the day of the change
    ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", {}, ["2026-09-07T03:00:00"]),
    ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", {"gap": "shift"}, ["2026-09-06T04:00:00"]),
    ("0 12 * * 0", "America/Santiago", "2026-09-05T12:00", {}, ["2026-09-06T15:00:00"]),
    ("30 0 * * *", "America/Havana", "2026-03-07T12:00", {"gap": "shift"}, ["2026-03-08T05:00:00"]),
    # Apia had no 30 December 2011
    ("0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00", {}, ["2012-12-29T19:00:00"]),
    ("0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00", {"gap": "shift"}, ["2011-12-30T10:00:00"]),
    ("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00", {}, ["2011-12-29T19:00:00", "2011-12-30T19:00:00"]),
    # Debian's cron takes a change of three hours or more for a clock that was set right
    ("0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00", {"clock_change": "debian"}, ["2012-12-29T19:00:00"]),
    # Casablanca's summer time is interrupted by Ramadan: back first, forward later
    ("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00", {}, ["2026-02-15T01:30:00", "2026-02-15T02:30:00"]),
    ("30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00", {}, ["2026-03-23T01:30:00"]),
    # Dublin's winter time is the "summer" of its rule
    ("30 1 * * *", "Europe/Dublin", "2026-03-28T12:00", {}, ["2026-03-30T00:30:00"]),
    # Debian: fixed times once, wildcards in real time
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", {"clock_change": "debian"}, ["2026-03-29T01:00:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", {"clock_change": "debian"}, ["2026-10-25T00:30:00", "2026-10-26T01:30:00"]),
    ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", {"clock_change": "debian"}, ["2026-10-25T00:30:00", "2026-10-25T01:30:00"]),
    ("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", {"clock_change": "debian"}, ["2026-03-30T00:00:00"]),
    # Offsets with seconds: Monrovia was 44 minutes and 30 seconds behind until January 1972
    ("0 12 * * *", "Africa/Monrovia", "1972-01-05T13:00", {}, ["1972-01-06T12:44:30", "1972-01-07T12:00:00"]),
    ("0 12 * * *", "Europe/Amsterdam", "1936-07-01T00:00", {}, []),
    # A fixed offset never changes
    ("30 2 * * *", "Etc/GMT+5", "2026-03-08T00:00", {}, ["2026-03-08T07:30:00", "2026-03-09T07:30:00"]),
]  # fmt: skip


@pytest.mark.contract("SCHD-06")
@each_of(("expression", "zone", "after", "policies", "expected"), CASES)
def test_named_changes(expression: str, zone: str, after: str, policies: dict[str, str], expected: list[str]):
    found = times(expression, zone, after, len(expected) or 1, **policies)
    assert found[: len(expected)] == expected


@pytest.mark.contract("DECL-05", "DECL-25")
def test_a_skipped_minute_never_was_and_a_repeated_one_comes_twice():
    spec = Spec.cron("30 2 * * *", dialect="posix", timezone="Europe/Berlin")
    assert spec.previous(datetime(2026, 3, 29, 12, tzinfo=UTC)) == datetime(2026, 3, 28, 1, 30, tzinfo=UTC)
    first, second = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert spec.next_after(datetime(2026, 10, 24, 12, tzinfo=UTC)) == first
    assert spec.next_after(first) == second
    assert spec.previous(second) == second
    assert spec.previous(datetime(2026, 10, 25, 1, 29, 59, tzinfo=UTC)) == first


def test_an_exclusion_holds_for_what_a_change_moved():
    """02:30 becomes 03:00, but nothing may happen between three and four."""
    document = {
        "crons": ["30 2 * * *"],
        "timezone": "Europe/Berlin",
        "gap": "shift",
        "exclude": [{"hour": "3", "minute": "*", "second": "*"}],
    }
    spec = Spec.parse(document)
    assert spec.next_after(datetime(2026, 3, 28, 12, tzinfo=UTC)) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    document["exclude"] = [{"hour": "2", "minute": "*"}]
    assert Spec.parse(document).next_after(datetime(2026, 3, 28, 12, tzinfo=UTC)) is None
