"""Schedules move from one server to another, and back."""

from __future__ import annotations

import asyncio
import json
import re
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
from horae.face.temporal.schedule_transfer import MOVED, WAITS, Endpoint, Transfer
from tests.face.cli.command import horae as run_command
from tests.support.nodes import running
from tests.support.process import ROOT
from tests.support.temporal import (
    NAMESPACE,
    Calls,
    calls_at,
    calls_to,
    create_request,
    schedule_message,
    start_workflow,
    temporal_client,
    update_request,
)
from tests.support.temporal_cluster import QUEUE, TemporalCluster
from tests.support.wait import wait_until


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
        assert original.schedule.state.paused
        assert original.schedule.state.notes.startswith(f"{MOVED}{here.target} at 20")
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
            await asyncio.sleep(1)
            found = await moving.move("s")
        assert int(found.state.removeprefix("running; made up: ")) >= 2  # more on a busy machine
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


MOVED_SCHEDULES = {
    "move-every": ["--interval", "1s", "--overlap-policy", "AllowAll", "--input", "1"],
    "move-cron": ["--cron", "0 9 * * MON # office", "--time-zone", "Europe/Berlin", "--schedule-search-attribute", 'Team="x"'],
    "move-calendar": ["--calendar", '{"hour": "9-17/2", "month": "Jan"}', "--jitter", "30s", "--catchup-window", "3h", "--notes", "mine",
                      "--remaining-actions", "5", "--schedule-memo", 'k={"a": 1}', "--run-timeout", "1h", "--pause-on-failure"],
    "move-paused": ["--interval", "1h", "--paused", "--notes", "off"],
}  # fmt: skip


@pytest.mark.contract("SCHD-30")
async def test_the_commands_of_the_how_to_move_schedules_from_temporal_and_back(
    temporal_cluster: TemporalCluster,
):
    """Of a schedule of every second no second is started twice, and none is lost."""
    config = Config(temporal_port=0, tick_ms=50)
    app = horae.App(":memory:", config=config)
    app.action("ping")(lambda: None)
    temporal = temporal_cluster.command
    workflow = ("--workflow-id", "wf", "--task-queue", QUEUE, "--type")
    async with running(app), calls_to(app, config) as here, calls_at(temporal_cluster.address) as there:
        for name, options in MOVED_SCHEDULES.items():
            await temporal.later("schedule", "create", "-s", name, *workflow, "ping", *options)
        await temporal.later("schedule", "create", "-s", "move-not", "--paused", *workflow, "Slow")
        sent = {name: (await there.describe(name)).schedule for name in MOVED_SCHEDULES}
        dry_run, copy, take_over, back = commands_of_the_how_to(there.target, here.target)

        async def listed() -> bool:  # Temporal's lists come later
            return len(await imported(dry_run)) == 5

        await wait_until(listed)
        await wait_until(lambda: started_there(there))
        assert (await here(api.CountSchedulesRequest(namespace=NAMESPACE))).count == 0
        report = await imported(copy)
        refused = report.pop("move-not")
        assert (refused["outcome"], 'There is no action "Slow"' in refused["lost"][0]) == ("refused", True)
        assert {(each["outcome"], each["state"]) for each in report.values()} == {("new", "paused")}
        assert not [each for each in report.values() if "differs" in str(each["lost"])]

        report = await imported(take_over)
        assert report["move-every"]["state"].startswith("running")
        await wait_until(lambda: started(app))
        await wait_until(lambda: every_second(there, app))
        for name, schedule in sent.items():
            original, moved = (await there.describe(name)).schedule, (await here.describe(name)).schedule
            assert original.state.paused
            assert (moved.spec, moved.action, moved.policies) == (
                schedule.spec, schedule.action, schedule.policies
            )  # fmt: skip
            assert (moved.state.paused, moved.state.remaining_actions) == (
                schedule.state.paused, schedule.state.remaining_actions
            )  # fmt: skip

        changed = (await here.describe("move-every")).schedule
        changed.state.notes = "changed"
        await here(update_request("move-every", changed, memo=MEMO, search_attributes=SEARCH))
        report = await imported(back)
        assert [report[name]["outcome"] for name in MOVED_SCHEDULES] == [*["updated"] * 3, "there already"]
        before = await started(app)

        async def goes_on() -> bool:
            return max(await started_there(there)) > max(before)

        await wait_until(goes_on)
        await wait_until(lambda: every_second(there, app))
        states = {name: (await there.describe(name)).schedule.state for name in MOVED_SCHEDULES}
        assert [each.paused for each in states.values()] == [False, False, False, True]
        assert [each.notes for each in states.values()] == [
            "changed", f"moved from {here.target}", "mine", "off",
        ]  # fmt: skip
        returned = await there.describe("move-every")
        assert returned.search_attributes == SEARCH
        assert returned.memo == MEMO or "differs: memo" in report["move-every"]["lost"]
        for name in MOVED_SCHEDULES:
            assert (await here.describe(name)).schedule.state.paused
        for name in (*MOVED_SCHEDULES, "move-not"):
            await temporal.later("schedule", "delete", "-s", name)


def commands_of_the_how_to(there: str, here: str) -> list[list[str]]:
    """The commands with which the page moves schedules, with the addresses of two servers."""
    page = (ROOT / "docs/how-to/temporal.md").read_text()
    found = re.findall("^horae (import temporal .*)$", page, re.MULTILINE)
    addressed = [
        each.replace("127.0.0.1:7233", here).replace("temporal.example.org:7233", there) for each in found
    ]
    return [[*each.split(), *(() if "--to" in each else ("--to", here)), "--json"] for each in addressed]


async def imported(command: list[str]) -> dict[str, Any]:
    """What a command reports of the schedules of this test."""
    told = await asyncio.to_thread(run_command, *command)
    assert told.returncode == 0, told.stderr
    found = {each["id"]: each for each in json.loads(told.stdout)["schedules"]}
    return {name: each for name, each in found.items() if name.startswith("move-")}


async def started(app: horae.App) -> set[int]:
    """The seconds that Horae started."""
    return {each.nominal_ms // 1000 for each in await app.owned_by(NAMESPACE).runs.list("move-every")}


async def started_there(there: Calls) -> set[int]:
    """The last seconds that Temporal started."""
    return {each.schedule_time.seconds for each in (await there.describe("move-every")).info.recent_actions}


async def every_second(there: Calls, app: horae.App) -> bool:
    """Whether no second is missing of those that Horae started and those right before or after; no second may be there twice."""
    one, other = await started_there(there), await started(app)
    assert not one & other
    around = sorted(one | other)
    return around == [*range(around[0], around[-1] + 1)]
