"""What schemathesis leaves out: cases that it has in another operation already."""

from __future__ import annotations

import re
from typing import Any

import schemathesis

FIELD_OF_A_CALENDAR = re.compile(r"\b(second|minute|hour|day_of_month|day_of_week|month|year)\b")


@schemathesis.hook
def filter_case(_: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Go through the fields of a calendar in a calendar only, not again in each place of a spec that takes one."""
    description = getattr(case.meta.phase.data, "description", None) if case.meta else None
    return not (
        case.operation.label == "POST /api/v1/schedules" and FIELD_OF_A_CALENDAR.search(description or "")
    )
