"""One attempt of a workflow's run: walks its regions, runs what is ready, and saves what ended before anything follows it.

The decisions are those of :mod:`horae.policy.workflow_progress`. An attempt begins where the one before was interrupted: nodes whose ends
were saved are not run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import msgspec

from horae.engine.workflow_node import NodeCall, NodeCalls, WorkflowServices
from horae.engine.workflow_scope import Scope
from horae.errors import ExpressionError, InvalidInputError, LimitExceededError, NodeFailedError
from horae.executor.attempt_context import Context
from horae.policy.workflow_progress import (
    NodeEnd,
    Progress,
    candidates,
    is_gateway,
    lost_nodes,
    progress,
    round_sources,
)
from horae.workflow.document import ActionNode, EndNode, ForeachNode, JoinNode, TriggerNode, WhileNode
from horae.workflow.node_checkpoint import ENDED, PREFIX, NodeRecord, NodeState, place_of
from horae.workflow.regions import Plan, Region, is_loop

Rounds = tuple[tuple[str, int], ...]
"""The rounds of the loops that a node is in, outermost first."""
_CARRIED_ON = {"crashed", "shutdown"}
"""After these, a failed node stays failed; after others, the run is attempted again, and so are its failed nodes."""
_replace = msgspec.structs.replace


class _RegionEnd(NamedTuple):
    """How a region ended: its unhandled failure, its outputs, and the nodes that lead back to its loop."""

    failures: tuple[str, ...]
    scope: Scope
    ended: Mapping[str, NodeEnd]


class WorkflowRun:
    """An attempt of a run of a workflow."""

    def __init__(
        self,
        plan: Plan,
        context: Context,
        services: WorkflowServices,
        scope: Scope,
        trigger: str | None = None,
    ) -> None:
        """``trigger`` is the one that started it; without one, all triggers count as fired."""
        self.plan = plan
        self.context = context
        self.services = services
        self._scope = scope
        self.calls = NodeCalls(services, context, self._save)
        self.earlier = _earlier(context)
        self.left_behind: set[asyncio.Task[NodeRecord]] = set()
        self._steps = 0
        self.fired = fired_triggers(plan, trigger)

    async def run(self) -> Any:  # noqa: ANN401 - any JSON
        """Run to the end; returns the result, or raises ``NodeFailedError``."""
        end = await self._region(self.plan.root, (), self._scope)
        if end.failures:
            raise NodeFailedError(end.failures)
        reached = [
            name
            for name in self.plan.root.order
            if name in end.ended and isinstance(self.plan.nodes[name], EndNode)
        ]
        return _output(end.scope, reached)

    async def _region(self, region: Region, rounds: Rounds, scope: Scope) -> _RegionEnd:
        walk = _Walk(self, region, rounds, scope)
        return await walk.to_end()

    async def _save(self, place: str, record: NodeRecord) -> None:
        await self.save_all({place: record})

    async def save_all(self, records: Mapping[str, NodeRecord]) -> None:
        """Save the records of nodes, by place; durable when this returns."""
        if not records:
            return
        try:
            await self.context.checkpoint_all({PREFIX + place: each for place, each in records.items()})
        except InvalidInputError:
            most = self.services.config.run_output_bytes
            raise LimitExceededError(
                "run_output_bytes", most, "the outputs of the run's nodes are too large"
            ) from None

    def count(self, place: str) -> None:
        """Count a step of the run, and raise if it has too many."""
        self._steps += 1
        most = self.services.config.workflow_steps
        if self._steps > most:
            raise LimitExceededError(
                "workflow_steps", most, f'the run has too many steps, "{place}" is one more'
            )

    async def loop(self, name: str, rounds: Rounds, scope: Scope) -> NodeRecord:
        """Run the rounds of a loop."""
        node, started = self.plan.nodes[name], self.services.now()
        record = NodeRecord(state=NodeState.SUCCEEDED, started_at_ms=started)
        try:
            if isinstance(node, ForeachNode):
                outputs, failure = await self._foreach(node, rounds, scope)
            else:
                assert isinstance(node, WhileNode)  # noqa: S101 - there are two kinds of loops
                outputs, failure = await self._while(node, rounds, scope)
            record = _replace(record, output=outputs)
        except ExpressionError as error:
            failure = error.message
        if failure:
            record = _replace(record, state=NodeState.FAILED, failure=failure, output=None)
        return _replace(record, ended_at_ms=self.services.now())

    async def _foreach(self, node: ForeachNode, rounds: Rounds, scope: Scope) -> tuple[list[Any], str]:
        items = await scope.value(node.data.items)
        if not isinstance(items, list):
            raise ExpressionError(node.data.items, "must be a list")
        if len(items) > node.data.max_rounds:
            return [], f"there are {len(items)} items, and max_rounds is {node.data.max_rounds}"
        outputs: dict[int, Any] = {}
        failures: dict[int, str] = {}
        left = iter(enumerate(items))

        async def work() -> None:
            for index, item in left:
                if failures:
                    return
                outputs[index], failure = await self._round(node.id, rounds, scope, item, index)
                if failure:
                    failures[index] = failure

        await _all(work() for _ in range(min(node.data.concurrency, len(items))))
        failure = failures[min(failures)] if failures else ""
        return [outputs[index] for index in sorted(outputs)], failure

    async def _while(self, node: WhileNode, rounds: Rounds, scope: Scope) -> tuple[list[Any], str]:
        outputs: list[Any] = []
        item: Any = None
        while await scope.within(item, len(outputs)).holds(node.data.condition):
            if len(outputs) >= node.data.max_rounds:
                return outputs, f"it did not end within max_rounds, {node.data.max_rounds}"
            item, failure = await self._round(node.id, rounds, scope, item, len(outputs))
            outputs.append(item)
            if failure:
                return outputs, failure
        return outputs, ""

    async def _round(
        self,
        loop: str,
        rounds: Rounds,
        scope: Scope,
        item: Any,  # noqa: ANN401 - any JSON
        index: int,
    ) -> tuple[Any, str]:
        """The output of a round, and how it failed, if it did."""
        region = self.plan.regions[loop]
        end = await self._region(region, (*rounds, (loop, index)), scope.within(item, index))
        if end.failures:
            return None, f"round {index}: {end.failures[0]}"
        return _output(end.scope, round_sources(region, end.ended)), ""


def _output(scope: Scope, names: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON
    """The output of the only node, or those of several nodes by name."""
    outputs = {name: scope.output(name) for name in names}
    return next(iter(outputs.values()), None) if len(outputs) < 2 else outputs


def fired_triggers(plan: Plan, trigger: str | None) -> frozenset[str]:
    """The triggers that count as fired: the one that started a run, or all if none is named."""
    triggers = {name for name, node in plan.nodes.items() if isinstance(node, TriggerNode)}
    return frozenset(triggers & {trigger} or triggers)


class _Walk:
    """The walk through one region: of the workflow, or of one round of a loop."""

    def __init__(self, run: WorkflowRun, region: Region, rounds: Rounds, scope: Scope) -> None:
        self._run, self._plan, self._region = run, run.plan, region
        self._rounds = rounds
        self._prefix = place_of(rounds, "")
        self._scope = scope
        self._ended: dict[str, NodeEnd] = {}
        self._faults: list[str] = []
        self._unsaved: dict[str, NodeRecord] = {}
        self._tasks: dict[str, asyncio.Task[NodeRecord]] = {}
        self._calls: dict[str, tuple[ActionNode, NodeCall]] = {}
        """Actions that were called a moment ago."""
        self._fired = run.fired if region.loop is None else frozenset()
        self._now = run.services.now

    async def to_end(self) -> _RegionEnd:
        """Run what is ready until nothing is left."""
        await self._begin()
        try:
            while True:
                state = await self._settle()
                await self._save()
                self._start(state)
                if self._calls:
                    await self._see_quick_ends()
                    continue
                if not self._tasks:
                    break
                await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                for name in [each for each in self._region.order if each in self._tasks]:
                    if self._tasks[name].done():
                        await self._end(name, self._tasks.pop(name).result())
        finally:
            for _, call in self._calls.values():
                await call.stop(self._run.services.config.terminate_ms)
            await _stop(self._tasks.values())
        failures = [f'node "{name}" failed: {self._failure(name)}' for name in state.unhandled]
        return _RegionEnd((*failures, *self._faults), self._scope, self._ended)

    async def _begin(self) -> None:
        """Take over what earlier attempts saved, and enter the body of a loop."""
        for name in self._region.order:
            record = self._run.earlier.get(self._place(name))
            if record is not None and record.state in ENDED:
                self._remember(name, record)
        loop = self._region.loop
        if loop is not None:
            record = await self._followed(loop, NodeRecord(state=NodeState.SUCCEEDED))
            self._ended[loop] = NodeEnd(record.state, record.followed)
            if record.fault is not None:
                self._faults.append(record.fault)

    def _place(self, name: str) -> str:
        return self._prefix + name

    def _remember(self, name: str, record: NodeRecord) -> None:
        self._ended[name] = NodeEnd(record.state, record.followed)
        self._scope.add(name, record)
        if record.fault is not None:
            self._faults.append(record.fault)

    def _failure(self, name: str) -> str:
        return str(self._scope.nodes[name]["error"])

    async def _settle(self) -> Progress:
        """Run the ready nodes that call no action, until there are none; cancel nodes that a join no longer needs."""
        while True:
            for name in self._lost_tasks():
                task = self._tasks.pop(name)
                task.cancel()
                self._run.left_behind.add(task)
                task.add_done_callback(self._run.left_behind.discard)
                self._keep(name, NodeRecord(state=NodeState.CANCELLED, ended_at_ms=self._now()))
            state = progress(self._plan, self._region, self._ended, self._fired)
            instant = [name for name in state.ready if not self._takes_time(name)]
            if not instant:
                return state
            for name in instant:
                await self._end(name, await self._instant(name))

    def _lost_tasks(self) -> AbstractSet[str]:
        """Running nodes that no join needs any more."""
        if not self._tasks:
            return frozenset()
        return lost_nodes(self._plan, self._region, self._ended) & self._tasks.keys()

    def _takes_time(self, name: str) -> bool:
        node = self._plan.nodes[name]
        return isinstance(node, ActionNode) or is_loop(node)

    async def _instant(self, name: str) -> NodeRecord:
        """The end of a node that calls no action."""
        node = self._plan.nodes[name]
        self._run.count(self._place(name))
        record = NodeRecord(state=NodeState.SUCCEEDED, started_at_ms=self._now(), ended_at_ms=self._now())
        match node:
            case TriggerNode():
                return _replace(record, output=self._scope.names["input"])
            case JoinNode():
                return _replace(record, output=self._arrived(name))
            case EndNode():
                try:
                    return _replace(record, output=await self._scope.values(node.data.output) or None)
                except ExpressionError as error:
                    return _replace(record, state=NodeState.FAILED, failure=error.message)
            case _:
                return record

    def _arrived(self, name: str) -> list[str]:
        """The branches that a join waited for."""
        edges = self._plan.edges
        return [
            edges[number].source
            for number in self._region.incoming[name]
            if edges[number].source in self._ended and number in self._ended[edges[number].source].followed
        ]

    async def _end(self, name: str, record: NodeRecord) -> None:
        self._keep(name, await self._followed(name, record))

    def _keep(self, name: str, record: NodeRecord) -> None:
        """Note the end of a node, to be saved before anything follows it."""
        self._remember(name, record)
        self._unsaved[self._place(name)] = record

    async def _followed(self, name: str, record: NodeRecord) -> NodeRecord:
        """The record of a node that ended, with the edges that are followed from it."""
        gateway = is_gateway(self._plan.nodes[name])
        self._scope.add(name, record)  # conditions may ask for it
        followed: list[int] = []
        failures: list[str] = []
        for number in candidates(self._plan, self._region, name, record.state):
            edge = self._plan.edges[number]
            try:
                if edge.condition is None or await self._scope.holds(edge.condition):
                    followed.append(number)
            except ExpressionError as error:
                failures.append(f'the condition of the edge "{edge}" failed: {error.details["reason"]}')
            if gateway and (followed or failures):
                break
        if gateway and failures and record.state is NodeState.SUCCEEDED:
            failed = _replace(record, state=NodeState.FAILED, failure=failures[0])
            return await self._followed(name, failed)
        if gateway and followed:
            record = _replace(record, output=self._plan.edges[followed[0]].target)
        return _replace(record, followed=tuple(followed), fault=next(iter(failures), None))

    async def _save(self) -> None:
        records, self._unsaved = self._unsaved, {}
        await self._run.save_all(records)

    def _start(self, state: Progress) -> None:
        """Begin ready nodes: actions with a simple input are called at once, all others get a task."""
        for name in state.ready:
            if name in self._tasks:
                continue
            place = self._place(name)
            self._run.count(place)
            node = self._plan.nodes[name]
            call = self._call(node, place) if isinstance(node, ActionNode) else None
            if call is not None and isinstance(node, ActionNode):
                self._calls[name] = (node, call)
            else:
                self._tasks[name] = asyncio.create_task(self._work(name), name=f"horae:{place}")

    def _call(self, node: ActionNode, place: str) -> NodeCall | None:
        """Call an action at once, if it need not wait for anything."""
        try:
            given = self._scope.values_now(node.data.input) if node.data.input else None
        except ExpressionError:
            return None
        if given is None and node.data.input:
            return None
        return self._run.calls.begin(node, place, given, self._run.earlier.get(place))

    async def _see_quick_ends(self) -> None:
        """Wait one turn of the event loop: called actions that wait for nothing have ended after it."""
        await asyncio.sleep(0)
        ended: dict[str, NodeRecord] = {}
        for name, (node, call) in self._calls.items():
            record = self._run.calls.quick_end(node, call)
            if record is not None:
                ended[name] = record
            else:
                following = self._run.calls.follow(node, self._place(name), call)
                self._tasks[name] = asyncio.create_task(following, name=f"horae:{self._place(name)}")
        if len(ended) < len(self._calls):
            await asyncio.sleep(0)  # a task that is cancelled before it begins would not stop its call
        self._calls.clear()
        for name, record in ended.items():
            await self._end(name, record)

    async def _work(self, name: str) -> NodeRecord:
        """Run a node that needs a task to its end."""
        node, place = self._plan.nodes[name], self._place(name)
        if not isinstance(node, ActionNode):
            return await self._run.loop(name, self._rounds, self._scope)
        try:
            given = await self._scope.values(node.data.input) if node.data.input else None
        except ExpressionError as error:
            now = self._now()
            return NodeRecord(
                state=NodeState.FAILED, failure=error.message, started_at_ms=now, ended_at_ms=now
            )
        return await self._run.calls.run(node, place, given, self._run.earlier.get(place))


def _earlier(context: Context) -> dict[str, NodeRecord]:
    """The records of nodes that earlier attempts of the run saved, by place."""
    records = {
        key.removeprefix(PREFIX): msgspec.convert(context.checkpoints[key], NodeRecord)
        for key in context.checkpoints
        if key.startswith(PREFIX)
    }
    if context.after in _CARRIED_ON or context.attempt == 1:
        return records
    return {place: each for place, each in records.items() if not _is_unhandled(each)}


def _is_unhandled(record: NodeRecord) -> bool:
    return record.fault is not None or (record.state is NodeState.FAILED and not record.followed)


async def _all(works: Any) -> None:  # noqa: ANN401 - coroutines
    """Run coroutines concurrently; if one raises, stop the others."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        if tasks:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
    finally:
        await _stop(tasks)


async def _stop(tasks: Any) -> None:  # noqa: ANN401 - tasks
    """Cancel tasks that have not ended, and wait for them."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    for task in tasks:
        if not task.cancelled():
            task.exception()
