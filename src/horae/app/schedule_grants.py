"""The grants of schedules that run graphs: created with the schedules, and checked when these change."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from horae.app.grants import insert_grant, new_grant, valid_grant
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.schedule_draft import NewSchedule
from horae.errors import InvalidInputError, NoCreditError
from horae.grant_model import Grant
from horae.model import GRAPH, Action, Schedule, ScheduleKey
from horae.policy.grants import scope_of, without_attention

_replace = msgspec.structs.replace


async def grants_for(
    scope: OwnerScope, wanted: Mapping[ScheduleKey, NewSchedule], actions: Mapping[ScheduleKey, Action]
) -> dict[ScheduleKey, Grant]:
    """A new grant, scoped to the graph, for each new schedule that runs a graph and names no grant; refuse an account without credit."""
    created: dict[ScheduleKey, Grant] = {}
    for key, action in actions.items():
        if action.kind != GRAPH:
            continue
        each = wanted[key]
        if not each.owner:
            raise InvalidInputError("owner", "must name the user for whom the graph runs")
        account = await scope.billing.accounts.account_of(each.owner)
        if not await scope.billing.accounts.has_credit(account):
            raise NoCreditError(each.owner)
        if not each.execution_grant_id:
            created[key] = await new_grant(scope, each.owner, [scope_of(action.name)])
    return created


async def granted(work: UnitOfWork, schedule: Schedule, grants: Mapping[ScheduleKey, Grant]) -> Schedule:
    """A new schedule with its grant, which is stored here if it is new, and otherwise must hold."""
    if (grant := grants.get(schedule.key)) is not None:
        await insert_grant(work.scope, work.transaction, grant)
        return _consented(_replace(schedule, execution_grant_id=grant.id))
    return await regranted(work, None, schedule)


async def regranted(work: UnitOfWork, old: Schedule | None, new: Schedule) -> Schedule:
    """A schedule as it is stored. A new grant, or the old one for a new graph, must hold for it now.

    A schedule with a new grant no longer needs attention. One that runs no graph has no grant.
    """
    if new.action.kind != GRAPH:
        if new.execution_grant_id and (old is None or old.action.kind != GRAPH):
            raise InvalidInputError("execution_grant_id", "goes with a graph only")
        return _replace(new, execution_grant_id="") if new.execution_grant_id else new
    new = _consented(new)
    asked = (new.execution_grant_id, new.action.name, new.owner)
    if old is not None and asked == (old.execution_grant_id, old.action.name, old.owner):
        return new
    await valid_grant(work.transaction, new.execution_grant_id, new.owner, new.action.name, work.now)
    return _replace(new, state=without_attention(new.state))


def _consented(schedule: Schedule) -> Schedule:
    """The schedule, changed so that it makes up no slots without the consent of the payer."""
    policies = schedule.policies
    if policies.backfill_limit is not None:
        return schedule
    return _replace(schedule, policies=_replace(policies, backfill_limit=0))
