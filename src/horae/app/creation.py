"""Creates schedules: many in one transaction, all or none of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import partial

import msgspec

from horae.app.create import NewSchedule, calendar_names, draft, shared_calendars
from horae.app.evaluation import Answers
from horae.app.graph_grants import granted, grants_for
from horae.app.manual import slots_of, start_manually
from horae.app.owner_scope import OwnerScope
from horae.errors import LimitExceededError, ScheduleExistsError
from horae.grant_model import Grant
from horae.model import Schedule, ScheduleKey
from horae.spec import SharedCalendar
from horae.store.port import Filter, Transaction

Draft = tuple[Hashable, Callable[[], tuple[Schedule, int | None]]]
"""A new schedule and when it is due, as a question about its spec and the calendars that it names."""
_replace = msgspec.structs.replace


class Creation(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of a request, and whether the same request has created them before."""

    schedules: tuple[Schedule, ...]
    repeated: bool


class Creator:
    """Creates schedules in a scope."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def create(self, new: Iterable[NewSchedule], *, dry_run: bool) -> Creation:
        """Create schedules; of several equal requests with a ``request_id`` one creates, the others get what it created."""
        wanted: dict[ScheduleKey, NewSchedule] = {}
        for each in map(self._owned, new):
            if (key := each.key) in wanted:
                raise ScheduleExistsError(each.id)
            wanted[key] = each
        actions = [self._scope.executors.read(each.action) for each in wanted.values()]
        await self._scope.check_actions(actions)
        answers, now = self._scope.answers(), self._scope.now()
        grants = await grants_for(self._scope, wanted, actions)
        drafts = {
            key: self._draft(each, key, {}, now)
            for key, each in wanted.items()
            if not calendar_names(each.spec)
        }
        await answers.learn(list(drafts.values()))
        created = await answers.carry_out(
            lambda: self._create(wanted, drafts, grants, answers=answers, now=now, dry_run=dry_run)
        )
        self._scope.wake()
        return created

    async def _create(
        self,
        wanted: Mapping[ScheduleKey, NewSchedule],
        drafts: Mapping[ScheduleKey, Draft],
        grants: Mapping[ScheduleKey, Grant],
        *,
        answers: Answers,
        now: int,
        dry_run: bool,
    ) -> Creation:
        """Create schedules in one transaction. A draft that is not given depends on shared calendars, which are read here."""
        keys = list(wanted)
        async with self._scope.changing(dry_run=dry_run) as transaction:
            generations = await transaction.next_generations(keys)
            known = [key for key, generation in generations.items() if generation > 1]  # others never existed
            there = {each.key: each for each in await transaction.schedules(known)} if known else {}
            if there:
                _check_repeated(wanted, there)
                return Creation(schedules=tuple(there[each] for each in keys), repeated=True)
            drafted = answers.ask_all(
                [
                    drafts.get(key) or await self._drafted(transaction, each, key, now)
                    for key, each in wanted.items()
                ]
            )
            created = [
                _replace(
                    each,
                    generation=generations[key],
                    permitted_by=self._scope.permitted_by(each.action, each.owner),
                )
                for key, (each, _) in zip(keys, drafted, strict=True)
            ]
            created = [
                await granted(self._scope, transaction, each, grants, now)
                if grants or each.execution_grant_id  # only schedules of graphs have one
                else each
                for each in created
            ]
            await self._check_room(transaction, wanted.values())
            manual = [
                (schedule, each.trigger, each.backfills)
                for each, schedule in zip(wanted.values(), created, strict=True)
                if each.trigger is not None or each.backfills
            ]
            slots_of(
                [(schedule, each) for schedule, _, backfills in manual for each in backfills],
                answers,
                self._scope.config.backfill_slots,
            )
            await transaction.insert_schedules(zip(created, (at for _, at in drafted), strict=True))
            for each in manual:
                await start_manually(self._scope, transaction, *each, answers=answers, now=now)
            await transaction.notify()
        return Creation(schedules=tuple(created), repeated=False)

    async def _drafted(self, transaction: Transaction, new: NewSchedule, key: ScheduleKey, now: int) -> Draft:
        calendars = await shared_calendars(transaction, [new.spec], new.owner, keep=True)
        return self._draft(new, key, calendars, now)

    def _draft(
        self, new: NewSchedule, key: ScheduleKey, calendars: Mapping[str, SharedCalendar], now: int
    ) -> Draft:
        work = partial(draft, new, now, self._scope.config, self._scope.executors, calendars)
        return ("draft", key, *sorted(calendars.items())), work

    def _owned(self, new: NewSchedule) -> NewSchedule:
        return new if self._scope.owner is None else _replace(new, owner=self._scope.owner)

    async def _check_room(self, transaction: Transaction, wanted: Collection[NewSchedule]) -> None:
        """Refuse schedules beyond a user's limit; those without an owner are not counted."""
        most = self._scope.config.schedules_per_user
        for owner in {each.owner for each in wanted if each.owner}:
            more = sum(each.owner == owner for each in wanted)
            if await transaction.count_schedules(Filter(owner=owner)) + more > most:
                raise LimitExceededError(
                    "schedules_per_user", most, f'the user "{owner}" has too many schedules'
                )


def _check_repeated(wanted: Mapping[ScheduleKey, NewSchedule], there: Mapping[ScheduleKey, Schedule]) -> None:
    """Raise a conflict for a taken id, unless the whole of this request was carried out before."""
    for key, each in wanted.items():
        found = there.get(key)
        if found is None or not each.request_id or found.request_id != each.request_id:
            raise ScheduleExistsError(next(iter(there.values())).id if found is None else each.id)
