"""Suggestions for time zones that do not exist: abbreviations, offsets, misspelt names. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

ABBREVIATIONS: dict[str, tuple[str, ...]] = {
    "ACDT": ("Australia/Adelaide",), "ACST": ("Australia/Adelaide", "Australia/Darwin"), "ADT": ("America/Halifax",),
    "AEDT": ("Australia/Sydney",), "AEST": ("Australia/Sydney", "Australia/Brisbane"), "AKDT": ("America/Anchorage",),
    "AKST": ("America/Anchorage",), "ART": ("America/Argentina/Buenos_Aires",), "AST": ("America/Halifax", "Asia/Riyadh"),
    "AWST": ("Australia/Perth",), "BRT": ("America/Sao_Paulo",), "BST": ("Europe/London", "Asia/Dhaka"),
    "CAT": ("Africa/Maputo",), "CDT": ("America/Chicago", "America/Havana"), "CEST": ("Europe/Berlin",), "CET": ("Europe/Berlin",),
    "CLT": ("America/Santiago",), "COT": ("America/Bogota",), "CST": ("America/Chicago", "Asia/Shanghai", "America/Havana"),
    "CT": ("America/Chicago",), "EAT": ("Africa/Nairobi",), "EDT": ("America/New_York",), "EEST": ("Europe/Athens", "Europe/Helsinki"),
    "EET": ("Europe/Athens", "Europe/Helsinki"), "EST": ("America/New_York", "America/Panama"), "ET": ("America/New_York",),
    "GST": ("Asia/Dubai",), "HKT": ("Asia/Hong_Kong",), "HST": ("Pacific/Honolulu",), "ICT": ("Asia/Bangkok",),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"), "JST": ("Asia/Tokyo",), "KST": ("Asia/Seoul",),
    "MDT": ("America/Denver",), "MESZ": ("Europe/Berlin",), "MEZ": ("Europe/Berlin",), "MSK": ("Europe/Moscow",),
    "MST": ("America/Denver", "America/Phoenix"), "MT": ("America/Denver",), "NDT": ("America/St_Johns",), "NST": ("America/St_Johns",),
    "NZDT": ("Pacific/Auckland",), "NZST": ("Pacific/Auckland",), "PDT": ("America/Los_Angeles",), "PKT": ("Asia/Karachi",),
    "PST": ("America/Los_Angeles", "Asia/Manila"), "PT": ("America/Los_Angeles",), "SAST": ("Africa/Johannesburg",),
    "SGT": ("Asia/Singapore",), "TRT": ("Europe/Istanbul",), "WAT": ("Africa/Lagos",), "WEST": ("Europe/Lisbon",),
    "WET": ("Europe/Lisbon",), "WIB": ("Asia/Jakarta",),
}  # fmt: skip
"""The places that common abbreviations are used in; the database has a few of them as names of their own."""

_OFFSET = re.compile(r"(?:UTC|GMT|Z)?\s*([+-])\s*(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE | re.ASCII)
_CLOSE, _NEARLY = 0.7, 0.08
"""How similar a name must be to be suggested, and how much less similar than the most similar one it may be."""


def suggestion(name: str, known: Collection[str]) -> str:
    """A correction of a name: a place instead of an abbreviation, an offset, another spelling."""
    text = str(name)[:100].strip()
    places = [each for each in ABBREVIATIONS.get(text.upper(), ()) if each in known]
    if places:
        return _instead_of_abbreviation(text.upper(), places)
    if (offset := _OFFSET.fullmatch(text)) and int(offset[2]) < 24:
        return _written_offset(offset[1], int(offset[2]), offset[3] or "00", known)
    return _spelling(text, known)


def _instead_of_abbreviation(text: str, places: list[str]) -> str:
    if len(places) == 1:
        reason = "it says an offset, and not whose clocks to follow when they change"
        return f"{text} is an abbreviation: {reason}; name the place: {places[0]}"
    return f"{text} is an abbreviation, and means several: name the place, {', '.join(places[:-1])} or {places[-1]}"


def _written_offset(sign: str, hours: int, minutes: str, known: Collection[str]) -> str:
    hint = f"write {sign}{hours:02}:{minutes}"
    reversed_sign = "-" if sign == "+" else "+"
    etc = f"Etc/GMT{reversed_sign}{hours}"
    if minutes == "00" and hours and etc in known:
        hint += f", or {etc}, whose sign is the other way round"
    return f"{hint}; or name a place, such as Europe/Berlin, and its summer time is followed too"


def _spelling(text: str, known: Collection[str]) -> str:
    """The same letters in another case, a city's zone, or the most similar names."""
    wanted = text.replace(" ", "_").lower()
    by_lower = {zone.lower(): zone for zone in sorted(known)}
    cities = {lower.rsplit("/", 1)[-1]: zone for lower, zone in by_lower.items()}
    if match := by_lower.get(wanted) or cities.get(wanted):
        return f"did you mean {match}?"
    near = [by_lower[lower] for lower in _nearest(wanted, list(by_lower), 3, _CLOSE)]
    if meant := near or [cities[city] for city in _nearest(wanted, list(cities), 1, 0.8)]:
        return f"did you mean {' or '.join(meant)}?"
    return "use an IANA name such as Europe/Berlin, America/New_York or UTC"


def _nearest(wanted: str, names: list[str], number: int, least: float) -> list[str]:
    near = difflib.get_close_matches(wanted, names, n=number, cutoff=least)
    ratios = [difflib.SequenceMatcher(None, each, wanted).ratio() for each in near]
    return [each for each, ratio in zip(near, ratios, strict=True) if ratio >= ratios[0] - _NEARLY]
