"""The composition root: a database, a clock, actions, and the engine that brings them together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, overload

from horae.app.accounts import AccountPort, Accounts, Billing, UsagePort, UsageTable
from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.database import advice_for, store_of
from horae.app.engine_driver import Driver, SharedClock
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.graph_discovery import execution_of, graph_providers
from horae.app.graph_execution import GraphExecution
from horae.app.graph_state import GraphMemoryTable
from horae.app.loop_watchdog import LoopWatchdog
from horae.app.operation_arguments import NeedsAsyncWith, checked_call
from horae.app.operations import ScopedOperations
from horae.app.owner_scope import OwnerScope
from horae.app.process_shutdown import run_until_signal
from horae.app.program_schedules import Program, calling_module
from horae.app.readiness import Backlog, Readiness, ReadinessCheck
from horae.app.runs import Runs
from horae.app.schedule_draft import NewSchedule
from horae.app.schedule_edits import Edit
from horae.app.schedule_views import Description
from horae.app.schedules import Schedules
from horae.app.spec_evaluation import Evaluator
from horae.app.triggers_and_backfills import BackfillRequest, Trigger
from horae.app.usage import UsageSums
from horae.app.why import Why
from horae.app.workflows import Workflows
from horae.clock import Clock, SystemClock
from horae.config import Config
from horae.engine.attempt_log_writer import AttemptLogWriter
from horae.engine.checkpoint_writer import CheckpointWriter
from horae.engine.decider import Decider, NodeServices
from horae.engine.engine import Engine
from horae.engine.external_worker_reports import keep_token
from horae.engine.flow_decider import FlowDecider
from horae.engine.flow_host import FlowHost
from horae.engine.observer import Observer
from horae.engine.worker import Worker
from horae.engine.workflow_executor import StoredPlans, WorkflowExecutor
from horae.engine.workflow_node import WorkflowServices
from horae.errors import StoreUnavailableError
from horae.executor.action_permissions import read_permissions
from horae.executor.action_registry import Executors
from horae.executor.builtin_kinds import builtin_executors
from horae.executor.function_arguments import ActionFunction, name_of
from horae.executor.function_executor import FunctionExecutor
from horae.executor.graph_executor import GraphExecutor
from horae.executor.graph_provider_port import GraphProvider, GraphRouter
from horae.executor.port import Executor
from horae.executor.secret_sealing import Sealer
from horae.executor.supervisor import Supervisor
from horae.model import Node
from horae.store.flow_queries import FlowRecords
from horae.store.port import Filter, Transaction
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
_log = logging.getLogger("horae")


class App(NeedsAsyncWith):
    """A scheduler in a program: register actions, create schedules, run.

    ``database`` is ``sqlite:///path``, ``postgresql://…`` or ``:memory:``. ``name`` labels the schedules that the program defines;
    the default is the name of the module that creates the app. Use the app as an async context manager.
    """

    if not TYPE_CHECKING:  # for ``help``: each app has its own
        schedule, once = Program.schedule, ScopedOperations.once
        schedules, runs, backfills, calendars = Schedules, Runs, Backfills, Calendars
        flows, workflows, why, grants, usage, accounts = Flows, Workflows, Why, Grants, UsageSums, Accounts

    @checked_call
    def __init__(
        self,
        database: str = "sqlite:///horae.db",
        *,
        name: str | None = None,
        clock: Clock | None = None,
        config: Config | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.config = config or Config()
        self.database = database
        """The address of the database, as it was given."""
        self.left_behind: list[str] = []
        """The attempts that had not stopped when the app was closed; they keep running until the process ends."""
        self.hurried = False
        """Whether closing the app waits for nothing: other nodes, or the next start, attempt the running runs again."""
        self._is_open = False
        self._woken: list[Callable[[], None]] = []
        self._store = store_of(database, self.config, self.clock)
        self._shared_clock = SharedClock(self.clock, self._store)
        self.functions = FunctionExecutor()
        self._limited_store = LimitedStore(self._store)
        self.executors = Executors(
            self.functions, self.config.secret_key, read_permissions(self.config), self._limited_store
        )
        self.worker = Worker(
            self.executors, self._wake_ended, lambda: int(self.clock.monotonic() * 1000), self._shared_clock.now,
            concurrency=self.config.concurrency, terminate_ms=self.config.terminate_ms,
        )  # fmt: skip
        self._supervisor = Supervisor(self._store.locks)
        self.engine = Engine(
            self._store, self.worker, self.clock, self.config, on_extended=self._supervisor.extend
        )
        self.flow_host = FlowHost()
        """The flows that this process hosts."""
        self.engine.add_decider(partial(FlowDecider, host=self.flow_host))
        self._set_up()
        self.worker.keep_token = partial(keep_token, self._limited_store)
        self.worker.save_checkpoints = CheckpointWriter(self._limited_store, self.now).save
        self._logs = AttemptLogWriter(self._limited_store, self.clock, self.now, self.config)
        self.worker.new_log = self._logs.new_log
        self._evaluator = Evaluator(self.clock)
        self._set_up_delegation()
        self.workflow_executor = WorkflowExecutor(
            WorkflowServices(self.executors, self.clock, self.now, self.config),
            self.functions, StoredPlans(self._limited_store).load, self._limited_store.nodes,
        )  # fmt: skip
        """Runs workflows."""
        self.executors.use(self.workflow_executor)
        self._scope = OwnerScope(
            self._limited_store, self.now, self.wake, executors=self.executors, config=self.config, billing=self._billing,
            evaluator=self._evaluator, flows=self.flow_host,
        )  # fmt: skip
        self.all_owners = ScopedOperations(self._scope)
        """The operations across all owners; the attributes that follow are shortcuts to them. What they create has no owner.

        An id that several owners have is an error that names the owners; choose one with :meth:`owned_by`.
        """
        self.schedules, self.runs = self.all_owners.schedules, self.all_owners.runs
        self.backfills, self.calendars = self.all_owners.backfills, self.all_owners.calendars
        self.why, self.evaluate = self.all_owners.why, self.all_owners.evaluate
        self.once, self.grants = self.all_owners.once, self.all_owners.grants
        self.flows, self.usage = self.all_owners.flows, self.all_owners.usage
        self.workflows = self.all_owners.workflows
        self.program = Program(calling_module() if name is None else name, self._scope)
        """The schedules that this program defines."""
        self.schedule = self.program.schedule

    def _set_up_delegation(self) -> None:
        """Set up the execution of graphs for absent users: accounts, usage, and the executing side of this process."""
        self.accounts = Accounts(
            self._limited_store,
            Sealer(self.config.secret_key),
            self.now,
            required=self.config.accounts_required,
        )
        """The accounts in the database, unless ``use_accounts`` names others."""
        self._billing = Billing(self.accounts, UsageTable(self._limited_store))
        self.graphs = GraphRouter()
        """The graphs that this process can execute."""
        self.graph_execution = GraphExecution(
            self._limited_store,
            self.graphs,
            self._billing,
            self.now,
            clock=self.clock,
            lease_ms=self.config.lease_ms,
        )

    @checked_call
    def owned_by(self, owner: str, scopes: Collection[str] = ()) -> ScopedOperations:
        """The operations of one owner, who sees only what they own; with an empty name, on what has no owner.

        ``scopes`` give the caller further permissions: the operator may let a scope use an action that the owner may not.
        """
        return ScopedOperations(self._scope.for_owner(owner, scopes))

    def _set_up(self) -> None:
        """Create the parts that belong to one event loop, for each opening."""
        watchdog = LoopWatchdog(
            self.clock, self.config.loop_blocked_ms, self.worker, self.now, self.engine.tell_blocked
        )
        self._store.loop_stalls = watchdog
        self._driver = Driver(self.engine, self._store, self._shared_clock, self.config, watchdog)
        self._readiness = ReadinessCheck(
            self.engine, self._store, self._driver, self._shared_clock, self.config
        )

    def now(self) -> int:
        """The current time in milliseconds, by the clock that all nodes share."""
        return self._shared_clock.now()

    def wake(self, *deciders: str) -> None:
        """Wake the engine after a change that concerns every decider, or only the named ones."""
        self._driver.wake(*deciders)
        self._tell_woken()

    def _wake_ended(self) -> None:
        """Wake the engine, because an attempt ended."""
        self._driver.wake_ended()
        self._tell_woken()

    def _tell_woken(self) -> None:
        for each in self._woken:
            each()

    def on_wake(self, call: Callable[[], None]) -> None:
        """Call a function whenever something changes in this process, or another node notifies it; it must return quickly."""
        self._woken.append(call)

    @overload
    def action(self, name: F, /) -> F: ...
    @overload
    def action(self, name: str | None = None, /) -> Callable[[F], F]: ...
    def action(self, name: F | str | None = None, /) -> F | Callable[[F], F]:
        """Register a function as an action, under the given name or its own; schedules refer to it by that name."""

        def register(function: F) -> F:
            self.executors.register(name if isinstance(name, str) else name_of(function), function)
            self.wake()
            return function

        return register if name is None or isinstance(name, str) else register(name)

    def adopt(self, other: App) -> None:
        """Register every action, and define every schedule, of another app of this process."""
        self.executors.adopt(other.executors)
        self.workflow_executor.adopt(other.workflow_executor)
        if other.graphs.providers:  # they run under the grants of this app's database
            self.use_graphs(*other.graphs.providers)
        self.program.adopt(other.program)

    async def prune_orphans(self) -> list[str]:
        """Delete the schedules of this program that it no longer defines; return their ids."""
        return await self.program.prune_orphans()

    def use(self, executor: Executor) -> None:
        """Add an executor, and with it a kind of action that schedules can run."""
        self.executors.use(executor)
        self.wake()

    def use_builtin(self, address: str = "") -> None:
        """Add the executors that every service has. ``address`` is where external workers report to."""
        for executor in builtin_executors(self.config, self.now, address, self._supervisor):
            self.use(executor)
        sealer = Sealer(self.config.secret_key)
        memory = GraphMemoryTable(self._limited_store, self.now, sealer, seals=bool(self.config.secret_key))
        self.use_graphs(*graph_providers(self.config, memory))

    def use_accounts(self, accounts: AccountPort) -> None:
        """Use other accounts than those in the database to find whom a run is charged to, the key, and the credit."""
        self._billing.accounts = accounts

    def use_usage(self, usage: UsagePort) -> None:
        """Record usage elsewhere than in the database."""
        self._billing.usage = usage

    def use_graphs(self, *providers: GraphProvider) -> None:
        """Add graphs that schedules can run, in this process or, if the settings name another service, there."""
        for provider in providers:
            self.graphs.use(provider)
        self.use(GraphExecutor(execution_of(self.config, self.graph_execution, self.now), self.clock.wait))

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction on the app's database, for faces that store their own data in it."""
        return self._limited_store.transaction()

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that only reads; writers do not wait for it."""
        return self._limited_store.reading()

    def add_decider(self, make: Callable[[NodeServices], Decider]) -> None:
        """Add a decider that this node drives. ``make`` is its class; all nodes must have the same deciders."""
        self.engine.add_decider(make)
        self.wake()

    def watch(self, observer: Observer) -> None:
        """Notify an observer of everything that happens from now on."""
        self.engine.watch(observer)

    @property
    def leaving(self) -> bool:
        """Whether this process was asked to end: it still answers, but is not ready for more requests."""
        return self._readiness.leaving

    @leaving.setter
    def leaving(self, value: bool) -> None:
        self._readiness.leaving = value

    async def readiness(self) -> Readiness:
        """Whether this app can do its work now. Messages of the database or its driver go to the log only."""
        return await self._readiness.check()

    async def nodes(self) -> list[Node]:
        """The processes that drive this database, and what each can run."""
        return await self._limited_store.nodes()

    async def change_mark(self) -> object:
        """A value that changes whenever this process or another has changed what readers see."""
        return await self._store.change_mark()

    async def backlog(self) -> Backlog:
        """The work of all owners that waits for a node; counted up to a limit, so that it stays cheap under load."""
        async with self._limited_store.reading() as transaction:
            due = await transaction.count_due(self.now(), MAX_DUE)
            open_runs = await transaction.count_open(MAX_OPEN)
            return Backlog(due, open_runs, await FlowRecords(transaction).count_attention(MAX_OPEN))

    async def __aenter__(self) -> Self:
        await self.open()
        try:
            await self.join()
        except BaseException:
            await self.close()
            raise
        return self

    async def open(self, *, setup: bool = True) -> None:
        """Connect to the database and read its clock: enough to read and change data, without being a node.

        Without ``setup`` no database is created or migrated; a missing or older one is an error.
        """
        if self._is_open:
            raise RuntimeError("the app is open already")
        self._set_up()
        self._evaluator.open()
        try:
            await self._store.open(self.wake, setup=setup)
            await self._shared_clock.set()
        except StoreUnavailableError as error:
            await self._store.close()
            if error.blocked:
                raise
            raise StoreUnavailableError(error.reason, opening=advice_for(self.database)) from error.__cause__
        except BaseException:
            await self._store.close()
            raise
        self._limited_store.open()
        self._is_open, self.hurried = True, False

    async def join(self) -> None:
        """Become a node of the open database, and store what the program defines: nothing, if it may not be a node."""
        await self.engine.enter(self.now())
        try:
            await self.program.store()
        except BaseException:
            await self.engine.withdraw()
            raise
        await self.engine.maintain(self.now())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._driver.end()  # the context may be left while `serve` still runs
            if not self.hurried:
                await self.engine.drain(self.now)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the database without waiting for running attempts."""
        self._is_open = False
        self._driver.stop_guarding()
        await self.engine.stop_keeping_lease()
        self._logs.close()
        self._evaluator.close()
        await self.executors.close()
        self._limited_store.close()
        await self._store.close()
        self.engine.leave()
        self.left_behind = self.worker.leave_behind()
        if self.left_behind:
            _log.warning("left behind, because they do not stop: %s", ", ".join(self.left_behind))

    def run(self) -> None:
        """Open the app and keep time until SIGTERM or Ctrl-C: then wait for running attempts, and close it.

        A second signal ends it at once; another node, or the next start, attempts the running runs again.
        """
        run_until_signal(self)

    async def serve(self) -> None:
        """Keep time until cancelled. Opens the app if needed; then closes it at the end, after its running attempts."""
        if not self._is_open:
            async with self:
                await self.serve()
            return
        if self.program.unstored:
            await self.program.store()
        self.program.running = True
        try:
            await self._driver.run()
        finally:
            self.program.running = False
