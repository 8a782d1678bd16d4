"""Transaction methods for shared calendars: an owner's own, or public ones, whose owner is empty."""

from __future__ import annotations

from collections.abc import Collection

from horae.model import StoredCalendar
from horae.store.statement_execution import Statements
from horae.store.tables import CALENDAR


class CalendarQueries(Statements):
    """Statements on shared calendars."""

    async def calendars(self, owner: str | None, after: tuple[str, str], limit: int) -> list[StoredCalendar]:
        """A page of an owner's calendars and the public ones, or of all if ``owner`` is ``None``, in the order of names and owners."""
        name, whose = after
        return await self.find(
            CALENDAR, "calendars", owner=owner, after_name=name, after_owner=whose, limit=limit
        )

    async def calendar_sizes(self, owner: str | None, after: tuple[str, str], limit: int) -> list[int]:
        """How many bytes of text each calendar of that page has."""
        name, whose = after
        return await self.column(
            "calendar_sizes", owner=owner, after_name=name, after_owner=whose, limit=limit
        )

    async def calendars_named(self, names: Collection[str], owner: str) -> list[StoredCalendar]:
        """The calendars with the given names that an owner can use: the public ones, then the owner's own."""
        return await self.find(CALENDAR, "calendars_named", names=list(names), owner=owner)

    async def lock_calendars_named(self, names: Collection[str], owner: str) -> list[StoredCalendar]:
        """Like :meth:`calendars_named`, but locked: no other transaction can change or delete them until this one ends."""
        return await self.find(CALENDAR, "lock_calendars_named", names=list(names), owner=owner)

    async def count_calendars(self, owner: str, limit: int) -> int:
        """How many shared calendars an owner has, counted up to a limit."""
        return int(await self.value("count_calendars", owner=owner, limit=limit))

    async def put_calendar(self, calendar: StoredCalendar) -> None:
        """Insert or replace a shared calendar."""
        await self.write("put_calendar", [CALENDAR.parameters(calendar)])

    async def delete_calendar(self, owner: str, name: str) -> bool:
        """Delete a shared calendar; ``False`` if there is none."""
        return bool(await self.rows("delete_calendar", owner=owner, name=name))
