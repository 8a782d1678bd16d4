"""Horae: an app that creates its schedules in batches, and then runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.herd.contestant import BACKFILLS_AT_ONCE, Contestant, background, batches
from bench.herd.ledger import Count, succeeded
from bench.herd.starts import no_operation, until
from horae import App, Config, NewSchedule, Overlap, Policies


class HoraeApp(Contestant):
    config = Config()
    policies = Policies()
    action: Any = "noop"
    _app: App
    _count: Count

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self._app = App(self.url, config=self.config)
        self._app.action("noop")(no_operation)
        async with self._app:
            yield

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with succeeded(self.url) as self._count, background(self._app.serve()):
            yield

    async def ended(self) -> int:
        return await self._count()


class Herd(HoraeApp):
    """Many schedules with one spec."""

    @abstractmethod
    def spec(self, due: datetime) -> str | dict[str, Any]:
        """A spec that names the instant."""

    async def register(self, count: int, due: int) -> None:
        spec = self.spec(datetime.fromtimestamp(due, UTC))
        for batch in batches(count):
            await self._app.schedules.create_many(
                [
                    NewSchedule(id=f"s{number}", spec=spec, action=self.action, policies=self.policies)
                    for number in batch
                ]
            )


class Cron(Herd):
    """Schedules that fire at this second of every day."""

    def spec(self, due: datetime) -> str:
        return f"{due.second} {due.minute} {due.hour} * * *"


class OneShot(Herd):
    """Schedules with a single time."""

    def spec(self, due: datetime) -> dict[str, Any]:
        return {"times": [due.isoformat()]}


class EverySecond(Herd):
    """Schedules that fire in each of some seconds, whether or not the end of the run before is recorded."""

    policies = Policies(overlap=Overlap.ALLOW_ALL)

    def spec(self, due: datetime) -> dict[str, Any]:
        last = due + timedelta(seconds=self.seconds - 1)
        return {"crons": ["* * * * * *"], "start_at": due.isoformat(), "end_at": last.isoformat()}


class MadeUp(HoraeApp):
    """One schedule, paused, and a backfill of its past that is asked for at the instant."""

    # By default it takes 10 slots a step, and keeps 10,000 runs of a schedule: fewer than are counted here.
    config = Config(backfills_per_iteration=BACKFILLS_AT_ONCE, retention_count=2**40)
    policies = Policies(overlap=Overlap.ALLOW_ALL)
    _due: datetime
    _slots: int

    async def register(self, count: int, due: int) -> None:
        self._due, self._slots = datetime.fromtimestamp(due, UTC), count
        schedule = NewSchedule(id="s0", spec="* * * * *", action="noop", policies=self.policies, paused=True)
        await self._app.schedules.create_many([schedule])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        last = self._due.replace(second=0)
        async with super().running():
            await until(self._due.timestamp())
            await self._app.backfills.start("s0", last - timedelta(minutes=self._slots - 1), last)
            yield
