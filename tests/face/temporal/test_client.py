"""Temporal's own client, unmodified, with the service in a process of its own, on both databases."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.workflowservice import v1 as api
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
)
from temporalio.common import (
    Priority,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.service import RPCError, RPCStatusCode

from tests.support.postgres import new_postgres_database
from tests.support.process import Server
from tests.support.temporal import NAMESPACE, temporal_address, temporal_client
from tests.support.wait import wait_until

TEAM = SearchAttributeKey.for_keyword("Team")
SIZE = SearchAttributeKey.for_int("Size")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server: Any
) -> Iterator[Server]:
    database = f"sqlite:///{tmp_path_factory.mktemp('temporal')}/horae.db"
    if request.param == "postgresql":
        database = new_postgres_database(postgres_server)
    server = Server(database, "--temporal-port", "0")
    yield server
    server.end(signal.SIGKILL)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with temporal_client(temporal_address(server)) as client:
        yield client


def whole() -> Schedule:
    """A schedule with every option that the client has."""
    return Schedule(
        action=ScheduleActionStartWorkflow(
            "ping", args=[{"a": 1}, "two", b"\x00three"], id="wf", task_queue="tq", execution_timeout=timedelta(hours=2),
            run_timeout=timedelta(hours=1), task_timeout=timedelta(seconds=9),
            retry_policy=RetryPolicy(timedelta(seconds=2), 1.5, timedelta(minutes=1), 7, ["Fatal"]), memo={"m": [1, 2]},
            typed_search_attributes=TypedSearchAttributes([SearchAttributePair(TEAM, "inner")]), static_summary="what it is",
            static_details="at length", priority=Priority(priority_key=3),
        ),
        spec=ScheduleSpec(
            calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(9, 17, 2)], day_of_week=[ScheduleRange(1, 5)], comment="office")],
            intervals=[ScheduleIntervalSpec(every=timedelta(hours=7), offset=timedelta(minutes=20))],
            cron_expressions=["0 12 * * MON # lunch"],
            skip=[ScheduleCalendarSpec(month=[ScheduleRange(12)], day_of_month=[ScheduleRange(25)], hour=[ScheduleRange(0, 23)])],
            start_at=datetime(2026, 1, 1, tzinfo=UTC), end_at=datetime(2036, 1, 1, tzinfo=UTC), jitter=timedelta(seconds=30),
            time_zone_name="Europe/Berlin",
        ),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL, catchup_window=timedelta(minutes=3), pause_on_failure=True),
        state=ScheduleState(note="all of it", paused=True, limited_actions=True, remaining_actions=9),
    )  # fmt: skip


def plain(workflow: str = "ping", *, every: timedelta = timedelta(days=300), **more: Any) -> Schedule:
    action = ScheduleActionStartWorkflow(workflow, more.pop("arg", 1), id="wf", task_queue="tq")
    return Schedule(action=action, spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]), **more)


async def described(handle: ScheduleHandle, is_so: Callable[[Any], bool]) -> Any:
    """Its description, once something holds."""
    found: Any = None

    async def look() -> bool:
        nonlocal found
        found = await handle.describe()
        return is_so(found)

    await wait_until(look)
    return found


@pytest.mark.contract("SCHD-30")
async def test_a_schedule_with_every_option_is_what_the_client_reads_again(client: Client):
    search = TypedSearchAttributes([SearchAttributePair(TEAM, "x"), SearchAttributePair(SIZE, 3)])
    sent = whole()
    handle = await client.create_schedule(
        "whole", sent, memo={"k": "v", "raw": b"\x01"}, search_attributes=search
    )
    found = await handle.describe()
    read, action = found.schedule, found.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    expected = await sent._to_proto(client)
    assert found.raw_description.schedule.action == expected.action
    assert found.raw_description.schedule.policies == expected.policies
    assert (read.policy, read.state) == (sent.policy, sent.state)
    lunch = ScheduleCalendarSpec(
        hour=[ScheduleRange(12, 12, 1)], day_of_week=[ScheduleRange(1, 1, 1)], comment="lunch"
    )
    assert [_whole_ranges(each) for each in read.spec.calendars] == [
        _whole_ranges(each) for each in (*sent.spec.calendars, lunch)
    ]
    assert [_whole_ranges(each) for each in read.spec.skip] == [
        _whole_ranges(each) for each in sent.spec.skip
    ]
    for name in ("intervals", "start_at", "end_at", "jitter", "time_zone_name"):
        assert getattr(read.spec, name) == getattr(sent.spec, name), name
    assert await found.memo() == {"k": "v", "raw": b"\x01"}
    assert found.typed_search_attributes[TEAM] == "x"
    assert found.typed_search_attributes[SIZE] == 3
    assert len(found.info.next_action_times) == 9  # also while paused, as far as the limit goes
    await handle.update(lambda given: ScheduleUpdate(given.description.schedule))
    again = await handle.describe()
    assert again.raw_description.schedule == found.raw_description.schedule
    assert again.raw_description.conflict_token == found.raw_description.conflict_token
    await handle.delete()


def _whole_ranges(calendar: ScheduleCalendarSpec) -> ScheduleCalendarSpec:
    """A calendar with the ends and steps of its ranges, as a server fills them in."""
    filled = {
        field.name: [ScheduleRange(each.start, max(each.start, each.end), each.step or 1) for each in getattr(calendar, field.name)]
        for field in dataclasses.fields(calendar)
        if field.name != "comment"
    }  # fmt: skip
    return dataclasses.replace(calendar, **filled)  # type: ignore[arg-type]


@pytest.mark.contract("SCHD-30")
async def test_schedules_are_paused_triggered_backfilled_and_deleted(client: Client):
    handle = await client.create_schedule("handled", plain(arg={"n": 1}), trigger_immediately=True)
    found = await described(handle, lambda d: d.info.num_actions == 1)
    assert found.info.recent_actions[0].action.workflow_id.startswith("wf-20")
    await handle.pause()
    await handle.pause(note="because")
    found = await handle.describe()
    assert (found.schedule.state.paused, found.schedule.state.note) == (True, "because")
    await handle.trigger(overlap=ScheduleOverlapPolicy.ALLOW_ALL)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    await handle.backfill(
        ScheduleBackfill(start, start + timedelta(days=500), ScheduleOverlapPolicy.ALLOW_ALL),
        ScheduleBackfill(
            start + timedelta(days=600), start + timedelta(days=1000), ScheduleOverlapPolicy.BUFFER_ALL
        ),
    )
    found = await described(handle, lambda d: d.info.num_actions >= 4)
    await handle.unpause(note="better")
    found = await handle.describe()
    assert (found.schedule.state.paused, found.schedule.state.note) == (False, "better")
    assert len(found.info.next_action_times) == 10
    assert found.info.last_updated_at is not None
    await handle.delete()
    with pytest.raises(RPCError) as caught:
        await handle.describe()
    assert caught.value.status is RPCStatusCode.NOT_FOUND


@pytest.mark.contract("SCHD-30")
async def test_running_actions_and_counts_by_reason(client: Client):
    handle = await client.create_schedule("busy", plain("slow", every=timedelta(seconds=1)))
    found = await described(handle, lambda d: d.info.num_actions_skipped_overlap >= 2)
    await handle.pause()
    (running,) = found.info.running_actions
    assert running.workflow_id == found.info.recent_actions[-1].action.workflow_id
    assert found.info.num_actions == 1
    await handle.delete()


@pytest.mark.contract("SCHD-30")
async def test_schedules_are_updated_from_what_was_described(client: Client):
    handle = await client.create_schedule(
        "edited", plain(), search_attributes=TypedSearchAttributes([SearchAttributePair(TEAM, "x")])
    )

    def change(given: Any) -> ScheduleUpdate:
        schedule = given.description.schedule
        schedule.action.args = [{"other": True}]
        schedule.action.workflow = "nap"
        schedule.spec.intervals = [ScheduleIntervalSpec(every=timedelta(days=200))]
        schedule.policy.overlap = ScheduleOverlapPolicy.BUFFER_ONE
        schedule.state.limited_actions, schedule.state.remaining_actions = True, 2
        return ScheduleUpdate(schedule)

    await handle.update(change)
    found = await handle.describe()
    assert found.schedule.action.workflow == "nap"  # type: ignore[attr-defined]
    assert found.schedule.spec.intervals == [ScheduleIntervalSpec(every=timedelta(days=200))]
    assert found.schedule.policy.overlap is ScheduleOverlapPolicy.BUFFER_ONE
    assert len(found.info.next_action_times) == 2
    assert found.typed_search_attributes[TEAM] == "x"  # not sent, and so kept
    await handle.update(lambda given: ScheduleUpdate(given.description.schedule, TypedSearchAttributes.empty))
    assert not (await handle.describe()).typed_search_attributes
    await handle.update(lambda _: None)
    await handle.delete()


@pytest.mark.contract("SCHD-30")
async def test_schedules_are_listed_and_counted(client: Client, server: Server):
    for number in range(3):
        search = TypedSearchAttributes([SearchAttributePair(SIZE, number % 2)])
        await client.create_schedule(
            f"listed-{number}", plain(), memo={"number": number}, search_attributes=search
        )
    found = [each async for each in await client.list_schedules(page_size=2)]
    assert [each.id for each in found] == ["listed-0", "listed-1", "listed-2"]
    assert [await each.memo_value("number") for each in found] == [0, 1, 2]
    assert found[0].schedule is not None
    assert found[0].schedule.action.workflow == "ping"  # type: ignore[attr-defined]
    assert found[0].info is not None
    assert len(found[0].info.next_action_times) == 5
    assert [each.id async for each in await client.list_schedules("Size = 1")] == ["listed-1"]
    counted = await client.workflow_service.count_schedules(api.CountSchedulesRequest(namespace=NAMESPACE))
    assert counted.count == 3
    assert {each["owner"] for each in server.get("/schedules", params={"owner": NAMESPACE})["items"]} == {
        NAMESPACE
    }
    for each in found:
        await client.get_schedule_handle(each.id).delete()


@pytest.mark.contract("SCHD-30")
async def test_a_schedule_is_created_with_backfills_and_has_matching_times(client: Client):
    first = datetime(1970, 1, 1, tzinfo=UTC) + 61 * timedelta(days=300)
    times = [first + each * timedelta(days=300) for each in range(4)]
    backfill = [
        ScheduleBackfill(times[0], times[1], ScheduleOverlapPolicy.ALLOW_ALL),
        ScheduleBackfill(times[3], times[3], ScheduleOverlapPolicy.BUFFER_ALL),
    ]
    handle = await client.create_schedule("made-up", plain(), trigger_immediately=True, backfill=backfill)
    request = api.ListScheduleMatchingTimesRequest(namespace=NAMESPACE, schedule_id="made-up")
    request.start_time.FromDatetime(times[0])
    request.end_time.FromDatetime(times[3])
    found = (await client.workflow_service.list_schedule_matching_times(request)).start_time
    assert [each.ToDatetime(UTC) for each in found] == times[1:]
    info = (await described(handle, lambda d: d.info.num_actions == 4)).info
    assert {each.scheduled_at for each in info.recent_actions} > {times[0], times[1], times[3]}
    await handle.delete()


@pytest.mark.contract("SCHD-30")
async def test_the_client_asks_what_it_is_connected_to(client: Client):
    service = client.workflow_service
    system = await service.get_system_info(api.GetSystemInfoRequest())
    assert system.capabilities.supports_schedules
    cluster = await service.get_cluster_info(api.GetClusterInfoRequest())
    assert cluster.cluster_name.startswith("horae")
    namespace = await service.describe_namespace(api.DescribeNamespaceRequest(namespace=NAMESPACE))
    assert namespace.config.workflow_execution_retention_ttl.seconds == 90 * 86400
    assert namespace.replication_config.active_cluster_name == cluster.cluster_name


@pytest.mark.contract("SCHD-30")
async def test_errors_are_those_that_the_client_knows(client: Client):
    handle = await client.create_schedule("taken", plain())
    with pytest.raises(ScheduleAlreadyRunningError):
        await client.create_schedule("taken", plain())
    await handle.delete()
    assert await client.service_client.check_health()

    async def refused(answer: Awaitable[Any]) -> RPCStatusCode:
        with pytest.raises(RPCError) as caught:
            await answer
        return caught.value.status

    assert await refused(handle.pause()) is RPCStatusCode.NOT_FOUND
    assert await refused(client.create_schedule("x", plain("nobody's"))) is RPCStatusCode.INVALID_ARGUMENT
    assert (
        await refused(client.start_workflow("ping", id="x", task_queue="tq")) is RPCStatusCode.UNIMPLEMENTED
    )
