"""The kind ``workflow``: starts the workflow of a run, through a launcher, or by loading it from its store and running it here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from horae.engine.workflow_attempt import WorkflowRun
from horae.engine.workflow_node import WorkflowServices
from horae.engine.workflow_scope import Scope
from horae.errors import LeftToOtherNodeError, NotAdmittedError, NotStartedError, StaleClaimError
from horae.executor.attempt_context import Context
from horae.executor.checkpoints import CheckpointBounds
from horae.executor.expression_pool import ExpressionPool
from horae.executor.function_executor import FunctionExecutor, call_in_thread, is_coroutine_function
from horae.executor.port import Executor
from horae.model import Action, Node, Origin, OriginKind, Reason, Run
from horae.store.transaction_limit import StoreAccess
from horae.workflow.document import ActionNode
from horae.workflow.ports import Dag, DagExecutor, RunLauncher, RunMeta, WorkflowStore
from horae.workflow.regions import Plan
from horae.workflow.validate import read_workflow, stored_plan

WORKFLOW = "workflow"
"""The kind, and the address, of actions that start workflows."""
MAX_KEY_LENGTH = 500
"""Characters of the key of a checkpoint: a node within four loops."""

MAX_PLANS = 256

LEFT_FOR_S = 10.0
"""How long this node leaves a run to a node that has the actions it lacks, before it checks again."""
MAX_LEFT = 10_000
"""How many runs it remembers to leave."""

Nodes = Callable[[], Awaitable[Sequence[Node]]]
"""The nodes of the database."""
LoadPlan = Callable[[str, int, str], Awaitable[Plan | None]]
"""The plan of a workflow that is deployed here, by its id, version and user."""


class WorkflowInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The workflow of a run: the input of the action ``workflow``."""

    workflow_id: str
    version: int
    user_id: str
    trigger: str | None = None
    """The trigger that caused it."""
    key: str | None = None
    """The key under which a caller launched it."""
    input: Any = None
    """The input of the workflow."""


def workflow_of(action: Action) -> WorkflowInput | None:
    """The workflow of an action; ``None`` if it has none."""
    if action.address != WORKFLOW:
        return None
    try:
        return msgspec.convert(action.input, WorkflowInput)
    except msgspec.ValidationError:
        return None


def may_run(owner: str, wanted: WorkflowInput) -> bool:
    """Whether an owner's schedule may run a workflow: the owner's own, or a public one. A schedule without an owner may run any."""
    return not owner or wanted.user_id in {"", owner}


class WorkflowExecutor(Executor):
    """Runs workflows. A program's own ``launcher``, ``store`` and ``dag_executor`` replace the built-in ones."""

    kind = WORKFLOW
    own_of_app = True

    def __init__(
        self, services: WorkflowServices, functions: FunctionExecutor, load_plan: LoadPlan, nodes: Nodes
    ) -> None:
        self._services = services
        self._nodes = nodes
        self._left: dict[str, tuple[Sequence[str], float]] = {}
        """The runs that are left to other nodes, by id: the actions that are missing here, and until when."""
        self._functions = functions
        self._load_plan = load_plan
        config = services.config
        self._pool = ExpressionPool(config.expression_ms, config.node_output_bytes)
        self.checkpoint_bounds = CheckpointBounds(
            key_length=MAX_KEY_LENGTH, value_bytes=3 * config.node_output_bytes, number=config.workflow_steps,
            total_bytes=config.run_output_bytes,
        )  # fmt: skip
        self.launcher: RunLauncher | None = None
        self.store: WorkflowStore | None = None
        self.dag_executor: DagExecutor | None = None

    def adopt(self, other: WorkflowExecutor) -> None:
        """Take over the launcher, store and executor that a program gave to another app."""
        self.launcher = other.launcher or self.launcher
        self.store = other.store or self.store
        self.dag_executor = other.dag_executor or self.dag_executor

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - what the workflow returns
        """Start the workflow of a run. A failure before it begins is a failed launch, which is retried."""
        wanted = _wanted(context)
        if not may_run(context.owner, wanted):
            reason = f'the workflow "{wanted.workflow_id}" is that of another owner, "{wanted.user_id}"'
            raise NotAdmittedError(Reason.NOT_ALLOWED, reason)
        if self.launcher is not None:
            return await self._launch(self.launcher, wanted, context)
        meta = RunMeta(
            source=_source(context.origin), user_id=wanted.user_id, scheduled_for=context.nominal,
            idempotency_key=wanted.key or context.key,
        )  # fmt: skip
        if self.store is not None or self.dag_executor is not None:
            return await self._elsewhere(wanted, meta, context)
        plan = await self._load_plan(wanted.workflow_id, wanted.version, wanted.user_id)
        if plan is not None:
            await self._leave_to_others(plan, context.run_id)
            return await _InProcess(self._services, self._pool, context, wanted).run_plan(plan, meta)
        if wanted.workflow_id in self._functions.actions():
            return await self._functions.call(wanted.workflow_id, context)
        raise missing(wanted)

    def can_run(self, run: Run) -> bool:
        """Whether a run may be attempted here; not for a while after it was left to a node that has the missing actions."""
        lacking, until = self._left.get(run.id, ((), 0.0))
        if not lacking or self._services.clock.monotonic() >= until:
            return True
        return all(self._services.executors.knows(each) for each in lacking)

    async def _leave_to_others(self, plan: Plan, run_id: str) -> None:
        """Raise if another living node has all actions of a workflow, and this one has not."""
        self._left.pop(run_id, None)
        needed = {node.data.action for node in plan.nodes.values() if isinstance(node, ActionNode)}
        lacking = sorted(each for each in needed if not self._services.executors.knows(each))
        if not lacking or not any(each.alive and needed <= set(each.actions) for each in await self._nodes()):
            return
        while len(self._left) >= MAX_LEFT:
            del self._left[next(iter(self._left))]
        self._left[run_id] = (lacking, self._services.clock.monotonic() + LEFT_FOR_S)
        raise LeftToOtherNodeError(lacking)

    async def _launch(self, launcher: RunLauncher, wanted: WorkflowInput, context: Context) -> None:
        start = partial(
            launcher.start, wanted.workflow_id, wanted.version, wanted.user_id, context.nominal, context.key
        )  # fmt: skip
        if not await _call_program(launcher.start, start, context, "the launcher"):
            raise missing(wanted)

    async def _elsewhere(self, wanted: WorkflowInput, meta: RunMeta, context: Context) -> Any:  # noqa: ANN401 - any JSON
        """Run a workflow with a store or an executor of the program's own."""
        dag = await self._load(wanted, context)
        if dag is None:
            raise missing(wanted)
        if self.dag_executor is not None:
            run = partial(self.dag_executor.run, dag, meta)
            return await _call_program(self.dag_executor.run, run, context, "the executor")
        return await _InProcess(self._services, self._pool, context, wanted).run(dag, meta)

    async def _load(self, wanted: WorkflowInput, context: Context) -> Dag | None:
        if self.store is None:
            plan = await self._load_plan(wanted.workflow_id, wanted.version, wanted.user_id)
            return None if plan is None else msgspec.to_builtins(plan.workflow)
        load = partial(self.store.load_dag, wanted.workflow_id, wanted.version, wanted.user_id)
        found: Dag | None = await _call_program(self.store.load_dag, load, context, "the workflow store")
        return found

    async def close(self) -> None:
        """End the processes that evaluate expressions."""
        await self._pool.close()


class StoredPlans:
    """The workflows that are deployed in the database, structured; versions never change, so the latest used ones are kept."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._plans: dict[tuple[str, int, str], Plan] = {}
        self._loading: dict[tuple[str, int, str], asyncio.Future[Plan | None]] = {}

    async def load(self, workflow_id: str, version: int, user_id: str) -> Plan | None:
        """The plan of a version: the user's, or else that of all users; ``None`` if there is none. Runs that start together share a read."""
        key = (workflow_id, version, user_id)
        if key in self._plans:
            return self._plans[key]
        loading = self._loading.get(key)
        if loading is None or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._loading[key] = asyncio.ensure_future(self._read(workflow_id, version, user_id))
            loading.add_done_callback(lambda _: self._loading.pop(key, None))
        return await asyncio.shield(loading)  # others may wait for it

    async def _read(self, workflow_id: str, version: int, user_id: str) -> Plan | None:
        async with self._store.reading() as transaction:
            stored = await transaction.workflow(user_id, workflow_id, version)
        if stored is None:
            return None
        plan = stored_plan(stored.document)
        if stored.owner == user_id:  # else the user may deploy one of their own
            while len(self._plans) >= MAX_PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[workflow_id, version, user_id] = plan
        return plan


class _InProcess:
    """The executor that is built in: runs a workflow within an attempt of its run."""

    def __init__(
        self, services: WorkflowServices, pool: ExpressionPool, context: Context, wanted: WorkflowInput
    ) -> None:
        self._services, self._pool, self._context, self._wanted = services, pool, context, wanted

    async def run(self, dag: Dag, meta: RunMeta) -> Any:  # noqa: ANN401 - any JSON
        """Run a document, once it is checked."""
        plan = read_workflow(dag, self._services.config, self._services.executors.refusal_for_node)
        return await self.run_plan(plan, meta)

    async def run_plan(self, plan: Plan, meta: RunMeta) -> Any:  # noqa: ANN401 - any JSON
        wanted, context = self._wanted, self._context
        run = {
            "id": context.run_id, "key": meta.idempotency_key, "user_id": meta.user_id, "source": meta.source,
            "scheduled_for": _text(meta.scheduled_for), "workflow_id": wanted.workflow_id, "version": wanted.version,
        }  # fmt: skip
        names = {"input": wanted.input, "run": run, "item": None, "index": 0}
        scope = Scope(self._pool, names)
        return await WorkflowRun(plan, context, self._services, scope, wanted.trigger).run()


async def _call_program(function: object, call: Callable[[], Any], context: Context, who: str) -> Any:  # noqa: ANN401 - any JSON
    """Call a launcher, store or executor of the program; an exception is a failed launch, not a failed run."""
    try:
        return await (call() if is_coroutine_function(function) else call_in_thread(call, context))
    except (NotStartedError, StaleClaimError):
        raise
    except Exception as error:
        raise NotStartedError(f"{who} failed: {type(error).__name__}: {error}") from error


def _wanted(context: Context) -> WorkflowInput:
    workflow = workflow_of(Action(kind=WORKFLOW, input=context.input))
    if workflow is None:
        reason = f'the input of "{context.schedule_id}" names no workflow_id, version and user_id'
        raise NotStartedError(reason, permanent=True)
    return workflow


def missing(wanted: WorkflowInput) -> NotStartedError:
    """The error for a workflow that does not exist: starting it again would not help."""
    reason = f'there is no workflow "{wanted.workflow_id}" of version {wanted.version}'
    return NotStartedError(reason, permanent=True)


def _source(origin: Origin) -> str:
    return "schedule" if origin.kind is OriginKind.AUTOMATIC else origin.kind.value


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
