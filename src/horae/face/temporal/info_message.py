"""The runs, counts and next times of a schedule as Temporal's messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.schedule.v1 import ScheduleActionResult, ScheduleInfo, ScheduleListEntry, ScheduleListInfo

from horae.app import Description
from horae.face.temporal.action_message import workflow_type_of
from horae.face.temporal.preserved_messages import shown_memo, shown_search, shown_spec
from horae.face.temporal.times import timestamp_of
from horae.model import TEMPORAL_WORKFLOW, Run, Schedule, Status, instant

RUNNING = (Status.STARTING, Status.RUNNING, Status.RETRYING)
"""The statuses in which Temporal calls a workflow running: also while it waits for a retry."""


def info_of(description: Description, running: Iterable[Run]) -> ScheduleInfo:
    """The counts, recent and running actions, and next times of a schedule."""
    schedule, counts = description.schedule, description.counts
    return ScheduleInfo(
        action_count=counts.started,
        missed_catchup_window=counts.missed,
        overlap_skipped=counts.skipped,
        buffer_dropped=counts.dropped,
        buffer_size=description.pending,
        running_workflows=[_execution(each) for each in running],
        recent_actions=recent_actions(description.recent_runs),
        future_action_times=[timestamp_of(each) for each in description.next_times],
        create_time=timestamp_of(schedule.created_at),
        update_time=timestamp_of(schedule.updated_at) if schedule.version > 1 else None,
        invalid_schedule_error=schedule.state.attention,
    )


def list_entry(schedule: Schedule, recent: Iterable[Run], ahead: Iterable[datetime]) -> ScheduleListEntry:
    """The entry of a schedule in a list."""
    return ScheduleListEntry(
        schedule_id=schedule.id,
        memo=shown_memo(schedule),
        search_attributes=shown_search(schedule),
        info=ScheduleListInfo(
            spec=shown_spec(schedule),
            workflow_type=WorkflowType(name=workflow_type_of(schedule)),
            notes=schedule.state.note,
            paused=schedule.state.paused,
            recent_actions=recent_actions(recent),
            future_action_times=[timestamp_of(each) for each in ahead],
        ),
    )


def recent_actions(newest_first: Iterable[Run]) -> list[ScheduleActionResult]:
    """The runs that began, oldest first."""
    begun = [each for each in newest_first if each.started_at_ms is not None]
    return [_result(each) for each in reversed(begun)]


def _result(run: Run) -> ScheduleActionResult:
    return ScheduleActionResult(
        schedule_time=timestamp_of(run.nominal),
        actual_time=timestamp_of(instant(run.started_at_ms or run.fire_ms)),
        start_workflow_result=_execution(run),
        start_workflow_status=_status(run.status),
    )


def _execution(run: Run) -> WorkflowExecution:
    """The workflow of a run. On a Temporal cluster it has its own run id, so only the workflow id is given."""
    run_id = "" if run.action == TEMPORAL_WORKFLOW else run.id
    return WorkflowExecution(workflow_id=run.action_id, run_id=run_id)


def _status(status: Status) -> WorkflowExecutionStatus.ValueType:
    match status:
        case Status.STARTING | Status.RUNNING | Status.RETRYING | Status.PENDING:
            return WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
        case Status.SUCCEEDED:
            return WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED
        case Status.FAILED | Status.DROPPED:
            return WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED
        case Status.CANCELLED | Status.SKIPPED:
            return WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED
        case Status.TERMINATED:
            return WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED
        case Status.TIMED_OUT | Status.MISSED:
            return WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
        case _:
            assert_never(status)
