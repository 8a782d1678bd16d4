"""What became of a schedule, in Temporal's words."""

import msgspec
import pytest
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Statuses

from horae.face.temporal.info_message import info_of, recent_actions
from horae.model import AUTOMATIC, Counts, Overlap, Reason, Run, Status, schedule_key
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder

EXPECTED = {
    Status.RUNNING: "RUNNING", Status.RETRYING: "RUNNING", Status.SUCCEEDED: "COMPLETED", Status.FAILED: "FAILED",
    Status.CANCELLED: "CANCELED", Status.TERMINATED: "TERMINATED", Status.TIMED_OUT: "TIMED_OUT",
}  # fmt: skip


def run(number: int, status: Status, *, begun: bool = True) -> Run:
    at = int(START.timestamp() * 1000) + number * 60_000
    return Run(
        id=f"r{number}", schedule_key=schedule_key("", "s"), generation=1, nominal_ms=at, origin=AUTOMATIC, overlap=Overlap.SKIP, status=status,
        fire_ms=at, start_at_ms=at, action_id=f"w-{number}", started_at_ms=at + 7 if begun else None,
    )  # fmt: skip


@pytest.mark.contract("SCHD-30")
def test_recent_actions_are_those_that_began_oldest_first():
    newest_first = [run(3, Status.SKIPPED, begun=False), run(2, Status.RUNNING), run(1, Status.SUCCEEDED)]
    found = recent_actions(newest_first)
    assert [each.start_workflow_result.workflow_id for each in found] == ["w-1", "w-2"]
    assert [each.start_workflow_result.run_id for each in found] == ["r1", "r2"]
    assert all(each.actual_time.ToMilliseconds() - each.schedule_time.ToMilliseconds() == 7 for each in found)


@pytest.mark.contract("SCHD-30")
async def test_counts_are_by_reason(machine: TimeMachine, hello: Recorder):
    counts = Counts(
        started=5, unstarted={Reason.OVERLAP: 2, Reason.LATE: 3, Reason.BUFFER_FULL: 4, Reason.PAUSED: 6}
    )
    schedule = await machine.app.schedules.create("s", "0 9 * * *", "hello")
    description = msgspec.structs.replace(await machine.app.schedules.describe("s"), counts=counts, pending=7)
    info = info_of(description, [])
    assert (info.action_count, info.overlap_skipped, info.missed_catchup_window, info.buffer_dropped) == (
        5,
        2,
        3,
        4,
    )
    assert (info.buffer_size, len(info.future_action_times), schedule.id) == (7, 10, "s")


@pytest.mark.parametrize("status", EXPECTED)
def test_a_status_is_that_of_a_workflow(status: Status):
    (found,) = recent_actions([run(1, status)])
    assert Statuses.Name(found.start_workflow_status) == f"WORKFLOW_EXECUTION_STATUS_{EXPECTED[status]}"
