"""The backfills of an app: ranges of slots that run on request."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from horae.app.field_checks import range_ms, stored_json
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import Page, place_of
from horae.app.schedule_fields import Moment
from horae.app.schedule_warnings import warn_of_input
from horae.app.triggers_and_backfills import (
    BackfillPreview,
    BackfillRequest,
    cancelled_backfill,
    given_up,
    preview_of,
    start_backfills,
)
from horae.errors import BackfillNotFoundError
from horae.model import Backfill, BackfillStatus, Origin, OriginKind, Overlap, Reason, Schedule, Status
from horae.policies import OverlapName
from horae.spec import Spec
from horae.store.port import NEWEST, Transaction


@checks_arguments
class Backfills:
    """Start, list and cancel backfills."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def preview(self, schedule_id: str, start: Moment, end: Moment) -> BackfillPreview:
        """The effect of a backfill of a range, both ends included, without starting it."""
        start_ms, end_ms = range_ms(start, end)
        async with self._scope.store.reading() as transaction:
            schedule = await self._scope.read(transaction, schedule_id)
        most = self._scope.config.backfill_slots
        return await self._scope.evaluate(
            lambda: preview_of(Spec.parse(schedule.spec), start_ms, end_ms, most)
        )

    async def start(
        self,
        schedule_id: str,
        start: Moment,
        end: Moment,
        *,
        overlap: Overlap | OverlapName | None = None,
        input: Any = None,  # noqa: A002, ANN401 - the word that users know; any JSON
        author: str = "",
        note: str = "",
    ) -> Backfill:
        """Run the slots of a range, both ends included, past or future, oldest first.

        Automatic starts come first; a pause, limits and the catch-up window do not apply.
        """
        request = BackfillRequest(
            start=start, end=end, overlap=overlap, input=input, author=author, note=note
        )

        async def begin(work: UnitOfWork) -> tuple[Schedule, Backfill]:
            schedule = await work.locked(schedule_id)
            (backfill,) = await start_backfills(work, schedule, [request])
            return schedule, backfill

        schedule, backfill = await self._scope.change(begin)
        if input is not None:
            warn_of_input(self._scope.executors, schedule, stored_json(input))
        return backfill

    async def get(self, backfill_id: str) -> Backfill:
        """A backfill and its progress: ``made`` of ``total`` slots have become runs."""
        async with self._scope.store.reading() as transaction:
            return await self._one(transaction, backfill_id)

    async def _one(self, transaction: Transaction, backfill_id: str) -> Backfill:
        backfill = await transaction.backfill(backfill_id)
        if backfill is None or not self._scope.sees(backfill):
            raise BackfillNotFoundError(backfill_id)
        return backfill

    async def list(self, schedule_id: str, limit: int = 20, *, cursor: str | None = None) -> Page[Backfill]:
        """The latest backfills of a schedule, newest first."""
        (before,) = NEWEST[:1] if cursor is None else place_of(cursor, tuple[int])
        return await self._scope.ledger(
            schedule_id, limit,
            lambda transaction, key, number: transaction.backfill_sizes(key, number, before),
            lambda transaction, key, number: transaction.backfills(key, number, before),
        )  # fmt: skip

    async def open_runs(self, schedule_id: str) -> dict[str, Counter[Status]]:
        """The number of open runs of each backfill of a schedule, by status; backfills without open runs are missing."""
        counted: dict[str, Counter[Status]] = defaultdict(Counter)
        async with self._scope.store.reading() as transaction:
            key = await self._scope.key(transaction, schedule_id)
            for run in await transaction.open_runs([key]):
                if run.origin.kind is OriginKind.BACKFILL:
                    counted[run.origin.id][run.status] += 1
        return counted

    async def cancel(self, backfill_id: str) -> Backfill:
        """Stop a backfill: no more of its slots become runs, waiting runs never start, running ones continue."""
        seen = await self.get(backfill_id)

        async def cancel(work: UnitOfWork) -> Backfill:
            transaction, now, key = work.transaction, work.now, seen.schedule_key
            await transaction.lock([key])
            backfill = await transaction.backfill(backfill_id) or seen
            if backfill.status is BackfillStatus.OPEN:
                backfill = cancelled_backfill(backfill, now)
                await transaction.update_backfills([backfill])
            origin = Origin(OriginKind.BACKFILL, backfill_id)
            own = [run for run in await transaction.open_runs([key]) if run.origin == origin]
            await transaction.update_runs(given_up(own, Reason.BACKFILL_CANCELLED, now))
            await transaction.wake_waiting([key], now)
            return backfill

        return await self._scope.change(cancel)
