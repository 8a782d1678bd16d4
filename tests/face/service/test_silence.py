"""Connections on which nothing arrives, or too slowly, are closed; those that wait for an answer are not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import h11
import pytest
import uvicorn
from uvicorn.server import ServerState

from horae.face.service import http_protocol
from horae.face.service.connection_limit import Connections, Listener
from horae.face.service.http_protocol import HttpProtocol

SHORT, WAIT, LONG = 0.5, 30, 600
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"


async def answer_late(_: Any, receive: Any, send: Any) -> None:
    """An application that takes longer than any request may."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(2 * SHORT)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"late"})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = uvicorn.Config(answer_late, lifespan="off", log_config=None, timeout_keep_alive=LONG)
    state, connections = ServerState(), Connections()
    listener = Listener(connections)
    listener.bind(("127.0.0.1", 0))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: HttpProtocol(connections, config, state, {}), sock=listener)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def send_slowly(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(SHORT / 10)


@pytest.mark.parametrize(
    ("begin", "slowly", "awaited"),
    [
        (b"", False, h11.IDLE),
        (HEAD + b"X: ", True, h11.IDLE),
        (HEAD + b"\r\n", False, h11.SEND_BODY),
        (HEAD + b"\r\n", True, h11.SEND_BODY),
    ],
    ids=["nothing", "a head that never ends", "no body", "a body that comes byte by byte"],
)
async def test_a_request_that_does_not_arrive_ends_its_connection(
    port: int, monkeypatch: pytest.MonkeyPatch, begin: bytes, slowly: bool, awaited: Any
):
    monkeypatch.setattr(http_protocol, "SECONDS", {h11.IDLE: LONG, h11.SEND_BODY: LONG, awaited: SHORT})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(begin)
    sending = asyncio.create_task(send_slowly(writer) if slowly else asyncio.sleep(LONG))
    with contextlib.suppress(ConnectionError):  # what was still on its way is not taken any more
        assert await asyncio.wait_for(reader.read(), WAIT) == b""
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    writer.close()


async def test_an_answer_may_take_its_time_and_then_the_next_request_has_all_of_its_own(
    port: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(http_protocol, "SECONDS", {h11.IDLE: SHORT, h11.SEND_BODY: SHORT})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"late"), WAIT)).startswith(b"HTTP/1.1 200")
    assert await asyncio.wait_for(reader.read(), WAIT) == b""
    writer.close()
