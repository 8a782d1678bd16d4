"""The composition root: a database, a clock, actions, and the engine that brings them together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Annotated, Self, TypeVar

import msgspec

from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.create import NewSchedule
from horae.app.evaluation import Evaluator
from horae.app.manual import BackfillRequest, Trigger
from horae.app.owner_scope import OwnerScope
from horae.app.reconcile import Tasks
from horae.app.runs import Runs
from horae.app.schedule_fields import about
from horae.app.schedules import Schedules
from horae.app.update import Edit
from horae.app.views import Description
from horae.app.why import Why
from horae.clock import Clock, SystemClock
from horae.config import Config
from horae.engine.checkpoint_writer import save_checkpoint
from horae.engine.decider import Decider, NodeServices
from horae.engine.engine import Engine
from horae.engine.external_reports import keep_token
from horae.engine.maintenance import MaintenanceReport
from horae.engine.observer import Observer
from horae.engine.worker import Worker
from horae.errors import ClockOffError, DatabaseUrlError, NodeNameTakenError, StoreUnavailableError
from horae.executor.builtin_kinds import builtin_executors
from horae.executor.function import ActionFunction, FunctionExecutor
from horae.executor.port import Executor
from horae.executor.registry import Executors
from horae.model import Node, Status
from horae.store.port import Filter, Store, Transaction
from horae.store.transaction_limit import LimitedStore

__all__ = [
    "App",
    "BackfillRequest",
    "Backfills",
    "Backlog",
    "Calendars",
    "Description",
    "Edit",
    "Filter",
    "NewSchedule",
    "Readiness",
    "Runs",
    "Schedules",
    "ScopedOperations",
    "Trigger",
]  # fmt: skip

F = TypeVar("F", bound=ActionFunction)
MAX_DUE = 100_000
MAX_OPEN = 10_000
"""The limits up to which due schedules and open runs are counted."""
MAX_OFF = 1000
"""Milliseconds by which the clock may differ from the database's, after correction by the offset last measured."""
_AWAY = "the database does not answer, or cannot be written: the log says why"
_GONE = "the database file was deleted or replaced: restart this process"
_log = logging.getLogger("horae")


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an app can do its work, and what prevents it."""

    status: Annotated[str, about("``ready``, or what is wrong in a sentence.")]
    store: Annotated[bool, about("Whether the database answers.")]
    clock_off_ms: Annotated[
        int | None,
        about(
            "How much this machine's clock was last seen to be off the database's, which is allowed for; unknown without one."
        ),
    ] = None
    lease: Annotated[bool, about("Whether this is a node, and no other can have taken it for dead.")] = False
    generating: Annotated[
        bool,
        about("Whether it decides what is due; one with older time-zone data than another node does not."),
    ] = False


class Backlog(msgspec.Struct, frozen=True):
    """Work that waits for a node: the number of due schedules, and of open runs in each status."""

    due: float
    open_runs: Mapping[Status, float]


class ScopedOperations:
    """The operations on schedules, runs, backfills and calendars: of all owners, or of one owner."""

    def __init__(self, scope: OwnerScope) -> None:
        self.owner = scope.owner
        self.schedules = Schedules(scope)
        self.runs = Runs(scope)
        self.backfills = Backfills(scope)
        self.calendars = Calendars(scope)
        self.why = Why(scope)
        self.tasks = Tasks(scope)
        self.evaluate = scope.evaluate
        """Evaluates specs with a function without side effects, in a thread if it takes long."""


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
        self._loops: list[asyncio.Task[None]] = []
        self._guarding: asyncio.Task[None] | None = None
        self.left_behind: list[str] = []
        """The attempts that had not stopped when the app was closed; they keep running until the process ends."""
        self._failing = False  # whether the last step raised something
        self._proving = asyncio.Lock()
        self._proven_at: float | None = None
        self._offset = 0  # milliseconds by which the store's clock is ahead of ours
        self._store = _store(database, self.config, self.clock)
        self.functions = FunctionExecutor()
        self.executors = Executors(self.functions, self.config.secret_key)
        self.worker = Worker(
            self.executors,
            self.wake,
            lambda: int(self.clock.monotonic() * 1000),
            self.now,
            concurrency=self.config.concurrency,
            terminate_ms=self.config.terminate_ms,
        )
        self.engine = Engine(self._store, self.worker, self.clock, self.config)
        self._limited_store = LimitedStore(self._store)
        self.worker.keep_token = partial(keep_token, self._limited_store)
        self.worker.save_checkpoint = partial(save_checkpoint, self._limited_store, self.now)
        self._evaluator = Evaluator(self.clock)
        self._scope = OwnerScope(
            self._limited_store, self.now, self.wake, executors=self.executors, config=self.config, evaluator=self._evaluator
        )  # fmt: skip
        self.all_owners = ScopedOperations(self._scope)
        """The operations on what any owner has; the attributes that follow are shortcuts to them."""
        self.schedules, self.runs = self.all_owners.schedules, self.all_owners.runs
        self.backfills, self.calendars = self.all_owners.backfills, self.all_owners.calendars
        self.why, self.evaluate = self.all_owners.why, self.all_owners.evaluate

    def owned_by(self, owner: str) -> ScopedOperations:
        """The operations of one owner, who sees only what they own."""
        return ScopedOperations(self._scope.for_owner(owner))

    def now(self) -> int:
        """The current time in milliseconds, by the clock that all nodes share."""
        return int(self.clock.now().timestamp() * 1000) + self._offset

    def wake(self) -> None:
        """Wake the engine, because something changed."""
        self._woken.set()

    def action(self, name: str) -> Callable[[F], F]:
        """Register a function under a name, for schedules to refer to."""

        def register(function: F) -> F:
            self.functions.register(name, function)
            self.wake()
            return function

        return register

    def adopt(self, other: App) -> None:
        """Register every action that another app of this process has registered."""
        self.executors.adopt(other.executors)

    def use(self, executor: Executor) -> None:
        """Add an executor, and with it a kind of action that schedules can run."""
        self.executors.use(executor)
        self.wake()

    def use_builtin(self, address: str = "") -> None:
        """Add the executors that every service has. ``address`` is where external workers report to."""
        for executor in builtin_executors(self.config, self.now, address):
            self.use(executor)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction on the app's database, for faces that store their own data in it."""
        return self._limited_store.transaction()

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that only reads; writers do not wait for it."""
        return self._limited_store.reading()

    def add_decider(self, make: Callable[[NodeServices], Decider]) -> None:
        """Make this node drive another decider besides that of schedules. ``make`` is its class; all nodes must have the same."""
        self.engine.add_decider(make)
        self.wake()

    def watch(self, observer: Observer) -> None:
        """Notify an observer of everything that happens from now on."""
        self.engine.watch(observer)

    async def readiness(self) -> Readiness:
        """Whether this app can do its work now. Messages of the database or its driver go to the log only."""
        try:
            shared = await self._store.time()
            await self._prove()
        except StoreUnavailableError:
            return Readiness(status=_GONE if self._store.gone else _AWAY, store=False)
        lease, generating = self.engine.epoch > 0 and self.engine.holds_lease, self.engine.generating
        off = None if shared is None else shared - self.now()
        status = "ready"
        if not lease:
            status = "this node has no lease, and starts nothing"
        elif self.engine.superseded:
            status = "the database has a newer schema than this program, which decides nothing: update it"
        elif off is not None and abs(off) > MAX_OFF:
            status = f"the clock is {off} ms off the database's"
        elif self._failing or self.engine.failing:
            status = "the last step failed, and is tried again: the log says why"
        return Readiness(status=status, store=True, clock_off_ms=off, lease=lease, generating=generating)

    async def _prove(self) -> None:
        """Check that the database can be written, at most once per maintenance interval, however many callers ask."""
        async with self._proving:
            if self._store.gone:
                raise StoreUnavailableError(_GONE)
            now = self.clock.monotonic()
            if self._proven_at is None or now - self._proven_at >= self.config.housekeeping_ms / 1000:
                self._proven_at = None
                await self._store.prove(self.engine.epoch)
                self._proven_at = now

    async def nodes(self) -> list[Node]:
        """The processes that drive this database, and what each can run."""
        return await self._limited_store.nodes()

    async def backlog(self) -> Backlog:
        """Work that waits for a node, over all owners; counted up to a limit, so that it stays cheap under load."""
        async with self._limited_store.reading() as transaction:
            due = await transaction.count_due(self.now(), MAX_DUE)
            return Backlog(due, await transaction.count_open(MAX_OPEN))

    async def __aenter__(self) -> Self:
        await self.open()
        try:
            await self.engine.join(self.now())
        except BaseException:
            await self._store.close()
            raise
        return self

    async def open(self) -> None:
        """Connect to the database and read its clock: enough to read and to change data, without being a node."""
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
            await self._end_loops()  # the context may be left while `run` still runs
            await self.engine.drain(self.now)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the database without waiting for running attempts."""
        if self._guarding is not None:
            self._guarding.cancel()
            self._guarding = None
        self._evaluator.close()
        await self.executors.close()
        await self._store.close()
        self.left_behind = self.worker.leave_behind()
        if self.left_behind:
            _log.warning("left behind, because they do not stop: %s", ", ".join(self.left_behind))

    async def run(self) -> None:
        """Drive the engine until cancelled; attempts that run then may finish when the context ends.

        A step that has begun is completed first: a commit that is not awaited would leave claims that are never launched.
        """
        self._ending.clear()
        if not self.engine.holds_lease:  # it was opened long ago, and its lease expired
            await self._attempt(self._renew)
        if self._guarding is None and self._store.lease is not None:
            self._guarding = asyncio.create_task(self._guard(), name="horae:guard")
        self._loops = [
            asyncio.create_task(self._drive(), name="horae:drive"),
            asyncio.create_task(self._repeat(self._maintain), name="horae:maintain"),
        ]
        if self._store.lease is not None:  # maintenance may take long, and renewing must not wait for it
            self._loops.append(asyncio.create_task(self._repeat(self._renew), name="horae:lease"))
        try:
            await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end_loops()
        for task in self._loops:
            task.result()

    async def _end_loops(self) -> None:
        """Start no more steps, and wait for those that have begun."""
        self._ending.set()
        self.wake()
        await _all_done(self._loops)

    async def _drive(self) -> None:
        """Step when something is due or has changed, and at least once every ``tick_ms``, in case a notification is lost."""
        tick = self.config.tick_ms
        while not self._ending.is_set():
            self._woken.clear()
            failing = True
            try:
                await self.engine.step(self.now())
                failing = False
            except StoreUnavailableError as error:
                # While the store is unavailable, nothing is decided and no result is lost: try again.
                _log.warning("%s", error.for_operator)
            except ClockOffError as error:
                _log.warning("%s", error.message)
                with contextlib.suppress(StoreUnavailableError):
                    await self._set_clock()
            except Exception:
                # An error of one step must not end the loop.
                _log.exception("a step failed, and is tried again")
            self._failing = failing
            wake = self.engine.wake_at
            pause = tick if wake is None else min(max(wake - self.now(), 0), tick)
            await self.clock.wait(self._woken, pause / 1000)

    async def _guard(self) -> None:
        """Stop running attempts when the lease expires, even while the database does not answer or the app drains."""
        never = asyncio.Event()
        while True:
            await self.clock.wait(never, self.engine.guard())

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work every ``housekeeping_ms``, concurrently with the steps; after a failure, in a third of that."""
        pause = every = self.config.housekeeping_ms / 1000
        while True:
            await self.clock.wait(self._ending, pause)
            if self._ending.is_set():
                return
            pause = every if await self._attempt(work) else every / 3

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do some work; return ``False`` and log the error if it failed."""
        try:
            await work()
        except StoreUnavailableError as error:
            _log.warning("%s", error.for_operator)
        except NodeNameTakenError:
            raise
        except Exception:
            _log.exception("housekeeping failed, and is tried again")
        else:
            return True
        return False

    async def _renew(self) -> None:
        await self.engine.renew(self.now())

    async def _maintain(self) -> None:
        if self._store.lease is None:
            await self._renew()
        await self._set_clock()
        report = await self.engine.maintain(self.now())
        if report != MaintenanceReport():
            _log.info("housekeeping: %s", report)
            self.wake()


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


def _store(database: str, config: Config, clock: Clock) -> Store:
    """The store for an address; its driver is imported on demand. With a virtual clock, SQLite runs without a thread."""
    lease = config.lease_ms / 1000
    if database.startswith(("postgresql://", "postgres://")):
        from horae.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(database, lease=lease)
    from horae.store.sqlite import SqliteStore  # noqa: PLC0415

    if database == ":memory:":
        return SqliteStore(":memory:", inline=True)
    if database.startswith("sqlite:///") and len(database) > len("sqlite:///"):
        inline = not isinstance(clock, SystemClock)
        path = database.removeprefix("sqlite:///")
        return SqliteStore(path, inline=inline, grace=lease, monotonic=clock.monotonic)
    raise DatabaseUrlError(database)
