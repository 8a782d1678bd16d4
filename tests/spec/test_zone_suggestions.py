"""A zone that does not exist is refused with what would have been right."""

from __future__ import annotations

import pytest

from horae.errors import UnknownTimezoneError
from horae.spec import installed_zones, load_zone
from horae.spec.zone_suggestions import ABBREVIATIONS


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CEST", "CEST is an abbreviation: it says an offset, and not whose clocks to follow when they change; name the place: Europe/Berlin"),
        ("pdt", "PDT is an abbreviation: it says an offset, and not whose clocks to follow when they change; name the place: America/Los_Angeles"),
        ("IST", "IST is an abbreviation, and means several: name the place, Asia/Kolkata, Europe/Dublin or Asia/Jerusalem"),
        ("BST", "BST is an abbreviation, and means several: name the place, Europe/London or Asia/Dhaka"),
        ("UTC+2", "write +02:00, or Etc/GMT-2, whose sign is the other way round; or name a place, such as Europe/Berlin, and its summer time is followed too"),
        ("GMT-3", "write -03:00, or Etc/GMT+3, whose sign is the other way round; or name a place, such as Europe/Berlin, and its summer time is followed too"),
        ("+0530", "write +05:30; or name a place, such as Europe/Berlin, and its summer time is followed too"),
        ("utc+99", "use an IANA name such as Europe/Berlin, America/New_York or UTC"),
        ("Europe/Berlni", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("", "use an IANA name such as Europe/Berlin, America/New_York or UTC"),
    ],
)  # fmt: skip
def test_what_would_have_been_right(name: str, hint: str):
    with pytest.raises(UnknownTimezoneError) as refused:
        load_zone(name)
    assert refused.value.message == f'Unknown time zone "{name}"'
    assert refused.value.hint == hint


def test_what_is_suggested_exists_and_means_what_was_meant():
    for places in ABBREVIATIONS.values():
        assert installed_zones().issuperset(places)
    assert load_zone("Etc/GMT-2").offsets == load_zone("+02:00").offsets


def test_only_allowed_zones_are_suggested():
    with pytest.raises(UnknownTimezoneError) as refused:
        load_zone("IST", ["Europe/Dublin", "UTC"])
    assert (refused.value.hint or "").endswith("name the place: Europe/Dublin")
