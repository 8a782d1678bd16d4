"""The queries of lists and counts: conditions that must all hold, in Temporal's syntax, as a filter. Pure."""

from __future__ import annotations

import re
from typing import Any

from horae.app import Filter
from horae.errors import InvalidInputError

_CONDITION = re.compile(
    r"\s*(?P<name>`[^`]+`|[\w.-]+)\s*(?P<operator>=|STARTS_WITH)\s*(?P<value>'[^']*'|\"[^\"]*\"|[\w.+:-]+)\s*",
    re.IGNORECASE,
)
_AND = re.compile(r"AND\b", re.IGNORECASE)
_HINT = "TemporalSchedulePaused = true AND Team = 'billing'"
MAX_QUERY_LENGTH = 2000


def filter_of(query: str) -> Filter:
    """The schedules that a query means."""
    fields: dict[str, Any] = {}
    for name, operator, value in _conditions(query):
        for key, wanted in _condition(name, operator, value).items():
            if fields.get(key, wanted) != wanted:
                raise _refusal(f'has two conditions on "{name}", and one is answered at most')
            fields[key] = wanted
    return Filter(**fields)


def _conditions(query: str) -> list[tuple[str, str, str]]:
    if len(query) > MAX_QUERY_LENGTH:
        raise _refusal(f"has more than {MAX_QUERY_LENGTH} characters")
    if not query.strip():
        return []
    found, place = [], 0
    while True:
        condition = _CONDITION.match(query, place)
        if condition is None:
            raise _refusal(f"cannot be read from character {place + 1} on")
        found.append((condition["name"].strip("`"), condition["operator"].upper(), condition["value"]))
        place = condition.end()
        if place == len(query):
            return found
        joined = _AND.match(query, place)
        if joined is None:
            raise _refusal(f"cannot be read from character {place + 1} on: only AND joins conditions here")
        place = joined.end()


def _condition(name: str, operator: str, value: str) -> dict[str, Any]:
    text = value[1:-1] if value[:1] in "'\"" else value
    match name, operator:
        case "TemporalSchedulePaused", "=":
            if text.lower() not in {"true", "false"}:
                raise _refusal("compares TemporalSchedulePaused with what is neither true nor false")
            return {"paused": text.lower() == "true"}
        case "ScheduleId", "STARTS_WITH":
            return {"prefix": text}
        case "WorkflowType" | "TemporalScheduleWorkflowType", "=":
            return {"action": text}
        case _, "=" if not name.startswith("Temporal") and name != "ScheduleId":
            return {"search_key": name, "search_value": text}
        case _:
            raise _refusal(f'has a condition on "{name}" that is not answered')


def _refusal(reason: str) -> InvalidInputError:
    return InvalidInputError("query", reason, hint=_HINT)
