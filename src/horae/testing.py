"""Tools for tests: an app on a virtual clock, so that a year of schedules runs in seconds."""

from __future__ import annotations

import asyncio
import heapq
from datetime import datetime, timedelta
from itertools import count
from types import TracebackType
from typing import Self

from horae.app import App
from horae.app.field_checks import moment
from horae.app.operation_arguments import NeedsAsyncWith
from horae.checked import unknown_field
from horae.config import Config
from horae.errors import InvalidInputError

QUIET = 12
"""The number of turns of the event loop without a reading of the clock after which nothing is running any more."""

UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds")


class _Sleeper:
    """A task that waits on a virtual clock."""

    __slots__ = ("at", "gone", "number", "woken")

    def __init__(self, at: datetime, number: int) -> None:
        self.at, self.number = at, number
        self.woken = asyncio.Event()
        self.gone = False

    def __lt__(self, other: _Sleeper) -> bool:
        return (self.at, self.number) < (other.at, other.number)


class VirtualClock:
    """A clock that stands still until it is told to move.

    Give it to an :class:`~horae.App` on an SQLite database or to a :class:`~horae.Scheduler`, and let time pass with ``advance``.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._started = start
        self._sleepers: list[_Sleeper] = []
        self._numbers = count()
        self._asked = 0  # how often the clock was read: while it is read, something is still running

    def now(self) -> datetime:
        self._asked += 1
        return self._now

    def monotonic(self) -> float:
        self._asked += 1
        return (self._now - self._started).total_seconds()

    async def sleep(self, **span: float) -> None:
        """Wait for ``timedelta(**span)`` on this clock."""
        self._asked += 1
        sleeper = _Sleeper(self._now + timedelta(**span), next(self._numbers))
        heapq.heappush(self._sleepers, sleeper)
        try:
            await sleeper.woken.wait()
        finally:
            sleeper.gone = True

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until an event is set, or until ``seconds`` have passed on this clock."""
        tasks = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds=seconds))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def next_sleeper(self) -> datetime | None:
        """The earliest time at which a waiting task is to be woken."""
        while self._sleepers and self._sleepers[0].gone:
            heapq.heappop(self._sleepers)
        return self._sleepers[0].at if self._sleepers else None

    def move_to(self, moment: datetime) -> None:
        """Move forward to a moment, and wake the tasks whose time has come."""
        self._now = max(self._now, moment)
        while self._sleepers and self._sleepers[0].at <= self._now:
            heapq.heappop(self._sleepers).woken.set()

    def set_back(self, **span: float) -> None:
        """Set the clock back by ``timedelta(**span)``. Waits last as long as before."""
        moved = timedelta(**span)
        self._now -= moved
        self._started -= moved
        for sleeper in self._sleepers:
            sleeper.at -= moved

    async def advance(self, **span: float) -> None:
        """Advance the clock by ``timedelta(**span)``, and wake each waiter at its time, in order."""
        target = self._now + timedelta(**span)
        await self.settle()
        while (following := self.next_sleeper()) is not None and following <= target:
            self.move_to(following)
            await self.settle()
        self.move_to(target)
        await self.settle()

    async def settle(self) -> None:
        """Let other tasks run until none reads the clock any more."""
        quiet = 0
        while quiet < QUIET:
            before = self._asked
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._asked == before else 0


class TimeMachine(NeedsAsyncWith):
    """An app in memory, on a virtual clock, which is opened with ``async with``.

    ``advance`` moves through every moment at which something is due, in order; ``sleep`` is for actions that take time. To test an app
    of your own, take over its actions and schedules first: ``machine.app.adopt(app)``. ``start`` is a datetime or an ISO 8601 text,
    with its offset.
    """

    def __init__(self, start: datetime | str, config: Config | None = None) -> None:
        begin = moment("start", start)
        self.clock = VirtualClock(begin if isinstance(start, str) else start)
        self.app = App(":memory:", clock=self.clock, config=config)

    async def __aenter__(self) -> Self:
        await self.app.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if tasks := self.app.worker.tasks:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1)  # the clock stands still: some may never end
            self.app.worker.give_up_all()
        await self.app.close()

    @property
    def now(self) -> datetime:
        """The current time of this machine."""
        return self.clock.now()

    async def sleep(self, **span: float) -> None:
        """Wait for ``timedelta(**span)`` on the machine's clock; for actions."""
        await self.clock.sleep(**span)

    async def advance(self, **span: float) -> None:
        """Let ``timedelta(**span)`` pass: everything due on the way happens at its time."""
        for unit in span.keys() - set(UNITS):
            raise unknown_field(unit, UNITS)
        target = self.clock.now() + timedelta(**span)
        if target < self.clock.now():
            hint = "machine.clock.set_back(hours=1) sets the clock back, as an operator might"
            raise InvalidInputError("the span", "is negative, and time passes only forward", hint=hint)
        if self.app.program.unstored:
            await self.app.program.store()
        while True:
            wake = await self._settle()
            silence = await self._silence()
            moments = (wake, silence, self.clock.next_sleeper())
            following = [at for at in moments if at is not None and at <= target]
            if not following:
                break
            self.clock.move_to(min(following))
            await self.clock.settle()  # what ends at this moment has ended before the next slot is decided
            if silence is not None and silence <= self.clock.now():
                await self.app.engine.renew_and_maintain(self.app.now())
        self.clock.move_to(target)
        await self._settle()
        await self.app.engine.renew_and_maintain(self.app.now())

    async def _silence(self) -> datetime | None:
        """When the next report of an external worker is due at the latest; maintenance ends runs without one."""
        async with self.app.transaction() as transaction:
            stopping = await transaction.stopping(0)
        if stopping and (await self.app.engine.renew_and_maintain(self.app.now())).overdue:
            return self.clock.now()
        async with self.app.transaction() as transaction:
            first = await transaction.overdue_reports(2**62, 1)
        if not first:
            return None
        return self.clock.now() + timedelta(milliseconds=(first[0].report_by_ms or 0) - self.app.now())

    async def _settle(self) -> datetime | None:
        """Step until nothing more happens at this moment; returns when something is due next."""
        while True:
            now = self.app.now()
            wake = await self.app.engine.step(now)
            # Let actions and handlers run until each has ended or waits for the clock.
            for _ in range(3):
                await asyncio.sleep(0)
                while self.app.flow_host.in_store:
                    await asyncio.sleep(0)
            if self.app.worker.tasks:
                await self.clock.settle()
            if (wake is None or wake > now) and not self.app.worker.ended():
                break
        if wake is None:
            return None
        return self.clock.now() + timedelta(milliseconds=wake - now)
