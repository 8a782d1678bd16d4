"""Splits the query of a list or count into a filter for the database and a test of each schedule. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, assert_never

import msgspec

from horae.app import Filter
from horae.face.temporal.action_message import workflow_type_of
from horae.face.temporal.list_query_parser import (
    Both,
    Condition,
    Either,
    Expression,
    Literal,
    Neither,
    parse_query,
    refusal,
)
from horae.model import Schedule

PAUSED = "TemporalSchedulePaused"
SCHEDULE_ID = "ScheduleId"
_TYPES = {"WorkflowType", "TemporalScheduleWorkflowType"}


class Query(msgspec.Struct, frozen=True):
    """A filter for the database, and a test that its results must pass, if any."""

    only: Filter
    test: Callable[[Schedule], bool] | None = None


def query_of(text: str) -> Query:
    """The filter and the test of a query."""
    whole = parse_query(text)
    parts = whole.parts if isinstance(whole, Both) else (whole,)
    fields: dict[str, Any] = {}
    tested: list[Expression] = []
    for each in parts:
        _check(each)
        filtered, is_enough = _filtered(each)
        if filtered.keys() & fields.keys():
            tested.append(each)
            continue
        fields |= filtered
        if not is_enough:
            tested.append(each)
    return Query(
        Filter(**fields),
        (lambda schedule: all(_holds(each, schedule) for each in tested)) if tested else None,
    )


def _filtered(part: Expression) -> tuple[dict[str, Any], bool]:
    """A filter that every matching schedule passes, and whether every schedule that passes matches."""
    match part:
        case Condition(name="TemporalSchedulePaused", operator="=", values=(bool(paused),)):
            return {"paused": paused}, True
        case Condition(name="ScheduleId", operator="STARTS_WITH", values=(str(prefix),)):
            return {"prefix": prefix}, True
        case Condition(name="ScheduleId", operator="=", values=(str(whole),)):
            return {"prefix": whole}, False
        case Condition(name=name, operator="=", values=(str() | bool() as value,)) if name not in {
            PAUSED,
            SCHEDULE_ID,
            *_TYPES,
        }:
            return {"search_key": name, "search_value": _as_text(value)}, True
        case _:
            return {}, False


def _check(part: Expression) -> None:
    """Refuse conditions on unknown fields, and values that a field cannot have."""
    match part:
        case Both(parts) | Either(parts):
            for each in parts:
                _check(each)
        case Neither(inner):
            _check(inner)
        case Condition(name, _, values):
            if name.startswith("Temporal") and name not in {PAUSED, *_TYPES}:
                raise refusal(f'has a condition on "{name}", which is not known here')
            if name == PAUSED and not all(isinstance(_read_bool(each), bool) for each in values):
                raise refusal(f"compares {PAUSED} with what is neither true nor false")
        case _:
            assert_never(part)


def _holds(part: Expression, schedule: Schedule) -> bool:
    match part:
        case Both(parts):
            return all(_holds(each, schedule) for each in parts)
        case Either(parts):
            return any(_holds(each, schedule) for each in parts)
        case Neither(inner):
            return not _holds(inner, schedule)
        case Condition():
            return _compares(part, _value(part.name, schedule))
        case _:
            assert_never(part)


def _value(name: str, schedule: Schedule) -> Literal | None:
    if name == SCHEDULE_ID:
        return schedule.id
    if name == PAUSED:
        return schedule.state.paused
    if name in _TYPES:
        return workflow_type_of(schedule)
    return schedule.search_attributes.get(name)


def _compares(condition: Condition, value: Literal | None) -> bool:
    """Whether a condition holds for a value. A missing value satisfies only IS NULL."""
    operator, values = condition.operator, condition.values
    if operator in {"IS NULL", "IS NOT NULL"}:
        return (value is None) == (operator == "IS NULL")
    return value is not None and _TESTS[operator](value, *values)


def _equal(one: Literal, other: Literal) -> bool:
    """Whether two values are the same number or have the same text, as in the database."""
    if (first := _read_number(one)) is not None and (second := _read_number(other)) is not None:
        return first == second
    return _as_text(one) == _as_text(other)


def _ordered(one: Literal, other: Literal) -> bool:
    """Whether one value is at most another, by number, time or text; false if they cannot be compared."""
    if (number := _read_number(one)) is not None and (most := _read_number(other)) is not None:
        return number <= most
    if (time := _read_time(one)) is not None and (latest := _read_time(other)) is not None:
        return time <= latest
    if isinstance(one, str) and isinstance(other, str):
        return one <= other
    return False


def _read_number(value: Literal) -> float | None:
    return None if isinstance(value, bool | str) else value


def _read_time(value: Literal) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    return read if read.tzinfo is not None else None


def _read_bool(value: Literal) -> Literal:
    return value.lower() == "true" if isinstance(value, str) and value.lower() in {"true", "false"} else value


def _as_text(value: Literal) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _starts(value: Literal, prefix: Literal) -> bool:
    return _as_text(value).startswith(_as_text(prefix))


_TESTS: dict[str, Callable[..., bool]] = {
    "=": _equal,
    "!=": lambda value, other: not _equal(value, other),
    "IN": lambda value, *others: any(_equal(value, each) for each in others),
    "NOT IN": lambda value, *others: not any(_equal(value, each) for each in others),
    "STARTS_WITH": _starts,
    "NOT STARTS_WITH": lambda value, prefix: not _starts(value, prefix),
    "BETWEEN": lambda value, low, high: _ordered(low, value) and _ordered(value, high),
    "<=": _ordered,
    ">=": lambda value, other: _ordered(other, value),
    "<": lambda value, other: _ordered(value, other) and not _ordered(other, value),
    ">": lambda value, other: _ordered(other, value) and not _ordered(value, other),
}
"""The tests of the operators: of a value and its operands."""
