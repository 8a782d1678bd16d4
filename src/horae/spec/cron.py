"""Cron expressions in three dialects, compiled to one form.

``posix``
    Five fields of numbers, ranges and lists, nothing else.
``unix``
    What crontab users expect: five fields, or six with seconds first; steps, names, ``@daily`` and
    friends, ``L W #``. Two restricted day fields match by "or"; a field that begins with ``*`` is not
    restricted, as in Debian's cron.
``temporal``
    Five fields, six with the year last, or seven with seconds first and the year last; day fields
    match by "and"; ``TZ=`` prefix, ``# comment``, ``@every 5m/1m``.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, NoReturn

import msgspec

from horae.errors import FieldParseError, InvalidCronExpressionError, InvalidSpecError
from horae.spec import fields
from horae.spec.calendar import (
    STAR_DAY,
    STAR_HOUR,
    STAR_MINUTE,
    STAR_WEEKDAY,
    Calendar,
    Special,
    matching_days,
)
from horae.spec.civil import FIRST_YEAR, LAST_YEAR, members
from horae.spec.duration import parse_duration
from horae.spec.fields import Field, Grammar, Parsed, parse_field

Dialect = Literal["posix", "unix", "temporal"]
DIALECTS: tuple[Dialect, ...] = ("posix", "unix", "temporal")
LONGEST_EXPRESSION = 1000

FIVE = (fields.MINUTE, fields.HOUR, fields.DAY_OF_MONTH, fields.MONTH, fields.WEEKDAY)
SIX_SECONDS_FIRST = (fields.SECOND, *FIVE)
SIX_YEAR_LAST = (*FIVE, fields.YEAR)
SEVEN = (fields.SECOND, *FIVE, fields.YEAR)

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

CALENDAR_YEARS = fields.YEAR.every.bits if fields.YEAR.every else 0
"""The years 2000 to 2100, to which calendars and temporal expressions are limited."""

_ONE_SECOND = Parsed(1)


class TemporalCron(NamedTuple):
    """What an expression of the dialect ``temporal`` says besides its fields."""

    calendar: Calendar | None
    every: int = 0
    phase: int = 0
    timezone: str | None = None


def parse_cron(expression: str, dialect: Dialect = "unix") -> Calendar:
    """The meaning of a cron expression of the dialect ``posix`` or ``unix``."""
    if not isinstance(expression, str):
        _refuse(expression, f"must be a string, not {type(expression).__name__}")
    if dialect == "posix":
        return _parse_posix(expression)
    words = _words(expression, None)
    if words and words[0].startswith("@"):
        words = _macro(expression, words)
    if len(words) == 5:
        return _compiled(expression, words, FIVE, fields.UNIX)
    if len(words) != 6:
        _refuse_count(expression, words, "5 (minute hour day month weekday), or 6 with seconds first")
    return _compiled(expression, words, SIX_SECONDS_FIRST, fields.UNIX)


def parse_temporal(expression: str) -> TemporalCron:
    """The meaning of a cron expression of the dialect ``temporal``."""
    if not isinstance(expression, str):
        _refuse(expression, f"must be a string, not {type(expression).__name__}")
    if len(expression) > LONGEST_EXPRESSION:
        _refuse(expression[:60] + "…", f"is longer than {LONGEST_EXPRESSION} characters")
    body, _, comment = expression.partition("#")
    timezone = None
    if prefix := re.match(r"\s*(?:CRON_)?TZ=(\S*)\s*", body):
        timezone = prefix[1]
        body = body[prefix.end() :]
        if not timezone:
            _refuse(expression, "has TZ= without a zone", "write TZ=Europe/Berlin, say")
    words = body.split()
    if words and words[0].lower() == "@every":
        every, phase = _every(expression, " ".join(words[1:]))
        return TemporalCron(None, every, phase, timezone)
    if words and words[0].startswith("@"):
        words = _macro(expression, words)
    layout = {5: FIVE, 6: SIX_YEAR_LAST, 7: SEVEN}.get(len(words))
    if layout is None:
        wanted = "5 (minute hour day month weekday), 6 with the year last, or 7 with seconds first too"
        _refuse_count(expression, words, wanted)
    calendar = _compiled(expression, words, layout, fields.TEMPORAL, both=True)
    return TemporalCron(_commented(calendar, comment.strip()), timezone=timezone)


def _commented(calendar: Calendar, comment: str) -> Calendar:
    years = CALENDAR_YEARS if calendar.years is None else calendar.years
    return msgspec.structs.replace(calendar, years=years, comment=comment)


def _parse_posix(expression: str) -> Calendar:
    # Split at single blanks only: other white space is not a separator but a fault of its field.
    words = [word for word in _words(expression.replace("\t", " "), " ") if word]
    if expression.lstrip(" \t").startswith("@"):
        _refuse(expression, "is a macro, which is not POSIX", "write the five fields: @daily is 0 0 * * *")
    if len(words) != 5:
        _refuse_count(expression, words, "5 (minute hour day month weekday)")
    calendar = _compiled(expression, words, FIVE, fields.POSIX)
    if not ever_matches(calendar):
        day = words[2]
        cause = FieldParseError("day", day, f'never comes: no chosen month has a day "{day}"')
        _fail(expression, cause, _position(expression, words, 2))
    return calendar


def ever_matches(calendar: Calendar) -> bool:
    """Whether there is any day at all on which a calendar matches."""
    if calendar.years is not None and not calendar.years & ((1 << (LAST_YEAR - FIRST_YEAR + 1)) - 1):
        return False
    lengths = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}
    return any(
        matching_days(calendar, first_weekday, length)
        for month in members(calendar.months)
        for length in lengths.get(month, (31,))
        for first_weekday in range(7)
    )


def _words(text: str, separator: str | None) -> list[str]:
    if len(text) > LONGEST_EXPRESSION:
        _refuse(text[:60] + "…", f"is longer than {LONGEST_EXPRESSION} characters")
    return text.split(separator)


def _compiled(
    expression: str,
    words: list[str],
    layout: tuple[Field, ...],
    grammar: Grammar,
    *,
    both: bool = False,
) -> Calendar:
    """The calendar of an expression's fields. ``both``: the two day fields combine by "and"."""
    parsed = []
    try:
        for word, field in zip(words, layout, strict=True):
            parsed.append(parse_field(word, field, grammar))
    except FieldParseError as cause:
        cause.hint = _sixth_field_hint(words, layout, len(parsed)) or cause.hint
        _fail(expression, cause, _position(expression, words, len(parsed)))
    second = parsed.pop(0) if layout[0] is fields.SECOND else _ONE_SECOND
    minute, hour, day, month, weekday = parsed[:5]
    years = parsed[5].bits if len(parsed) == 6 else None
    # Special days stand beside the plain values of their field, so a field of only special days
    # has no bits, and an unrestricted one has them all.
    special = both_specials(day.special, weekday.special)
    stars = (
        (STAR_MINUTE if minute.star else 0)
        | (STAR_HOUR if hour.star else 0)
        | (STAR_DAY if day.star else 0)
        | (STAR_WEEKDAY if weekday.star else 0)
    )
    either = not (both or day.star or weekday.star)
    return Calendar(
        second.bits, minute.bits, hour.bits, day.bits, month.bits, weekday.bits,
        years, special, either, stars,
    )  # fmt: skip


def _sixth_field_hint(words: list[str], layout: tuple[Field, ...], at: int) -> str | None:
    """Six fields mean seconds first in one dialect and year last in the other: a likely mix-up."""
    if layout is SIX_SECONDS_FIRST and at == 5 and _is_year(words[5]):
        return "in the dialect unix six fields have the seconds first; the year last is of temporal"
    if layout is SIX_YEAR_LAST and (at == 5 or words[5] == "*"):
        return "in the dialect temporal six fields have the year last; the seconds first is of unix"
    return None


def both_specials(day: Special | None, weekday: Special | None) -> Special | None:
    """The special days of both day fields together."""
    if day is None or weekday is None:
        return day or weekday
    return day.merged(weekday)


def _position(expression: str, words: list[str], index: int) -> int:
    """Where the word of an index begins; expressions are short, so walk."""
    position = 0
    for number, word in enumerate(words):
        position = expression.find(word, position)
        if number == index:
            break
        position += len(word)
    return max(position, 0)


def _every(expression: str, rest: str) -> tuple[int, int]:
    """``@every 5m/1m``: an interval and its phase."""
    every_text, slash, phase_text = rest.strip().partition("/")
    try:
        every = parse_duration(every_text, "@every")
        phase = parse_duration(phase_text, "@every") if slash else 0
    except InvalidSpecError as error:
        _refuse(expression, f"has an @every with a bad duration: {error.details['reason']}", error.hint)
    if every < 1 or phase >= every:
        _refuse(expression, "has an @every whose phase is not below its interval of at least 1s")
    return every, phase


def _macro(expression: str, words: list[str]) -> list[str]:
    """The five fields that ``@daily`` and its like stand for."""
    name = words[0].lower()
    if name in MACROS and len(words) == 1:
        return MACROS[name].split()
    if name == "@reboot":
        _refuse(expression, "is @reboot, which is no time", "start the work when your program starts")
    if name == "@every":
        hint = 'use an interval ({"every": "5m"}), or the dialect temporal'
        _refuse(expression, "is @every, which the dialect temporal has", hint)
    _refuse(expression, f'is not one of the macros: "{expression[:40]}"', f"known are {', '.join(MACROS)}")


def _refuse_count(expression: str, words: list[str], wanted: str) -> NoReturn:
    count = len(words)
    reason = "is empty" if count == 0 else f"has {count} field{'s' * (count != 1)}"
    hint = None
    if words and re.match(r"(CRON_)?TZ=", words[0]):
        hint = "a TZ= prefix is of the dialect temporal; elsewhere give the zone as timezone"
    elif count in {6, 7} and _is_year(words[-1]):
        hint = "a year as last field is of the dialect temporal"
    elif count == 6:
        hint = "six fields, seconds first, are of the dialect unix"
    elif count == 7:
        hint = "seven fields (seconds first, year last) are of the dialect temporal"
    _refuse(expression, f"{reason}; it needs {wanted}", hint)


def _is_year(word: str) -> bool:
    return word == "*" or bool(re.match(r"(19|20|21)\d\d", word))


def _refuse(expression: object, reason: str, hint: str | None = None) -> NoReturn:
    """Refuse a whole expression."""
    _fail(expression, FieldParseError("expression", expression, reason, hint=hint), 0)


def _fail(expression: object, cause: FieldParseError, position: int) -> NoReturn:
    raise InvalidCronExpressionError(
        expression, cause.field, cause.reason,
        position=position + cause.start, length=cause.length, hint=cause.hint,
    ) from cause  # fmt: skip
