"""Hands actions to Temporal: a workflow by its type, followed to its end, cancelled or terminated when its run is stopped.

The id of the hand-off is the workflow's id and the id of the request that starts it. So a start that is sent again, because a process
died before it could record anything, finds the workflow that it started before: none is lost, and none is started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from horae.errors import MissingExtraError, NotStartedError
from horae.executor.attempt_context import Context
from horae.executor.hand_off import End, Ending, HandOff, HandOffExecutor

try:
    import grpc
    import grpc.aio
    from temporalio.api.common.v1 import Payloads, WorkflowExecution, WorkflowType
    from temporalio.api.enums.v1 import HistoryEventFilterType, WorkflowIdReusePolicy
    from temporalio.api.errordetails.v1 import WorkflowExecutionAlreadyStartedFailure
    from temporalio.api.failure.v1 import Failure
    from temporalio.api.history.v1 import HistoryEvent
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice import v1 as api

    from horae.executor.temporal_connection import TemporalConnection, detail_of
    from horae.executor.temporal_payloads import payload_of, values_of
except ImportError:
    raise MissingExtraError("temporal", "temporal") from None

if TYPE_CHECKING:
    from google.protobuf.message import Message

CALL_S = 10.0
POLL_S = 20.0
"""How long one question for the end of a workflow waits; each answer is a sign of life."""
FIRST_WAIT_S, MAX_WAIT_S = 0.05, 2.0
IDENTITY = "horae"
MAX_CAUSES = 10
_WRONG = {
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.FAILED_PRECONDITION,
}  # fmt: skip
"""The codes of calls that would be refused again."""
_REJECT = WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE


class TemporalExecutor(HandOffExecutor):
    """The kind ``temporal``: ``temporal:TYPE`` starts a workflow of that type with the action's input as its argument."""

    kind = "temporal"
    engine = "Temporal"

    def __init__(
        self, target: str, workflows: Mapping[str, str], *, namespace: str = "default", token: str = ""
    ) -> None:
        """``target`` is a server, ``host:port`` or ``https://host:port`` for TLS; ``workflows`` has the task queue of each workflow type
        that may be started; ``token`` is sent as ``authorization: Bearer …``.
        """
        super().__init__(workflows)
        self._connection = TemporalConnection(target, token)
        self._queues = dict(workflows)
        self._namespace = namespace

    async def close(self) -> None:
        """End the connection."""
        await self._connection.close()

    def _work(self, context: Context) -> HandOff:
        return HandOff(id=context.work_id, name=self._names[context.action], input={}, context=context)

    def start_request(self, work: HandOff) -> api.StartWorkflowExecutionRequest:
        """The request that starts a workflow."""
        given = work.context.input
        return api.StartWorkflowExecutionRequest(
            namespace=self._namespace,
            workflow_id=work.id,
            workflow_type=WorkflowType(name=work.name),
            task_queue=TaskQueue(name=self._queues[work.name]),
            input=None if given is None else Payloads(payloads=[payload_of(given)]),
            workflow_id_reuse_policy=_REJECT,
        )

    async def submit(self, work: HandOff) -> dict[str, str]:
        """Start the workflow, unless it was started before. A start that was not answered in time is sent again: it may have begun."""
        request = self.start_request(work)
        request.request_id, request.identity = _request_id(work), IDENTITY
        while True:
            try:
                answer = await self._connection.send(request, api.StartWorkflowExecutionResponse, CALL_S)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    continue
                if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                    reason = f"the workflow cannot be started on Temporal at {self._connection.target}: {_words(error)}"
                    raise NotStartedError(reason, permanent=error.code() in _WRONG) from None
                if request.workflow_id_reuse_policy != _REJECT:  # the id is not made of the run's key
                    reason = f'another workflow with the id "{request.workflow_id}" is running on Temporal'
                    raise NotStartedError(reason, permanent=True) from None
                run_id, first = detail_of(error, WorkflowExecutionAlreadyStartedFailure).run_id, ""
            else:
                run_id = first = answer.run_id
            return {
                "namespace": request.namespace,
                "workflow_id": request.workflow_id,
                "run_id": run_id,
                "first_run_id": first,
            }

    async def follow(self, work: HandOff) -> End:
        """Wait for the end of the workflow, or of the run that continues it; while the server is away, it is asked again."""
        receipt, token, wait = work.receipt, b"", FIRST_WAIT_S
        while True:
            request = api.GetWorkflowExecutionHistoryRequest(
                namespace=receipt["namespace"], wait_new_event=True, next_page_token=token,
                execution=WorkflowExecution(workflow_id=receipt["workflow_id"], run_id=receipt["run_id"]),
                history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
            )  # fmt: skip
            try:
                answer = await self._connection.send(request, api.GetWorkflowExecutionHistoryResponse, POLL_S)
            except grpc.aio.AioRpcError as error:
                if error.code() in _WRONG:
                    return _failed(f"its end cannot be known: {_words(error)}")
                if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, MAX_WAIT_S)
                continue
            work.context.heartbeat()
            wait, token = FIRST_WAIT_S, answer.next_page_token
            if answer.history.events:
                last = answer.history.events[-1]
                if not (following := _continued_by(last)):
                    return end_of(last)
                receipt, token = receipt | {"run_id": following}, b""

    async def stop(self, work: HandOff, *, force: bool) -> None:
        """Ask for the workflow's cancellation, or terminate it."""
        receipt = work.receipt
        which: dict[str, Any] = {
            "namespace": receipt["namespace"], "identity": IDENTITY, "first_execution_run_id": receipt["first_run_id"],
            # Without the id of its run: another run may continue the workflow by now.
            "workflow_execution": WorkflowExecution(workflow_id=receipt["workflow_id"]),
        }  # fmt: skip
        if force:
            terminate = api.TerminateWorkflowExecutionRequest(**which, reason="its run was stopped")
            await self._ask(terminate, api.TerminateWorkflowExecutionResponse)
        else:
            which["request_id"] = _request_id(work)
            cancel = api.RequestCancelWorkflowExecutionRequest(**which, reason="its run was cancelled")
            await self._ask(cancel, api.RequestCancelWorkflowExecutionResponse)

    async def _ask(self, request: Message, kind: type[Message]) -> None:
        """Send a request until the server answers; that the workflow has ended is an answer."""
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


def _request_id(work: HandOff) -> str:
    return str(uuid5(NAMESPACE_URL, work.id))


def _words(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {' '.join((error.details() or '').split())[:500]}"


def _continued_by(event: HistoryEvent) -> str:
    """The id of the run that continues the one with this last event, as new or as Temporal's retry; empty if there is none."""
    following: str = getattr(_attributes(event), "new_execution_run_id", "")
    return following


def end_of(event: HistoryEvent) -> End:
    """How a workflow ended, by the last event of its history."""
    attributes: Any = _attributes(event)
    match (event.WhichOneof("attributes") or "").removeprefix("workflow_execution_"):
        case "completed_event_attributes":
            return End(ending=Ending.SUCCEEDED, result=values_of(attributes.result))
        case "failed_event_attributes":
            return _failed(_failure_words(attributes.failure))
        case "timed_out_event_attributes":
            return _failed("it timed out")
        case "canceled_event_attributes":
            return End(ending=Ending.STOPPED, reason="it was cancelled")
        case "terminated_event_attributes":
            reason = f"it was terminated: {attributes.reason}" if attributes.reason else "it was terminated"
            return End(ending=Ending.STOPPED, reason=reason)
        case _:
            return _failed(f"it ended in an unknown way, with event {event.event_type}")


def _failed(reason: str) -> End:
    """The end of a workflow that failed."""
    return End(ending=Ending.FAILED, reason=reason)


def _attributes(event: HistoryEvent) -> object:
    return getattr(event, event.WhichOneof("attributes") or "", None)


def _failure_words(failure: Failure) -> str:
    """A failure and its causes in one line."""
    words = []
    for _ in range(MAX_CAUSES):
        kind = failure.application_failure_info.type
        words.append(f"{kind}: {failure.message}" if kind else failure.message)
        if not failure.HasField("cause"):
            break
        failure = failure.cause
    return ": ".join(words)
