"""Calls with messages as clients and the ``temporal`` command send them, to a server in this process."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Header, Memo, Payload, Payloads, RetryPolicy, SearchAttributes
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Overlaps
from temporalio.api.errordetails.v1 import (
    NotFoundFailure,
    WorkflowExecutionAlreadyStartedFailure,
)
from temporalio.api.schedule.v1 import (
    BackfillRequest,
    IntervalSpec,
    SchedulePatch,
    SchedulePolicies,
    ScheduleSpec,
    ScheduleState,
    TriggerImmediatelyRequest,
)
from temporalio.api.workflowservice import v1 as api

import horae
from horae.app.face_defaults import TEMPORAL
from horae.executor.temporal_connection import SERVICE
from horae.face.temporal.preserved_messages import KEY
from horae.face.temporal.server import HEALTH
from horae.testing import TimeMachine
from tests.support.temporal import (
    NAMESPACE,
    Calls,
    RpcError,
    calls_to,
    create_request,
    schedule_message,
    start_workflow,
    update_request,
)

Code = grpc.StatusCode


def stamp(text: str) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(datetime.fromisoformat(text).replace(tzinfo=UTC))
    return made


@pytest.fixture
async def app() -> AsyncIterator[horae.App]:
    app = horae.App(":memory:")

    @app.action("ping")
    async def ping(context: horae.Context) -> Any:
        return context.input

    async with app:
        yield app


@pytest.fixture
async def calls(app: horae.App) -> AsyncIterator[Calls]:
    async with calls_to(app) as calls:
        yield calls


def patch(schedule_id: str, given: SchedulePatch, request_id: str = "p") -> api.PatchScheduleRequest:
    return api.PatchScheduleRequest(
        namespace=NAMESPACE, schedule_id=schedule_id, patch=given, request_id=request_id
    )


async def refused(answer: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await answer
    assert "Traceback" not in caught.value.message
    assert caught.value.status.code == caught.value.code.value[0]
    return caught.value


@pytest.mark.contract("SCHD-30")
async def test_what_clients_ask_on_connecting(calls: Calls):
    info = await calls(api.GetSystemInfoRequest())
    assert info.capabilities.supports_schedules
    assert (await calls(api.GetClusterInfoRequest())).server_version == info.server_version
    described = await calls(api.DescribeNamespaceRequest(namespace="team"))
    assert described.namespace_info.name == "team"
    asked = bytes([10, len(SERVICE)]) + SERVICE.encode()
    assert await calls.raw(f"/{HEALTH}/Check", asked) == b"\x08\x01"
    assert await calls.raw(f"/{HEALTH}/Check", b"") == b"\x08\x01"
    assert (await refused(calls.raw(f"/{HEALTH}/Check", b"\x0a\x01x"))).code is Code.NOT_FOUND
    other = await refused(calls(api.StartWorkflowExecutionRequest(namespace=NAMESPACE)))
    assert other.code is Code.UNIMPLEMENTED
    assert "StartWorkflowExecution" in other.message
    assert (await refused(calls.raw("/other.Service/Do", b""))).code is Code.UNIMPLEMENTED


@pytest.mark.contract("SCHD-30")
async def test_the_defaults_are_temporals(calls: Calls, app: horae.App):
    await calls(create_request("plain", schedule_message(ScheduleSpec(cron_string=["0 0 13 * 5"]))))
    stored = await app.owned_by(NAMESPACE).schedules.get("plain")
    assert stored.policies == TEMPORAL
    assert (TEMPORAL.catch_up.window, TEMPORAL.catch_up.grace, TEMPORAL.on_resume.value) == (
        "365d",
        "10s",
        "skip",
    )
    shown = (await calls.describe("plain")).schedule
    assert shown.policies.catchup_window.seconds == 365 * 86400
    assert shown.policies.overlap_policy == Overlaps.SCHEDULE_OVERLAP_POLICY_SKIP
    (calendar,) = shown.spec.structured_calendar  # day of month and weekday must both match
    assert (calendar.day_of_month[0].start, calendar.day_of_week[0].start) == (13, 5)


@pytest.mark.contract("SCHD-30")
async def test_what_temporals_server_adds_to_a_message_is_added(calls: Calls, app: horae.App):
    given = {"Team": b'"x"', "Size": b"3", "Share": b"0.5", "On": b"true", "Tags": b'["a","b"]'}
    plain = {name: Payload(metadata={"encoding": b"json/plain"}, data=value) for name, value in given.items()}
    search = SearchAttributes(indexed_fields=plain)
    short = SchedulePolicies(catchup_window=Duration(seconds=1))
    action = start_workflow(search_attributes=search)
    await calls(
        create_request("s", schedule_message(policies=short, action=action), search_attributes=search)
    )
    shown = await calls.describe("s")
    types = {"Team": b"Keyword", "Size": b"Int", "Share": b"Double", "On": b"Bool", "Tags": b"KeywordList"}
    for attributes in (shown.search_attributes, shown.schedule.action.start_workflow.search_attributes):
        found = {name: each.metadata["type"] for name, each in attributes.indexed_fields.items()}
        assert found == types
    assert shown.schedule.policies.catchup_window.seconds == 10
    await calls(update_request("s", shown.schedule, search_attributes=search))
    assert await calls.describe("s") == shown
    assert not (await calls.describe("s")).HasField("memo")  # as an absent one is shown
    schedules = app.owned_by(NAMESPACE).schedules
    await schedules.update("s", policies={"catch_up": {"window": "1s"}})  # what another face may say
    shown = await calls.describe("s")
    await calls(update_request("s", shown.schedule))
    assert (await schedules.get("s")).policies.catch_up.window == "1s"


@pytest.mark.contract("SCHD-30")
async def test_an_argument_that_is_no_json_is_handed_over_as_bytes(machine: TimeMachine):
    got: list[bytes | None] = []
    machine.app.action("take")(lambda context: got.append(context.input_bytes))
    raw = Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\xff")
    json = Payload(metadata={"encoding": b"json/plain"}, data=b'{"metadata": 1, "data": "?"}')
    now = SchedulePatch(trigger_immediately=TriggerImmediatelyRequest())
    async with calls_to(machine.app) as calls:
        for number, payload in enumerate((raw, json)):
            action = start_workflow("take")
            action.input.CopyFrom(Payloads(payloads=[payload]))
            await calls(create_request(f"s{number}", schedule_message(action=action), initial_patch=now))
        await machine.advance(seconds=1)
    assert sorted(got, key=str) == [None, b"\x00\xff"]


@pytest.mark.contract("SCHD-30")
async def test_every_field_is_shown_as_it_was_sent(calls: Calls, app: horae.App):
    """As a client in Go writes it: keys in their own order, metadata of its own."""
    payload = Payload(metadata={"encoding": b"json/plain", "x": b"\xff"}, data=b'{"b": 1,"a":"<\\u003e"}')
    action = start_workflow(
        workflow_execution_timeout=Duration(seconds=3600), workflow_run_timeout=Duration(seconds=60),
        workflow_task_timeout=Duration(seconds=10), retry_policy=RetryPolicy(maximum_attempts=4, non_retryable_error_types=["No"]),
        memo=Memo(fields={"m": payload}), header=Header(fields={"h": payload}), search_attributes=SearchAttributes(indexed_fields={"s": payload}),
    )  # fmt: skip
    action.input.CopyFrom(
        Payloads(payloads=[payload, Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\xff")])
    )
    schedule = schedule_message(
        ScheduleSpec(interval=[IntervalSpec(interval=Duration(seconds=60), phase=Duration(seconds=7))], timezone_name="UTC"),
        action=action,
        policies=SchedulePolicies(
            overlap_policy=Overlaps.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, catchup_window=Duration(seconds=30),
            pause_on_failure=True, keep_original_workflow_id=True,
        ),
        state=ScheduleState(notes="why", paused=True, limited_actions=True, remaining_actions=5),
    )  # fmt: skip
    memo = Memo(
        fields={"plain": Payload(metadata={"encoding": b"json/plain"}, data=b"[1,2]"), "odd": payload}
    )
    search = SearchAttributes(
        indexed_fields={
            "Team": Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=b'"x"'),
            "All": Payload(metadata={"encoding": b"json/plain", "type": b"KeywordList"}, data=b'["a","b"]'),
            "At": Payload(
                metadata={"encoding": b"json/plain", "type": b"Datetime"}, data=b'"2027-01-01T00:00:00Z"'
            ),
            "No": Payload(metadata={"encoding": b"json/plain", "type": b"Int"}, data=b"7"),
        }
    )
    await calls(create_request("whole", schedule, memo=memo, search_attributes=search))
    shown = await calls.describe("whole")
    assert shown.schedule == schedule
    assert shown.memo == memo
    assert shown.search_attributes == search
    stored = await app.owned_by(NAMESPACE).schedules.get("whole")
    assert stored.action.input[0] == {"b": 1, "a": "<>"}
    assert stored.action.input[1] == {"metadata": {"encoding": "binary/plain"}, "data": "AP8="}
    assert (stored.policies.timeouts.run, stored.policies.retry.attempts) == ("1m", 4)
    assert (stored.policies.retry.initial_delay, stored.policies.retry.max_delay) == ("1s", "1m40s")
    assert stored.search_attributes == {
        "Team": "x",
        "All": '["a","b"]',
        "At": "2027-01-01T00:00:00Z",
        "No": 7,
    }
    await calls(update_request("whole", shown.schedule))
    again = await calls.describe("whole")
    assert (again.schedule, again.conflict_token) == (shown.schedule, shown.conflict_token)


@pytest.mark.contract("SCHD-30", "SCHD-23")
async def test_an_update_leaves_alone_what_a_message_cannot_say(calls: Calls, app: horae.App):
    schedules = app.owned_by(NAMESPACE).schedules
    await schedules.create(
        "own", {"crons": ["0 9 L * *"], "rrules": ["FREQ=DAILY;BYHOUR=5;BYMINUTE=0;BYSECOND=0"], "fold": "last"}, "ping", input=[1],
        policies={"max_concurrent": 3, "retry": {"attempts": 5, "retry_on": ["ValueError"]}, "catch_up": {"mode": "latest"}},
        description="mine", tags=["t"], memo={"k": 1},
    )  # fmt: skip
    before, shown = await schedules.get("own"), (await calls.describe("own")).schedule
    assert not shown.policies.HasField("catchup_window")
    await calls(update_request("own", shown))
    assert (await schedules.get("own")) == before
    shown.state.notes = "noted"
    shown.spec.cron_string.append("0 1 * * *")
    shown.action.start_workflow.input.payloads[0].data = b'{"new":2}'
    await calls(update_request("own", shown))
    after = await schedules.get("own")
    assert after.policies == before.policies
    assert (after.description, after.tags, after.state.note) == ("mine", ("t",), "noted")
    assert after.action.input == {"new": 2}
    spec = json.loads(after.spec)
    assert (spec["crons"], spec["fold"], len(spec["rrules"]), len(spec["calendars"])) == (
        ["0 9 L * *"],
        "last",
        1,
        1,
    )
    assert (await calls.describe("own")).memo.fields.keys() == {"k"}


async def test_what_another_face_changes_is_shown(calls: Calls, app: horae.App):
    schedules = app.owned_by(NAMESPACE).schedules
    await calls(create_request("both", memo=Memo(fields={"a": Payload(data=b"raw")})))
    await schedules.update("both", "0 7 * * *", input={"x": 1}, policies={"retry": {"attempts": None}})
    shown = await calls.describe("both")
    assert shown.schedule.spec.structured_calendar[0].hour[0].start == 7
    workflow = shown.schedule.action.start_workflow
    assert workflow.input.payloads[0].data == b'{"x":1}'
    assert (workflow.task_queue.name, workflow.retry_policy.maximum_attempts) == ("tq", 0)
    assert workflow.HasField("retry_policy")
    assert shown.memo.fields["a"].data == b"raw"
    await schedules.update("both", memo={})
    shown = await calls.describe("both")
    assert not shown.memo.fields
    assert shown.schedule.action.start_workflow.task_queue.name == "horae"


@pytest.mark.contract("SCHD-30", "SCHD-22", "SCHD-23")
async def test_tokens_memos_and_search_attributes_of_updates(calls: Calls):
    search = SearchAttributes(
        indexed_fields={"T": Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=b'"x"')}
    )
    created = await calls(create_request("s", search_attributes=search, memo=Memo(fields={"m": Payload()})))
    shown = await calls.describe("s")
    assert created.conflict_token == shown.conflict_token
    shown.schedule.state.notes = "one"
    await calls(update_request("s", shown.schedule, conflict_token=shown.conflict_token))
    shown.schedule.state.notes = "two"
    for token in (shown.conflict_token, b"other"):
        stale = await refused(calls(update_request("s", shown.schedule, conflict_token=token)))
        assert stale.code is Code.FAILED_PRECONDITION
    after = await calls.describe("s")
    assert (after.schedule.state.notes, after.search_attributes, set(after.memo.fields)) == (
        "one",
        search,
        {"m"},
    )
    await calls(update_request("s", shown.schedule, search_attributes=SearchAttributes(), memo=Memo()))
    after = await calls.describe("s")
    assert after.schedule.state.notes == "two"
    assert not after.search_attributes.indexed_fields
    assert not after.memo.fields


@pytest.mark.contract("SCHD-30", "SCHD-18", "SCHD-19")
async def test_patches_as_the_command_sends_them(calls: Calls, app: horae.App):
    await calls(create_request("s"))
    await calls(patch("s", SchedulePatch(pause="Paused via CLI"), "1"))
    state = (await calls.describe("s")).schedule.state
    assert (state.paused, state.notes) == (True, "Paused via CLI")
    assert len((await calls.describe("s")).info.future_action_times) == 10
    await calls(patch("s", SchedulePatch(unpause="Unpaused via CLI"), "2"))
    assert not (await calls.describe("s")).schedule.state.paused
    trigger = SchedulePatch(
        trigger_immediately=TriggerImmediatelyRequest(
            overlap_policy=Overlaps.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
        )
    )
    for _ in range(2):  # the second time because the answer was lost
        await calls(patch("s", trigger, "3"))
    runs = await app.owned_by(NAMESPACE).runs.list("s")
    assert [(each.origin.kind, each.overlap, each.author) for each in runs] == [
        ("trigger", "allow_all", "local")
    ]
    ranges = [
        BackfillRequest(start_time=stamp(f"2026-0{month}-01"), end_time=stamp(f"2026-0{month}-03"), overlap_policy=overlap)
        for month, overlap in ((1, Overlaps.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL), (2, Overlaps.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED))
    ]  # fmt: skip
    await calls(patch("s", SchedulePatch(backfill_request=ranges), "4"))
    backfills = await app.owned_by(NAMESPACE).backfills.list("s")
    assert sorted((each.overlap, each.total) for each in backfills) == [("buffer_all", 2), ("skip", 2)]
    both = await refused(calls(patch("s", SchedulePatch(pause="a", unpause="b"), "5")))
    assert both.code is Code.INVALID_ARGUMENT


@pytest.mark.contract("SCHD-30")
async def test_the_calls_of_the_client_for_go_are_answered(calls: Calls, app: horae.App):
    """As the client for Go, version 1.31, which the command is made of, sent them to a service; its answers are read as it read them."""
    recorded = json.loads((Path(__file__).parent / "go_client_calls.json").read_text())
    refusals, described, listed = [], [], []
    for number, each in enumerate(recorded):
        method, sent = each["method"], base64.b64decode(each["request"])
        service = HEALTH if method == "Check" else SERVICE
        try:
            answer = await calls.raw(f"/{service}/{method}", sent)
        except RpcError as error:
            refusals.append((number, method, error.code))
            continue
        if method == "DescribeSchedule":
            described.append(api.DescribeScheduleResponse.FromString(answer))
        if method == "ListSchedules":
            listed += [one.schedule_id for one in api.ListSchedulesResponse.FromString(answer).schedules]
    assert [(method, code) for _, method, code in refusals] == [
        ("CreateSchedule", Code.ALREADY_EXISTS),
        ("ListScheduleMatchingTimes", Code.INVALID_ARGUMENT),  # sent without times
        ("DescribeSchedule", Code.NOT_FOUND),  # deleted before
    ]
    created = api.CreateScheduleRequest.FromString(
        base64.b64decode(next(each["request"] for each in recorded if each["method"] == "CreateSchedule"))
    )
    first, *_, last = described
    assert first.schedule.action == created.schedule.action
    assert (first.memo, first.search_attributes) == (created.memo, created.search_attributes)
    assert (first.schedule.state, first.schedule.policies) == (
        created.schedule.state,
        created.schedule.policies,
    )
    assert len(first.schedule.spec.structured_calendar) == 3
    assert (last.schedule.state.notes, last.schedule.spec.interval[0].interval.seconds) == ("changed", 7200)
    assert last.search_attributes == created.search_attributes
    assert listed == ["go", "plain"]
    assert await app.owned_by(NAMESPACE).schedules.count() == 0


@pytest.mark.contract("SCHD-30")
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_a_request_that_is_sent_again_to_another_node_or_after_a_restart_is_carried_out_once(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
):
    database = (
        request.getfixturevalue("postgres") if store == "postgresql" else f"sqlite:///{tmp_path}/horae.db"
    )
    now = SchedulePatch(trigger_immediately=TriggerImmediatelyRequest())
    backfill = [BackfillRequest(start_time=stamp("2026-01-01"), end_time=stamp("2026-01-03"))]

    @asynccontextmanager
    async def node() -> AsyncIterator[tuple[horae.App, Calls]]:
        app = horae.App(database)
        app.action("ping")(lambda: None)
        async with app, calls_to(app) as calls:
            yield app, calls

    async with node() as (_, one), node() as (_, other):
        created = await asyncio.gather(one(create_request("s")), other(create_request("s")))
        assert created[0] == created[1]
        for patched in (patch("s", now, "t"), patch("s", SchedulePatch(backfill_request=backfill), "b")):
            await asyncio.gather(one(patched), other(patched), one(patched))
        await one(patch("s", SchedulePatch(pause="p"), "p"))
        await other(patch("s", SchedulePatch(unpause="u"), "u"))
    async with node() as (app, calls):  # all of them have ended meanwhile
        await calls(create_request("s"))  # it was created by this request, and is not refused
        for patched in (
            patch("s", now, "t"), patch("s", SchedulePatch(backfill_request=backfill), "b"), patch("s", SchedulePatch(pause="p"), "p"),
        ):  # fmt: skip
            await calls(patched)
        mine = app.owned_by(NAMESPACE)
        assert len([each for each in await mine.runs.list("s") if each.origin.kind == "trigger"]) == 1
        assert len(await mine.backfills.list("s")) == 1
        assert not (await mine.schedules.get("s")).state.paused
        await calls(patch("s", now, "another"))
        await calls(patch("s", now, ""))
        await calls(patch("s", now, ""))
        assert len([each for each in await mine.runs.list("s") if each.origin.kind == "trigger"]) == 4


async def test_a_schedule_is_created_paused_triggered_and_backfilled_at_once(calls: Calls, app: horae.App):
    given = SchedulePatch(
        trigger_immediately=TriggerImmediatelyRequest(), pause="not yet",
        backfill_request=[BackfillRequest(start_time=stamp("2026-01-01"), end_time=stamp("2026-01-02"))],
    )  # fmt: skip
    first = await calls(create_request("s", initial_patch=given))
    again = await calls(create_request("s", initial_patch=given))
    assert first == again
    assert len(await app.owned_by(NAMESPACE).runs.list("s")) == 1
    assert len(await app.owned_by(NAMESPACE).backfills.list("s")) == 1
    assert (await calls.describe("s")).schedule.state == ScheduleState(notes="not yet", paused=True)


@pytest.mark.contract("SCHD-30")
async def test_lists_counts_and_queries(calls: Calls):
    def search(team: str) -> SearchAttributes:
        return SearchAttributes(
            indexed_fields={
                "Team": Payload(metadata={"encoding": b"json/plain"}, data=b'"%s"' % team.encode())
            }
        )

    for number in range(5):
        state = ScheduleState(paused=number == 0, notes=f"n{number}")
        await calls(
            create_request(
                f"s{number}", schedule_message(state=state), search_attributes=search("ab"[number % 2])
            )
        )
    await calls(create_request("other", namespace="elsewhere"))
    found, token = [], b""
    while True:
        page = await calls(
            api.ListSchedulesRequest(namespace=NAMESPACE, maximum_page_size=2, next_page_token=token)
        )
        assert len(page.schedules) <= 2
        found += page.schedules
        if not (token := page.next_page_token):
            break
    assert [each.schedule_id for each in found] == [f"s{number}" for number in range(5)]
    assert [each.info.paused for each in found] == [True, *[False] * 4]
    assert found[1].info.workflow_type.name == "ping"
    assert len(found[1].info.future_action_times) == 5
    assert found[1].info.spec == (await calls.describe("s1")).schedule.spec
    for query, count in {"": 5, "TemporalSchedulePaused = false": 4, "Team='a'": 3, "Team = \"a\" and `TemporalSchedulePaused`=true": 1,
                         "ScheduleId STARTS_WITH 's4'": 1, "TemporalScheduleWorkflowType = 'ping'": 5}.items():  # fmt: skip
        assert (await calls(api.CountSchedulesRequest(namespace=NAMESPACE, query=query))).count == count, (
            query
        )
        page = await calls(api.ListSchedulesRequest(namespace=NAMESPACE, query=query))
        assert len(page.schedules) == count
    for query in (
        "Team >",
        "Team = 'a' OR",
        "(Team = 'a'",
        "TemporalOther = 1",
        "TemporalSchedulePaused = 3",
        "x" * 3000,
    ):
        wrong = await refused(calls(api.CountSchedulesRequest(namespace=NAMESPACE, query=query)))
        assert (wrong.code, wrong.message[:6]) == (Code.INVALID_ARGUMENT, "query ")
    wrong = await refused(calls(api.ListSchedulesRequest(namespace=NAMESPACE, next_page_token=b"\xff")))
    assert wrong.code is Code.INVALID_ARGUMENT


@pytest.mark.contract("SCHD-30")
async def test_matching_times(calls: Calls):
    await calls(create_request("s", schedule_message(state=ScheduleState(paused=True))))

    def asked(start: str, end: str) -> api.ListScheduleMatchingTimesRequest:
        return api.ListScheduleMatchingTimesRequest(
            namespace=NAMESPACE, schedule_id="s", start_time=stamp(start), end_time=stamp(end)
        )

    found = (await calls(asked("2026-01-01T09:00:00", "2026-01-03T09:00:00"))).start_time
    assert [each.ToDatetime().isoformat() for each in found] == ["2026-01-02T09:00:00", "2026-01-03T09:00:00"]
    assert len((await calls(asked("2026-01-01", "2096-01-01"))).start_time) == 1000
    assert (await refused(calls(asked("2026-01-02", "2026-01-01")))).code is Code.INVALID_ARGUMENT
    unset = api.ListScheduleMatchingTimesRequest(namespace=NAMESPACE, schedule_id="s")
    assert (await refused(calls(unset))).code is Code.INVALID_ARGUMENT


@pytest.mark.contract("SCHD-30")
async def test_errors_have_temporals_codes_and_details(calls: Calls):
    await calls(create_request("s"))
    taken = await refused(calls(create_request("s", request_id="another")))
    assert taken.code is Code.ALREADY_EXISTS
    assert taken.status.details[0].Is(WorkflowExecutionAlreadyStartedFailure.DESCRIPTOR)
    for request in (
        api.DescribeScheduleRequest(namespace=NAMESPACE, schedule_id="none"), api.DeleteScheduleRequest(namespace=NAMESPACE, schedule_id="none"),
        api.DescribeScheduleRequest(namespace="other", schedule_id="s"), update_request("none", schedule_message()),
        patch("none", SchedulePatch(pause="x")),
    ):  # fmt: skip
        missing = await refused(calls(request))
        assert missing.code is Code.NOT_FOUND
        assert missing.status.details[0].Is(NotFoundFailure.DESCRIPTOR)
    for wrong_request, words in (
        (create_request("x", request_id=""), "request_id"),
        (create_request("x", namespace=""), "namespace"),
        (create_request(""), "id"),
        (create_request("x", schedule_message(ScheduleSpec(cron_string=["bad"]))), "spec.cron_string[0]"),
        (create_request("x", schedule_message(action=start_workflow("unknown"))), "schedule.action.start_workflow.workflow_type"),
        (create_request("x", schedule_message(action=start_workflow(""))), "schedule.action.start_workflow.workflow_type"),
        (create_request("x", schedule_message(policies=SchedulePolicies(overlap_policy=99))), "schedule.policies.overlap_policy"),  # type: ignore[arg-type]
        (create_request("x", memo=Memo(fields={KEY: Payload()})), KEY),
        (api.CreateScheduleRequest(namespace=NAMESPACE, schedule_id="x", request_id="x"), "schedule.action.start_workflow"),
        (api.PatchScheduleRequest(namespace=NAMESPACE, schedule_id="s"), "patch"),
    ):  # fmt: skip
        wrong = await refused(calls(wrong_request))
        assert (wrong.code, words in wrong.message) == (Code.INVALID_ARGUMENT, True), wrong
    assert (await calls(api.CountSchedulesRequest(namespace=NAMESPACE))).count == 1
    await calls(api.DeleteScheduleRequest(namespace=NAMESPACE, schedule_id="s"))
    assert (await calls(api.CountSchedulesRequest(namespace=NAMESPACE))).count == 0


@pytest.mark.contract("CRON-18")
async def test_the_scope_read_reads_and_changes_nothing(app: horae.App):
    secret = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing
    claims = {"sub": NAMESPACE, "aud": "horae", "exp": 4_000_000_000}
    owner, reader = (
        (("authorization", f"Bearer {jwt.encode(claims | more, secret)}"),)
        for more in ({}, {"scope": "read"})
    )
    async with calls_to(app, horae.Config(temporal_port=0, jwt_secret=secret)) as guarded:
        await guarded(create_request("s"), metadata=owner)
        asked = api.DescribeScheduleRequest(namespace=NAMESPACE, schedule_id="s")
        await guarded(asked, metadata=reader)
        await guarded(api.ListSchedulesRequest(namespace=NAMESPACE), metadata=reader)
        for change in (
            create_request("t"),
            patch("s", SchedulePatch(pause="no")),
            api.DeleteScheduleRequest(namespace=NAMESPACE, schedule_id="s"),
        ):
            denied = await refused(guarded(change, metadata=reader))
            assert denied.code is grpc.StatusCode.PERMISSION_DENIED
        assert not (await app.owned_by(NAMESPACE).schedules.get("s")).state.paused
