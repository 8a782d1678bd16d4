"""Schedules move from one server to another, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio import client
from temporalio.api.common.v1 import Header, Memo, Payload, RetryPolicy, SearchAttributes
from temporalio.api.schedule.v1 import (
    IntervalSpec,
    SchedulePatch,
    ScheduleSpec,
    ScheduleState,
    TriggerImmediatelyRequest,
)
from temporalio.api.workflowservice import v1 as api
from temporalio.client import ScheduleActionStartWorkflow

import horae
from horae.clock import SystemClock
from horae.config import Config
from horae.errors import ServerError
from horae.face.temporal.transfer import MOVED, WAITS, Endpoint, Transfer
from tests.face.cli.command import horae as run_command
from tests.support.temporal import (
    NAMESPACE,
    Calls,
    calls_to,
    create_request,
    schedule_message,
    start_workflow,
    temporal_client,
    update_request,
)


@asynccontextmanager
async def two_servers(*names: str) -> AsyncIterator[tuple[Calls, Calls]]:
    """One that has actions of its own, and another that has ``names``."""
    async with AsyncExitStack() as stack:
        found = []
        for actions in (("ping", "only-there"), names or ("ping",)):
            config = Config(temporal_port=0)
            app = horae.App(":memory:", config=config)
            for name in actions:
                app.action(name)(lambda: None)
            await stack.enter_async_context(app)
            found.append(await stack.enter_async_context(calls_to(app, config)))
        yield found[0], found[1]


@asynccontextmanager
async def transfer(one: Calls, other: Calls, **more: Any) -> AsyncIterator[Transfer]:
    ends = Endpoint(one.target), Endpoint(other.target)
    yield Transfer(*ends, (NAMESPACE, NAMESPACE), SystemClock().now, **more)
    for each in ends:
        await each.close()


KEYWORD = {"encoding": b"json/plain", "type": b"Keyword"}
SEARCH = SearchAttributes(indexed_fields={"Team": Payload(metadata=KEYWORD, data=b'"x"')})
MEMO = Memo(fields={"m": Payload(data=b"raw")})


@pytest.mark.contract("SCHD-30")
async def test_schedules_move_over_and_back_and_only_one_side_runs_at_a_time():
    async with two_servers() as (there, here):
        running = schedule_message(state=ScheduleState(notes="mine"))
        await there(create_request("running", running, memo=MEMO, search_attributes=SEARCH))
        await there(create_request("paused", schedule_message(state=ScheduleState(notes="off", paused=True))))
        async with transfer(there, here) as copying:
            found = [await copying.move(each) async for each in copying.ids()]
        assert [(each.id, each.outcome, each.state, each.lost) for each in found] == [
            ("paused", "new", "paused", ()), ("running", "new", "paused", ()),
        ]  # fmt: skip
        copy = await here.describe("running")
        assert (copy.schedule.state.notes, copy.memo, copy.search_attributes) == (WAITS, MEMO, SEARCH)
        assert not (await there.describe("running")).schedule.state.paused
        async with transfer(there, here, take_over=True) as moving:
            found = [await moving.move(each) async for each in moving.ids()]
        assert [(each.outcome, each.state) for each in found] == [
            ("there already", "paused"),
            ("there already", "running"),
        ]
        original, copy = await there.describe("running"), await here.describe("running")
        assert original.schedule.state == ScheduleState(notes=f"{MOVED}{here.target}", paused=True)
        assert copy.schedule.state == running.state
        assert (copy.schedule.spec, copy.schedule.action) == (
            original.schedule.spec,
            original.schedule.action,
        )
        copy.schedule.spec.interval.append(IntervalSpec(interval=Duration(seconds=3600)))
        await here(update_request("running", copy.schedule))
        async with transfer(here, there, take_over=True) as returning:
            assert (await returning.move("running")).outcome == "updated"
        original = await there.describe("running")
        assert (original.schedule.state, len(original.schedule.spec.interval)) == (running.state, 1)
        assert (await here.describe("running")).schedule.state.paused
        assert (await here.describe("paused")).schedule.state.notes == "off"


async def test_a_transfer_that_was_interrupted_goes_on_and_what_fell_due_is_made_up(
    monkeypatch: pytest.MonkeyPatch,
):
    async with two_servers() as (there, here):
        every_second = ScheduleSpec(interval=[IntervalSpec(interval=Duration(seconds=1))])
        await there(create_request("s", schedule_message(every_second)))
        async with transfer(there, here, take_over=True) as moving:
            patch = moving._patch
            told: list[SchedulePatch] = []

            async def interrupted(
                server: Any, namespace: str, schedule_id: str, given: SchedulePatch
            ) -> None:
                if given.unpause and not told:
                    told.append(given)
                    raise ServerError("the line is cut")
                if given.unpause:
                    await asyncio.sleep(1.1)
                await patch(server, namespace, schedule_id, given)

            monkeypatch.setattr(moving, "_patch", interrupted)
            with pytest.raises(ServerError):
                await moving.move("s")
            for each in (there, here):  # neither runs; never both
                assert (await each.describe("s")).schedule.state.paused
            found = await moving.move("s")
        assert found.state in {"running; made up: 1", "running; made up: 2"}
        assert not (await here.describe("s")).schedule.state.paused


async def test_the_report_has_what_cannot_be_carried_over():
    async with two_servers("ping") as (there, here):
        await there(create_request("unknown", schedule_message(action=start_workflow("only-there"))))
        odd = start_workflow(
            retry_policy=RetryPolicy(non_retryable_error_types=["X"]), header=Header(fields={"h": Payload()})
        )
        await there(
            create_request(
                "odd",
                schedule_message(action=odd),
                initial_patch=SchedulePatch(trigger_immediately=TriggerImmediatelyRequest()),
            )
        )
        async with transfer(there, here) as copying:
            looked = {each: await copying.look(each) async for each in copying.ids()}
            assert looked["odd"].outcome == "would be new"
            assert (await here(api.CountSchedulesRequest(namespace=NAMESPACE))).count == 0
            moved = {each: await copying.move(each) async for each in copying.ids()}
        assert moved["unknown"].outcome == "refused"
        assert "only-there" in moved["unknown"].lost[0]
        assert looked["odd"].lost == moved["odd"].lost
        assert [each.split()[0] for each in moved["odd"].lost] == ["1", "Horae", "Horae's"]


@pytest.mark.contract("SCHD-30")
async def test_the_command_moves_the_schedules_of_a_client_over_and_back_and_reports():
    """Both sides are Horae's: Temporal's own test server has no schedules."""
    async with (
        two_servers() as (there, here),
        temporal_client(there.target) as theirs,
        temporal_client(here.target) as ours,
    ):
        action = ScheduleActionStartWorkflow("ping", {"n": 1}, id="wf", task_queue="tq")
        spec = client.ScheduleSpec(cron_expressions=["0 9 * * MON"], time_zone_name="Europe/Berlin")
        await theirs.create_schedule("s", client.Schedule(action=action, spec=spec), memo={"k": "v"})
        over = ("import", "temporal", "--from", there.target, "--to", here.target)
        looked = await asyncio.to_thread(run_command, *over, "--dry-run", "--json")
        assert json.loads(looked.stdout) == {
            "schedules": [{"id": "s", "outcome": "would be new", "state": "", "lost": []}],
            "dry_run": True,
        }
        original, copy = theirs.get_schedule_handle("s"), ours.get_schedule_handle("s")
        copied = await asyncio.to_thread(run_command, *over)
        assert "Carried over: 1. Refused: 0." in copied.stdout
        assert [(await each.describe()).schedule.state.paused for each in (original, copy)] == [False, True]
        await asyncio.to_thread(run_command, *over, "--take-over", "--schedule", "s")
        sent, moved = await original.describe(), await copy.describe()
        assert [each.schedule.state.paused for each in (sent, moved)] == [True, False]
        assert moved.raw_description.schedule.action == sent.raw_description.schedule.action
        assert moved.schedule.spec == sent.schedule.spec
        assert moved.info.next_action_times == sent.info.next_action_times
        assert await moved.memo() == {"k": "v"}

        def change(given: client.ScheduleUpdateInput) -> client.ScheduleUpdate:
            given.description.schedule.spec.jitter = timedelta(seconds=5)
            return client.ScheduleUpdate(given.description.schedule)

        await copy.update(change)
        back = ("import", "temporal", "--from", here.target, "--to", there.target, "--take-over")
        told = await asyncio.to_thread(run_command, *back)
        assert "updated" in told.stdout
        sent, moved = await original.describe(), await copy.describe()
        assert [each.schedule.state.paused for each in (sent, moved)] == [False, True]
        assert sent.schedule.spec.jitter == timedelta(seconds=5)
        nothing = await asyncio.to_thread(
            run_command, "import", "temporal", "--from", "127.0.0.1:1", "--to", here.target
        )
        assert nothing.returncode == 2
        assert "UNAVAILABLE" in nothing.stderr
