"""The composition root: a database, a clock, actions, and the engine that brings them together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, TypeVar

from horae.app.backfills import Backfills
from horae.app.runs import Runs
from horae.app.schedules import NewSchedule, Schedules
from horae.clock import Clock, SystemClock
from horae.config import Config
from horae.engine.engine import Engine
from horae.engine.housekeeper import Report
from horae.engine.watcher import Watcher
from horae.errors import ClockOffError, DatabaseUrlError, NodeNameTakenError, StoreUnavailableError
from horae.executor.function import ActionFunction, FunctionExecutor
from horae.model import Node
from horae.store.port import Filter, Store, Transaction

__all__ = ["App", "Backfills", "Filter", "NewSchedule", "Runs", "Schedules"]

F = TypeVar("F", bound=ActionFunction)
_log = logging.getLogger("horae")


class App:
    """A scheduler in a program: register actions, create schedules, run.

    ``database`` is ``sqlite:///path``, ``postgresql://…`` or ``:memory:``. Use it as an async context manager.
    """

    def __init__(
        self,
        database: str = "sqlite:///horae.db",
        *,
        clock: Clock | None = None,
        config: Config | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.config = config or Config()
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._offset = 0  # what the store's own clock is ahead of ours
        self._store = _store(database, self.config, inline=not isinstance(self.clock, SystemClock))
        self.executor = FunctionExecutor(
            self.wake,
            lambda: int(self.clock.monotonic() * 1000),
            concurrency=self.config.concurrency,
            terminate=self.config.terminate_ms,
        )
        self.engine = Engine(self._store, self.executor, self.clock, self.config)
        self.schedules = Schedules(self._store, self.now, self.executor, self.wake)
        self.runs = Runs(self._store, self.now, self.wake)
        self.backfills = Backfills(self._store, self.now, self.wake)

    def now(self) -> int:
        """The present, in milliseconds, by the clock that all nodes share."""
        return int(self.clock.now().timestamp() * 1000) + self._offset

    def wake(self) -> None:
        """Something changed: do not sleep on."""
        self._woken.set()

    def action(self, name: str) -> Callable[[F], F]:
        """Register a function under a name, for schedules to refer to."""

        def register(function: F) -> F:
            self.executor.register(name, function)
            self.wake()
            return function

        return register

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction of the app's database, for faces that keep something of their own in it."""
        return self._store.transaction()

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody what happens, from now on."""
        self.engine.watch(watcher)

    async def nodes(self) -> list[Node]:
        """The processes that drive this database, and what each can run."""
        return await self._store.nodes()

    async def __aenter__(self) -> Self:
        await self.open()
        try:
            await self.engine.join(self.now())
        except BaseException:
            await self._store.close()
            raise
        return self

    async def open(self) -> None:
        """Connect to the database, and look at its clock: enough to ask and to change things, without being a node."""
        try:
            await self._store.open(self.wake)
            await self._set_clock()
        except BaseException:
            await self._store.close()
            raise

    async def _set_clock(self) -> None:
        if (shared := await self._store.time()) is not None:
            self._offset += shared - self.now()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.engine.drain(self.now)
        finally:
            await self.close()

    async def close(self) -> None:
        """Let go of the database without waiting for anything."""
        await self._store.close()

    async def run(self) -> None:
        """Keep time until cancelled; what is running then is waited for when the context ends.

        A step that has begun is ended first: a commit whose answer nobody waits for would leave claims that nobody launches.
        """
        self._ending.clear()
        tasks = [
            asyncio.create_task(self._drive(), name="horae:drive"),
            asyncio.create_task(self._keep_house(), name="horae:house"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._ending.set()
            self.wake()
            await _all_done(tasks)
        for task in tasks:
            task.result()

    async def _drive(self) -> None:
        """Step whenever something is due, or happened; at least once each tick, should the word of it be lost."""
        tick = self.config.tick_ms
        while not self._ending.is_set():
            self._woken.clear()
            wake = None
            try:
                wake = await self.engine.step(self.now())
            except StoreUnavailableError as error:
                # Nothing is decided while the store is away, and nothing is forgotten: try again.
                _log.warning("%s", error.message)
            except ClockOffError as error:
                _log.warning("%s", error.message)
                with contextlib.suppress(StoreUnavailableError):
                    await self._set_clock()
            except Exception:
                # Whatever it is, it must not end what keeps time for everything else.
                _log.exception("a step failed, and is tried again")
            pause = tick if wake is None else min(max(wake - self.now(), 0), tick)
            await self.clock.wait(self._woken, pause / 1000)

    async def _keep_house(self) -> None:
        """Give signs of life and do what is in no hurry, whatever the steps are busy with."""
        while True:
            await self.clock.wait(self._ending, self.config.housekeeping_ms / 1000)
            if self._ending.is_set():
                return
            try:
                await self._set_clock()
                report = await self.engine.keep_house(self.now())
                if report != Report():
                    _log.info("housekeeping: %s", report)
                    self.wake()
            except StoreUnavailableError as error:
                _log.warning("%s", error.message)
            except NodeNameTakenError:
                raise
            except Exception:
                _log.exception("housekeeping failed, and is tried again")


async def _all_done(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for tasks, also when this is cancelled meanwhile, as a program does that is asked twice to end."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _store(database: str, config: Config, *, inline: bool) -> Store:
    """The store of an address; its driver loads when it is asked for. A virtual clock waits for no thread."""
    if database.startswith(("postgresql://", "postgres://")):
        from horae.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(database, lease=config.lease_ms / 1000)
    from horae.store.sqlite import SqliteStore  # noqa: PLC0415

    if database == ":memory:":
        return SqliteStore(":memory:", inline=True)
    if database.startswith("sqlite:///") and len(database) > len("sqlite:///"):
        return SqliteStore(database.removeprefix("sqlite:///"), inline=inline)
    raise DatabaseUrlError(database)
