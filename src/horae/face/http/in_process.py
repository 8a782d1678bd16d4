"""Requests from a program in the same process as the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from horae.face.http.requests import Message, Request
from horae.face.http.responses import Response

Answer = Callable[[Request], Awaitable[Response[Any]]]
"""Answers a request."""
_HOST = (b"host", b"127.0.0.1")


class InProcess:
    """Sends requests to a service in this process; ``state`` is what is known about each of them."""

    def __init__(self, answer: Answer, max_body: int, state: Mapping[str, Any]) -> None:
        self._answer, self._max_body, self._state = answer, max_body, state

    async def send(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """Send a request; the status and the body of the answer."""
        given = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        request = Request(
            method, path, query.encode(), [_HOST, *given], receive=receive, max_body=self._max_body,
            state=dict(self._state),
        )  # fmt: skip
        answered = await self._answer(request)
        return answered.status_code, answered.content if answered.has_body else b""
