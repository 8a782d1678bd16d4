"""What schemathesis leaves out: cases that it has in another operation already, and more of a kind that it has."""

from __future__ import annotations

import re
from typing import Any

import schemathesis
from schemathesis.generation.meta import CoveragePhaseData

CALENDAR = re.compile(r"\b(second|minute|hour|day_of_month|day_of_week|month|year)\b")
RANGES = re.compile(r"\b(minute|hour|day_of_month|day_of_week|month|year)\b.*(invalid|Single-item)")
HAD_ELSEWHERE = {
    # putCalendar goes through the fields of a calendar, not each place of a spec that takes one.
    "POST /api/v1/schedules": CALENDAR,
    # The ranges of seconds are like those of the other fields.
    "PUT /api/v1/calendars/{name}": RANGES,
    # createSchedule has them.
    "POST /api/v1/once": re.compile("^(policies|action)( ->|:)|^Object with valid '(policies|action)'"),
    # The largest number is enough: a million slots take seconds to count.
    "POST /api/v1/schedules/{schedule_id}/skip": re.compile("Near-boundary"),
}
EACH_DIFFERS = re.compile("Enum value|Near-boundary number")
"""Kinds of which every case counts."""

_had: set[tuple[Any, ...]] = set()


@schemathesis.hook
def filter_case(_: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Go through a shape in one place only, and there send one case of each kind: one wrong type of a field, not five."""
    data = case.meta.phase.data if case.meta else None
    if not isinstance(data, CoveragePhaseData):
        return True
    description = data.description
    operation = case.operation.label
    if data.parameter == "owner":  # its value is fixed in the settings
        return False
    if operation in HAD_ELSEWHERE and HAD_ELSEWHERE[operation].search(description):
        return False
    kind = (operation, data.parameter_location, data.parameter, data.location, description)
    if kind in _had and not EACH_DIFFERS.search(description):
        return False
    _had.add(kind)
    return True


@schemathesis.hook
def map_case(_: schemathesis.HookContext, case: schemathesis.Case[Any]) -> schemathesis.Case[Any]:
    """Ask for the first page, unless the cursor is what is tried: one that no answer gave would be refused before the rest is read."""
    data = case.meta.phase.data if case.meta else None
    if isinstance(data, CoveragePhaseData) and data.parameter != "cursor" and case.query:
        case.query.pop("cursor", None)
    return case
