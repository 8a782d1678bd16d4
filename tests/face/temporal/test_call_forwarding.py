"""Calls that are not Horae's own reach a cluster, and what it answers comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import grpc.aio
import jwt
import pytest
from temporalio.api.common.v1 import GrpcStatus, Header, Memo, Payload, Payloads, RetryPolicy, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as api
from temporalio.client import ScheduleActionExecutionStartWorkflow, ScheduleBackfill, WorkflowExecutionStatus

import horae
from horae.config import Config
from horae.executor.temporal_connection import SERVICE
from horae.face.temporal.times import duration_of
from horae.model import OPEN, Run
from tests.support.nodes import running
from tests.support.process import kill
from tests.support.temporal import (
    NAMESPACE,
    Calls,
    RpcError,
    calls_to,
    create_request,
    schedule_message,
    start_workflow,
    temporal_client,
    update_request,
)
from tests.support.temporal_cluster import QUEUE, TemporalCluster

Code = grpc.StatusCode
SECRET = "a secret of at least thirty-two characters"  # noqa: S105


class Cluster(grpc.GenericRpcHandler):
    """A server that answers every call, and remembers what it got."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes, dict[str, Any], bool]] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        path = handler_call_details.method

        async def answer(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            self.seen.append(
                (
                    path,
                    request,
                    dict(context.invocation_metadata() or ()),
                    context.time_remaining() is not None,
                )
            )
            if path.endswith("TerminateWorkflowExecution"):
                details = GrpcStatus(code=5, message="gone").SerializeToString()
                await context.abort(Code.NOT_FOUND, "gone", (("grpc-status-details-bin", details),))
            if path.endswith("GetSystemInfo"):
                return api.GetSystemInfoResponse(server_version="9.9.9").SerializeToString()
            return (
                b""
                if path.endswith("Respond")
                else api.StartWorkflowExecutionResponse(run_id="r").SerializeToString()
            )

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def forwarding(**settings: Any) -> AsyncIterator[tuple[Cluster, Calls, grpc.aio.Server]]:
    cluster, server = Cluster(), grpc.aio.server()
    server.add_generic_rpc_handlers((cluster,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    config = Config(temporal_port=0, temporal_forward=f"127.0.0.1:{port}", **settings)
    app = horae.App(":memory:", config=config)
    app.use_builtin()
    app.action("ping")(lambda: None)
    try:
        async with app, calls_to(app, config) as calls:
            yield cluster, calls, server
    finally:
        await server.stop(None)


@pytest.mark.contract("SCHD-30")
async def test_other_calls_are_passed_on_with_their_headers_deadlines_and_errors():
    async with forwarding() as (cluster, calls, _):
        request = api.StartWorkflowExecutionRequest(namespace=NAMESPACE, workflow_id="w")
        answer = await calls(
            request, metadata=(("client-name", "x"), ("authorization", "Bearer theirs"), ("odd-bin", b"\xff"))
        )
        assert answer.run_id == "r"
        path, sent, headers, has_deadline = cluster.seen[-1]
        assert (path, sent, has_deadline) == (
            f"/{SERVICE}/StartWorkflowExecution",
            request.SerializeToString(),
            True,
        )
        assert (headers["client-name"], headers["authorization"], headers["odd-bin"]) == (
            "x",
            "Bearer theirs",
            b"\xff",
        )
        with pytest.raises(RpcError) as caught:
            await calls(api.TerminateWorkflowExecutionRequest(namespace=NAMESPACE))
        assert (caught.value.code, caught.value.message, caught.value.status.message) == (
            Code.NOT_FOUND,
            "gone",
            "gone",
        )
        await calls.raw("/some.other.Service/Do", b"anything")
        assert cluster.seen[-1][:2] == ("/some.other.Service/Do", b"anything")


@pytest.mark.contract("SCHD-30")
async def test_schedule_calls_stay_here_and_the_cluster_says_what_else_there_is():
    async with forwarding() as (cluster, calls, server):
        info = await calls(api.GetSystemInfoRequest())
        assert (info.server_version, info.capabilities.supports_schedules) == ("9.9.9", True)
        await calls(create_request("s"))
        assert (await calls(api.CountSchedulesRequest(namespace=NAMESPACE))).count == 1
        assert [each[0].rpartition("/")[2] for each in cluster.seen] == ["GetSystemInfo"]
        await server.stop(None)  # schedules go on without the cluster
        assert (await calls(api.GetSystemInfoRequest())).capabilities.supports_schedules
        assert (await calls(api.CountSchedulesRequest(namespace=NAMESPACE))).count == 1
        with pytest.raises(RpcError) as caught:
            await calls(api.StartWorkflowExecutionRequest(namespace=NAMESPACE))
        assert caught.value.code is Code.UNAVAILABLE


@pytest.mark.contract("SCHD-30", "CRON-18")
async def test_a_caller_reaches_only_their_own_namespace_of_the_cluster_and_keeps_their_token_here():
    def bearer(user: str, scope: str = "") -> tuple[tuple[str, str], ...]:
        claims = {"sub": user, "aud": "horae", "exp": 2**33, "scope": scope}
        return (("authorization", f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"),)

    async with forwarding(jwt_secret=SECRET) as (cluster, calls, _):
        mine = api.StartWorkflowExecutionRequest(namespace="alice")
        await calls(mine, metadata=bearer("alice"))
        assert "authorization" not in cluster.seen[-1][2]
        for method in ("GetSystemInfo", "GetClusterInfo"):  # every client asks on connecting
            await calls.raw(f"/{SERVICE}/{method}", b"", metadata=bearer("alice"))
        seen = len(cluster.seen)
        refusals = [
            (calls(mine, metadata=bearer("bob")), Code.PERMISSION_DENIED),
            (calls(mine), Code.UNAUTHENTICATED),
            (calls(api.ListNamespacesRequest(), metadata=bearer("bob")), Code.PERMISSION_DENIED),
            (
                calls(api.DescribeNamespaceRequest(namespace="alice"), metadata=bearer("bob")),
                Code.PERMISSION_DENIED,
            ),
            (
                calls.raw("/some.other.Service/GetSystemInfo", b"", metadata=bearer("bob")),
                Code.PERMISSION_DENIED,
            ),
            (calls.raw("/some.other.Service/Do", b"", metadata=bearer("bob")), Code.PERMISSION_DENIED),
            (
                calls.raw(f"/{SERVICE}/StartWorkflowExecution", b"\xff", metadata=bearer("bob")),
                Code.INVALID_ARGUMENT,
            ),
        ]
        for answer, code in refusals:
            with pytest.raises(RpcError) as caught:
                await answer
            assert caught.value.code is code
        assert len(cluster.seen) == seen
        await calls.raw("/some.other.Service/Do", b"", metadata=bearer("root", "admin"))
        assert len(cluster.seen) == seen + 1


async def test_large_calls_are_passed_on_while_horaes_own_keep_their_limit():
    async with forwarding(body_limit=10_000) as (_, calls, _server):
        large = "x" * 100_000
        await calls(api.StartWorkflowExecutionRequest(namespace=NAMESPACE, identity=large))
        with pytest.raises(RpcError) as caught:
            await calls(
                create_request("s", schedule_message(action=start_workflow("ping", f'"{large}"'.encode())))
            )
        assert caught.value.code is Code.RESOURCE_EXHAUSTED


@pytest.mark.contract("SCHD-30")
async def test_a_worker_and_a_workflow_go_on_working_beside_schedules(
    temporal_cluster: TemporalCluster,
):
    config = Config(temporal_port=0, temporal_forward=temporal_cluster.address)
    app = horae.App(":memory:", config=config)
    app.action("ping")(lambda: None)
    async with app, calls_to(app, config) as calls, temporal_client(calls.target) as client:
        worker = temporal_cluster.start_worker(calls.target, "through-horae")
        greeted = await client.execute_workflow(
            "Greet", "you", id="g", task_queue="through-horae", execution_timeout=timedelta(seconds=20), result_type=str,
        )  # fmt: skip
        assert greeted == "hello you"
        kill(worker)
        await calls(create_request("s"))
        assert [each.id async for each in await client.list_schedules()] == ["s"]


@pytest.mark.contract("SCHD-30")
async def test_a_schedule_starts_a_workflow_on_the_cluster_with_temporals_ids_and_follows_its_end(
    temporal_cluster: TemporalCluster,
):
    config = Config(temporal_port=0, temporal_forward=temporal_cluster.address, tick_ms=50)
    app = horae.App(":memory:", config=config)
    app.use_builtin()
    app.action("ping")(lambda: None)
    raw = Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\xff")
    action = NewWorkflowExecutionInfo(
        workflow_id="wf",
        workflow_type=WorkflowType(name="Know"),
        task_queue=TaskQueue(name=QUEUE),
        input=Payloads(payloads=[raw]),
        memo=Memo(fields={"m": Payload(metadata={"encoding": b"json/plain"}, data=b'"memo"')}),
        header=Header(fields={"h": raw}),
        workflow_run_timeout=duration_of(20_000),
    )
    async with running(app), calls_to(app, config) as calls, temporal_client(calls.target) as client:
        await calls(create_request("s", schedule_message(action=action)))
        assert (await calls.describe("s")).schedule.action.start_workflow == action
        listed = await calls(api.ListSchedulesRequest(namespace=NAMESPACE))
        assert listed.schedules[0].info.workflow_type.name == "Know"
        handle = client.get_schedule_handle("s")
        await handle.backfill(
            ScheduleBackfill(
                start_at=datetime(2026, 1, 1, 8, tzinfo=UTC), end_at=datetime(2026, 1, 1, 10, tzinfo=UTC)
            )
        )
        [run] = await ended_runs(app, "s", 1)
        assert (run.status, run.result) == (
            "succeeded",
            {
                "id": "wf-2026-01-01T09:00:00Z", "data": "\x00\xff", "encoding": "binary/plain", "memo": {"m": "memo"},
                "headers": ["h"], "timeout": "0:00:20", "queue": QUEUE,
            },
        )  # fmt: skip
        done = (await handle.describe()).info.recent_actions[-1]
        assert isinstance(done.action, ScheduleActionExecutionStartWorkflow)
        followed = client.get_workflow_handle(done.action.workflow_id)
        assert (await followed.describe()).status is WorkflowExecutionStatus.COMPLETED

        described = (
            await calls.describe("s")
        ).schedule  # another type, which no action of Horae has: one that fails
        described.action.start_workflow.workflow_type.name = "Boom"
        described.action.start_workflow.ClearField("input")
        await calls(update_request("s", described))
        await handle.trigger()
        runs = {each.failure for each in await ended_runs(app, "s", 2)}
        assert runs == {None, "HandOffFailedError: Temporal says that Boom failed: Wrong: no"}

        described.action.start_workflow.workflow_type.name = "ping"  # one that Horae has
        await calls(update_request("s", described))
        assert (await app.owned_by(NAMESPACE).schedules.get("s")).action.address == "ping"
        await handle.trigger()
        assert [each.status for each in await ended_runs(app, "s", 3) if each.action == "ping"] == [
            "succeeded"
        ]


async def ended_runs(app: horae.App, schedule_id: str, number: int) -> list[Run]:
    """The runs of a schedule, newest first, once there are so many and all have ended."""
    runs = app.owned_by(NAMESPACE).runs
    while len(found := await runs.list(schedule_id)) < number or any(each.status in OPEN for each in found):
        await asyncio.sleep(0.05)
    return list(found)


@pytest.mark.contract("SCHD-30")
async def test_a_workflow_that_is_forwarded_is_shown_as_it_was_sent_and_kept_by_other_changes():
    async with forwarding() as (_, calls, _server):
        message = Payload(metadata={"encoding": b"json/protobuf", "messageType": b"a.B"}, data=b'{ "x": 1 }')
        raw = Payload(metadata={"encoding": b"binary/zipped", "key": b"\xff"}, data=b"\x00\xff")
        for name, arguments in {"none": [], "one": [message], "raw": [raw], "two": [message, raw]}.items():
            action = start_workflow("Else", retry_policy=RetryPolicy(maximum_attempts=3))
            action.input.CopyFrom(Payloads(payloads=arguments))
            action.header.CopyFrom(Header(fields={"h": raw}))
            sent = schedule_message(action=action)
            await calls(create_request(name, sent))
            shown = await calls.describe(name)
            assert shown.schedule.action == sent.action
            await calls(update_request(name, shown.schedule))  # the same again
            assert (await calls.describe(name)).conflict_token == shown.conflict_token
            shown.schedule.state.notes = "changed"
            await calls(update_request(name, shown.schedule))
            assert (await calls.describe(name)).schedule.action == sent.action
        sent.action.start_workflow.ClearField("task_queue")
        with pytest.raises(RpcError) as caught:
            await calls(create_request("other", sent))
        assert caught.value.code is Code.INVALID_ARGUMENT
        assert "start_workflow.task_queue" in caught.value.message


@pytest.mark.contract("SCHD-30")
async def test_an_update_leaves_a_workflow_where_it_is_started_until_it_names_another():
    config = Config(temporal_port=0, temporal_forward="127.0.0.1:1")
    app = horae.App(":memory:", config=config)
    app.use_builtin()
    async with app, calls_to(app, config) as calls:
        await calls(create_request("s", schedule_message(action=start_workflow("Else"))))
        app.action("Else")(lambda: None)  # from now on Horae has an action of that name
        shown = (await calls.describe("s")).schedule
        shown.state.notes = "changed"
        for name, kind in (
            ("Else", "temporal-workflow"),
            ("Other", "temporal-workflow"),
            ("Else", "function"),
        ):
            shown.action.start_workflow.workflow_type.name = name
            await calls(update_request("s", shown))
            stored = await app.owned_by(NAMESPACE).schedules.get("s")
            assert (stored.action.kind, stored.state.note) == (kind, "changed")
            assert (await calls.describe("s")).schedule.action == shown.action
