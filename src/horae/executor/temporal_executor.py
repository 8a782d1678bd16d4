"""Hands actions to Temporal: a workflow by its type, followed to its end, cancelled or terminated when its run is stopped.

A workflow's id and the id of the request that starts it are made of the run's key. So a start that is sent again, because a process died
before it could record anything, finds the workflow that it started before: none is lost, and none is started twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from horae.errors import HandOffFailedError, MissingExtraError, NotStartedError
from horae.executor.context import Context
from horae.executor.port import Executor

try:
    import grpc
    import grpc.aio
    from temporalio.api.common.v1 import Payloads, WorkflowExecution, WorkflowType
    from temporalio.api.enums.v1 import HistoryEventFilterType, WorkflowIdReusePolicy
    from temporalio.api.errordetails.v1 import WorkflowExecutionAlreadyStartedFailure
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice import v1 as api

    from horae.executor.temporal_connection import TemporalConnection, detail_of
    from horae.executor.temporal_ends import CANCELED, End, end_of
    from horae.executor.temporal_payloads import payload_of
except ImportError:
    raise MissingExtraError("temporal", "temporal") from None

if TYPE_CHECKING:
    from google.protobuf.message import Message

CHECKPOINT = "temporal"
"""How many workflows of the run have ended badly."""
CALL_S = 10.0
POLL_S = 20.0
"""How long one question for the end of a workflow waits; each answer is a sign of life."""
FIRST_WAIT_S, MAX_WAIT_S = 0.05, 2.0
STOP_SHARE = 0.8
"""The share of the time to stop in which a server that is away is asked again."""
IDENTITY = "horae"
_WRONG = {
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.FAILED_PRECONDITION,
}  # fmt: skip
"""The codes of starts that would be refused again."""


class TemporalExecutor(Executor):
    """The kind ``temporal``: ``temporal:TYPE`` starts a workflow of that type with the action's input as its argument."""

    kind = "temporal"
    for_nodes = True

    def __init__(
        self, target: str, workflows: Mapping[str, str], *, namespace: str = "default", token: str = ""
    ) -> None:
        """``target`` is a server, ``host:port`` or ``https://host:port`` for TLS; ``workflows`` has the task queue of each workflow type
        that may be started; ``token`` is sent as ``authorization: Bearer …``.
        """
        self._connection = TemporalConnection(target, token)
        self._queues = {f"{self.kind}:{name}": (name, queue) for name, queue in workflows.items()}
        self._namespace = namespace

    def actions(self) -> Collection[str]:
        """``temporal:TYPE`` for each workflow type."""
        return self._queues.keys()

    async def close(self) -> None:
        """End the connection."""
        await self._connection.close()

    def start_request(self, context: Context, name: str) -> api.StartWorkflowExecutionRequest:
        """The request that starts the workflow of a run. ``name`` is the run's key, with the number of the hand-off."""
        workflow_type, queue = self._queues[context.action]
        given = context.input
        return api.StartWorkflowExecutionRequest(
            namespace=self._namespace,
            workflow_id=name,
            workflow_type=WorkflowType(name=workflow_type),
            task_queue=TaskQueue(name=queue),
            input=None if given is None else Payloads(payloads=[payload_of(given)]),
            workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
        )

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - what the workflow returns
        """Start the workflow, or find the one that an earlier attempt started, and wait for its end."""
        number = context.checkpoints.get(CHECKPOINT, 0) + 1
        name = f"{context.key}-{number}"
        request = self.start_request(context, name)
        request.request_id, request.identity = str(uuid5(NAMESPACE_URL, name)), IDENTITY
        handed = _HandOff(self._connection, context, request)
        starting = asyncio.create_task(handed.start())
        try:
            await asyncio.shield(starting)
            end = await handed.end()
        except asyncio.CancelledError:
            if context.is_given_away or not context.stop_requested():
                starting.cancel()
                raise
            await starting  # to know what is to be stopped
            end = await handed.stop()
        if end.is_good:
            return end.result
        await context.checkpoint(CHECKPOINT, number)
        raise HandOffFailedError("Temporal", request.workflow_type.name, end.words)


class _HandOff:
    """A workflow that was handed over, and the attempt that follows it."""

    def __init__(
        self, connection: TemporalConnection, context: Context, request: api.StartWorkflowExecutionRequest
    ) -> None:
        self._connection, self._context, self._request = connection, context, request
        self._run_id = ""

    async def start(self) -> None:
        """Start the workflow, unless it was started before. A start that was not answered in time is sent again: it may have begun."""
        while True:
            try:
                answer = await self._connection.send(
                    self._request, api.StartWorkflowExecutionResponse, CALL_S
                )
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    continue
                if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                    reason = f"the workflow cannot be started on Temporal at {self._connection.target}: {_said(error)}"
                    raise NotStartedError(reason, permanent=error.code() in _WRONG) from None
                self._run_id = self._started_before(error)
            else:
                self._run_id = answer.run_id
            return

    def _started_before(self, error: grpc.aio.AioRpcError) -> str:
        """The workflow that has the id: this run's own, as nothing else makes such ids, unless they are the user's."""
        found = detail_of(error, WorkflowExecutionAlreadyStartedFailure)
        policy = self._request.workflow_id_reuse_policy
        if policy != WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:
            reason = f'another workflow with the id "{self._request.workflow_id}" is running on Temporal'
            raise NotStartedError(reason, permanent=True)
        return found.run_id

    async def end(self) -> End:
        """How the workflow ended, once it has; while the server is away, it is asked again."""
        token, wait = b"", FIRST_WAIT_S
        while True:
            request = api.GetWorkflowExecutionHistoryRequest(
                namespace=self._request.namespace, execution=self._execution, wait_new_event=True, next_page_token=token,
                history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
            )  # fmt: skip
            try:
                answer = await self._connection.send(request, api.GetWorkflowExecutionHistoryResponse, POLL_S)
            except grpc.aio.AioRpcError as error:
                if error.code() in _WRONG:
                    return End(words=f"its end cannot be known: {_said(error)}")
                if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, MAX_WAIT_S)
                continue
            self._context.heartbeat()
            wait, token = FIRST_WAIT_S, answer.next_page_token
            if answer.history.events:
                end = end_of(answer.history.events[-1])
                if not end.continued_by:
                    return end
                self._run_id, token = end.continued_by, b""

    @property
    def _execution(self) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=self._request.workflow_id, run_id=self._run_id)

    async def stop(self) -> End:
        """Cancel the workflow, and wait for its end as long as the run may; or terminate it."""
        if self._context.time_to_stop is None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._ask(
                    api.RequestCancelWorkflowExecutionRequest(
                        namespace=self._request.namespace, workflow_execution=self._execution, identity=IDENTITY,
                        request_id=self._request.request_id, reason="its run was cancelled",
                    ), api.RequestCancelWorkflowExecutionResponse,
                )  # fmt: skip
                end = await self.end()
                if end.kind != CANCELED:
                    return end
        if (left := self._context.time_to_stop) is None or self._context.is_given_away:
            raise asyncio.CancelledError
        try:
            async with asyncio.timeout(left.total_seconds() * STOP_SHARE):
                await self._ask(
                    api.TerminateWorkflowExecutionRequest(
                        namespace=self._request.namespace, workflow_execution=self._execution, identity=IDENTITY,
                        reason="its run was stopped",
                    ), api.TerminateWorkflowExecutionResponse,
                )  # fmt: skip
        except TimeoutError:
            raise HandOffFailedError(
                "Temporal", self._request.workflow_type.name, "it could not be terminated: Temporal is away"
            ) from None
        raise asyncio.CancelledError

    async def _ask(self, request: Message, kind: type[Message]) -> None:
        """Ask for something until the server has answered; that the workflow has ended is an answer."""
        wait = FIRST_WAIT_S
        while True:
            try:
                await self._connection.send(request, kind, CALL_S)
            except grpc.aio.AioRpcError as error:
                if error.code() in _WRONG:
                    return
                await asyncio.sleep(wait)
                wait = min(wait * 2, MAX_WAIT_S)
            else:
                return


def _said(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {' '.join((error.details() or '').split())[:500]}"
