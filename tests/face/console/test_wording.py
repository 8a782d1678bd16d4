"""The words of pages: errors as sentences, and moments in two zones."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from horae.errors import HoraeError, InvalidInputError, InvalidSpecError
from horae.face.console.error_text import error_text
from horae.face.console.rendering import moment_text
from horae.face.console.statuses import resolution

NOW = datetime.fromisoformat("2026-11-17T23:30Z")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (HoraeError("Unknown time zone", hint="did you mean Europe/Berlin?"), "Unknown time zone. Did you mean Europe/Berlin?"),
        (HoraeError("It is wrong (character 11)", hint="allowed are 0-7"), "It is wrong (character 11). Allowed are 0-7."),
        (InvalidInputError("id", "is needed"), "Id is needed."),
        (InvalidInputError("every", "needs a span", hint="such as 15m or 1h30m"), "Every needs a span. For example: 15m or 1h30m."),
        (InvalidInputError("expires_at", "must be in the future"), "Until must be in the future."),
        (InvalidInputError("scopes", 'has "x", which is no scope'), '“May run” has "x", which is no scope.'),
        (InvalidInputError("spec.crons[0]", "is empty"), "spec.crons[0] is empty."),
        (InvalidSpecError("crons[0]", 'Invalid cron expression "x": it is short', position=0), 'Invalid cron expression "x": it is short.'),
        (InvalidSpecError("intervals[0].every", "is 15, a number without a unit", position=0), "Every is 15, a number without a unit."),
        (InvalidSpecError("calendars[0].hour", "has 25, which is too many", position=0), "“Time of day” has 25, which is too many."),
        (InvalidSpecError("berlin offdays.dates[1]", '"2026-13-01" is not a date', position=0), 'Dates: "2026-13-01" is not a date.'),
        (InvalidInputError("policies.timeouts.run", "is empty"), "“Time limit of an attempt” is empty."),
    ],
)  # fmt: skip
def test_an_error_is_told_in_sentences(error: HoraeError, text: str):
    assert error_text(error) == text


def test_what_resolves_a_flow_is_said_as_its_buttons_say_it():
    assert resolution(None) == ""
    assert (
        resolution("Deploy a new version, or resolve it with retry")
        == "Deploy a new version, or try it again"
    )
    assert resolution("Do that, then resolve it as approved") == "Do that, then say that it is approved"
    assert (
        resolution("Say what happened: resolve it as applied, not_applied or skip")
        == "Say what happened: the change was made, was not made, or is to be skipped"
    )


def test_a_part_of_a_document_is_named_by_its_path():
    error = InvalidSpecError("intervals[0].every", "is empty")
    assert error_text(error, of_document=True) == "intervals[0].every is empty."


@pytest.mark.parametrize(
    ("zone", "viewer", "text"),
    [
        ("UTC", "UTC", ">tomorrow, 09:00<"),
        ("Europe/Berlin", "UTC", ">Wed 18 Nov, 10:00 Berlin (09:00 UTC)<"),
        ("America/New_York", "Asia/Tokyo", ">Wed 18 Nov, 04:00 New York (18:00 Tokyo)<"),
        ("Pacific/Auckland", "America/New_York", ">Wed 18 Nov, 22:00 Auckland (04:00 New York)<"),
    ],
)
def test_a_moment_names_both_zones_where_their_clocks_differ(zone: str, viewer: str, text: str):
    moment = datetime.fromisoformat("2026-11-18T09:00Z")
    assert text in moment_text(moment, ZoneInfo(zone), ZoneInfo(viewer), NOW)
