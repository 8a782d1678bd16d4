"""The backfills of an app: ranges of slots that are made up on request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from horae.app.schedules import one, own_overlap
from horae.errors import BackfillLimitError, BackfillNotFoundError, InvalidInputError, NaiveTimeError
from horae.model import Backfill, BackfillStatus, Overlap, Reason, Status
from horae.spec import Spec
from horae.store.port import Store

_replace = msgspec.structs.replace


class BackfillPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a backfill would do: how many slots, from when to when."""

    slots: int
    first: datetime | None
    last: datetime | None


class Backfills:
    """Ask for ranges to be made up, watch them, cancel them."""

    def __init__(self, store: Store, now: Callable[[], int], wake: Callable[[], None]) -> None:
        self._store = store
        self._now = now
        self._wake = wake

    async def preview(self, schedule_id: str, first: datetime, last: datetime) -> BackfillPreview:
        """What a backfill of a range, both ends included, would do; nothing happens."""
        async with self._store.transaction() as transaction:
            schedule = one(await transaction.schedules([schedule_id]), schedule_id)
        return _preview(Spec.parse(schedule.spec), *_range(first, last))

    async def start(
        self,
        schedule_id: str,
        first: datetime,
        last: datetime,
        *,
        overlap: Overlap | None = None,
        input: Any = None,  # noqa: A002, ANN401 - the word that users know; any JSON
        author: str = "",
        note: str = "",
    ) -> Backfill:
        """Make up the slots of a range, both ends included, past or future, oldest first.

        Automatic starts go before it; a pause, limits and the catch-up window do not hold it up.
        """
        now = self._now()
        begin, end = _range(first, last)
        async with self._store.transaction() as transaction:
            schedule = one(await transaction.schedules([schedule_id]), schedule_id)
            preview = _preview(Spec.parse(schedule.spec), begin, end)
            limit = schedule.policies.backfill_limit
            if limit is not None and preview.slots > limit:
                raise BackfillLimitError(schedule_id, preview.slots, limit)
            backfill = Backfill(
                id=f"{schedule_id}:{await transaction.next_number()}", schedule_id=schedule_id,
                incarnation=schedule.incarnation, first=begin, last=end,
                overlap=own_overlap(schedule, overlap), cursor=begin - 1, total=preview.slots, created_at=now,
                author=author, note=note, input=input,
            )  # fmt: skip
            await transaction.insert_backfills([backfill])
            await transaction.look_now([schedule_id], now)
            await transaction.notify()
        self._wake()
        return backfill

    async def get(self, backfill_id: str) -> Backfill:
        """A backfill as it stands: ``made`` of ``total`` slots have become runs."""
        async with self._store.transaction() as transaction:
            found = await transaction.backfill(backfill_id)
        if found is None:
            raise BackfillNotFoundError(backfill_id)
        return found

    async def list(self, schedule_id: str, limit: int = 20) -> list[Backfill]:
        """The latest backfills of a schedule, newest first."""
        async with self._store.transaction() as transaction:
            return await transaction.backfills(schedule_id, min(limit, 1000))

    async def cancel(self, backfill_id: str) -> Backfill:
        """Make no more of its slots up; those that wait never start, those that run go on."""
        backfill = await self.get(backfill_id)
        now = self._now()
        async with self._store.transaction() as transaction:
            await transaction.lock([backfill.schedule_id])
            backfill = await transaction.backfill(backfill_id) or backfill
            if backfill.status is BackfillStatus.OPEN:
                backfill = _replace(backfill, status=BackfillStatus.CANCELLED, ended_at=now)
                await transaction.update_backfills([backfill])
            waiting = [
                run
                for run in await transaction.open_runs([backfill.schedule_id])
                if run.origin == f"backfill:{backfill_id}" and run.status is not Status.RUNNING
            ]
            await transaction.update_runs(
                _replace(run, status=Status.DROPPED, reason=Reason.BACKFILL_CANCELLED, ended_at=now)
                for run in waiting
            )
            await transaction.look_behind([backfill.schedule_id], now)
        self._wake()
        return backfill


def _range(first: datetime, last: datetime) -> tuple[int, int]:
    """The whole seconds of a range with both ends."""
    for moment in (first, last):
        if moment.utcoffset() is None:
            raise NaiveTimeError(moment)
    if last < first:
        raise InvalidInputError("last", f"is before first: {last} < {first}")
    # A nominal time is a whole second: from half past one on, that second is over.
    begin = first.timestamp()
    return int(begin) + (begin > int(begin)), int(last.timestamp())


def _preview(spec: Spec, begin: int, end: int) -> BackfillPreview:
    first = spec.next_instant(begin - 1)
    if first is None or first > end:
        return BackfillPreview(slots=0, first=None, last=None)
    last = spec.previous_instant(end)
    return BackfillPreview(
        slots=spec.count(begin - 1, end),
        first=datetime.fromtimestamp(first, UTC),
        last=None if last is None else datetime.fromtimestamp(last, UTC),
    )
