"""Start a service that speaks Temporal, call it at a steady rate while its schedules fire, and note how late they started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import WorkflowType
from temporalio.api.schedule.v1 import IntervalSpec, Schedule, ScheduleAction, ScheduleSpec
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as api

from bench.page import percentile
from horae.face.temporal.schedule_transfer import Endpoint

NAMESPACE = "bench"
LISTENS = r"schedule calls on (\S+:\d+)"
"""The line that a service logs when it takes calls of Temporal's clients."""
EVERY = 5
"""Seconds between two instants at which all schedules fire."""
STEP = 0.01
MAX_UNDER_WAY = 200
PARALLEL = 20


class Measured(NamedTuple):
    """Calls answered a second and how long they took; how many starts there should be and were, and how late they were, in ms."""

    rate: float
    median: float
    p99: float
    due: int
    starts: int
    late_median: float
    late_p99: float
    latest: float


async def measure(address: str, schedules: int, rate: int, seconds: int) -> Measured:
    """Create schedules, call for some seconds, and read how late the starts of that time were."""
    server = Endpoint(address)
    try:
        await _each(schedules, lambda number: server.call(_create(number), api.CreateScheduleResponse))
        first = (int(time.time()) // EVERY + 1) * EVERY  # noqa: TID251 - the time that schedules go by
        await asyncio.sleep(first - 1 - time.time())  # noqa: TID251
        took, spent = await _call(server, schedules, rate, seconds)
        instants = [each for each in range(first, first + seconds, EVERY) if each < first - 1 + spent]
        await asyncio.sleep(1)
        late = await _lateness(server, schedules, instants)
    finally:
        await server.close()
    return Measured(
        len(took) / spent, percentile(took, 50), percentile(took, 99), schedules * len(instants), len(late), percentile(late, 50), percentile(late, 99),
        late[-1] if late else 0.0,
    )  # fmt: skip


async def _each(number: int, work: Callable[[int], Awaitable[object]]) -> None:
    numbers = iter(range(number))

    async def some() -> None:
        for each in numbers:
            await work(each)

    await asyncio.gather(*(some() for _ in range(PARALLEL)))


async def _call(server: Endpoint, schedules: int, rate: int, seconds: int) -> tuple[list[float], float]:
    """Describe schedules at a steady rate; what each call took in milliseconds, ascending, and the seconds of it all."""
    took: list[float] = []
    room = asyncio.Semaphore(MAX_UNDER_WAY)

    async def one(number: int) -> None:
        begun = time.perf_counter()
        await server.call(_describe(number * 7919 % schedules), api.DescribeScheduleResponse)
        took.append((time.perf_counter() - begun) * 1000)
        room.release()

    begun, sent = time.perf_counter(), 0
    async with asyncio.TaskGroup() as group:
        while (passed := time.perf_counter() - begun) < seconds:
            while sent < passed * rate:
                await room.acquire()
                group.create_task(one(sent))
                sent += 1
            await asyncio.sleep(STEP)
    return sorted(took), time.perf_counter() - begun


async def _lateness(server: Endpoint, schedules: int, instants: list[int]) -> list[float]:
    """How many milliseconds after their time the starts of some instants were, ascending."""
    late: list[float] = []

    async def read(number: int) -> None:
        found = await server.call(_describe(number), api.DescribeScheduleResponse)
        late.extend(
            (each.actual_time.ToNanoseconds() - each.schedule_time.ToNanoseconds()) / 1e6
            for each in found.info.recent_actions
            if each.schedule_time.seconds in instants
        )

    await _each(schedules, read)
    return sorted(late)


def _describe(number: int) -> api.DescribeScheduleRequest:
    return api.DescribeScheduleRequest(namespace=NAMESPACE, schedule_id=f"s-{number}")


def _create(number: int) -> api.CreateScheduleRequest:
    action = NewWorkflowExecutionInfo(workflow_id=f"w-{number}", workflow_type=WorkflowType(name="nothing"))
    spec = ScheduleSpec(interval=[IntervalSpec(interval=Duration(seconds=EVERY))])
    return api.CreateScheduleRequest(
        namespace=NAMESPACE, schedule_id=f"s-{number}", request_id=f"r-{number}",
        schedule=Schedule(spec=spec, action=ScheduleAction(start_workflow=action)),
    )  # fmt: skip
