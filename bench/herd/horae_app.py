"""Horae: an app that creates its schedules in batches, and then runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from bench.herd.contestant import Contestant, background, batches
from bench.herd.ledger import Count, succeeded
from bench.herd.starts import no_operation
from horae import App, NewSchedule


class HoraeApp(Contestant):
    _app: App
    _count: Count

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self._app = App(self.url)
        self._app.action("noop")(no_operation)
        async with self._app:
            yield

    @abstractmethod
    def spec(self, due: datetime) -> str | dict[str, Any]:
        """What names the instant."""

    async def register(self, count: int, due: int) -> None:
        spec = self.spec(datetime.fromtimestamp(due, UTC))
        for batch in batches(count):
            await self._app.schedules.create_many(
                [NewSchedule(id=f"s{number}", spec=spec, action="noop") for number in batch]
            )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with succeeded(self.url) as self._count, background(self._app.run()):
            yield

    async def ended(self) -> int:
        return await self._count()


class Cron(HoraeApp):
    """Schedules that fire at this second of every day."""

    def spec(self, due: datetime) -> str:
        return f"{due.second} {due.minute} {due.hour} * * *"


class OneShot(HoraeApp):
    """Schedules with a single time."""

    def spec(self, due: datetime) -> dict[str, Any]:
        return {"times": [due.isoformat()]}
