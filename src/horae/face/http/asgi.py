"""Requests from a server, and answers to it, as ASGI has them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from horae.face.http.requests import Message, Receive, Request
from horae.face.http.responses import Response, Stream

Send = Callable[[Message], Awaitable[None]]


def request_of(scope: Message, receive: Receive, max_body: int) -> Request:
    """The request that a server received. One for the head of an answer is answered as one for the whole."""
    client = scope.get("client")
    return Request(
        "GET" if scope["method"] == "HEAD" else scope["method"], scope["raw_path"].decode("latin-1"), scope["query_string"], scope["headers"],
        receive=receive, max_body=max_body, scheme=scope["scheme"], client=client[0] if client else "", state=scope.get("state"),
    )  # fmt: skip


async def send_response(
    response: Response[Any], receive: Receive, send: Send, *, head_only: bool = False
) -> None:
    """Send an answer, or its head; a stream until it ends, or the client leaves."""
    head = {
        "type": "http.response.start",
        "status": response.status_code,
        "headers": response.raw_headers(),
    }
    await send(head)
    if head_only:
        await send(_part(b"", more_body=False))
        if isinstance(response, Stream):
            await response.parts.aclose()
    elif isinstance(response, Stream):
        await _send_parts(response, receive, send)
    else:
        await send(_part(response.content if response.has_body else b"", more_body=False))


def _part(body: bytes, *, more_body: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more_body}


async def _send_parts(response: Stream, receive: Receive, send: Send) -> None:
    async def send_all() -> None:
        async with aclosing(response.parts) as parts:
            async for part in parts:
                await send(_part(part, more_body=True))
        await send(_part(b"", more_body=False))

    sending = asyncio.ensure_future(send_all())
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
