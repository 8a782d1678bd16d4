"""Parses the query of a list or count, in the syntax of Temporal's visibility queries. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import msgspec

from horae.errors import InvalidInputError

Literal = str | int | float | bool
MAX_QUERY_LENGTH = 2000
MAX_DEPTH = 20
_HINT = "TemporalSchedulePaused = true AND (Team = 'billing' OR ScheduleId STARTS_WITH 'report-')"
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")|(?P<quoted>`[^`]+`)"""
    r"""|(?P<sign><=|>=|!=|<>|=|<|>|\(|\)|,)|(?P<word>[\w.+:-]+))"""
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_COMPARISONS = {"=", "!=", "<", "<=", ">", ">="}


class Condition(msgspec.Struct, frozen=True):
    """A field, an operator and its operands."""

    name: str
    operator: str
    values: tuple[Literal, ...] = ()


class Both(msgspec.Struct, frozen=True):
    """All parts hold."""

    parts: tuple[Expression, ...]


class Either(msgspec.Struct, frozen=True):
    """At least one part holds."""

    parts: tuple[Expression, ...]


class Neither(msgspec.Struct, frozen=True):
    """The part does not hold."""

    part: Expression


Expression = Condition | Both | Either | Neither


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def parse_query(query: str) -> Expression:
    """The expression of a query; ``Both(())`` if it is empty."""
    if len(query) > MAX_QUERY_LENGTH:
        raise refusal(f"has more than {MAX_QUERY_LENGTH} characters")
    if not query.strip():
        return Both(())
    return _Reader(query).whole()


def refusal(reason: str) -> InvalidInputError:
    """The error for a query that Horae cannot answer."""
    return InvalidInputError("query", reason, hint=_HINT)


def _tokens(query: str) -> Iterator[_Token]:
    place, end = 0, len(query.rstrip())
    while place < end:
        match = _TOKEN.match(query, place)
        if match is None:
            raise refusal(f"cannot be read from character {place + 1} on")
        kind = match.lastgroup or ""
        yield _Token(kind, match[kind], match.start(kind))
        place = match.end()
    yield _Token("end", "", end)


class _Reader:
    """A recursive-descent parser: OR binds less tightly than AND, and AND less than NOT."""

    def __init__(self, query: str) -> None:
        self._tokens = list(_tokens(query))
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        expression = self._either()
        if self._next.kind != "end":
            self._wrong("AND, OR or the end is expected")
        return expression

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _wrong(self, reason: str) -> NoReturn:
        raise refusal(f"cannot be read from character {self._next.place + 1} on: {reason}")

    def _takes(self, *words: str) -> bool:
        """Consume these words or signs if they come next."""
        coming = self._tokens[self._at : self._at + len(words)]
        texts = tuple(each.text.upper() for each in coming if each.kind in {"word", "sign"})
        if texts != words:
            return False
        self._at += len(words)
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            self._wrong(f"{sign} is expected")

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._wrong(f"more than {MAX_DEPTH} parentheses or NOTs are nested")

    def _either(self) -> Expression:
        self._descend()
        parts = [self._both()]
        while self._takes("OR"):
            parts.append(self._both())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Expression:
        parts = [self._one()]
        while self._takes("AND"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _one(self) -> Expression:
        if self._takes("NOT"):
            self._descend()
            negated = Neither(self._one())
            self._depth -= 1
            return negated
        if self._takes("("):
            inner = self._either()
            self._expect(")")
            return inner
        return self._condition()

    def _condition(self) -> Condition:
        token = self._next
        if token.kind not in {"word", "quoted"}:
            self._wrong("the name of a field is expected")
        self._at += 1
        name = token.text.strip("`")
        if self._takes("IS", "NULL"):
            return Condition(name, "IS NULL")
        if self._takes("IS", "NOT", "NULL"):
            return Condition(name, "IS NOT NULL")
        if self._takes("BETWEEN"):
            low = self._literal()
            self._expect("AND")
            return Condition(name, "BETWEEN", (low, self._literal()))
        negation = "NOT " if self._takes("NOT") else ""
        if self._takes("STARTS_WITH"):
            return Condition(name, f"{negation}STARTS_WITH", (self._literal(),))
        if self._takes("IN"):
            return Condition(name, f"{negation}IN", self._literals())
        operator = "!=" if self._next.text == "<>" else self._next.text
        if negation or operator not in _COMPARISONS:
            self._wrong("an operator is expected: =, !=, <, <=, >, >=, STARTS_WITH, IN, BETWEEN, IS NULL")
        self._at += 1
        return Condition(name, operator, (self._literal(),))

    def _literals(self) -> tuple[Literal, ...]:
        self._expect("(")
        values = [self._literal()]
        while self._takes(","):
            values.append(self._literal())
        self._expect(")")
        return tuple(values)

    def _literal(self) -> Literal:
        token = self._next
        if token.kind not in {"word", "text"}:
            self._wrong("a value is expected")
        self._at += 1
        return _text_of(token.text) if token.kind == "text" else _value_of(token.text)


def _text_of(literal: str) -> str:
    inner = literal[1:-1]
    if literal[0] == "'":
        inner = inner.replace("''", "'")
    return re.sub(r"\\(.)", r"\1", inner)


def _value_of(word: str) -> Literal:
    if word.lower() in {"true", "false"}:
        return word.lower() == "true"
    number = _NUMBER.fullmatch(word)
    if number is None:
        return word
    return int(word) if number[1] is None and number[2] is None else float(word)
