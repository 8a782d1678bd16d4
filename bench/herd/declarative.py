"""The declarative scheduler: as a contestant, and how long its ``initialize`` takes, the first time and again.

``python -m bench.herd.declarative URL COUNT`` prints one line of JSON: milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import perf_counter

from bench.herd.contestant import Contestant
from bench.herd.ledger import Count, succeeded
from bench.herd.starts import no_operation
from horae import Scheduler
from horae.face.declarative import Registration


def registrations(count: int, cron: str) -> list[Registration]:
    return [(f"task {number}", cron, no_operation, timedelta(minutes=5)) for number in range(count)]


class Declarative(Contestant):
    """Tasks that are all due in one minute. Registering is the first ``initialize``; a second one begins to run them."""

    granularity = 60
    _scheduler: Scheduler
    _tasks: list[Registration]
    _count: Count

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self._scheduler = Scheduler(database=self.url, timezone="UTC")
        yield

    async def register(self, count: int, due: int) -> None:
        minute = datetime.fromtimestamp(due, UTC)
        self._tasks = registrations(count, f"{minute.minute} {minute.hour} * * *")
        await self._scheduler.initialize(self._tasks)
        await self._scheduler.stop()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with succeeded(self.url) as self._count:
            await self._scheduler.initialize(self._tasks)
            yield
            await self._scheduler.stop()

    async def ended(self) -> int:
        return await self._count()


async def initialize(url: str, count: int) -> dict[str, float]:
    scheduler = Scheduler(database=url, timezone="UTC")
    tasks = registrations(
        count, "0 0 29 2 *"
    )  # none is due while this is measured, or only once in four years
    took = []
    for _ in range(2):
        began = perf_counter()
        await scheduler.initialize(tasks)
        took.append((perf_counter() - began) * 1000)
        await scheduler.stop()
    return {"first": took[0], "again": took[1]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(initialize(sys.argv[1], int(sys.argv[2])))))
