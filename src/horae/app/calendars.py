"""The shared calendars of an app: days that many schedules exclude by one name.

A schedule's stored spec contains a copy of the calendars that it names, so that a decision needs nothing else and the contents in
force at a time stay known. Changing a calendar therefore edits every schedule that excludes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from horae.app.bulk import BATCH
from horae.app.field_checks import check_id
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import Page, cursor_of, fitting, page_limit, place_of
from horae.app.schedule_edits import rewrite_specs
from horae.errors import CalendarInUseError, CalendarNotFoundError, HoraeError, LimitExceededError
from horae.model import Schedule, ScheduleKey, StoredCalendar
from horae.spec import SharedCalendar, Spec
from horae.spec.document import read_document
from horae.store.port import BEGINNING, Transaction


@checks_arguments
class Calendars:
    """Shared calendars by name: those of one owner, and those that all owners share."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    @property
    def _owner(self) -> str:
        return self._scope.owner or ""

    async def put(
        self, name: str, calendar: SharedCalendar | Mapping[str, Any]
    ) -> tuple[StoredCalendar, int]:
        """Create or change a calendar; return the calendar and the number of schedules that changed with it."""
        check_id(name)
        document = {"exclude": [{"calendar": name}]}
        checked = await self._scope.evaluate(  # checks every element
            lambda: Spec.parse(document, calendars={name: calendar}).document.shared[name]
        )
        stored = StoredCalendar(
            owner=self._owner, name=name, document=checked, updated_at_ms=self._scope.now()
        )
        async with self._scope.store.transaction() as transaction:
            await self._check_room(transaction, name)
            await transaction.put_calendar(stored)
        return stored, await self._rewrite_all(name)

    async def _rewrite_all(self, name: str) -> int:
        """Copy this calendar's contents into the schedules that exclude it, batch by batch; return how many changed."""
        changed, after = 0, BEGINNING
        while True:
            async with self._scope.store.reading() as transaction:
                keys = await transaction.schedules_with_spec_text(_needle(name), self._owner, after, BATCH)
            if keys:
                changed += await self._scope.change(partial(self._rewrite, name, keys))
            if len(keys) < BATCH:
                return changed
            after = keys[-1]

    async def _rewrite(self, name: str, keys: Sequence[ScheduleKey], work: UnitOfWork) -> int:
        # Read the contents after locking the schedules, so that no batch undoes a later change of the calendar.
        excluding = [each async for each in self._excluding(work.transaction, name, keys)]
        changed = await rewrite_specs(work, excluding, name)
        await work.transaction.notify()
        return changed

    async def _check_room(self, transaction: Transaction, name: str) -> None:
        """Refuse a new calendar beyond the limit: one for each owner, and one for the calendars that all owners share."""
        existing = await transaction.calendars_named([name], self._owner)
        if existing and existing[-1].owner == self._owner:
            return
        most = self._scope.config.calendars_per_user
        if await transaction.count_calendars(self._owner, most) >= most:
            who = f'the user "{self._owner}" has' if self._owner else "all users together have"
            raise LimitExceededError("calendars_per_user", most, f"{who} too many calendars")

    async def get(self, name: str) -> StoredCalendar:
        """A calendar of the owner, or else the one that all owners share."""
        async with self._scope.store.reading() as transaction:
            found = await transaction.calendars_named([name], self._owner)
        if not found:
            raise CalendarNotFoundError(name)
        return found[-1]

    async def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[StoredCalendar]:
        """Calendars in the order of their names: those of the owner, and those that all owners share."""
        limit = page_limit(limit)
        after = ("", "") if cursor is None else place_of(cursor, tuple[str, str])
        async with self._scope.store.reading() as transaction:
            sizes = await transaction.calendar_sizes(self._scope.owner, after, limit)
            number, more = fitting(sizes, limit)
            found = await transaction.calendars(self._scope.owner, after, number)
        return Page(found, cursor_of(found[-1].name, found[-1].owner) if more else None)

    async def delete(self, name: str) -> None:
        """Remove a calendar that no schedule excludes."""
        after = BEGINNING
        async with self._scope.store.transaction() as transaction:
            if not await transaction.delete_calendar(self._owner, name):
                raise CalendarNotFoundError(name)
            while keys := await transaction.schedules_with_spec_text(
                _needle(name), self._owner, after, BATCH
            ):
                for schedule in await transaction.read_schedules(keys):
                    left = await transaction.calendars_named([name], schedule.owner)
                    if (self._owner or not left) and _names(schedule, name):
                        raise CalendarInUseError(name, schedule.id)
                after = keys[-1]

    async def _excluding(
        self, transaction: Transaction, name: str, keys: Sequence[ScheduleKey]
    ) -> AsyncIterator[tuple[Schedule, SharedCalendar]]:
        """The given schedules that exclude this calendar, rather than their owner's calendar of the same name."""
        used: dict[str, StoredCalendar | None] = {}
        for schedule in await transaction.schedules(keys):
            if schedule.owner not in used:
                found = await transaction.calendars_named([name], schedule.owner)
                used[schedule.owner] = found[-1] if found else None
            calendar = used[schedule.owner]
            if schedule.unreadable:  # its row cannot be written without losing what it has
                continue
            if calendar is not None and calendar.owner == self._owner and _names(schedule, name):
                yield schedule, calendar.document


def _needle(name: str) -> str:
    """The text that the stored spec of a schedule contains if it excludes a calendar."""
    return f'"calendar":{msgspec.json.encode(name).decode()}'


def _names(schedule: Schedule, name: str) -> bool:
    try:
        return any(each.calendar == name for each in read_document(schedule.spec).exclude)
    except HoraeError:  # the stored spec is damaged; the next decision pauses the schedule
        return False
