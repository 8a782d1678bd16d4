"""Durations as people write them: ``90m``, ``1h30m``, ``5d``; or a plain number of seconds. Jitter may have milliseconds too."""

from __future__ import annotations

import re

from horae.errors import InvalidSpecError

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SHAPE = re.compile(r"(?:(\d{1,10})w)?(?:(\d{1,10})d)?(?:(\d{1,10})h)?(?:(\d{1,10})m)?(?:(\d{1,10})s?)?")
_MILLISECONDS = re.compile(r"(?<!\d)(\d{1,10})ms\s*$")
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


def parse_span(text: str | int, element: str) -> int:
    """The milliseconds of a duration that may end in some: ``1s500ms``. A plain number is seconds."""
    rest = _MILLISECONDS.search(text) if isinstance(text, str) and text.isascii() else None
    if rest is None or isinstance(text, int):
        return parse_duration(text, element) * 1000
    whole = text[: rest.start()].strip()
    return (parse_duration(whole, element) * 1000 if whole else 0) + int(rest[1])


def render_span(milliseconds: int) -> str:
    """The shortest way to write a duration in milliseconds: 1500 is ``1s500ms``."""
    seconds, rest = divmod(milliseconds, 1000)
    if not rest:
        return render_duration(seconds)
    return f"{render_duration(seconds) if seconds else ''}{rest}ms"


def render_duration(seconds: int) -> str:
    """The shortest way to write a duration: 5400 is ``1h30m``."""
    parts = []
    for letter in "dhms":
        count, seconds = divmod(seconds, _UNITS[letter])
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts) or "0s"
