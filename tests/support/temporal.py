"""Servers that speak Temporal, in this process and in their own, and messages to send to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message
from temporalio.api.common.v1 import GrpcStatus, Payload, Payloads, WorkflowType
from temporalio.api.schedule.v1 import Schedule, ScheduleAction, ScheduleSpec
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as api
from temporalio.client import Client

from horae.app import App
from horae.config import Config
from horae.executor.temporal_connection import SERVICE
from horae.face.temporal.server import Counted, TemporalServer
from tests.support.process import Server

NAMESPACE = "default"


class RpcError(Exception):
    """A call that was answered with an error."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        self.code, self.message = error.code(), error.details() or ""
        trailing = dict(error.trailing_metadata() or ())
        self.status = GrpcStatus.FromString(bytes(trailing.get("grpc-status-details-bin", b"")))
        super().__init__(f"{self.code}: {self.message}")


class Calls:
    """A client that sends messages as they are."""

    def __init__(self, channel: grpc.aio.Channel, target: str = "") -> None:
        self.channel, self.target = channel, target

    async def raw(self, path: str, request: bytes, **more: Any) -> bytes:
        call: Any = self.channel.unary_unary(path)
        try:
            answer = await call(request, timeout=30, **more)
        except grpc.aio.AioRpcError as error:
            raise RpcError(error) from None
        return bytes(answer)

    async def __call__(self, request: Message, **more: Any) -> Any:
        """The answer to a request of Temporal's service."""
        method = type(request).__name__.removesuffix("Request")
        answer = await self.raw(f"/{SERVICE}/{method}", request.SerializeToString(), **more)
        return getattr(api, f"{method}Response").FromString(answer)

    async def describe(self, schedule_id: str) -> api.DescribeScheduleResponse:
        found: api.DescribeScheduleResponse = await self(
            api.DescribeScheduleRequest(namespace=NAMESPACE, schedule_id=schedule_id)
        )
        return found


@asynccontextmanager
async def calls_to(
    app: App, config: Config | None = None, counted: Counted | None = None
) -> AsyncIterator[Calls]:
    """A server on an open app in this process, and a client of it."""
    server = TemporalServer(app, config or Config(temporal_port=0), counted)
    port = await server.start()
    try:
        async with calls_at(f"127.0.0.1:{port}") as calls:
            yield calls
    finally:
        await server.stop()


@asynccontextmanager
async def calls_at(target: str) -> AsyncIterator[Calls]:
    """A client of the server at an address."""
    async with grpc.aio.insecure_channel(target) as channel:
        yield Calls(channel, target)


def temporal_address(server: Server) -> str:
    """Where a service in its own process answers Temporal's calls."""
    found = re.search(r"Temporal's schedule calls on (\S+:\d+)", server.log)
    assert found is not None, server.log
    return found[1]


@asynccontextmanager
async def temporal_client(address: str, namespace: str = NAMESPACE, **more: Any) -> AsyncIterator[Client]:
    """The unmodified client. Its threads are left time to let go of what Python is about to free."""
    yield await Client.connect(address, namespace=namespace, **more)
    await asyncio.sleep(0.05)


def start_workflow(name: str = "ping", *values: bytes, **more: Any) -> NewWorkflowExecutionInfo:
    payloads = [Payload(metadata={"encoding": b"json/plain"}, data=value) for value in values]
    return NewWorkflowExecutionInfo(
        workflow_id="wf",
        workflow_type=WorkflowType(name=name),
        task_queue=TaskQueue(name="tq"),
        input=Payloads(payloads=payloads) if payloads else None,
        **more,
    )


def schedule_message(spec: ScheduleSpec | None = None, **more: Any) -> Schedule:
    action = more.pop("action", None) or start_workflow()
    return Schedule(
        spec=spec or ScheduleSpec(cron_string=["0 9 * * *"]),
        action=ScheduleAction(start_workflow=action),
        **more,
    )


def create_request(
    schedule_id: str, schedule: Schedule | None = None, **more: Any
) -> api.CreateScheduleRequest:
    fields: dict[str, Any] = {
        "namespace": NAMESPACE,
        "schedule_id": schedule_id,
        "schedule": schedule or schedule_message(),
        "identity": "test",
        "request_id": f"request-{schedule_id}",
    }
    return api.CreateScheduleRequest(**(fields | more))


def update_request(schedule_id: str, schedule: Schedule, **more: Any) -> api.UpdateScheduleRequest:
    return api.UpdateScheduleRequest(
        namespace=NAMESPACE, schedule_id=schedule_id, schedule=schedule, request_id="u", **more
    )
