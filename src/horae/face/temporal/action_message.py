"""Converts the workflow of a Temporal schedule to an action of Horae, and back. Pure.

The workflow type is the address of the action. Fields that the action cannot express (task queue, headers, priority …) are kept as they were
sent (``originals.py``). If a Temporal cluster runs the workflow, the whole message is the options of the action, and timeouts and retries
are the cluster's.
"""

from __future__ import annotations

from typing import Any

import msgspec
from temporalio.api.common.v1 import Payloads, RetryPolicy, WorkflowType
from temporalio.api.enums.v1 import WorkflowIdReusePolicy
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo

from horae.errors import InvalidInputError
from horae.executor.temporal_payloads import payload_of, values_of
from horae.executor.temporal_workflow_start import WorkflowOptions, options_of, workflow_of
from horae.face.temporal.times import duration_of, milliseconds_of
from horae.model import DEFAULT_ID_FORMAT, TEMPORAL_WORKFLOW, Action, Policies, Schedule
from horae.spec.duration import duration_text, milliseconds

TASK_QUEUE = "horae"
"""The task queue shown for actions that were not created through Temporal's API."""
ORIGINAL_ID = "{id}"
"""The format of an action id that is the workflow's id, without a time."""
_FIELD = "schedule.action.start_workflow"
_REUSE = {
    WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED,
    WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
}
_replace = msgspec.structs.replace


class Retries(msgspec.Struct, frozen=True):
    """How often and when a workflow is retried, in milliseconds. ``attempts`` of ``None`` means no limit."""

    attempts: int | None
    initial_ms: int
    factor: float
    max_ms: int


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow of a message, in Horae's terms."""

    address: str
    id: str
    input: Any = None
    run_ms: int | None = None
    retries: Retries | None = None
    """``None`` means one attempt."""
    options: dict[str, Any] = {}
    """The options of a workflow that a Temporal cluster runs; empty if Horae runs an action."""


NO_START = Start(address="", id="")


def start_of(message: NewWorkflowExecutionInfo) -> Start:
    """Read a message; errors name its field."""
    if not message.workflow_id:
        raise InvalidInputError(f"{_FIELD}.workflow_id", "is not set")
    if not message.workflow_type.name:
        raise InvalidInputError(f"{_FIELD}.workflow_type", "is not set")
    if message.cron_schedule:
        raise InvalidInputError(f"{_FIELD}.cron_schedule", "cannot be used: the schedule's spec says when")
    if message.workflow_id_reuse_policy not in _REUSE:
        raise InvalidInputError(f"{_FIELD}.workflow_id_reuse_policy", "must be ALLOW_DUPLICATE")
    return Start(
        address=message.workflow_type.name,
        id=message.workflow_id,
        input=values_of(message.input),
        run_ms=_shortest(message),
        retries=_retries(message.retry_policy) if message.HasField("retry_policy") else None,
    )


def forwarded_start_of(message: NewWorkflowExecutionInfo) -> Start:
    """Read a message whose workflow a Temporal cluster runs."""
    if not message.task_queue.name:
        raise InvalidInputError(f"{_FIELD}.task_queue", "is not set")
    return _replace(start_of(message), run_ms=None, retries=None, options=options_of(message))


def _shortest(message: NewWorkflowExecutionInfo) -> int | None:
    """The limit of a run: the shorter of the run timeout and the execution timeout."""
    named = {
        "workflow_run_timeout": message.workflow_run_timeout,
        "workflow_execution_timeout": message.workflow_execution_timeout,
    }
    found = [milliseconds_of(given, f"{_FIELD}.{name}") for name, given in named.items()]
    return min((each for each in found if each), default=None)


def _retries(policy: RetryPolicy) -> Retries | None:
    """A retry policy with Temporal's defaults: a second, doubling up to a hundred times that, without a limit."""
    field = f"{_FIELD}.retry_policy"
    if policy.maximum_attempts < 0:
        raise InvalidInputError(f"{field}.maximum_attempts", "must be at least 0")
    if policy.maximum_attempts == 1:
        return None
    initial_ms = milliseconds_of(policy.initial_interval, f"{field}.initial_interval") or 1000
    max_ms = milliseconds_of(policy.maximum_interval, f"{field}.maximum_interval") or 100 * initial_ms
    factor = policy.backoff_coefficient or 2.0
    if not 1 <= factor <= 1_000_000:
        raise InvalidInputError(f"{field}.backoff_coefficient", "must be from 1 to 1,000,000")
    return Retries(policy.maximum_attempts or None, initial_ms, factor, max_ms)


def is_forwarded(schedule: Schedule) -> bool:
    """Whether a Temporal cluster runs the workflows of a schedule."""
    return schedule.action.kind == TEMPORAL_WORKFLOW


def workflow_type_of(schedule: Schedule) -> str:
    """The type of the workflow that a schedule starts."""
    return stored_start(schedule).address


def stored_start(schedule: Schedule) -> Start:
    """What a message can express of a stored action."""
    if is_forwarded(schedule):
        options = schedule.action.options
        return Start(
            address=options["workflow_type"], id=schedule.action.id or schedule.id, input=schedule.action.input, options=options
        )  # fmt: skip
    retry, run = schedule.policies.retry, schedule.policies.timeouts.run
    retries = Retries(
        retry.attempts, milliseconds(retry.initial_delay), retry.factor, milliseconds(retry.max_delay)
    )
    return Start(
        address=schedule.action.address,
        id=schedule.action.id or schedule.id,
        input=schedule.action.input,
        run_ms=milliseconds(run),
        retries=None if retry.attempts == 1 else retries,
    )


def message_of(start: Start, original: NewWorkflowExecutionInfo | None = None) -> NewWorkflowExecutionInfo:
    """The message for a workflow. Equivalent fields of ``original``, and those that only it has, stay as they were sent."""
    if start.options:
        whole = workflow_of(msgspec.convert(start.options, WorkflowOptions), start.input)
        whole.workflow_id = start.id
        return whole
    shown = NewWorkflowExecutionInfo(task_queue=TaskQueue(name=TASK_QUEUE))
    sent = NO_START
    if original is not None:
        shown.CopyFrom(original)
        sent = start_of(original)
    if sent.address != start.address:
        shown.workflow_type.CopyFrom(WorkflowType(name=start.address))
    shown.workflow_id = start.id
    if sent.input != start.input:
        shown.ClearField("input")
        if start.input is not None:
            shown.input.CopyFrom(Payloads(payloads=[payload_of(start.input)]))
    if sent.run_ms != start.run_ms:
        shown.ClearField("workflow_run_timeout")
        shown.ClearField("workflow_execution_timeout")
        if start.run_ms is not None:
            shown.workflow_run_timeout.CopyFrom(duration_of(start.run_ms))
    if sent.retries != start.retries:
        shown.ClearField("retry_policy")
        if start.retries is not None:
            shown.retry_policy.CopyFrom(_retry_policy(start.retries))
    return shown


def _retry_policy(retries: Retries) -> RetryPolicy:
    return RetryPolicy(
        initial_interval=duration_of(retries.initial_ms),
        backoff_coefficient=retries.factor,
        maximum_interval=duration_of(retries.max_ms),
        maximum_attempts=min(retries.attempts or 0, 2**31 - 1),
    )


def new_action(start: Start, *, original_id: bool) -> Action:
    """The action of a new schedule."""
    id_format = ORIGINAL_ID if original_id else DEFAULT_ID_FORMAT
    if start.options:
        return Action(
            kind=TEMPORAL_WORKFLOW, options=start.options, input=start.input, id=start.id, id_format=id_format
        )
    return Action(name=start.address, input=start.input, id=start.id, id_format=id_format)


def changed_action(start: Start, stored: Schedule, *, original_id: bool) -> Action:
    """The action of a schedule after an update; fields that the message does not change stay."""
    action, before = stored.action, stored_start(stored)
    if (start.address, start.options) != (before.address, before.options):
        new = new_action(start, original_id=original_id)
        action = _replace(new, input=action.input, id=action.id, id_format=action.id_format)
    if start.input != before.input:
        action = _replace(action, input=start.input)
    if start.id != before.id:
        action = _replace(action, id=start.id)
    if original_id != (action.id_format == ORIGINAL_ID):
        action = _replace(action, id_format=ORIGINAL_ID if original_id else DEFAULT_ID_FORMAT)
    return action


def with_limits(policies: Policies, start: Start, before: Start = NO_START) -> Policies:
    """Policies with the timeouts and retries of a message, where they differ from those before."""
    if start.run_ms != before.run_ms:
        run = None if start.run_ms is None else duration_text(start.run_ms)
        policies = _replace(policies, timeouts=_replace(policies.timeouts, run=run))
    if start.retries != before.retries:
        retry = _replace(policies.retry, attempts=1)
        if (given := start.retries) is not None:
            retry = _replace(
                retry, attempts=given.attempts, initial_delay=duration_text(given.initial_ms), factor=given.factor,
                max_delay=duration_text(given.max_ms),
            )  # fmt: skip
        policies = _replace(policies, retry=retry)
    return policies
