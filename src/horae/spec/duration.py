"""Durations as people write them: ``90m``, ``1h30m``, ``5d``; or a plain number of seconds."""

from __future__ import annotations

import re

from horae.errors import InvalidSpecError

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SHAPE = re.compile(r"(?:(\d{1,10})w)?(?:(\d{1,10})d)?(?:(\d{1,10})h)?(?:(\d{1,10})m)?(?:(\d{1,10})s?)?")
_START = re.compile(r"^\s*(?:\d{1,10}[wdhms])*")
LONGEST = 100 * 366 * 86400


def parse_duration(text: str | int, element: str) -> int:
    """The seconds of a duration; ``element`` names it in the error."""
    if isinstance(text, int):
        seconds = text
    else:
        match = _SHAPE.fullmatch(text.strip()) if text.isascii() else None
        if match is None or not text.strip():
            raise InvalidSpecError(
                element,
                f'"{text[:60]}" is not a duration',
                text=text,
                position=len(text) - len(_START.sub("", text)),
                hint='whole weeks, days, hours, minutes and seconds, such as "90m", "1h30m" or "5d"',
            )
        parts = zip(match.groups(), _UNITS.values(), strict=True)
        seconds = sum(int(number) * unit for number, unit in parts if number)
    if not 0 <= seconds <= LONGEST:
        raise InvalidSpecError(
            element, f"{text} is out of range", text=text, hint="at most 100 years, and not negative"
        )
    return seconds


def render_duration(seconds: int) -> str:
    """The shortest way to write a duration: 5400 is ``1h30m``."""
    parts = []
    for letter in "dhms":
        count, seconds = divmod(seconds, _UNITS[letter])
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts) or "0s"
