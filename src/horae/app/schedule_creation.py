"""Creates schedules: many in one transaction, all or none of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.schedule_draft import NewSchedule, calendar_names, draft, shared_calendars
from horae.app.schedule_grants import granted, grants_for
from horae.app.spec_evaluation import answered
from horae.app.triggers_and_backfills import slots_of, start_backfills, start_trigger
from horae.errors import HoraeError, LimitExceededError, ScheduleExistsError
from horae.grant_model import Grant
from horae.model import Action, Schedule, ScheduleKey
from horae.store.port import Filter

Draft = tuple[Schedule, int | None]
"""A new schedule, and when it is due."""
_replace = msgspec.structs.replace


class Creation(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of a request, and whether the same request has created them before."""

    schedules: tuple[Schedule, ...]
    repeated: bool


class Creator:
    """Creates schedules in a scope."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def create(self, new: Iterable[NewSchedule], *, now: int, dry_run: bool = False) -> Creation:
        """Create schedules, which fire from ``now`` on, however long it takes until they are stored.

        Of several equal requests with a ``request_id`` one creates, the others get what it created.
        """
        wanted: dict[ScheduleKey, NewSchedule] = {}
        for each in map(self._owned, new):
            if (key := each.key) in wanted:
                raise ScheduleExistsError(each.id)
            wanted[key] = each
        actions = self._actions(wanted)
        await self._scope.check_actions(actions.values())
        answers = self._scope.answers()
        grants = await grants_for(self._scope, wanted, actions)
        # Drafts that depend on shared calendars are made in the transaction, which reads these.
        keys = [key for key, each in wanted.items() if not calendar_names(each.spec)]
        drafts = await answers.learn(keys, lambda key: draft(wanted[key], actions[key], self._scope, now, {}))
        act = partial(self._create, wanted, actions, drafts, grants)
        return await self._scope.change(act, answers=answers, now=now, dry_run=dry_run)

    async def _create(
        self,
        wanted: Mapping[ScheduleKey, NewSchedule],
        actions: Mapping[ScheduleKey, Action],
        drafts: Mapping[ScheduleKey, Draft | HoraeError],
        grants: Mapping[ScheduleKey, Grant],
        work: UnitOfWork,
    ) -> Creation:
        transaction, new = work.transaction, wanted.values()
        generations = await transaction.next_generations(list(wanted))
        known = [key for key, generation in generations.items() if generation > 1]  # others never existed
        there = {each.key: each for each in await transaction.schedules(known)} if known else {}
        if there:
            _check_repeated(wanted, there)
            return Creation(schedules=tuple(there[each] for each in wanted), repeated=True)
        others = [key for key in wanted if key not in drafts]
        questions = [await self._question(work, wanted[key], actions[key], key) for key in others]
        drafts = {**drafts, **dict(zip(others, work.answers.ask_all(questions), strict=True))}
        drafted = [answered(drafts[key]) for key in wanted]
        backfills = [(schedule, one) for each, (schedule, _) in zip(new, drafted, strict=True) for one in each.backfills]  # fmt: skip
        slots_of(work, backfills)
        created = await insert_drafted(work, drafted, generations, grants)
        for each, schedule in zip(new, created, strict=True):
            if each.trigger is not None:
                await start_trigger(work, schedule, each.trigger)
            if each.backfills:
                await start_backfills(work, schedule, each.backfills)
        await transaction.notify()
        return Creation(schedules=tuple(created), repeated=False)

    async def _question(
        self, work: UnitOfWork, new: NewSchedule, action: Action, key: ScheduleKey
    ) -> tuple[Hashable, Callable[[], Draft]]:
        """The draft of a schedule that excludes shared calendars, as a question about their contents."""
        calendars = await shared_calendars(work.transaction, [new.spec], new.owner, keep=True)
        question = partial(draft, new, action, self._scope, work.now, calendars)
        return ("draft", key, *sorted(calendars.items())), question

    def _actions(self, wanted: Mapping[ScheduleKey, NewSchedule]) -> dict[ScheduleKey, Action]:
        """The actions of new schedules; an address that many of them name is read once."""
        read = self._scope.executors.read
        addresses = {each.action for each in wanted.values() if isinstance(each.action, str)}
        named = {address: read(address) for address in addresses}
        return {
            key: named[each.action] if isinstance(each.action, str) else read(each.action)
            for key, each in wanted.items()
        }

    def _owned(self, new: NewSchedule) -> NewSchedule:
        return new if self._scope.owner is None else _replace(new, owner=self._scope.owner)


async def insert_drafted(
    work: UnitOfWork,
    drafted: Sequence[tuple[Schedule, int | None]],
    generations: Mapping[ScheduleKey, int],
    grants: Mapping[ScheduleKey, Grant],
) -> list[Schedule]:
    """Store new schedules, with when each is due, if their owners may use their actions and have room; ``grants`` are new ones of theirs."""
    created = []
    for each, _ in drafted:
        permitted_by = work.scope.permitted_by(each.action, each.owner)
        made = _replace(each, generation=generations[each.key], permitted_by=permitted_by)
        if grants or made.execution_grant_id:  # only schedules of graphs have one
            made = await granted(work, made, grants)
        created.append(made)
    await _check_room(work, created)
    await work.transaction.insert_schedules(zip(created, (at for _, at in drafted), strict=True))
    return created


async def _check_room(work: UnitOfWork, created: Iterable[Schedule]) -> None:
    """Refuse schedules beyond a user's limit; those without an owner are not counted."""
    most = work.scope.config.schedules_per_user
    for owner, more in Counter(each.owner for each in created if each.owner).items():
        if await work.transaction.count_schedules(Filter(owner=owner)) + more > most:
            raise LimitExceededError("schedules_per_user", most, f'the user "{owner}" has too many schedules')


def _check_repeated(wanted: Mapping[ScheduleKey, NewSchedule], there: Mapping[ScheduleKey, Schedule]) -> None:
    """Raise a conflict for a taken id, unless the whole of this request was carried out before."""
    for key, each in wanted.items():
        found = there.get(key)
        if found is None or not each.request_id or found.request_id != each.request_id:
            raise ScheduleExistsError(next(iter(there.values())).id if found is None else each.id)
