"""Find and repair schedules whose stored rows cannot be read, because they were changed by hand or by another version."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from horae.app.bulk import batches
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_edits import Edit, is_set_aside
from horae.errors import HoraeError, ScheduleUnreadableError
from horae.model import Schedule
from horae.spec import Spec
from horae.store.port import Filter

_replace = msgspec.structs.replace


def faults_of(schedule: Schedule) -> dict[str, str]:
    """The fields of a schedule that cannot be read, and what is wrong with each."""
    if "spec" not in schedule.unreadable:
        try:
            Spec.parse(schedule.spec)
        except HoraeError as error:
            return {**schedule.unreadable, "spec": f"its spec cannot be read: {error}"}
    return schedule.unreadable


async def unreadable_schedules(scope: OwnerScope, limit: int) -> list[Schedule]:
    """Up to ``limit`` schedules that cannot be read; what is wrong with each is in its ``unreadable``."""
    found: list[Schedule] = []
    async for keys in batches(scope, Filter()):
        async with scope.store.reading() as transaction:
            some = await transaction.read_schedules(keys)
        found += await scope.evaluate(partial(_with_faults, some))
        if len(found) >= limit:
            break
    return found[:limit]


def _with_faults(schedules: Sequence[Schedule]) -> list[Schedule]:
    return [_replace(each, unreadable=faults) for each in schedules if (faults := faults_of(each))]


def repaired(old: Schedule, edit: Edit, faults: dict[str, str], now: int) -> tuple[Schedule, Edit]:
    """Prepare a schedule with unreadable fields, and the edit that replaces all of them, to be applied.

    The edit resumes a schedule that a node has set aside, unless it says otherwise. The slots of an unreadable spec are unknown: the
    schedule starts afresh.
    """
    if left := {name: why for name, why in faults.items() if not _is_given(edit, name)}:
        raise ScheduleUnreadableError(old.id, left)
    if edit.paused is msgspec.UNSET and is_set_aside(old.state):
        edit = _replace(edit, paused=False)
    if "spec" in faults:
        since_ms = max(old.cursor_ms, now // 1000 * 1000)
        state = _replace(old.state, spec_since_ms=since_ms, carried=())
        old = _replace(old, cursor_ms=since_ms, state=state)
    return _replace(old, unreadable=faults), edit


def _is_given(edit: Edit, field: str) -> bool:
    return getattr(edit, "paused" if field == "state" else field, msgspec.UNSET) is not msgspec.UNSET
