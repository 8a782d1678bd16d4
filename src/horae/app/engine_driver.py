"""Keeps time for an open app: drives the engine when something is due, renews the lease, and runs maintenance."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable

from horae.app.loop_watchdog import LoopWatchdog
from horae.clock import Clock
from horae.config import Config
from horae.engine.engine import Engine
from horae.engine.lease import RENEWALS
from horae.engine.maintenance import MaintenanceReport
from horae.errors import ClockOffError, DatabaseHeldError, NodeNameTakenError, StoreUnavailableError
from horae.store.port import Store

_log = logging.getLogger("horae")


class Driver:
    """The loops of an open app. They belong to one event loop, so each opening has its own."""

    def __init__(
        self, engine: Engine, store: Store, clock: SharedClock, config: Config, watchdog: LoopWatchdog
    ) -> None:
        self.watchdog = watchdog
        self._engine = engine
        self._store = store
        self._clock = clock
        self._config = config
        self._woken = asyncio.Event()
        self._changed: set[str] | None = (
            None  # the deciders whose data changed since the last step, if that is known
        )
        self._ending = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._guarding: asyncio.Task[None] | None = None
        self.failing = False
        """Whether the last step raised something."""

    def wake(self, *deciders: str) -> None:
        """Wake the engine after a change that concerns every decider, or only the named ones."""
        if not deciders:
            self._changed = None
        elif self._changed is not None:
            self._changed.update(deciders)
        self._woken.set()

    def wake_ended(self) -> None:
        """Wake the engine, because an attempt ended."""
        self._woken.set()

    async def run(self) -> None:
        """Drive the engine until cancelled; attempts that run then may finish when the app is closed.

        A step that has begun is completed first: a commit that is not awaited would leave claims that are never launched.
        """
        self._ending.clear()
        self.watchdog.start()
        if not self._engine.holds_lease:  # it was opened long ago, and its lease expired
            await self._attempt(self._renew)
        self._engine.keep_lease()
        if self._guarding is None and self._store.lease is not None:
            self._guarding = asyncio.create_task(self._guard(), name="horae:guard")
        housekeeping = self._config.housekeeping_ms / 1000
        self._loops = [
            asyncio.create_task(self._drive(), name="horae:drive"),
            asyncio.create_task(self._repeat(self._maintain, housekeeping), name="horae:maintain"),
        ]
        if self._store.lease is not None:  # maintenance may take long, and renewing must not wait for it
            often = min(self._store.lease / RENEWALS, housekeeping)
            self._loops.append(asyncio.create_task(self._repeat(self._renew, often), name="horae:lease"))
        try:
            await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self.end()
        for task in self._loops:
            task.result()

    async def end(self) -> None:
        """Start no more steps, and wait for those that have begun."""
        self._ending.set()
        self.wake()
        await _all_done(self._loops)

    def stop_guarding(self) -> None:
        """No longer watch the event loop, nor stop attempts when the lease expires: none are running."""
        self.watchdog.stop()
        if self._guarding is not None:
            self._guarding.cancel()
            self._guarding = None

    async def _drive(self) -> None:
        """Step when something is due or has changed, and at least once every ``tick_ms``, in case a notification is lost."""
        tick = self._config.tick_ms
        asked_at = -math.inf  # when every decider stepped last, whether or not anything had changed
        while not self._ending.is_set():
            self._woken.clear()
            is_late = (self._clock.monotonic() - asked_at) * 1000 >= tick
            changed = None if self.failing or is_late else self._changed
            self._changed = set()
            failing = True
            try:
                await self._engine.step(self._clock.now(), changed)
                failing = False
            except StoreUnavailableError as error:
                # While the store is unavailable, nothing is decided and no result is lost: try again.
                self._store.tell_trouble(error)
            except ClockOffError as error:
                self._store.tell_trouble(error)
                with contextlib.suppress(StoreUnavailableError):
                    await self._clock.set()
            except Exception:
                # An error of one step must not end the loop.
                _log.exception("a step failed, and is tried again")
            self.failing = failing
            if changed is None:
                asked_at = self._clock.monotonic()
            wake = self._engine.wake_at
            pause = max(tick - (self._clock.monotonic() - asked_at) * 1000, 0)
            if wake is not None:
                pause = min(max(wake - self._clock.now(), 0), pause)
            await self._clock.wait(self._woken, pause / 1000)

    async def _guard(self) -> None:
        """Stop running attempts when the lease expires, even while the database does not answer or the app drains."""
        never = asyncio.Event()
        while True:
            await self._clock.wait(never, self._engine.guard())

    async def _repeat(self, work: Callable[[], Awaitable[None]], every: float) -> None:
        """Do some work every so many seconds, concurrently with the steps; after a failure, wait a third of that."""
        pause = every
        while True:
            await self._clock.wait(self._ending, pause)
            if self._ending.is_set():
                return
            pause = every if await self._attempt(work) else every / 3

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do some work; return ``False`` and log the error if it failed."""
        try:
            await work()
        except StoreUnavailableError as error:
            self._store.tell_trouble(error)
        except (NodeNameTakenError, DatabaseHeldError):  # another program runs in its place
            raise
        except Exception:
            _log.exception("housekeeping failed, and is tried again")
        else:
            return True
        return False

    async def _renew(self) -> None:
        await self._engine.renew(self._clock.now())

    async def _maintain(self) -> None:
        if self._store.lease is None:
            await self._renew()
        await self._clock.set()
        report = await self._engine.maintain(self._clock.now())
        if report != MaintenanceReport():
            _log.debug("housekeeping: %s", report)
            self.wake()


class SharedClock:
    """The clock that all nodes share: the clock of this machine, corrected by the database's."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store
        self._ahead_ms = 0  # by how much the store's clock is ahead of ours
        self.wait = clock.wait
        self.monotonic = clock.monotonic

    def now(self) -> int:
        """The current time in milliseconds."""
        return int(self._clock.now().timestamp() * 1000) + self._ahead_ms

    async def set(self) -> None:
        """Take the database's time, if it has a clock.

        The database read its clock between our question and its answer. If its time lies between those two by our clock, our time may
        be right, and stays.
        """
        asked = self.now()
        shared = await self._store.time()
        answered = self.now()
        if shared is not None:
            self._ahead_ms += shared - min(max(shared, asked), answered)


async def _all_done(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for tasks to end, even if cancelled while waiting: a program may be told twice to end."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
