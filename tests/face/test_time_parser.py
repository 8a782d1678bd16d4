"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from horae.errors import InvalidInputError
from horae.face.time_parser import instant_of, is_day, needs_zone

NOW = datetime(2026, 3, 28, 23, 30, 15, 250_000, tzinfo=UTC)
"""In Berlin it is 00:30:15 of the 29th, the day on which the clocks skip the hour from 02:00."""


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("now", "UTC", "2026-03-28T23:30:15Z"),
        ("in 2h", "UTC", "2026-03-29T01:30:15Z"),
        ("in 1d 30m", "UTC", "2026-03-30T00:00:15Z"),
        ("+90s", "Europe/Berlin", "2026-03-28T23:31:45Z"),
        ("-1d", "Europe/Berlin", "2026-03-27T23:30:15Z"),
        ("-PT30M", "UTC", "2026-03-28T23:00:15Z"),
        ("1h30m ago", "UTC", "2026-03-28T22:00:15Z"),
        ("today", "UTC", "2026-03-28T00:00:00Z"),
        ("today", "Europe/Berlin", "2026-03-28T23:00:00Z"),
        ("yesterday 9:00", "Europe/Berlin", "2026-03-28T08:00:00Z"),
        ("Tomorrow 09:00:30", "Europe/Berlin", "2026-03-30T07:00:30Z"),
        ("  tomorrow   9:00 ", "UTC", "2026-03-29T09:00:00Z"),
        ("today 2:30", "Europe/Berlin", "2026-03-29T00:59:59Z"),  # the clocks skip it
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z"),  # they show it twice
        ("2026-12-25", "Europe/Berlin", "2026-12-24T23:00:00Z"),
        ("2026-12-25 09:00", "Asia/Tokyo", "2026-12-25T00:00:00Z"),
        ("2026-12-25T09:00:00+01:00", "Asia/Tokyo", "2026-12-25T08:00:00Z"),
        ("2026-12-25t09:00:00z", "Asia/Tokyo", "2026-12-25T09:00:00Z"),
    ],
)
def test_a_text_is_an_instant(text: str, zone: str, instant: str):
    assert instant_of(text, "--from", zone, NOW) == datetime.fromisoformat(instant)


@pytest.mark.parametrize(
    "text", ["", "soon", "tomorrow 25:00", "tomorrow 9", "in", "ago", "2026-13-01", "1890-01-01", "in 99w 1y", "- 1", "-", "in 9"]
)  # fmt: skip
def test_what_is_no_time_is_refused_with_what_would_be_one(text: str):
    with pytest.raises(InvalidInputError) as refused:
        instant_of(text, "--from", "UTC", NOW)
    assert refused.value.message.startswith("--from")
    assert refused.value.hint


def test_which_texts_name_days_and_which_need_a_zone():
    assert [is_day(each) for each in ("2026-12-25", "today", "2026-12-25T00:00", "now")] == [
        True,
        True,
        False,
        False,
    ]
    assert [needs_zone(each) for each in ("now", "-1d", "2026-12-25T09:00Z", "today", "2026-12-25")] == [
        False
    ] * 3 + [True] * 2
