"""Durations: one parser and one formatter, for specs, policies, requests and options.

Outside, a duration is a text with units, ``90s``, ``1h30m``, ``500ms``, ``7d``, or ISO 8601, ``PT1H30M``; Python takes a ``timedelta`` too.
A number is refused, because it has no unit. Inside, durations are integers in milliseconds. What is stored and shown is the short form.

The cron dialect ``temporal`` has durations as Go writes them, ``1.5h``; their parser is here too.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, get_args, overload

import msgspec

from horae.checked import Checked
from horae.errors import InvalidInputError, InvalidSpecError

_SHORT = "".join(f"([0-9]{{1,13}}{unit})?" for unit in ("w", "d", "h", "m", "s", "ms"))
_ISO_TIME = "T(?=[0-9])([0-9]{1,13}H)?([0-9]{1,13}M)?([0-9]{1,13}(?:[.][0-9]{1,3})?S)?"
_SHAPE = f"^(?:{_SHORT}|P([0-9]{{1,13}}W)?([0-9]{{1,13}}D)?(?:{_ISO_TIME})?)$"
_EXAMPLES = ["90s", "1h30m", "500ms", "7d", "PT1H30M"]

_MARK = msgspec.Meta(
    extra_json_schema={
        "title": "Duration", "type": "string", "pattern": _SHAPE, "minLength": 2, "examples": _EXAMPLES,
    }
)  # fmt: skip

if TYPE_CHECKING:
    Duration = timedelta | str
else:
    # For msgspec it is ``Any``, so that every wrong value gets the same error with the same hint.
    Duration = Annotated[Any, _MARK]

DAY_MS = 24 * 60 * 60 * 1000
MAX_MS = 100 * 366 * DAY_MS
"""A hundred years. The sum of this and any time fits into the database."""

_SIZES = {"w": 7 * DAY_MS, "d": DAY_MS, "h": 60 * 60 * 1000, "m": 60 * 1000, "s": 1000, "ms": 1}
_MILLISECOND = timedelta(milliseconds=1)
_MATCH = re.compile(_SHAPE)
_PART = re.compile(r"([0-9]+)(?:[.]([0-9]+))?(ms|[wdhmsWDHMS])")
_NUMBER = re.compile(r"[0-9]{1,13}")
_READABLE = re.compile(r"(?:[0-9]{1,13}(?:ms|[wdhms]))*")
_HINT = 'write numbers with units, such as "90s", "1h30m", "500ms" or "7d"'

_GO_UNITS = {
    "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000,
    "us": 1000, "\u00b5s": 1000, "\u03bcs": 1000, "ns": 1,
}  # fmt: skip
_GO_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_GO_DAYS = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)d")
_GO_MOST = 2**63 - 1
_GO_HINT = 'numbers with units and without a blank, such as "90m", "1.5h", "90s", "1500ms" or "7d"'


@overload
def milliseconds(duration: Duration, field: str = ...) -> int: ...
@overload
def milliseconds(duration: Duration | None, field: str = ...) -> int | None: ...
def milliseconds(duration: Duration | None, field: str = "duration") -> int | None:
    """The milliseconds of a duration; ``field`` names it in the error. ``None``, which stands for no limit, stays ``None``."""
    if duration is None:
        return None
    if isinstance(duration, str):
        found = _of_text(duration)
        if found is None:
            raise _refusal(duration, field)
    elif isinstance(duration, timedelta):
        found, rest = divmod(duration, _MILLISECOND)
        if rest:
            raise InvalidInputError(field, "has a fraction of a millisecond")
    else:
        raise _refusal(duration, field)
    if not 0 <= found <= MAX_MS:
        raise InvalidInputError(field, "must be from 0s to 36600d, which is a hundred years")
    return found


@lru_cache(maxsize=4096)
def _of_text(text: str) -> int | None:
    """The milliseconds of a text; ``None`` if it is no duration."""
    parts = _PART.findall(text) if _MATCH.fullmatch(text) else ()
    if not parts:
        return None
    return sum(
        int(whole) * _SIZES[unit.lower()] + int(fraction.ljust(3, "0")) for whole, fraction, unit in parts
    )


def _refusal(given: object, field: str) -> InvalidInputError:
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if type(given) is int and abs(given) < 10**13:
        given = str(given)
    if not isinstance(given, str):
        return InvalidInputError(
            field, f"must be a duration as a text, not {type(given).__name__}", hint=_HINT
        )
    if _NUMBER.fullmatch(given):
        hint = f'write "{given}s", "{given}m" or "{given}ms"'
        return InvalidInputError(field, f"is {given}, a number without a unit", hint=hint)
    return InvalidInputError(field, f'is "{given[:60]}", which is not a duration', hint=_HINT)


def element_milliseconds(duration: Duration, element: str) -> int:
    """The milliseconds of a duration in a spec; the error says which element, and where in its text."""
    try:
        return milliseconds(duration)
    except InvalidInputError as error:
        readable = _READABLE.match(duration) if isinstance(duration, str) else None
        position = readable.end() if readable is not None and readable.end() < len(readable.string) else None
        raise InvalidSpecError(
            element, error.details["reason"], text=duration, position=position, hint=error.hint
        ) from None


def duration_text(milliseconds: int) -> str:
    """The short form of a duration: 5400000 is ``1h30m``. Days are the largest unit."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, milliseconds = divmod(milliseconds, _SIZES[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


class DurationFields(Checked, frozen=True, repr_omit_defaults=True):
    """A value whose durations have their short form, however they were given: equal durations are equal texts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _duration_fields(type(self)):
            given = getattr(self, name)
            if given is not None and (text := duration_text(milliseconds(given, name))) != given:
                msgspec.structs.force_setattr(self, name, text)


@cache
def _duration_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(kind) if _is_duration(field.type))


def _is_duration(kind: Any) -> bool:  # noqa: ANN401 - a type as it was annotated, or a part of one
    return kind is _MARK or any(_is_duration(each) for each in get_args(kind))


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
    """The value of the digits after the point, computed in floats as Go does, so that not even a nanosecond differs."""
    kept, scale = 0, 1.0
    for digit in digits:
        if kept * 10 + int(digit) > _GO_MOST:
            break
        kept, scale = kept * 10 + int(digit), scale * 10
    return int(kept * (unit / scale))


def _bad_go_duration(text: str, element: str, reason: str) -> InvalidSpecError:
    return InvalidSpecError(element, f'"{text[:60]}" {reason}', text=text, position=0, hint=_GO_HINT)
