"""The kit for tests: an app on a virtual clock, so that a year of schedules runs in seconds."""

from __future__ import annotations

import asyncio
import heapq
from datetime import datetime, timedelta
from itertools import count
from types import TracebackType
from typing import Self

from horae.app import App
from horae.config import Config


class VirtualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, int, asyncio.Event]] = []
        self._numbers = count()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Wait on this clock."""
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), next(self._numbers), woken))
        await woken.wait()

    def next_sleeper(self) -> datetime | None:
        """When the first of those who wait wants to be woken."""
        return self._sleepers[0][0] if self._sleepers else None

    def move_to(self, moment: datetime) -> None:
        """Move, and wake those whose time has come."""
        self._now = max(self._now, moment)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            heapq.heappop(self._sleepers)[2].set()


class TimeMachine:
    """An app in memory, on a virtual clock.

    ``advance`` moves through every moment at which something is due, in order; ``sleep`` is for actions that take their time.
    """

    def __init__(self, start: datetime, config: Config | None = None) -> None:
        self.clock = VirtualClock(start)
        self.app = App(":memory:", clock=self.clock, config=config)

    async def __aenter__(self) -> Self:
        await self.app.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if tasks := self.app.executor.tasks:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1)  # the clock stands still: some may never end
        await self.app.close()

    @property
    def now(self) -> datetime:
        """The present of this machine."""
        return self.clock.now()

    async def sleep(self, seconds: float) -> None:
        """Wait on the machine's clock: for actions."""
        await self.clock.sleep(seconds)

    async def advance(self, **span: float) -> None:
        """Let time pass, as ``timedelta(**span)``: everything due on the way happens at its time."""
        target = self.clock.now() + timedelta(**span)
        while True:
            wake = await self._settle()
            following = [at for at in (wake, self.clock.next_sleeper()) if at is not None and at <= target]
            if not following:
                break
            self.clock.move_to(min(following))
        self.clock.move_to(target)
        await self._settle()
        await self.app.engine.keep_house(self.app.now())

    async def _settle(self) -> datetime | None:
        """Step until nothing more happens at this moment; returns when the next thing does."""
        while True:
            now = self.app.now()
            wake = await self.app.engine.step(now)
            # Let actions run until each has ended or waits for the clock.
            for _ in range(3):
                await asyncio.sleep(0)
            if (wake is None or wake > now) and not self.app.executor.ended():
                break
        if wake is None:
            return None
        return self.clock.now() + timedelta(milliseconds=wake - now)
