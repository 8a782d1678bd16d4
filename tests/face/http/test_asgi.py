"""Requests and answers as a server exchanges them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from horae.errors import LimitExceededError
from horae.face.http.asgi import request_of, send_response
from horae.face.http.errors import HttpError
from horae.face.http.requests import Message, Request
from horae.face.http.responses import Cookie, Response, Stream, redirect

GONE: Message = {"type": "http.disconnect"}


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class Connection:
    """What a client sends, part by part, and what it is answered."""

    def __init__(self, sent: Sequence[Message] = ()) -> None:
        self.sent, self.got = list(sent), list[Message]()
        self.leaving = asyncio.Event()

    async def receive(self) -> Message:
        if self.sent:
            return self.sent.pop(0)
        await self.leaving.wait()
        return GONE

    async def send(self, message: Message) -> None:
        self.got.append(message)

    def request(self, *headers: tuple[bytes, bytes], path: bytes = b"/a%2Fb") -> Request:
        scope = {
            "type": "http", "method": "POST", "raw_path": path, "query_string": b"", "headers": headers, "scheme": "http",
            "client": ("127.0.0.1", 1), "state": {"peer": "ada"},
        }  # fmt: skip
        return request_of(scope, self.receive, 10)

    async def answer(self, response: Response[Any]) -> None:
        await send_response(response, self.receive, self.send)

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.got[0]["headers"])


async def test_a_request_has_the_path_and_the_first_of_each_header_as_they_were_sent():
    request = Connection().request(
        (b"x-a", b"1"), (b"x-a", b"2"), (b"cookie", b'a=b=c; theme="dark"; zone=A%2FB;; x')
    )
    assert (request.path, request.client, request.state) == ("/a%2Fb", "127.0.0.1", {"peer": "ada"})
    assert request.headers["x-a"] == "1"
    assert {"a": "b=c", "theme": "dark", "zone": "A/B"}.items() <= request.cookies.items()


async def test_a_body_that_is_too_long_is_read_no_further():
    declared = Connection([part(b"")])
    with pytest.raises(LimitExceededError):
        await declared.request((b"content-length", b"11")).body()
    assert len(declared.sent) == 1
    parts = Connection([part(b"12345", more=True), part(b"123456", more=True), part(b"never read")])
    with pytest.raises(LimitExceededError):
        await parts.request().body()
    assert len(parts.sent) == 1
    exact = Connection([part(b"12345", more=True), part(b"12345")]).request((b"content-length", b"10"))
    assert await exact.body() == await exact.body() == b"1234512345"


async def test_a_body_that_breaks_off_is_refused():
    with pytest.raises(HttpError, match="ended before the end of the body"):
        await Connection([part(b"123", more=True), GONE]).request().body()


async def test_an_answer_has_its_length_unless_it_has_no_body():
    connection = Connection()
    await connection.answer(Response({"a": 1}))
    assert connection.headers == {b"content-type": b"application/json", b"content-length": b"7"}
    for status in (204, 304):
        connection = Connection()
        await connection.answer(Response(b"", status, {"ETag": '"1"'}))
        assert connection.headers == {b"etag": b'"1"'}
        assert connection.got[1]["body"] == b""


async def test_a_redirect_and_its_cookies_are_safe_in_headers():
    connection = Connection()
    cookies = [Cookie("n", "a b\r\n; Path=/", 60, "/console", httponly=True, samesite="strict"), Cookie("m")]
    await connection.answer(redirect("/a b\r\nx?y=%2F&z=1", {"Vary": "Cookie"}, cookies))
    assert connection.got[0]["status"] == 303
    assert connection.headers[b"location"] == b"/a%20b%0D%0Ax?y=%2F&z=1"
    assert connection.headers[b"content-type"] == b"text/plain; charset=utf-8"
    assert [value for name, value in connection.got[0]["headers"] if name == b"set-cookie"] == [
        b"n=a%20b%0D%0A%3B%20Path%3D/; Max-Age=60; Path=/console; SameSite=strict; HttpOnly",
        b"m=; Max-Age=0; Path=/; SameSite=lax",
    ]


async def test_a_stream_ends_when_the_client_leaves():
    connection, ended = Connection(), asyncio.Event()

    async def parts() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    sending = asyncio.create_task(connection.answer(Stream(parts(), "text/event-stream")))
    while len(connection.got) < 2:
        await asyncio.sleep(0)
    assert b"content-length" not in connection.headers
    connection.leaving.set()
    await asyncio.wait_for(sending, 60)
    assert ended.is_set()
    assert [each.get("body") for each in connection.got[1:]] == [b"first"]


async def test_a_stream_is_sent_to_its_end_and_its_error_is_raised():
    async def parts(*, fails: bool) -> AsyncGenerator[bytes, None]:
        yield b"1"
        if fails:
            raise ZeroDivisionError
        yield b"2"

    connection = Connection()
    await connection.answer(Stream(parts(fails=False), "text/event-stream"))
    bodies = [(each["body"], each["more_body"]) for each in connection.got[1:]]
    assert bodies == [(b"1", True), (b"2", True), (b"", False)]
    with pytest.raises(ZeroDivisionError):
        await Connection().answer(Stream(parts(fails=True), "text/event-stream"))
