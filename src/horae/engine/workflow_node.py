"""One action of a workflow's run: its attempts, their timeouts, and the wait between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from horae.clock import Clock
from horae.config import Config
from horae.errors import ExpressionError, NotStartedError, StaleClaimError
from horae.executor.action_registry import Executors
from horae.executor.attempt_context import Accepted, Context
from horae.executor.node_context import NodeContext
from horae.executor.stored_output import kept_failure, kept_json
from horae.policy.retry import backoff
from horae.spec.duration import milliseconds
from horae.workflow.document import ActionNode
from horae.workflow.node_checkpoint import NodeRecord, NodeState

SaveRecord = Callable[[str, NodeRecord], Awaitable[None]]
"""Saves the record of a node at a place, durably."""
_replace = msgspec.structs.replace


class WorkflowServices(msgspec.Struct, frozen=True):
    """The services that all nodes of a run share."""

    executors: Executors
    clock: Clock
    now: Callable[[], int]
    config: Config


class NodeCall(NamedTuple):
    """One attempt of a node whose action is being called."""

    context: NodeContext
    record: NodeRecord
    task: asyncio.Task[Any]

    async def stop(self, grace_ms: int) -> None:
        """Ask the action to stop, and wait until it has."""
        if not self.task.done():
            self.context.ask_to_stop(grace_ms)
            self.task.cancel()
            await asyncio.wait([self.task])


class NodeCalls:
    """Calls the actions of one attempt of a run.

    An action that waits for nothing has ended a turn of the event loop after :meth:`begin`, and costs one task. Every other call is
    given to :meth:`follow`, which has a timer.
    """

    def __init__(self, services: WorkflowServices, context: Context, save: SaveRecord) -> None:
        self._services = services
        self._context = context
        self._save = save
        self._running = 0
        self._freed = asyncio.Event()
        self._left_behind: set[asyncio.Task[Any]] = set()

    def begin(self, node: ActionNode, place: str, given: Any, earlier: NodeRecord | None) -> NodeCall | None:  # noqa: ANN401 - any JSON
        """Call an action at once; ``None`` if it must wait for capacity or for a retry's delay."""
        if earlier is not None or self._running >= self._services.config.workflow_concurrency:
            return None
        return self._call(node, place, NodeRecord(state=NodeState.RUNNING, input=given, attempts=1, started_at_ms=self._services.now()))  # fmt: skip

    def _call(self, node: ActionNode, place: str, record: NodeRecord) -> NodeCall:
        context = NodeContext(self._context, place, node.data.action, record.input, record.attempts)
        self._running += 1
        return NodeCall(context, record, asyncio.create_task(self._services.executors.call_for_node(context)))

    def _release(self, task: asyncio.Task[Any]) -> None:
        self._running -= 1
        self._freed.set()
        if not task.cancelled():
            task.exception()  # so that asyncio does not complain that it was never read

    async def run(self, node: ActionNode, place: str, given: Any, earlier: NodeRecord | None) -> NodeRecord:  # noqa: ANN401 - any JSON
        """Attempt an action as often as its retry allows; ``earlier`` is the record that an earlier attempt of the run saved."""
        now = self._services.now
        record = NodeRecord(state=NodeState.RUNNING, input=given, attempts=1, started_at_ms=now())
        if earlier is not None:
            record = _replace(record, attempts=earlier.attempts + 1, started_at_ms=earlier.started_at_ms)
            await self._sleep((earlier.retry_at_ms or 0) - now())
        await self._wait_for_others()
        return await self.follow(node, place, self._call(node, place, record))

    async def _wait_for_others(self) -> None:
        while self._running >= self._services.config.workflow_concurrency:
            self._freed.clear()
            await self._freed.wait()

    async def follow(self, node: ActionNode, place: str, call: NodeCall) -> NodeRecord:
        """Wait for an action that has been called, and attempt it again as often as its retry allows."""
        retry, now = node.data.retry, self._services.now
        while True:
            call.task.add_done_callback(self._release)
            record = await self._within(node, call)
            if record.state is not NodeState.RETRYING:
                return record
            delay_ms = backoff(
                milliseconds(retry.delay), retry.factor, milliseconds(retry.max_delay), record.attempts
            )
            await self._save(place, _replace(record, retry_at_ms=now() + delay_ms, ended_at_ms=None))
            await self._sleep(delay_ms)
            await self._wait_for_others()
            call = self._call(node, place, _replace(record, attempts=record.attempts + 1))

    async def _within(self, node: ActionNode, call: NodeCall) -> NodeRecord:
        """Wait for a call. After its timeout it is asked to stop, and given up if it does not."""
        clock, grace_ms = self._services.clock, self._services.config.terminate_ms
        timeout_ms = milliseconds(node.data.timeout)
        ended = asyncio.Event()
        call.task.add_done_callback(lambda _: ended.set())
        try:
            await clock.wait(ended, timeout_ms / 1000)
            if call.task.done():
                return self.ended(node, call)
            call.context.ask_to_stop(grace_ms)
            call.task.cancel()
            await clock.wait(ended, grace_ms / 1000)
        except asyncio.CancelledError:
            await call.stop(grace_ms)
            raise
        finally:
            if not call.task.done():
                self._left_behind.add(call.task)
                call.task.add_done_callback(self._left_behind.discard)
        return self._failed(node, call, TimeoutError(f"it took longer than its timeout, {timeout_ms} ms"))

    def quick_end(self, node: ActionNode, call: NodeCall) -> NodeRecord | None:
        """The record of a node whose action has ended and is not attempted again; ``None`` if the call must be followed."""
        if not call.task.done():
            return None
        record = self.ended(node, call)
        if record.state is NodeState.RETRYING:
            return None
        self._release(call.task)
        return record

    def ended(self, node: ActionNode, call: NodeCall) -> NodeRecord:
        """The record of a node whose action has ended: it succeeded, failed, or is attempted again."""
        try:
            output = call.task.result()
            self._check(output)
        except StaleClaimError:
            raise
        except Exception as error:
            return self._failed(node, call, error)
        return _replace(
            call.record, state=NodeState.SUCCEEDED, output=output, failure=None, ended_at_ms=self._services.now()
        )  # fmt: skip

    def _failed(self, node: ActionNode, call: NodeCall, error: Exception) -> NodeRecord:
        permanent = isinstance(error, NotStartedError | ExpressionError) and getattr(error, "permanent", True)
        again = not permanent and call.record.attempts < node.data.retry.attempts
        return _replace(
            call.record,
            state=NodeState.RETRYING if again else NodeState.FAILED,
            failure=kept_failure(f"{type(error).__name__}: {error}"),
            ended_at_ms=self._services.now(),
        )

    def _check(self, output: object) -> None:
        if isinstance(output, Accepted):
            raise NotStartedError(
                "a node of a workflow cannot be handed to an external worker", permanent=True
            )
        limit = self._services.config.node_output_bytes
        try:
            kept_json(output, "the output", limit)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise ValueError(f"{error} (the limit node_output_bytes is {limit})") from None

    async def _sleep(self, span_ms: int) -> None:
        if span_ms > 0:
            await self._services.clock.wait(asyncio.Event(), span_ms / 1000)
