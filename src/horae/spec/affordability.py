"""Whether a spec is affordable: the cost of its questions while nothing is cached.

The verdict is a function of the document alone: the same on every machine and at every time. Each probe asks
the same questions as one decision.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from horae.errors import SpecTooCostlyError
from horae.spec.budget import QUESTION_STEPS, shared_budget
from horae.spec.spec import Spec

AFFORDABLE_STEPS = QUESTION_STEPS // 2
"""The maximum cost of a decision when a spec is accepted; the other half of the budget is a reserve for other times and other zone data."""

_PROBES = tuple(int(datetime(year, 3, 1, tzinfo=UTC).timestamp()) for year in (2026, 2040, 2080))
_FEW_CALENDARS = 16


def check_cost(spec: Spec) -> None:
    """Refuse a spec whose times take too much work to find; the error names the part that takes most of it."""
    if spec.affordable or _is_plain(spec):
        return
    left = AFFORDABLE_STEPS - _reading_steps(spec)
    for probe in _PROBES:
        moment = max(probe, spec.elements.start_at or probe)
        try:
            with shared_budget(left):
                _ask(spec.cold(), moment)
        except SpecTooCostlyError:
            raise _too_costly(
                _costliest(spec.cold(), moment),
                "finding its times",
                "use fewer exclusions, a smaller COUNT, or an interval that meets the times it is narrowed to more often",
            ) from None
    spec.affordable = True


def _too_costly(element: str, what: str, hint: str) -> SpecTooCostlyError:
    reason = f"{what} takes more than {AFFORDABLE_STEPS:,} steps, which is more than a spec may cause"
    return SpecTooCostlyError(element, reason, hint=hint)


def _reading_steps(spec: Spec) -> int:
    """The steps that parsing the spec costs the first decision that needs it."""
    try:
        with shared_budget(AFFORDABLE_STEPS) as spent:
            spec.read_anew()
    except SpecTooCostlyError:
        parts = spec.canonical()
        longest = max(parts, key=lambda name: len(msgspec.json.encode(parts[name])))
        raise _too_costly(
            longest, "reading it", "use fewer or shorter elements, or several schedules"
        ) from None
    return spent.steps


def _is_plain(spec: Spec) -> bool:
    """Whether a spec is of a kind that is always cheap, also to read. Nearly all specs are."""
    e = spec.elements
    if e.rrules or e.exclude or e.exclude_shared:
        return False
    return len(e.crons) + len(e.calendars) <= _FEW_CALENDARS


def _ask(spec: Spec, moment: int) -> None:
    """Ask the questions of a decision: the times around a moment, and their fire times under jitter."""
    following = spec.next_instant(moment)
    spec.previous_instant(moment)
    if following is not None:
        if spec.elements.jitter is not None:
            spec.fire_time(datetime.fromtimestamp(following, UTC), "")
        spec.next_instant(following)


def _costliest(spec: Spec, moment: int) -> str:
    """The element whose search costs most, or the first one whose search alone costs too much."""
    costs: dict[str, int] = {}
    for element, source in spec.named_sources():
        try:
            with shared_budget(AFFORDABLE_STEPS) as spent:
                following = source.next_after(moment)
                source.previous(moment)
                source.next_after(moment if following is None else following)
        except SpecTooCostlyError:
            return element
        costs[element] = spent.steps
        if sum(costs.values()) > 2 * AFFORDABLE_STEPS:
            break
    return max(costs, key=lambda element: costs[element], default="spec")
