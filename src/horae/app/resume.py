"""Resuming a schedule, and what that starts and does not start."""

from __future__ import annotations

import msgspec

from horae.app.evaluation import Answers
from horae.app.field_checks import check_text
from horae.app.owner_scope import OwnerScope
from horae.app.update import put_schedule, record_unstarted, resumed_schedule, standing
from horae.model import OnResume, Schedule
from horae.policy.resumption import Resumption, resumption
from horae.spec import Spec
from horae.store.port import Transaction


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A resumed schedule, and what that starts and does not start."""

    schedule: Schedule
    resumption: Resumption


async def resume_schedule(
    scope: OwnerScope, schedule_id: str, note: str, way: OnResume | None, *, dry_run: bool
) -> Resumed:
    """End a pause in one transaction, by policy or by another way; with ``dry_run`` only find out what that does."""
    check_text("note", note)
    answers, now = scope.answers(), scope.now()

    async def act() -> Resumed:
        async with scope.store.transaction() as transaction:
            old = await scope.locked(transaction, schedule_id)
            found = await _resumption(scope, transaction, old, way, now, answers=answers)
            if dry_run:
                return Resumed(schedule=old, resumption=found)
            key = ("resumed", *standing(old))
            schedule, unstarted = answers.ask(key, lambda: resumed_schedule(old, note, now, way))
            changed = await put_schedule(transaction, schedule, now)
            await record_unstarted(transaction, changed, unstarted, now)
            return Resumed(schedule=changed, resumption=found)

    done = await answers.carry_out(act)
    scope.wake()
    return done


async def _resumption(
    scope: OwnerScope,
    transaction: Transaction,
    schedule: Schedule,
    way: OnResume | None,
    now: int,
    *,
    answers: Answers,
) -> Resumption:
    """What resuming a locked schedule does."""
    runs = await transaction.open_runs([schedule.key])
    key = ("resumption", *standing(schedule), *((run.id, run.status) for run in runs))
    limits = scope.config.limits
    return answers.ask(
        key, lambda: resumption(schedule, Spec.parse(schedule.spec), runs, now, limits, way=way)
    )
