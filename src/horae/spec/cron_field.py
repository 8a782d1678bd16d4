"""One field of a cron expression or calendar: text to bits.

A field is a comma list of ``*``, ``n``, ``a-b``, each with ``/step``; months and weekdays have names;
the day fields know ``L``, ``L-2``, ``LW``, ``15W``, ``1#2`` and ``5L``. The grammar says how much of
that a dialect allows.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from horae.errors import FieldParseError
from horae.spec.calendar_bits import Special
from horae.spec.civil import FIRST_YEAR, bit_range

MONTH_NAMES = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAY_NAMES = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


class Parsed(NamedTuple):
    """A field's meaning: its values as bits, whether it began with ``*``, and special days."""

    bits: int
    star: bool = False
    special: Special | None = None
    spans: bool = False
    """Whether some item runs over the whole range (``*``, ``*/5``, ``0-59``), or all of them together do."""


class Field(msgspec.Struct, frozen=True):
    """The values of a field. A name may be cut to ``shortest`` letters."""

    name: str
    low: int
    high: int
    every: Parsed
    """What ``*`` means."""
    last: int
    """The highest value that a canonical form has: ``high``, but Saturday for weekdays, because 7 is Sunday again."""
    base: int
    """The value that bit 0 stands for."""
    plain: dict[str, Parsed]
    """The meaning of the most common texts: ``*`` and the numbers."""
    names: tuple[str, ...] = ()
    shortest: int = 3

    @property
    def numbers(self) -> str:
        """The numbers that are allowed, in words."""
        return f"{self.low}-{self.high}"

    @property
    def valid(self) -> str:
        """Numbers and names that are allowed, in words."""
        names = f" or {self.names[0][:3]}-{self.names[-1][:3]}" if self.names else ""
        return self.numbers + names


class Grammar(NamedTuple):
    """What a dialect allows beyond ``*``, numbers, ranges and lists."""

    steps: bool = True
    names: bool = True
    special: bool = True
    sunday_is_7: bool = True
    star_in_list: bool = True


POSIX = Grammar(steps=False, names=False, special=False, sunday_is_7=False, star_in_list=False)
UNIX = Grammar()
TEMPORAL = Grammar(special=False)


def _field(name: str, low: int, high: int, names: tuple[str, ...] = (), shortest: int = 3) -> Field:
    base = FIRST_YEAR if name == "year" else 0
    last = 6 if name == "weekday" else high
    every = Parsed(bit_range(low - base, last - base), star=True, spans=True)
    plain = {str(value): Parsed(1 << (value - base)) for value in range(low, last + 1)} | {"*": every}
    return Field(name, low, high, every, last, base, plain, names, shortest)


SECOND = _field("second", 0, 59)
MINUTE = _field("minute", 0, 59)
HOUR = _field("hour", 0, 23)
DAY_OF_MONTH = _field("day", 1, 31)
MONTH = _field("month", 1, 12, MONTH_NAMES)
WEEKDAY = _field("weekday", 0, 7, WEEKDAY_NAMES, 2)
YEAR = _field("year", 2000, 2100)


def parse_field(text: str, field: Field, grammar: Grammar) -> Parsed:
    """The meaning of a field's text, or a :class:`FieldParseError` that says what is wrong where."""
    if (plain := field.plain.get(text)) is not None:
        return plain
    reader = _Reader(text, field, grammar)
    bits, special, spans, start = 0, None, False, 0
    for item in text.split(","):
        if item.isascii() and item.isdecimal():
            bits |= 1 << reader.number(item, start)
        elif found := reader.special(item, start):
            special = found if special is None else special.merged(found)
        else:
            first, last, step = reader.range(item, start)
            bits |= bit_range(first, last, step)
            spans = spans or (first == field.low and last == field.high)
        start += len(item) + 1
    if field is WEEKDAY:  # 7 is Sunday too
        bits = (bits | bits >> 7) & 0b1111111
    bits >>= field.base
    if bits == field.every.bits:
        special, spans = None, True  # special days add nothing to every day
    return Parsed(bits, star=text.startswith("*"), special=special, spans=spans)


class _Reader:
    """Reads the items of one field; ``start`` is always where a piece begins in the field's text."""

    __slots__ = ("_field", "_grammar", "_text")

    def __init__(self, text: str, field: Field, grammar: Grammar) -> None:
        self._text = text
        self._field = field
        self._grammar = grammar

    def range(self, item: str, start: int) -> tuple[int, int, int]:
        """``*``, ``a-b`` or a name, each perhaps with a step, as (first, last, step)."""
        if self._text == "":
            raise self._error(0, 1, "is empty", f"allowed are {self._field.valid}")
        if item == "":
            raise self._error(start, 1, "has an empty list item", "remove the extra comma")
        values, slash, step_text = item.partition("/")
        step = self._step(step_text, start + len(values) + 1) if slash else 1
        if values == "*":
            if not self._grammar.star_in_list and (slash or item != self._text):
                raise self._error(start, 1, 'has "*" among other values', 'write "*" alone, or a list')
            return self._field.low, self._field.high, step
        first_text, dash, last_text = values.partition("-")
        first = self._value(first_text, start)
        if not dash:
            return first, self._field.high if slash else first, step
        last = self._value(last_text, start + len(first_text) + 1)
        if last < first:
            reason = f'has the range "{values}", whose end is before its start'
            raise self._error(start, len(values), reason, self._descending_hint(first, last))
        return first, last, step

    def _descending_hint(self, first: int, last: int) -> str:
        field = self._field
        if field is WEEKDAY and last == 0 and self._grammar.sunday_is_7:
            return f"Sunday at the end of a range is 7: {first}-7"
        return f"a range that wraps around is written as two: {first}-{field.last},{field.low}-{last}"

    def _step(self, text: str, start: int) -> int:
        if not self._grammar.steps:
            raise self._error(
                start - 1, len(text) + 1, f'has a step "/{text}", which is not POSIX',
                "list the values, as in 0,15,30,45; steps are known to the dialect unix",
            )  # fmt: skip
        if not (text.isascii() and text.isdecimal()) or len(text.lstrip("0")) > 4 or not int(text):
            hint = "a step is a whole number from 1 up"
            raise self._error(start, max(len(text), 1), f'has the step "{text}"', hint)
        return int(text)

    def _value(self, value: str, start: int) -> int:
        field = self._field
        if value.isascii() and value.isdecimal():
            return self.number(value, start)
        if self._grammar.names and field.names and value.isalpha() and len(value) >= field.shortest:
            wanted = value.lower()
            for index, name in enumerate(field.names):
                if name.startswith(wanted):
                    return index + field.low
        reason, hint = self._not_a_value(value)
        raise self._error(start, max(len(value), 1), reason, hint)

    def number(self, value: str, start: int) -> int:
        """A plain number, in range."""
        field = self._field
        digits = value.lstrip("0")
        number = int(digits or "0") if len(digits) <= 4 else field.high + 1
        high = field.high if self._grammar.sunday_is_7 else field.last
        if field.low <= number <= high:
            return number
        if number == 7 and field is WEEKDAY:
            raise self._error(start, len(value), "has the weekday 7, but Sunday is 0", "write 0 for Sunday")
        reason = f"has {value[:20]}, which is not in the range {field.low}-{high}"
        raise self._error(start, len(value), reason, f"allowed are {field.low}-{high}")

    def special(self, item: str, start: int) -> Special | None:
        """The special days of the day fields; ``None`` if the item is something else."""
        if self._grammar.special and item:
            if self._field is DAY_OF_MONTH:
                return self._special_day(item.upper(), start)
            if self._field is WEEKDAY:
                return self._special_weekday(item, start)
        return None

    def _special_day(self, item: str, start: int) -> Special | None:
        """``L``, ``L-2``, ``LW`` and ``15W``."""
        if item == "L":
            return Special(from_last=1)
        if item == "LW":
            return Special(last_workday=True)
        if item.startswith("L-"):
            back = item[2:]
            if back.isascii() and back.isdecimal() and len(back) <= 2 and int(back) <= 30:
                return Special(from_last=1 << int(back))
            raise self._error(start, len(item), f'has "{item}"', "L-1 to L-30 count back from the last day")
        if item.endswith("W") and item[:-1].isascii() and item[:-1].isdecimal():
            return Special(nearest=1 << self.number(item[:-1], start))
        return None

    def _special_weekday(self, item: str, start: int) -> Special | None:
        """``1#2`` and ``5L``."""
        weekday_text, hash_sign, nth = item.partition("#")
        if hash_sign:
            weekday = self._value(weekday_text, start) % 7
            if nth not in {"1", "2", "3", "4", "5"}:
                hint = "1#2 is the second Monday of the month; 1 to 5 may follow #"
                raise self._error(start, len(item), f'has "{item}"', hint)
            return Special(nth=1 << (7 * (int(nth) - 1) + weekday))
        if item[-1] in "Ll" and len(item) > 1:
            return Special(last=1 << self._value(item[:-1], start) % 7)
        return None

    def _not_a_value(self, value: str) -> tuple[str, str]:
        """Why something is no value here, and what would be."""
        field, grammar = self._field, self._grammar
        allowed = f"allowed are {field.valid if grammar.names else field.numbers}"
        if value == "":
            return "has a range or step without a value", allowed
        if value == "?":
            return 'has "?", which is Quartz', 'write "*"'
        if value.upper() == "L" and field is WEEKDAY and grammar.special:
            return 'has "L" without a weekday', "5L is the last Friday of the month"
        if not grammar.special and re.fullmatch(r"L|W|LW|\d*[LW]|\w+#.*", value, re.IGNORECASE | re.ASCII):
            return f'has "{value}", which this dialect does not know', "L, W and # need the dialect unix"
        if value.isalpha() and value.isascii() and not grammar.names:
            return f'has the name "{value}", which is not POSIX', "use numbers, or the dialect unix"
        return f'has "{value[:40]}", which is not in the range {field.numbers}', allowed

    def _error(self, start: int, length: int, reason: str, hint: str) -> FieldParseError:
        return FieldParseError(self._field.name, self._text, reason, start=start, length=length, hint=hint)
