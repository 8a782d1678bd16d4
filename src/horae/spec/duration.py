"""Durations as people write them: ``90m``, ``1h30m``, ``5d``; or a plain number of seconds. Jitter may have milliseconds too.

And as Go writes them, for the cron dialect ``temporal``: ``1.5h``, ``1500ms``.
"""

from __future__ import annotations

import re

from horae.errors import InvalidSpecError

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SHAPE = re.compile(r"(?:(\d{1,10})w)?(?:(\d{1,10})d)?(?:(\d{1,10})h)?(?:(\d{1,10})m)?(?:(\d{1,10})s?)?")
_MILLISECONDS = re.compile(r"(?<!\d)(\d{1,10})ms\s*$")
_START = re.compile(r"^\s*(?:\d{1,10}[wdhms])*")
LONGEST = 100 * 366 * 86400

_GO_UNITS = {
    "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000,
    "us": 1000, "\u00b5s": 1000, "\u03bcs": 1000, "ns": 1,
}  # fmt: skip
_GO_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_GO_DAYS = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)d")
_GO_MOST = 2**63 - 1
_GO_HINT = 'numbers with units and without a blank, such as "90m", "1.5h", "90s", "1500ms" or "7d"'


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


def parse_go_duration(text: str, element: str) -> int:
    """The nanoseconds of a duration as Temporal reads it: Go's ``time.ParseDuration``, and ``d`` for 24 hours."""
    unsigned = _GO_DAYS.sub(lambda days: f"{24 * float(days[1]):f}h", text)
    sign = -1 if unsigned.startswith("-") else 1
    unsigned = unsigned[1:] if unsigned[:1] in {"-", "+"} else unsigned
    if unsigned == "0":
        return 0
    total = position = 0
    while part := _GO_PART.match(unsigned, position):
        whole, fraction, unit = part[1], part[2] or "", part[3]
        if unit not in _GO_UNITS or not (whole or fraction):
            break
        if len(whole.lstrip("0")) > 19:
            raise _bad_go_duration(text, element, "is out of range")
        total += int(whole.lstrip("0") or "0") * _GO_UNITS[unit] + _go_fraction(fraction, _GO_UNITS[unit])
        position = part.end()
    if not unsigned or position < len(unsigned):
        raise _bad_go_duration(text, element, "is not a duration")
    if total > _GO_MOST:
        raise _bad_go_duration(text, element, "is out of range")
    return sign * total


def _go_fraction(digits: str, unit: int) -> int:
    """What the digits after the point are worth, in floats as there, so that not even a nanosecond differs."""
    kept, scale = 0, 1.0
    for digit in digits:
        if kept * 10 + int(digit) > _GO_MOST:
            break
        kept, scale = kept * 10 + int(digit), scale * 10
    return int(kept * (unit / scale))


def _bad_go_duration(text: str, element: str, reason: str) -> InvalidSpecError:
    return InvalidSpecError(element, f'"{text[:60]}" {reason}', text=text, position=0, hint=_GO_HINT)


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
