"""Transaction methods for backfills."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from horae.model import Backfill, ScheduleKey
from horae.store.statement_execution import NEWEST, Statements
from horae.store.tables import BACKFILL


class BackfillQueries(Statements):
    """Statements on backfills."""

    async def insert_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Insert new backfills."""
        await self.insert(BACKFILL, list(backfills))

    async def update_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Update the progress of backfills that are open; ended ones do not change."""
        await self.write("update_backfill", [BACKFILL.parameters(each) for each in backfills])

    async def open_backfills(self, keys: Collection[ScheduleKey]) -> list[Backfill]:
        """The open backfills of the given schedules, oldest first."""
        return await self.find(BACKFILL, "open_backfills", keys=list(keys))

    async def count_open_backfills(self, key: ScheduleKey, limit: int) -> int:
        """How many backfills of a schedule are open, counted up to a limit."""
        return int(await self.value("count_open_backfills", key=key, limit=limit))

    async def backfills(self, key: ScheduleKey, limit: int, before: int = NEWEST[0]) -> list[Backfill]:
        """The latest backfills of a schedule, newest first; only those with a number below ``before``."""
        return await self.find(BACKFILL, "backfills", key=key, limit=limit, before=before)

    async def backfill_sizes(
        self, key: ScheduleKey, limit: int, before: int = NEWEST[0]
    ) -> list[tuple[int, int]]:
        """The numbers of those backfills, and how many bytes of text each has."""
        return await self.tuples("backfill_sizes", key=key, limit=limit, before=before)

    async def backfill(self, backfill_id: str) -> Backfill | None:
        """The backfill with an id."""
        return await self.find_one(BACKFILL, "backfill", id=backfill_id)
