"""Puts schedules: creates each, or replaces the definition of the existing one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from horae.app.schedule_draft import NewSchedule
from horae.app.schedule_edits import Edit
from horae.app.schedule_fields import ScheduleFields
from horae.errors import ScheduleExistsError, ScheduleNotFoundError
from horae.model import Schedule

if TYPE_CHECKING:
    from horae.app.schedules import Schedules

Only = Literal["new", "existing"]
"""Put a schedule only if its id is free, or only if it is taken."""
DEFAULTS: dict[str, Any] = {
    each.name: each.default
    for each in msgspec.structs.fields(ScheduleFields)
    if each.name in {"policies", "description", "tags"}
}
"""The parts of a definition that may be omitted. The other fields of an existing schedule stay if they are omitted."""


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that was put, and whether that created or changed it."""

    schedule: Schedule
    outcome: Literal["created", "changed", "unchanged"]


async def put(
    schedules: Schedules,
    schedule_id: str,
    fields: Mapping[str, Any],
    *,
    own: Schedules,
    version: int | None = None,
    only: Only | None = None,
    dry_run: bool = False,
) -> Put:
    """Replace the given fields of the schedule if there is one among ``schedules``, otherwise create it among ``own``.

    Each try is one transaction, which decides under a lock; another one follows if the schedule appeared or went in between.
    """
    while True:
        if only != "new":
            try:
                return await _replaced(schedules, schedule_id, Edit(**fields), version, dry_run=dry_run)
            except ScheduleNotFoundError:
                if only == "existing" or version is not None:
                    raise
        try:
            created = await own.create_once([NewSchedule(**fields, id=schedule_id)], dry_run=dry_run)
            return Put(schedule=created.schedules[0], outcome="created")
        except ScheduleExistsError:
            if only == "new":
                raise


async def _replaced(
    schedules: Schedules, schedule_id: str, edit: Edit, version: int | None, *, dry_run: bool
) -> Put:
    before = 0

    def replacing(locked: Schedule) -> Edit:
        nonlocal before
        before = locked.version
        return edit

    schedule = await schedules.edit(schedule_id, replacing, version=version, dry_run=dry_run)
    return Put(schedule=schedule, outcome="unchanged" if schedule.version == before else "changed")
