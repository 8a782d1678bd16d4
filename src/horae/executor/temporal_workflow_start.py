"""Workflows that the schedules of Temporal clients start: on the operator's cluster, with the ids that Temporal gives them."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Annotated, Any

import msgspec
from google.protobuf.message import DecodeError, Message
from msgspec import Meta
from temporalio.api.common.v1 import Payloads, WorkflowType
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as api

from horae.errors import InvalidInputError
from horae.executor.attempt_context import Context
from horae.executor.hand_off import HandOff
from horae.executor.temporal_executor import TemporalExecutor
from horae.executor.temporal_payloads import payload_of, values_of
from horae.model import TEMPORAL_WORKFLOW, Action

DEFAULT_NAMESPACE = "default"
"""The namespace of schedules without an owner."""


class WorkflowOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the kind ``temporal-workflow``."""

    workflow_type: Annotated[str, Meta(min_length=1, description="The type of the workflow.")]
    task_queue: Annotated[str, Meta(min_length=1, description="The task queue of its workers.")]
    message: Annotated[
        str,
        Meta(
            description="What else it is started with: Temporal's message `NewWorkflowExecutionInfo`, as it was sent, in base64."
        ),
    ] = ""


def read_message(message: str) -> NewWorkflowExecutionInfo:
    """Decode the message of options."""
    try:
        return NewWorkflowExecutionInfo.FromString(base64.b64decode(message, validate=True))
    except (ValueError, DecodeError):
        raise InvalidInputError(
            "action.options.message", "is not a NewWorkflowExecutionInfo in base64"
        ) from None


def workflow_of(options: WorkflowOptions, given: Any) -> NewWorkflowExecutionInfo:  # noqa: ANN401 - any JSON
    """The workflow to start with an input. Payloads that have this value already stay as they were sent."""
    info = read_message(options.message)
    if info.workflow_type.name != options.workflow_type:
        info.workflow_type.CopyFrom(WorkflowType(name=options.workflow_type))
    if info.task_queue.name != options.task_queue:
        info.task_queue.CopyFrom(TaskQueue(name=options.task_queue))
    if values_of(info.input) != given:
        info.input.CopyFrom(Payloads(payloads=[] if given is None else [payload_of(given)]))
    return info


def options_of(info: NewWorkflowExecutionInfo) -> dict[str, str]:
    """The options that start a workflow, without what the action has itself or can derive again."""
    kept = NewWorkflowExecutionInfo()
    kept.CopyFrom(info)
    kept.ClearField("workflow_id")
    given = values_of(info.input)
    if given is not None and list(info.input.payloads) == [payload_of(given)]:
        kept.ClearField("input")
    return {
        "workflow_type": info.workflow_type.name,
        "task_queue": info.task_queue.name,
        "message": base64.b64encode(kept.SerializeToString(deterministic=True)).decode(),
    }


class ForwardingExecutor(TemporalExecutor):
    """The kind ``temporal-workflow``: starts any workflow, in the owner's namespace."""

    kind = TEMPORAL_WORKFLOW
    options = WorkflowOptions
    for_nodes = False

    def __init__(self, target: str, token: str = "") -> None:
        super().__init__(target, {}, token=token)

    def actions(self) -> Collection[str]:
        """The kind itself."""
        return (self.kind,)

    def check(self, action: Action, options: Any, stored: Any) -> Any:  # noqa: ANN401, ARG002 - the kind's own type
        """Refuse a message that cannot be read."""
        read_message(options.message)
        return options

    def _work(self, context: Context) -> HandOff:
        return HandOff(id=context.work_id, name=context.options.workflow_type, input={}, context=context)

    def start_request(self, work: HandOff) -> api.StartWorkflowExecutionRequest:
        """The request that starts the workflow of a run, as Temporal's own scheduler makes it."""
        context = work.context
        info = workflow_of(context.options, context.input)
        request = api.StartWorkflowExecutionRequest(
            namespace=context.owner or DEFAULT_NAMESPACE, workflow_id=context.action_id
        )
        for field, value in info.ListFields():
            if isinstance(value, Message):
                getattr(request, field.name).CopyFrom(value)
            elif field.name != "workflow_id":
                setattr(request, field.name, value)
        if context.last_result is not None:
            request.last_completion_result.CopyFrom(Payloads(payloads=[payload_of(context.last_result)]))
        if context.last_failure is not None:
            failure = Failure(message=context.last_failure, application_failure_info=ApplicationFailureInfo())
            request.continued_failure.CopyFrom(failure)
        return request
