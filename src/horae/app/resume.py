"""Resuming a schedule, and what that starts and does not start."""

from __future__ import annotations

import msgspec

from horae.app.field_checks import check_text
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.update import put_schedule, record_unstarted, resumed_schedule, standing
from horae.model import OnResume, Schedule
from horae.policy.resumption import Resumption, resumption
from horae.spec import Spec


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A resumed schedule, and what that starts and does not start."""

    schedule: Schedule
    resumption: Resumption


async def resume_schedule(
    scope: OwnerScope, schedule_id: str, note: str, way: OnResume | None, *, dry_run: bool
) -> Resumed:
    """End a pause in one transaction, by policy or by another way; with ``dry_run`` only find out what that does."""
    check_text("note", note)

    async def resume(work: UnitOfWork) -> Resumed:
        old = await work.locked(schedule_id)
        found = await _resumption(work, old, way)
        if dry_run:
            return Resumed(schedule=old, resumption=found)
        key = ("resumed", *standing(old))
        schedule, unstarted = work.answers.ask(key, lambda: resumed_schedule(old, note, work.now, way))
        changed = await put_schedule(work, schedule)
        await record_unstarted(work, changed, unstarted)
        return Resumed(schedule=changed, resumption=found)

    return await scope.change(resume)


async def _resumption(work: UnitOfWork, schedule: Schedule, way: OnResume | None) -> Resumption:
    """What resuming a locked schedule does."""
    runs = await work.transaction.open_runs([schedule.key])
    key = ("resumption", *standing(schedule), *((run.id, run.status) for run in runs))
    limits = work.scope.config.limits
    return work.answers.ask(
        key, lambda: resumption(schedule, Spec.parse(schedule.spec), runs, work.now, limits, way=way)
    )
