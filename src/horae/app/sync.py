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
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Never, ParamSpec, Self, TypeVar

from horae.app import App
from horae.app.accounts import Accounts
from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.operations import ScopedOperations
from horae.app.runs import Runs
from horae.app.schedule_warnings import Told, warn_program, warnings_held
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
        told: list[Told] = []

        async def work() -> R:
            with warnings_held() as held:
                result = await operation()
            told.extend(held)
            return result

        result = self._submit(self.open(), work)
        for each in told:
            warn_program(*each)
        return result

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
                self._thread = threading.Thread(
                    target=self._run, args=(loop,), name="horae:background", daemon=True
                )
                self._process = os.getpid()
                self._thread.start()
                try:
                    self._submit(loop, self._app.open)
                except BaseException:
                    self._end(loop)
                    raise
                self._loop = loop
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the event loop. The thread keeps the app: at the exit of a program that never closed it, it is not torn down under the loop."""
        loop.run_forever()

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


def blocking(operation: Callable[Concatenate[T, P], Operation[R]]) -> Callable[Concatenate[Proxy[T], P], R]:
    """An operation, as a method of a :class:`Proxy` that blocks until it is done."""

    @functools.wraps(operation)
    def call(proxy: Proxy[T], /, *args: P.args, **keywords: P.kwargs) -> R:
        return proxy._background.run(lambda: operation(proxy._target, *args, **keywords))  # noqa: SLF001 - this is a method of it

    return call


class SyncSchedules(Proxy[Schedules]):
    """:class:`Schedules`, blocking."""

    create = blocking(Schedules.create)
    create_many = blocking(Schedules.create_many)
    create_once = blocking(Schedules.create_once)
    knows_action = blocking(Schedules.knows_action)
    get = blocking(Schedules.get)
    exists = blocking(Schedules.exists)
    is_of_graph = blocking(Schedules.is_of_graph)
    last_starts = blocking(Schedules.last_starts)
    meaning = blocking(Schedules.meaning)
    describe = blocking(Schedules.describe)
    describe_many = blocking(Schedules.describe_many)
    recent_runs = blocking(Schedules.recent_runs)
    times = blocking(Schedules.times)
    counts = blocking(Schedules.counts)
    versions = blocking(Schedules.versions)
    list = blocking(Schedules.list)
    unreadable = blocking(Schedules.unreadable)
    count = blocking(Schedules.count)
    update = blocking(Schedules.update)
    put = blocking(Schedules.put)
    edit = blocking(Schedules.edit)
    patch = blocking(Schedules.patch)
    pause = blocking(Schedules.pause)
    resume = blocking(Schedules.resume)
    skip_next = blocking(Schedules.skip_next)
    pause_all = blocking(Schedules.pause_all)
    resume_all = blocking(Schedules.resume_all)
    trigger = blocking(Schedules.trigger)
    delete = blocking(Schedules.delete)
    search = blocking(Schedules.search)
    soonest = blocking(Schedules.soonest)
    get_many = blocking(Schedules.get_many)


class SyncRuns(Proxy[Runs]):
    """:class:`Runs`, blocking."""

    unstarted_ranges = blocking(Runs.unstarted_ranges)
    get = blocking(Runs.get)
    history = blocking(Runs.history)
    attempts = blocking(Runs.attempts)
    logs = blocking(Runs.logs)
    checkpoints = blocking(Runs.checkpoints)
    list = blocking(Runs.list)
    latest = blocking(Runs.latest)
    search = blocking(Runs.search)
    rerun = blocking(Runs.rerun)
    cancel = blocking(Runs.cancel)
    terminate = blocking(Runs.terminate)
    report = blocking(Runs.report)
    check_token = blocking(Runs.check_token)


class SyncBackfills(Proxy[Backfills]):
    """:class:`Backfills`, blocking."""

    preview = blocking(Backfills.preview)
    start = blocking(Backfills.start)
    get = blocking(Backfills.get)
    list = blocking(Backfills.list)
    open_runs = blocking(Backfills.open_runs)
    cancel = blocking(Backfills.cancel)


class SyncCalendars(Proxy[Calendars]):
    """:class:`Calendars`, blocking."""

    put = blocking(Calendars.put)
    get = blocking(Calendars.get)
    list = blocking(Calendars.list)
    delete = blocking(Calendars.delete)


class SyncFlows(Proxy[Flows]):
    """:class:`Flows`, blocking."""

    deploy = blocking(Flows.deploy)
    publish = blocking(Flows.publish)
    publish_many = blocking(Flows.publish_many)
    list = blocking(Flows.list)
    show = blocking(Flows.show)
    runs = blocking(Flows.runs)
    chain = blocking(Flows.chain)
    logs = blocking(Flows.logs)
    events = blocking(Flows.events)
    inputs = blocking(Flows.inputs)
    explain = blocking(Flows.explain)
    run_now = blocking(Flows.run_now)
    pause = blocking(Flows.pause)
    resume = blocking(Flows.resume)
    resolve = blocking(Flows.resolve)
    skip = blocking(Flows.skip)


class SyncGrants(Proxy[Grants]):
    """:class:`Grants`, blocking."""

    create = blocking(Grants.create)
    get = blocking(Grants.get)
    validate = blocking(Grants.validate)
    list = blocking(Grants.list)
    revoke = blocking(Grants.revoke)
    renew = blocking(Grants.renew)


class SyncUsage(Proxy[UsageSums]):
    """:class:`UsageSums`, blocking."""

    sums = blocking(UsageSums.sums)
    of_run = blocking(UsageSums.of_run)


class SyncAccounts(Proxy[Accounts]):
    """:class:`Accounts`, blocking."""

    account_of = blocking(Accounts.account_of)
    default_virtual_key = blocking(Accounts.default_virtual_key)
    has_credit = blocking(Accounts.has_credit)
    get = blocking(Accounts.get)
    put = blocking(Accounts.put)


class SyncWorkflows(Proxy[Workflows]):
    """:class:`Workflows`, blocking."""

    deploy = blocking(Workflows.deploy)
    check = blocking(Workflows.check)
    free_version = blocking(Workflows.free_version)
    get = blocking(Workflows.get)
    list = blocking(Workflows.list)
    versions = blocking(Workflows.versions)
    start = blocking(Workflows.start)
    launch = blocking(Workflows.launch)
    nodes = blocking(Workflows.nodes)


class SyncWhy(Proxy[Why]):
    """:class:`Why`, blocking."""

    explain = blocking(Why.explain)
    preview = blocking(Why.preview)
    forecast = blocking(Why.forecast)


class SyncOperations(Proxy[ScopedOperations]):
    """The operations of all owners, or of one owner, blocking."""

    if not TYPE_CHECKING:  # for ``help``: each object has its own
        schedules, runs, backfills, calendars = SyncSchedules, SyncRuns, SyncBackfills, SyncCalendars
        grants, usage, workflows, flows, why = SyncGrants, SyncUsage, SyncWorkflows, SyncFlows, SyncWhy

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

    once = blocking(ScopedOperations.once)
    create_single_run = blocking(ScopedOperations.create_single_run)


def _of_app(operation: Callable[Concatenate[App, P], Operation[R]]) -> Callable[Concatenate[SyncApp, P], R]:
    """An operation of an :class:`App` itself, blocking."""

    @functools.wraps(operation)
    def call(app: SyncApp, /, *args: P.args, **keywords: P.kwargs) -> R:
        return app._background.run(lambda: operation(app.app, *args, **keywords))  # noqa: SLF001 - this is a method of it

    return call


class SyncApp(SyncOperations):
    """An :class:`App` for code without an event loop, usable from several threads.

    It opens at its first operation; close it, or use it as a context manager. ``start`` keeps time in the background, ``run`` here.
    """

    if not TYPE_CHECKING:  # for ``help``: each object has its own
        action, schedule, use, run = App.action, App.schedule, App.use, App.run
        accounts = SyncAccounts

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
        self.accounts = SyncAccounts(self._background, self.app.accounts)

    nodes, backlog, readiness = _of_app(App.nodes), _of_app(App.backlog), _of_app(App.readiness)
    prune_orphans = _of_app(App.prune_orphans)

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

    if not TYPE_CHECKING:

        async def __aexit__(self, *_: object) -> None: ...

        def __aenter__(self) -> Never:
            raise TypeError('write "with" for a SyncApp; in an event loop, use horae.App with "async with"')
