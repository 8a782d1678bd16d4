"""The slots still to be decided around an edit: before it, those that both specs name; after it, those of the new spec."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime

from horae.model import Carried, Schedule
from horae.policy.slot_times import is_slot
from horae.spec import Spec


class UndecidedSpec(Spec):
    """A spec that is in force after a given second, and the earlier slots that an edit left due.

    It overrides the methods that decisions use; the others are those of the spec.
    """

    __slots__ = ("_base", "_carried", "_not_before", "_since")

    def __init__(self, base: Spec, carried: tuple[Carried, ...], since_ms: int) -> None:
        super().__init__(base.elements, base.shared)
        self._base, self._since = base, since_ms // 1000
        self._carried = sorted(each.nominal_ms // 1000 for each in carried if each.nominal_ms <= since_ms)
        self._not_before = {each.nominal_ms: each.not_before_ms for each in carried}

    def not_before_ms(self, nominal_ms: int, otherwise: int) -> int:
        """The earliest fire time that an edit set for a slot, in milliseconds; else ``otherwise``."""
        return self._not_before.get(nominal_ms, otherwise)

    def carried_ms(self, after_ms: int, until_ms: int) -> list[int]:
        """The slots of a range that an edit left due, in milliseconds."""
        return [each * 1000 for each in self._carried_in(after_ms // 1000, until_ms // 1000)]

    def _carried_in(self, after: int, until: int) -> list[int]:
        return self._carried[bisect_right(self._carried, after) : bisect_right(self._carried, until)]

    def next_instant(self, instant: int) -> int | None:
        ahead = bisect_right(self._carried, instant)
        if ahead < len(self._carried):
            return self._carried[ahead]
        return self._base.next_instant(max(instant, self._since))

    def previous_instant(self, instant: int) -> int | None:
        found = self._base.previous_instant(instant)
        if found is not None and found > self._since:
            return found
        behind = bisect_right(self._carried, instant)
        return self._carried[behind - 1] if behind else None

    def fire_time(self, nominal: datetime, schedule_id: str) -> datetime:
        return self._base.fire_time(nominal, schedule_id)

    def instants(self, after: int, until: int, limit: int = 1000) -> list[int]:
        found = self._carried_in(after, until)[:limit]
        return found + self._base.instants(max(after, self._since), until, limit - len(found))

    def count(self, after: int, until: int, most: int | None = None) -> int:
        return len(self._carried_in(after, until)) + self._base.count(max(after, self._since), until, most)

    def count_within_budget(self, after: int, until: int) -> tuple[int, int]:
        """Count only the slots since the edit; those before it are few and known."""
        return self._base.count_within_budget(max(after, self._since), until)


def undecided(schedule: Schedule, spec: Spec) -> Spec:
    """The spec of a schedule, restricted to the slots that may be undecided."""
    state = schedule.state
    return UndecidedSpec(spec, state.carried, state.spec_since_ms) if state.carried else spec


def is_undecided(schedule: Schedule, nominal_ms: int) -> bool:
    """Whether a time is an undecided slot, including one that an edit left due."""
    if nominal_ms <= max(schedule.cursor_ms, schedule.state.spec_since_ms):
        carried = (each.nominal_ms for each in schedule.state.carried)
        return nominal_ms > schedule.cursor_ms and nominal_ms in carried
    return is_slot(Spec.parse(schedule.spec), nominal_ms)
