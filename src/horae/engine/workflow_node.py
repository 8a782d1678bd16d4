"""One action of a workflow's run: its attempts, their timeouts, and the wait between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from horae.clock import Clock
from horae.errors import ExpressionError, NotStartedError, StaleClaimError
from horae.executor.context import Accepted, Context
from horae.executor.node_context import NodeContext
from horae.executor.registry import Executors
from horae.executor.stored_output import kept_failure, kept_json
from horae.policy.retry import backoff
from horae.spec.duration import milliseconds
from horae.workflow.document import ActionNode
from horae.workflow.limits import WorkflowLimits
from horae.workflow.record import NodeRecord, NodeState

SaveRecord = Callable[[str, NodeRecord], Awaitable[None]]
"""Saves what is known of a node at a place, durably."""
_replace = msgspec.structs.replace


class WorkflowServices(msgspec.Struct, frozen=True):
    """What the nodes of a run share."""

    executors: Executors
    clock: Clock
    now: Callable[[], int]
    limits: WorkflowLimits
    terminate_ms: int
    """How long an action that must stop has before it is left behind."""


class NodeCalls:
    """Calls the actions of one attempt of a run."""

    def __init__(self, services: WorkflowServices, context: Context, save: SaveRecord) -> None:
        self._services = services
        self._context = context
        self._save = save
        self._slots = asyncio.Semaphore(services.limits.workflow_concurrency)
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def run(self, node: ActionNode, place: str, given: Any, earlier: NodeRecord | None) -> NodeRecord:  # noqa: ANN401 - any JSON
        """Attempt an action as often as its retry allows; ``earlier`` is what an earlier attempt of the run left of it."""
        retry, now = node.data.retry, self._services.now
        record = NodeRecord(state=NodeState.RUNNING, input=given, started_at_ms=now())
        if earlier is not None:
            record = _replace(record, attempts=earlier.attempts, started_at_ms=earlier.started_at_ms)
            await self._sleep((earlier.retry_at_ms or 0) - now())
        while True:
            record = await self._attempt(node, place, _replace(record, attempts=record.attempts + 1))
            if record.state is not NodeState.RETRYING:
                return record
            delay_ms = backoff(
                milliseconds(retry.delay), retry.factor, milliseconds(retry.max_delay), record.attempts
            )
            await self._save(place, _replace(record, retry_at_ms=now() + delay_ms, ended_at_ms=None))
            await self._sleep(delay_ms)

    async def _attempt(self, node: ActionNode, place: str, record: NodeRecord) -> NodeRecord:
        context = NodeContext(self._context, place, node.data.action, record.input, record.attempts)
        permanent = False
        try:
            async with self._slots:
                output = await self._within(context, milliseconds(node.data.timeout))
            self._check(output)
            return _replace(
                record,
                state=NodeState.SUCCEEDED,
                output=output,
                failure=None,
                ended_at_ms=self._services.now(),
            )
        except StaleClaimError:
            raise
        except Exception as error:
            permanent = isinstance(error, NotStartedError | ExpressionError) and getattr(
                error, "permanent", True
            )
            failure = kept_failure(f"{type(error).__name__}: {error}")
        again = not permanent and record.attempts < node.data.retry.attempts
        state = NodeState.RETRYING if again else NodeState.FAILED
        return _replace(record, state=state, failure=failure, ended_at_ms=self._services.now())

    async def _within(self, context: NodeContext, timeout_ms: int) -> Any:  # noqa: ANN401 - any JSON
        """Call the action; when its time is up it is asked to stop, and left behind if it does not."""
        clock, grace_ms = self._services.clock, self._services.terminate_ms
        call = asyncio.ensure_future(self._services.executors.call_for_node(context))
        ended = asyncio.Event()
        call.add_done_callback(lambda _: ended.set())
        try:
            await clock.wait(ended, timeout_ms / 1000)
            if not call.done():
                context.ask_to_stop(grace_ms)
                call.cancel()
                await clock.wait(ended, grace_ms / 1000)
                raise TimeoutError(f"it took longer than its timeout, {timeout_ms} ms")
        except asyncio.CancelledError:
            if not call.done():
                context.ask_to_stop(grace_ms)
                call.cancel()
                await asyncio.wait([call])
            raise
        finally:
            if not call.done():
                self._left_behind.add(call)
                call.add_done_callback(self._left_behind.discard)
            call.add_done_callback(_looked_at)
        return call.result()

    def _check(self, output: object) -> None:
        if isinstance(output, Accepted):
            raise NotStartedError(
                "a node of a workflow cannot be handed to an external worker", permanent=True
            )
        limit = self._services.limits.node_output_bytes
        try:
            kept_json(output, "the output", limit)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise ValueError(f"{error} (the limit node_output_bytes is {limit})") from None

    async def _sleep(self, span_ms: int) -> None:
        if span_ms > 0:
            await self._services.clock.wait(asyncio.Event(), span_ms / 1000)


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Read how a task ended, so that asyncio does not complain that it was never read."""
    if not task.cancelled():
        task.exception()
