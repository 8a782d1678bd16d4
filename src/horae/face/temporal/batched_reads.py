"""Batches and caches for describing schedules: concurrent calls share one query, and messages are kept while a schedule is unchanged."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from temporalio.api.common.v1 import Memo, SearchAttributes
from temporalio.api.schedule.v1 import Schedule as ScheduleMessage

from horae.app import Description, ScopedOperations
from horae.errors import ScheduleNotFoundError
from horae.face.temporal.preserved_messages import shown_memo, shown_search
from horae.face.temporal.schedule_message import shown_schedule
from horae.model import Schedule

MAX_TOGETHER, MAX_SHOWN = 50, 4096
PAUSE_S = 0.004
"""How long a query waits after the one before it, to collect more schedules. The first query does not wait."""
Answer = asyncio.Future[Description | None]


class Describer:
    """Reads descriptions of one owner's schedules; requests that arrive during a query go into the next one."""

    def __init__(self, operations: ScopedOperations) -> None:
        self._operations = operations
        self._waiting: dict[str, Answer] = {}
        self._reading: asyncio.Task[None] | None = None

    async def describe(self, schedule_id: str) -> Description:
        """The description of a schedule, read after this call."""
        answer = self._waiting.get(schedule_id)
        if answer is None:
            answer = self._waiting[schedule_id] = asyncio.get_running_loop().create_future()
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        description = await asyncio.shield(answer)
        if description is None:
            raise ScheduleNotFoundError(schedule_id)
        return description

    async def _read(self) -> None:
        while self._waiting:
            some = list(self._waiting)[:MAX_TOGETHER]
            answers = [self._waiting.pop(each) for each in some]
            try:
                descriptions = await self._operations.schedules.describe_many(some)
            except Exception as error:
                for each in answers:
                    each.set_exception(error)
                continue
            for answer, description in zip(answers, descriptions, strict=True):
                answer.set_result(description)
            await asyncio.sleep(PAUSE_S)


class Shown(NamedTuple):
    """A schedule as Temporal's messages. Do not change them."""

    schedule: ScheduleMessage
    memo: Memo | None
    search_attributes: SearchAttributes | None


class ShownSchedules:
    """Caches the messages of schedules, by version and state."""

    def __init__(self) -> None:
        self._kept: dict[object, Shown] = {}

    def of(self, schedule: Schedule) -> Shown:
        """The messages of a schedule."""
        key = (
            schedule.key,
            schedule.generation,
            schedule.version,
            schedule.updated_at_ms,
            schedule.spec,
            schedule.state,
        )
        shown = self._kept.get(key)
        if shown is None:
            shown = Shown(shown_schedule(schedule), shown_memo(schedule), shown_search(schedule))
            self._kept[key] = shown
            if len(self._kept) > MAX_SHOWN:
                del self._kept[next(iter(self._kept))]
        return shown
