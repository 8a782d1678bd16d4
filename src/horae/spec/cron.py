"""Cron expressions in three dialects, compiled to one form.

``posix``
    Five fields of numbers, ranges and lists, nothing else.
``unix``
    What crontab users expect: five fields, or six with seconds first; steps, names, ``@daily`` and
    friends, ``L W #``. Two restricted day fields match by "or"; a field that begins with ``*`` is not
    restricted, as in Debian's cron.
``temporal``
    Five fields, six with the year last, or seven with seconds first and the year last; day fields
    match by "and"; ``TZ=`` prefix, ``# comment``, ``@every 1.5h/10m`` with durations as Go has them.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import msgspec

from horae.errors import FieldParseError, InvalidCronExpressionError, InvalidSpecError
from horae.spec import cron_field
from horae.spec.calendar_bits import (
    STAR_DAY,
    STAR_HOUR,
    STAR_MINUTE,
    STAR_WEEKDAY,
    Calendar,
    Special,
    matching_days,
)
from horae.spec.civil import members
from horae.spec.cron_field import Field, Grammar, Parsed, parse_field
from horae.spec.duration import MAX_MS, parse_go_duration

Dialect = Literal["posix", "unix", "temporal"]
DIALECTS: tuple[Dialect, ...] = ("posix", "unix", "temporal")
MAX_EXPRESSION_LENGTH = 10_000
NANOSECONDS = 1_000_000_000

FIVE = (cron_field.MINUTE, cron_field.HOUR, cron_field.DAY_OF_MONTH, cron_field.MONTH, cron_field.WEEKDAY)
SIX_SECONDS_FIRST = (cron_field.SECOND, *FIVE)
SIX_YEAR_LAST = (*FIVE, cron_field.YEAR)
SEVEN = (cron_field.SECOND, *FIVE, cron_field.YEAR)

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ONE_SECOND = Parsed(1)
_TZ = re.compile(r"(?:CRON_)?TZ=")
_INTERVAL = re.compile(
    r"(?:every\s+)?([0-9]{1,9})?\s*(s|sec|seconds?|m|min|mins|minutes?|h|hours?|d|days?|w|weeks?)"
)
_TZ_WORD = re.compile(r"^\s*(?:(?:CRON_)?TZ=\S*)?")


class TemporalCron(NamedTuple):
    """The meaning of an expression of the dialect ``temporal``: a calendar or an interval, and a time zone."""

    calendar: Calendar | None
    every: int = 0
    phase: int = 0
    timezone: str | None = None


def parse_cron(expression: str, dialect: Dialect = "unix") -> Calendar:
    """The meaning of a cron expression of the dialect ``posix`` or ``unix``."""
    _check_text(expression)
    if dialect == "posix":
        return _parse_posix(expression)
    words = expression.split()
    if words and words[0].startswith("@"):
        words = _macro(expression, words)
    if len(words) == 5:
        return _compiled(expression, words, FIVE, cron_field.UNIX)
    if len(words) != 6 or _TZ.match(words[0]):
        raise _wrong_count(expression, words, "5 (minute hour day month weekday), or 6 with seconds first")
    return _compiled(expression, words, SIX_SECONDS_FIRST, cron_field.UNIX)


def parse_temporal(expression: str) -> TemporalCron:
    """The meaning of a cron expression of the dialect ``temporal``."""
    _check_text(expression)
    body, _, comment = expression.partition("#")
    timezone = None
    words = body.split()
    if words and (prefix := _TZ.match(words[0])):
        timezone = words.pop(0)[prefix.end() :]
        if not timezone:
            raise _refusal(expression, "has TZ= without a zone", "for example TZ=Europe/Berlin")
    if words and words[0].startswith("@every"):
        every, phase = _every(expression, body[body.index("@every") :].strip())
        return TemporalCron(None, every, phase, timezone)
    if words and words[0].startswith("@"):
        words = _macro(expression, words, any_case=False)
    layout = {5: FIVE, 6: SIX_YEAR_LAST, 7: SEVEN}.get(len(words))
    if layout is None:
        wanted = "5 (minute hour day month weekday), 6 with the year last, or 7 with seconds first too"
        raise _wrong_count(expression, words, wanted)
    calendar = _compiled(expression, words, layout, cron_field.TEMPORAL, both=True)
    calendar = msgspec.structs.replace(calendar, comment=comment.strip())
    return TemporalCron(calendar, timezone=timezone)


def _parse_posix(expression: str) -> Calendar:
    # Split at single blanks only: other white space is not a separator but a fault of its field.
    words = [word for word in expression.replace("\t", " ").split(" ") if word]
    if expression.lstrip(" \t").startswith("@"):
        raise _refusal(
            expression, "is a macro, which is not POSIX", "write the five fields: @daily is 0 0 * * *"
        )
    if len(words) != 5:
        raise _wrong_count(expression, words, "5 (minute hour day month weekday)")
    calendar = _compiled(expression, words, FIVE, cron_field.POSIX)
    if not ever_matches(calendar):
        day = words[2]
        cause = FieldParseError("day", day, f'never comes: no chosen month has a day "{day}"')
        raise _failure(expression, cause, _position(expression, words, 2))
    return calendar


def ever_matches(calendar: Calendar) -> bool:
    """Whether there is any day at all on which a calendar matches."""
    lengths = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}
    return any(
        matching_days(calendar, first_weekday, length)
        for month in members(calendar.months)
        for length in lengths.get(month, (31,))
        for first_weekday in range(7)
    )


def _check_text(expression: object) -> None:
    if not isinstance(expression, str):
        raise _refusal(expression, f"must be a string, not {type(expression).__name__}")
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise _refusal(expression, f"is longer than {MAX_EXPRESSION_LENGTH} characters")


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
        hint = _sixth_field_hint(words, layout, len(parsed))
        raise _failure(expression, cause, _position(expression, words, len(parsed)), hint) from cause
    second = parsed.pop(0) if layout[0] is cron_field.SECOND else _ONE_SECOND
    minute, hour, day, month, weekday = parsed[:5]
    years = parsed[5].bits if len(parsed) == 6 and parsed[5].bits != cron_field.YEAR.every.bits else None
    # Special days stand beside the plain values of their field, so a field of only special days
    # has no bits, and an unrestricted one has them all.
    special = both_specials(day.special, weekday.special)
    if both:  # becomes a calendar, in which a star is whatever covers its field
        stars = minute.spans * STAR_MINUTE | hour.spans * STAR_HOUR
    else:
        stars = (
            minute.star * STAR_MINUTE
            | hour.star * STAR_HOUR
            | day.star * STAR_DAY
            | weekday.star * STAR_WEEKDAY
        )
    either = not (both or day.star or weekday.star)
    return Calendar(
        second.bits, minute.bits, hour.bits, day.bits, month.bits, weekday.bits,
        years, special, either, stars,
    )  # fmt: skip


def _sixth_field_hint(words: list[str], layout: tuple[Field, ...], at: int) -> str | None:
    """Six fields mean seconds first in one dialect and year last in the other: a likely mix-up."""
    if layout is SIX_SECONDS_FIRST and at == 5 and _is_year(words[5]):
        return "in the dialect unix, six fields begin with the seconds; in temporal, they end with the year"
    if layout is SIX_YEAR_LAST and (at == 5 or words[5] == "*"):
        return "in the dialect temporal, six fields end with the year; in unix, they begin with the seconds"
    return None


def both_specials(day: Special | None, weekday: Special | None) -> Special | None:
    """The special days of both day fields together."""
    if day is None or weekday is None:
        return day or weekday
    return day.merged(weekday)


def _position(expression: str, words: list[str], index: int) -> int:
    """Where the word of an index begins."""
    position = len(expression) - len(_TZ_WORD.sub("", expression))
    for number, word in enumerate(words):
        position = expression.find(word, position)
        if number == index:
            break
        position += len(word)
    return max(position, 0)


def _every(expression: str, text: str) -> tuple[int, int]:
    """``@every 5m/1m``: an interval and its phase, in seconds. As in Temporal, what is beyond a whole second is cut off."""
    name, blank, rest = text.partition(" ")
    if name != "@every" or not blank:
        raise _refusal(expression, "has no duration after @every", 'write "@every 5m", with one blank')
    every_text, _, phase_text = rest.partition("/")
    try:
        every = parse_go_duration(every_text, "@every")
        phase = parse_go_duration(phase_text, "@every") if phase_text else 0
    except InvalidSpecError as error:
        raise _refusal(
            expression,
            f"has an @every with a bad duration: {error.details['reason']}",
            error.hint_handed_on(),
        ) from error
    if every < NANOSECONDS or not 0 <= phase < every:
        raise _refusal(expression, "has an @every whose phase is not below its interval of at least 1s")
    seconds = every // NANOSECONDS
    if seconds * 1000 > MAX_MS:
        raise _refusal(expression, "has an @every of more than 100 years")
    return seconds, phase // NANOSECONDS % seconds  # 10.5s of 10.9s is 10s of 10s


def _macro(expression: str, words: list[str], *, any_case: bool = True) -> list[str]:
    """The five fields that ``@daily`` and its like stand for; Temporal has no capitals in them."""
    name = words[0].lower()
    if not any_case and name != words[0] and name in {*MACROS, "@every"}:
        raise _refusal(expression, "has capitals in a macro", f"write {name}")
    if name in MACROS and len(words) == 1:
        return MACROS[name].split()
    if name == "@reboot":
        raise _refusal(
            expression, "is @reboot, which is not a time", "start the work when your program starts"
        )
    if name == "@every":
        hint = 'use an interval ({"every": "5m"}), or the dialect temporal'
        raise _refusal(expression, "is @every, which only the dialect temporal has", hint)
    raise _refusal(
        expression, f'is not one of the macros: "{expression[:40]}"', f"known are {', '.join(MACROS)}"
    )


def _interval_hint(expression: str) -> str | None:
    """The hint for a duration in the place of a cron expression, such as ``5m`` or ``every 5 minutes``."""
    meant = _INTERVAL.fullmatch(expression.strip().lower())
    if meant is None:
        return None
    every = f"{meant[1] or 1}{meant[2][0]}"
    return (
        f'is it an interval? every="{every}" in @app.schedule, --every {every} in commands, '
        f'{{"intervals": [{{"every": "{every}"}}]}} in a spec'
    )


def _wrong_count(expression: str, words: list[str], wanted: str) -> InvalidCronExpressionError:
    count = len(words)
    reason = "is empty" if count == 0 else f"has {count} field{'s' * (count != 1)}"
    hint = _interval_hint(expression)
    if words and _TZ.match(words[0]):
        hint = "only the dialect temporal has a TZ= prefix; otherwise give the zone as timezone"
    elif count == 6 and words[-1] == "*":
        hint = "six fields need the dialect unix (seconds first) or temporal (year last)"
    elif count in {6, 7} and _is_year(words[-1]):
        hint = "a year as last field needs the dialect temporal"
    elif count == 6:
        hint = "six fields, seconds first, need the dialect unix"
    elif count == 7:
        hint = "seven fields (seconds first, year last) need the dialect temporal"
    return _refusal(expression, f"{reason}; it needs {wanted}", hint)


def _is_year(word: str) -> bool:
    return bool(re.match(r"(19|20|21)\d\d", word))


def _refusal(expression: object, reason: str, hint: str | None = None) -> InvalidCronExpressionError:
    """The error for an expression that is wrong as a whole."""
    return _failure(expression, FieldParseError("expression", expression, reason, hint=hint), 0)


def _failure(
    expression: object, cause: FieldParseError, position: int, hint: str | None = None
) -> InvalidCronExpressionError:
    """The error for an expression one of whose fields, beginning at a position, is wrong; the hint is the cause's unless given."""
    own = cause.hint_handed_on()
    error = InvalidCronExpressionError(
        expression, cause.field, cause.reason, position=position + cause.start, length=cause.length, hint=hint or own
    )  # fmt: skip
    error.__cause__ = cause
    return error
