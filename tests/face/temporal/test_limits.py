"""Who may call, and what no call can do: too large, too many, garbage, defects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.api.errordetails.v1 import PermissionDeniedFailure, ResourceExhaustedFailure
from temporalio.api.workflowservice import v1 as api
from temporalio.service import TLSConfig

import horae
from horae.config import Config
from horae.errors import ConfigError, ListenError
from horae.executor.temporal_connection import SERVICE
from horae.face.service.metrics import Metrics
from horae.face.temporal.rpc_errors import INTERNAL
from horae.face.temporal.schedule_calls import HANDLERS
from horae.face.temporal.server import HEALTH, TemporalServer
from tests.face.service.certificates import Authority
from tests.support.temporal import (
    NAMESPACE,
    Calls,
    RpcError,
    calls_to,
    create_request,
    schedule_message,
    start_workflow,
    temporal_client,
)

Code = grpc.StatusCode
SECRET = "a secret of at least thirty-two characters"  # noqa: S105


@asynccontextmanager
async def calls_with(**settings: Any) -> AsyncIterator[tuple[horae.App, Calls]]:
    config = Config(temporal_port=0, **settings)
    app = horae.App(":memory:", config=config)
    app.action("ping")(lambda: None)
    async with app, calls_to(app, config) as calls:
        yield app, calls


def bearer(user: str, *scopes: str, secret: str = SECRET) -> tuple[tuple[str, str], ...]:
    claims = {"sub": user, "aud": "horae", "exp": 2**33, "scope": " ".join(scopes)}
    return (("authorization", f"Bearer {jwt.encode(claims, secret, 'HS256')}"),)


async def code_of(answer: Any) -> grpc.StatusCode:
    try:
        await answer
    except RpcError as error:
        assert "Traceback" not in error.message
        return error.code
    return Code.OK


@pytest.mark.contract("SCHD-30", "CRON-18")
async def test_with_tokens_a_namespace_is_its_users(monkeypatch: pytest.MonkeyPatch):
    async with calls_with(jwt_secret=SECRET, host="0.0.0.0") as (app, calls):  # noqa: S104
        alice, bob, admin = bearer("alice"), bearer("bob"), bearer("root", "admin")
        mine = create_request("s", namespace="alice")
        assert await code_of(calls(mine)) is Code.UNAUTHENTICATED
        for wrong in (
            bearer("alice", secret=SECRET[::-1]),
            (("authorization", "Basic x"),),
            (*alice, *alice),
        ):
            assert await code_of(calls(mine, metadata=wrong)) is Code.UNAUTHENTICATED
        assert await code_of(calls(api.GetSystemInfoRequest())) is Code.UNAUTHENTICATED
        assert await code_of(calls.raw(f"/{HEALTH}/Check", b"")) is Code.OK
        await calls(mine, metadata=alice)
        with pytest.raises(RpcError) as caught:
            await calls(api.DescribeScheduleRequest(namespace="alice", schedule_id="s"), metadata=bob)
        assert caught.value.code is Code.PERMISSION_DENIED
        assert caught.value.status.details[0].Is(PermissionDeniedFailure.DESCRIPTOR)
        theirs = api.DescribeScheduleRequest(namespace="bob", schedule_id="s")
        assert await code_of(calls(theirs, metadata=bob)) is Code.NOT_FOUND
        await calls(create_request("s", namespace="bob"), metadata=bob)  # ids are each owner's own
        assert (await calls(api.CountSchedulesRequest(namespace="alice"), metadata=admin)).count == 1
        assert {each.owner for each in await app.schedules.list()} == {"alice", "bob"}


def test_without_authentication_it_serves_this_machine_only():
    app = horae.App(":memory:")
    with pytest.raises(ConfigError, match="HORAE_HOST"):
        TemporalServer(app, Config(host="0.0.0.0", temporal_port=0))  # noqa: S104


async def test_a_page_of_another_site_is_refused():
    async with calls_with() as (_, calls):
        page = (("origin", "https://evil.example"),)
        assert await code_of(calls(api.GetSystemInfoRequest(), metadata=page)) is Code.PERMISSION_DENIED


async def test_calls_are_counted_by_method_and_code():
    app, metrics = horae.App(":memory:"), Metrics()
    app.action("ping")(lambda: None)
    async with app, calls_to(app, counted=metrics.called) as calls:
        await calls(create_request("s"))
        await code_of(calls.describe("other"))
        await code_of(calls(api.ListNamespacesRequest()))
        await code_of(calls.raw("/made/up", b""))
        await code_of(calls.raw(f"/{SERVICE}/MadeUp", b""))
        await calls.raw(f"/{HEALTH}/Check", b"")
        page = (await metrics.page(app)).decode()
    counted = {
        line.partition("{")[2] for line in page.splitlines() if line.startswith("horae_grpc_calls_total{")
    }
    assert counted == {
        'code="OK",method="CreateSchedule"} 1.0',
        'code="NOT_FOUND",method="DescribeSchedule"} 1.0', 'code="UNIMPLEMENTED",method="ListNamespaces"} 1.0',
        'code="UNIMPLEMENTED",method="other"} 2.0', 'code="OK",method="Check"} 1.0',
    }  # fmt: skip
    assert 'horae_grpc_seconds_count{method="DescribeSchedule"} 1.0' in page


async def test_the_port_may_be_taken():
    async with calls_with() as (app, _):
        first = TemporalServer(app, Config(temporal_port=0))
        port = await first.start()
        with pytest.raises(ListenError, match="another program") as caught:
            await TemporalServer(app, Config(temporal_port=port)).start()
        assert "--temporal-port or HORAE_TEMPORAL_PORT" in str(caught.value.hint)
        await first.stop()


@pytest.mark.contract("SCHD-30", "CRON-18")
async def test_the_client_brings_a_certificate_or_a_token_over_tls(tmp_path: Path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "localhost")
    mine, my_key = (Path(each).read_bytes() for each in authority.issue("client", "alice"))
    settings: Any = {"tls_certificate": certificate, "tls_key": key}
    root = authority.file.read_bytes()
    ways: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"tls_client_ca": str(authority.file)}, {"tls": TLSConfig(root, "127.0.0.1", mine, my_key)}),
        ({"jwt_secret": SECRET}, {"tls": TLSConfig(root, "127.0.0.1"), "api_key": bearer("alice")[0][1].removeprefix("Bearer ")}),
    ]  # fmt: skip
    for more, connection in ways:
        config = Config(temporal_port=0, **settings, **more)
        app = horae.App(":memory:", config=config)
        async with app:
            server = TemporalServer(app, config)
            port = await server.start()
            async with temporal_client(f"127.0.0.1:{port}", "alice", **connection) as client:
                counted = await client.workflow_service.count_schedules(
                    api.CountSchedulesRequest(namespace="alice")
                )
                assert counted.count == 0
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                assert await code_of(Calls(channel)(api.GetSystemInfoRequest())) is Code.UNAVAILABLE
            await server.stop()


async def test_messages_have_a_size_compressed_or_not():
    async with calls_with(body_limit=100_000) as (app, calls):
        large = create_request(
            "s", schedule_message(action=start_workflow("ping", b'"%s"' % (b"x" * 200_000)))
        )
        for how in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            assert await code_of(calls(large, compression=how)) is Code.RESOURCE_EXHAUSTED
        assert await app.schedules.count() == 0
        small = create_request(
            "s", schedule_message(action=start_workflow("ping", b'"%s"' % (b"x" * 50_000)))
        )
        assert await code_of(calls(small, compression=grpc.Compression.Gzip)) is Code.OK


async def test_one_user_asks_only_so_often_and_only_so_many_calls_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
):
    async with calls_with(requests_per_second=1) as (_, calls):
        found = [await code_of(calls(api.GetSystemInfoRequest())) for _ in range(3)]
        assert Code.RESOURCE_EXHAUSTED in found
        with pytest.raises(RpcError) as caught:
            await calls(api.GetSystemInfoRequest())
        assert caught.value.status.details[0].Is(ResourceExhaustedFailure.DESCRIPTOR)
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def waits(*_: object) -> api.GetSystemInfoResponse:
        arrived.set()
        await go_on.wait()
        return api.GetSystemInfoResponse()

    monkeypatch.setitem(HANDLERS, "GetSystemInfo", waits)
    async with calls_with(temporal_calls=1) as (_, calls):
        first = asyncio.ensure_future(code_of(calls(api.GetSystemInfoRequest())))
        await arrived.wait()
        async with grpc.aio.insecure_channel(
            calls.target, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            assert await code_of(Calls(channel)(api.GetSystemInfoRequest())) is Code.RESOURCE_EXHAUSTED
        go_on.set()
        assert await first is Code.OK


async def test_a_defect_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def fails(*_: object) -> api.GetSystemInfoResponse:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setitem(HANDLERS, "GetSystemInfo", fails)
    async with calls_with() as (_, calls):
        with caplog.at_level(logging.ERROR, "horae"), pytest.raises(RpcError) as caught:
            await calls(api.GetSystemInfoRequest())
    assert (caught.value.code, caught.value.message) == (Code.INTERNAL, INTERNAL)
    assert "a secret of ours" in caplog.text


ANSWERS = {Code.OK, Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.FAILED_PRECONDITION, Code.UNIMPLEMENTED, Code.RESOURCE_EXHAUSTED}  # fmt: skip
VALID = [
    create_request("s", schedule_message(action=start_workflow("ping", b'{"a":[1,2,{"b":null}]}')), memo={"fields": {"k": Payload(data=b"x")}}),
    api.UpdateScheduleRequest(namespace=NAMESPACE, schedule_id="there", schedule=schedule_message(), conflict_token=b"12345678"),
    api.PatchScheduleRequest(namespace=NAMESPACE, schedule_id="there", patch={"pause": "x", "backfill_request": [{}]}),  # type: ignore[arg-type]
    api.ListSchedulesRequest(namespace=NAMESPACE, query="A = 'b'", next_page_token=b"abc", maximum_page_size=3),
    api.ListScheduleMatchingTimesRequest(namespace=NAMESPACE, schedule_id="there", start_time={"seconds": 1}, end_time={"seconds": 2}),  # type: ignore[arg-type]
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A method, and a message that once was one of its own; or any bytes."""
    if draw(st.booleans()):
        return draw(st.sampled_from(sorted(HANDLERS))), draw(st.binary(max_size=200))
    message = draw(st.sampled_from(VALID))
    data = bytearray(message.SerializeToString())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.integers(0, 2)):
            case 0:
                data[at] = draw(st.integers(0, 255))
            case 1:
                del data[at : at + draw(st.integers(1, 5))]
            case _:
                data[at:at] = draw(st.binary(max_size=8))
        data = data or bytearray(b"\x00")
    return type(message).__name__.removesuffix("Request"), bytes(data)


@pytest.mark.contract("SCHD-30")
def test_any_bytes_get_a_code_and_what_is_refused_stores_nothing():
    with asyncio.Runner() as runner:
        harness = calls_with(requests_per_second=10**9)
        app, calls = runner.run(harness.__aenter__())
        runner.run(calls(create_request("there")))

        async def stored() -> object:
            schedules = [each async for each in _all(app)]
            runs = [run for each in schedules for run in await app.owned_by(each.owner).runs.list(each.id)]
            return schedules, [(run.id, run.status) for run in runs]

        @given(mutated())
        def send(sent: tuple[str, bytes]) -> None:
            before = runner.run(stored())
            code = runner.run(code_of(calls.raw(f"/{SERVICE}/{sent[0]}", sent[1])))
            assert code in ANSWERS
            if code is not Code.OK:
                assert runner.run(stored()) == before

        try:
            send()
        finally:
            runner.run(harness.__aexit__(None, None, None))


async def _all(app: horae.App) -> AsyncIterator[Any]:
    cursor = None
    while True:
        page = await app.schedules.list(cursor=cursor)
        for each in page:
            yield each
        if (cursor := page.next) is None:
            return
