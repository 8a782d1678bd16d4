"""The operations of an app for code without an event loop: each blocks until it is done.

There is one implementation: an event loop in a background thread runs the operations of an :class:`App`, and the methods here submit
to it. They have the signatures of the operations, also for type checkers.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
from collections.abc import Callable, Collection, Coroutine
from types import MethodType, TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from horae.app import App
from horae.app.accounts import Accounts
from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.operations import ScopedOperations
from horae.app.runs import Runs
from horae.app.schedules import Schedules
from horae.app.usage import UsageSums
from horae.app.why import Why
from horae.app.workflows import Workflows
from horae.clock import Clock
from horae.config import Config

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
Operation = Coroutine[Any, Any, R]
_log = logging.getLogger("horae")


class Background:
    """An event loop in a thread, with an app that is opened for its first operation."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._changing = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._serving: asyncio.Task[None] | None = None

    def run(self, operation: Callable[[], Operation[R]]) -> R:
        """Run an operation to its end, from any thread but that of the event loop."""
        return self._submit(self.open(), operation)

    def blocking(self, operation: Callable[P, Operation[R]]) -> Callable[P, R]:
        """An operation as a function that blocks until it is done."""

        @functools.wraps(operation)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            return self.run(lambda: operation(*args, **keywords))

        return call

    def _submit(self, loop: asyncio.AbstractEventLoop, operation: Callable[[], Operation[R]]) -> R:
        if threading.current_thread() is self._thread:
            raise TypeError(
                "this would block the event loop that it waits for: use the asynchronous operations of .app"
            )
        if self._process != os.getpid():
            raise RuntimeError(
                "this process was forked from one that had opened the app: open it in each process"
            )
        submitted = asyncio.run_coroutine_threadsafe(operation(), loop)
        try:
            return submitted.result()
        except BaseException:  # an interrupt of the caller too
            submitted.cancel()
            raise

    def open(self) -> asyncio.AbstractEventLoop:
        """Start the event loop and open the app in it, unless both are running."""
        with self._changing:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=loop.run_forever, name="horae:background", daemon=True)
                self._process = os.getpid()
                self._thread.start()
                try:
                    self._submit(loop, self._app.open)
                except BaseException:
                    self._end(loop)
                    raise
                self._loop = loop
            return self._loop

    def start(self) -> None:
        """Make the app a node, and keep time in the background."""
        self.run(self._start)

    async def _start(self) -> None:
        if self._serving is None:
            await self._app.join()
            self._serving = asyncio.create_task(self._app.serve(), name="horae:serve")
            self._serving.add_done_callback(_log_failure)

    def close(self) -> None:
        """Wait for running attempts, close the app, and end the event loop, if there is one."""
        with self._changing:
            if (loop := self._loop) is None:
                return
            try:
                self._submit(loop, self._close)
            finally:
                self._loop = None
                self._end(loop)

    async def _close(self) -> None:
        if self._serving is None:
            await self._app.close()
            return
        self._serving.cancel()
        await asyncio.wait([self._serving])
        self._serving = None
        await self._app.__aexit__(None, None, None)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join()
        loop.close()


def _log_failure(serving: asyncio.Task[None]) -> None:
    if not serving.cancelled() and (error := serving.exception()) is not None:
        _log.error("the app keeps time no more", exc_info=error)


class Proxy(Generic[T]):
    """The blocking form of an object with asynchronous operations."""

    def __init__(self, background: Background, target: T) -> None:
        self._background = background
        self._target = target


class Blocking(Generic[T, P, R]):
    """An operation, as a method of a :class:`Proxy` that blocks until it is done."""

    def __init__(self, operation: Callable[Concatenate[T, P], Operation[R]]) -> None:
        self.operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, proxy: None, owner: type) -> Self: ...
    @overload
    def __get__(self, proxy: Proxy[T], owner: type) -> Callable[P, R]: ...
    def __get__(self, proxy: Proxy[T] | None, owner: type) -> Self | Callable[P, R]:
        if proxy is None:
            return self
        bound: Callable[P, Operation[R]] = MethodType(self.operation, proxy._target)  # noqa: SLF001 - this is a method of it
        return proxy._background.blocking(bound)  # noqa: SLF001


class SyncSchedules(Proxy[Schedules]):
    """:class:`Schedules`, blocking."""

    create = Blocking(Schedules.create)
    create_many = Blocking(Schedules.create_many)
    create_once = Blocking(Schedules.create_once)
    knows_action = Blocking(Schedules.knows_action)
    get = Blocking(Schedules.get)
    exists = Blocking(Schedules.exists)
    is_of_graph = Blocking(Schedules.is_of_graph)
    last_starts = Blocking(Schedules.last_starts)
    meaning = Blocking(Schedules.meaning)
    describe = Blocking(Schedules.describe)
    describe_many = Blocking(Schedules.describe_many)
    recent_runs = Blocking(Schedules.recent_runs)
    times = Blocking(Schedules.times)
    counts = Blocking(Schedules.counts)
    versions = Blocking(Schedules.versions)
    list = Blocking(Schedules.list)
    unreadable = Blocking(Schedules.unreadable)
    count = Blocking(Schedules.count)
    update = Blocking(Schedules.update)
    put = Blocking(Schedules.put)
    edit = Blocking(Schedules.edit)
    patch = Blocking(Schedules.patch)
    pause = Blocking(Schedules.pause)
    resume = Blocking(Schedules.resume)
    skip_next = Blocking(Schedules.skip_next)
    pause_all = Blocking(Schedules.pause_all)
    resume_all = Blocking(Schedules.resume_all)
    trigger = Blocking(Schedules.trigger)
    delete = Blocking(Schedules.delete)
    search = Blocking(Schedules.search)
    soonest = Blocking(Schedules.soonest)
    get_many = Blocking(Schedules.get_many)


class SyncRuns(Proxy[Runs]):
    """:class:`Runs`, blocking."""

    unstarted_ranges = Blocking(Runs.unstarted_ranges)
    get = Blocking(Runs.get)
    history = Blocking(Runs.history)
    attempts = Blocking(Runs.attempts)
    logs = Blocking(Runs.logs)
    checkpoints = Blocking(Runs.checkpoints)
    list = Blocking(Runs.list)
    latest = Blocking(Runs.latest)
    search = Blocking(Runs.search)
    rerun = Blocking(Runs.rerun)
    cancel = Blocking(Runs.cancel)
    terminate = Blocking(Runs.terminate)
    report = Blocking(Runs.report)
    check_token = Blocking(Runs.check_token)


class SyncBackfills(Proxy[Backfills]):
    """:class:`Backfills`, blocking."""

    preview = Blocking(Backfills.preview)
    start = Blocking(Backfills.start)
    get = Blocking(Backfills.get)
    list = Blocking(Backfills.list)
    open_runs = Blocking(Backfills.open_runs)
    cancel = Blocking(Backfills.cancel)


class SyncCalendars(Proxy[Calendars]):
    """:class:`Calendars`, blocking."""

    put = Blocking(Calendars.put)
    get = Blocking(Calendars.get)
    list = Blocking(Calendars.list)
    delete = Blocking(Calendars.delete)


class SyncFlows(Proxy[Flows]):
    """:class:`Flows`, blocking."""

    deploy = Blocking(Flows.deploy)
    publish = Blocking(Flows.publish)
    publish_many = Blocking(Flows.publish_many)
    list = Blocking(Flows.list)
    show = Blocking(Flows.show)
    runs = Blocking(Flows.runs)
    chain = Blocking(Flows.chain)
    logs = Blocking(Flows.logs)
    events = Blocking(Flows.events)
    inputs = Blocking(Flows.inputs)
    explain = Blocking(Flows.explain)
    run_now = Blocking(Flows.run_now)
    pause = Blocking(Flows.pause)
    resume = Blocking(Flows.resume)
    resolve = Blocking(Flows.resolve)
    skip = Blocking(Flows.skip)


class SyncGrants(Proxy[Grants]):
    """:class:`Grants`, blocking."""

    create = Blocking(Grants.create)
    get = Blocking(Grants.get)
    validate = Blocking(Grants.validate)
    list = Blocking(Grants.list)
    revoke = Blocking(Grants.revoke)
    renew = Blocking(Grants.renew)


class SyncUsage(Proxy[UsageSums]):
    """:class:`UsageSums`, blocking."""

    sums = Blocking(UsageSums.sums)
    of_run = Blocking(UsageSums.of_run)


class SyncAccounts(Proxy[Accounts]):
    """:class:`Accounts`, blocking."""

    account_of = Blocking(Accounts.account_of)
    default_virtual_key = Blocking(Accounts.default_virtual_key)
    has_credit = Blocking(Accounts.has_credit)
    get = Blocking(Accounts.get)
    put = Blocking(Accounts.put)


class SyncWorkflows(Proxy[Workflows]):
    """:class:`Workflows`, blocking."""

    deploy = Blocking(Workflows.deploy)
    check = Blocking(Workflows.check)
    free_version = Blocking(Workflows.free_version)
    get = Blocking(Workflows.get)
    list = Blocking(Workflows.list)
    versions = Blocking(Workflows.versions)
    start = Blocking(Workflows.start)
    launch = Blocking(Workflows.launch)
    nodes = Blocking(Workflows.nodes)


class SyncWhy(Proxy[Why]):
    """:class:`Why`, blocking."""

    explain = Blocking(Why.explain)
    preview = Blocking(Why.preview)
    forecast = Blocking(Why.forecast)


class SyncOperations(Proxy[ScopedOperations]):
    """The operations of all owners, or of one owner, blocking."""

    def __init__(self, background: Background, target: ScopedOperations) -> None:
        super().__init__(background, target)
        self.owner = target.owner
        self.schedules = SyncSchedules(background, target.schedules)
        self.runs = SyncRuns(background, target.runs)
        self.backfills = SyncBackfills(background, target.backfills)
        self.calendars = SyncCalendars(background, target.calendars)
        self.grants = SyncGrants(background, target.grants)
        self.usage = SyncUsage(background, target.usage)
        self.workflows = SyncWorkflows(background, target.workflows)
        self.flows = SyncFlows(background, target.flows)
        self.why = SyncWhy(background, target.why)

    once = Blocking(ScopedOperations.once)
    create_single_run = Blocking(ScopedOperations.create_single_run)


class SyncApp(SyncOperations):
    """An :class:`App` for code without an event loop, usable from several threads.

    It opens at its first operation; close it, or use it as a context manager. ``start`` keeps time in the background, ``run`` here.
    """

    def __init__(
        self,
        database: str = "sqlite:///horae.db",
        *,
        name: str | None = None,
        clock: Clock | None = None,
        config: Config | None = None,
    ) -> None:
        self.app = App(database, name=name, clock=clock, config=config)
        """The asynchronous app."""
        super().__init__(Background(self.app), self.app.all_owners)
        self.action, self.schedule, self.use = self.app.action, self.app.schedule, self.app.use
        self.run = self.app.run
        blocking = self._background.blocking
        self.nodes, self.backlog = blocking(self.app.nodes), blocking(self.app.backlog)
        self.readiness, self.prune_orphans = blocking(self.app.readiness), blocking(self.app.prune_orphans)
        self.accounts = SyncAccounts(self._background, self.app.accounts)

    def owned_by(self, owner: str, scopes: Collection[str] = ()) -> SyncOperations:
        """The operations of one owner, who sees only what they own."""
        return SyncOperations(self._background, self.app.owned_by(owner, scopes))

    def open(self) -> None:
        """Connect to the database; the first operation does it too."""
        self._background.open()

    def start(self) -> None:
        """Store what the program defines, and keep time in the background until the app is closed."""
        self._background.start()

    def close(self) -> None:
        """Wait for running attempts, and close the database; the next operation opens it again."""
        self._background.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
