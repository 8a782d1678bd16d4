"""A schedule created through gRPC is the one that the HTTP API creates; and a workflow is the action under its name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload, Payloads, RetryPolicy
from temporalio.api.schedule.v1 import Range, SchedulePatch, ScheduleSpec, TriggerImmediatelyRequest
from temporalio.api.workflowservice import v1 as api

import horae
from horae import Filter
from horae.config import Config
from tests.face.temporal.strategies import BOUNDS, specs
from tests.support.nodes import running
from tests.support.service import client_of
from tests.support.temporal import Calls, calls_to, create_request, schedule_message, start_workflow
from tests.support.wait import wait_until

USER = "local"


def text(ranges: Any) -> str:
    return ",".join(_range(each) for each in ranges)


def _range(each: Range) -> str:
    end = each.end or each.start
    return f"{each.start}-{end}/{each.step or 1}" if end != each.start else str(each.start)


def calendar(given: Any) -> dict[str, str]:
    """A calendar with texts only, read by hand."""
    names = [*BOUNDS, "year"]
    if isinstance(given.second, str):
        fields = {name: getattr(given, name) for name in names}
    else:
        fields = {name: text(getattr(given, name)) for name in names}
    return {name: value for name, value in fields.items() if value} | (
        {"comment": given.comment} if given.comment else {}
    )


def document(message: ScheduleSpec) -> dict[str, Any]:
    """The document that says what a message does, written by hand."""
    written: dict[str, Any] = {
        "crons": list(message.cron_string), "dialect": "temporal",
        "calendars": [*map(calendar, message.structured_calendar), *map(calendar, message.calendar)],
        "exclude": [*map(calendar, message.exclude_structured_calendar), *map(calendar, message.exclude_calendar)],
        "intervals": [{"every": f"{each.interval.seconds}s", "phase": f"{each.phase.seconds}s"} for each in message.interval],
    }  # fmt: skip
    if message.HasField("start_time"):
        written["start_at"] = message.start_time.ToJsonString()
    if message.HasField("end_time"):
        written["end_at"] = message.end_time.ToJsonString()
    if message.jitter.seconds:
        written["jitter"] = f"{message.jitter.seconds}s"
    if message.timezone_name:
        written["timezone"] = message.timezone_name
    return written


@asynccontextmanager
async def both_faces() -> AsyncIterator[tuple[horae.App, Calls, httpx.AsyncClient]]:
    config = Config(temporal_port=0, requests_per_second=10**9, schedules_per_user=10**9)
    app = horae.App(":memory:", config=config)
    app.action("ping")(lambda: None)
    async with app, calls_to(app, config) as calls, client_of(app, config) as client:
        yield app, calls, client


@pytest.mark.contract("SCHD-30")
@pytest.mark.long
def test_random_specs_have_one_canonical_form_and_the_same_times_through_both_faces():
    start, end = Timestamp(seconds=1_824_000_000), Timestamp(seconds=1_825_900_000)  # the clocks change twice

    numbers = count()

    async def compare(messages: list[ScheduleSpec]) -> None:
        some = f"{next(numbers)}-"
        sent = {f"{some}{number}": each for number, each in enumerate(messages)}
        await asyncio.gather(
            *(calls(create_request(name, schedule_message(each), namespace="temporal")) for name, each in sent.items())
        )  # fmt: skip
        bodies = [{"id": name, "spec": document(each), "action": "ping"} for name, each in sent.items()]
        for created in await asyncio.gather(
            *(client.post("/api/v1/schedules", json=each) for each in bodies)
        ):
            assert created.status_code == 201, created.text
        mine = [app.owned_by(each).schedules for each in (USER, "temporal")]
        by_http, by_grpc = [
            [(each.id, each.spec) for each in await those.list(Filter(prefix=some))] for those in mine
        ]
        assert by_http == by_grpc
        assert len(by_http) == len(messages)
        for name in sent:
            await compare_times(name)

    async def compare_times(name: str) -> None:
        asked: dict[str, str | int] = {
            "start": start.ToJsonString(),
            "end": end.ToJsonString(),
            "limit": 100,
            "owner": USER,
        }
        answer = await client.get(f"/api/v1/schedules/{name}/times", params=asked)
        times = await calls(
            api.ListScheduleMatchingTimesRequest(
                namespace="temporal", schedule_id=name, start_time=start, end_time=end
            )
        )
        milliseconds = [(each.seconds * 1000 + each.nanos // 1_000_000) for each in times.start_time[:100]]
        by_http = answer.json()["items"]
        read = [Timestamp() for _ in by_http]
        for stamp, each in zip(read, by_http, strict=True):
            stamp.FromJsonString(each["fire"])
        assert [(each.seconds * 1000 + each.nanos // 1_000_000) for each in read] == milliseconds

    with asyncio.Runner() as runner:
        harness = both_faces()
        app, calls, client = runner.run(harness.__aenter__())

        @given(st.lists(specs, min_size=25, max_size=25))
        @settings(max_examples=max(1, settings.default.max_examples // 5))  # type: ignore[union-attr]
        def compared(messages: list[ScheduleSpec]) -> None:
            """Five times as many specs as a property has examples, asked for at once."""
            runner.run(compare(messages))

        try:
            compared()
        finally:
            runner.run(harness.__aexit__(None, None, None))


@pytest.mark.contract("SCHD-30", "SCHD-17")
async def test_a_workflow_is_the_action_under_its_name_with_its_arguments_retries_and_timeouts():
    app = horae.App(":memory:", config=Config(temporal_port=0))
    seen: list[Any] = []

    @app.action("Report")
    async def report(context: horae.Context) -> str:
        seen.append((context.attempt, context.input, context.action_id))
        if context.attempt < 3:
            raise ValueError("again")
        await asyncio.sleep(60)
        return "never"

    values = [
        Payload(metadata={"encoding": b"json/plain"}, data=b'{"a":1}'), Payload(metadata={"encoding": b"binary/null"}),
        Payload(metadata={"encoding": b"json/protobuf", "messageType": b"x"}, data=b'"p"'), Payload(metadata={"encoding": b"binary/plain"}, data=b"\x01"),
    ]  # fmt: skip
    action = start_workflow(
        "Report", retry_policy=RetryPolicy(maximum_attempts=3, initial_interval=Duration(nanos=1_000_000)),
        workflow_run_timeout=Duration(nanos=200_000_000),
    )  # fmt: skip
    action.input.CopyFrom(Payloads(payloads=values))
    async with running(app), calls_to(app) as calls:
        trigger = SchedulePatch(trigger_immediately=TriggerImmediatelyRequest())
        await calls(create_request("s", schedule_message(action=action), initial_patch=trigger))

        async def ended() -> bool:
            recent = (await calls.describe("s")).info.recent_actions
            return bool(recent) and recent[0].start_workflow_status == 7

        await wait_until(ended)
    decoded = [{"a": 1}, None, "p", {"metadata": {"encoding": "binary/plain"}, "data": "AQ=="}]
    assert [(attempt, given) for attempt, given, _ in seen] == [(1, decoded), (2, decoded), (3, decoded)]
    assert seen[0][2].startswith("wf-20")
