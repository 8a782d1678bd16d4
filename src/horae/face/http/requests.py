"""A request: its address, its headers and its body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from horae.errors import LimitExceededError
from horae.face.http.errors import HttpError

if TYPE_CHECKING:
    from horae.face.http.routes import Route

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
"""Gives the next part of a request, as in ASGI."""
RawHeaders = Sequence[tuple[bytes, bytes]]
"""Headers as in ASGI: names in lower case, repeated as often as they were sent."""


class Request:
    """A request. ``path`` and ``query`` are as they were sent; ``ids`` are the decoded parameters of the path, once a route was found."""

    route: Route | None = None
    ids: Mapping[str, str] = {}

    def __init__(
        self,
        method: str,
        path: str,
        query: bytes = b"",
        headers: RawHeaders = (),
        *,
        receive: Receive,
        max_body: int,
        scheme: str = "http",
        client: str = "",
        state: MutableMapping[str, Any] | None = None,
    ) -> None:
        self.method, self.path, self.query_string, self.raw_headers = method, path, query, headers
        self.scheme, self.client = scheme, client
        self.state = {} if state is None else state
        """What others who deal with this request noted about it."""
        self._receive, self._max_body = receive, max_body
        self._body: bytes | None = None

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers, by names in lower case; of a repeated one the first."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.raw_headers)}

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query; of a repeated one the last."""
        return dict(self.query_pairs)

    @cached_property
    def query_pairs(self) -> Sequence[tuple[str, str]]:
        """The parameters of the query, in their order."""
        return parse_qsl(self.query_string.decode(), keep_blank_values=True)

    @cached_property
    def cookies(self) -> Mapping[str, str]:
        """The cookies, by name."""
        pairs = (each.partition("=") for each in self.headers.get("cookie", "").split(";"))
        return {name.strip(): unquote(value.strip().strip('"')) for name, _, value in pairs}

    async def body(self) -> bytes:
        """The whole body; refused if it is too long, or the client disconnects before its end."""
        if self._body is None:
            self._body = await self._read()
        return self._body

    async def _read(self) -> bytes:
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._max_body:
            raise self._too_long()
        parts: list[bytes] = []
        left, is_more = self._max_body, True
        while is_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise HttpError(400, "The connection ended before the end of the body")
            part, is_more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise self._too_long()
        return b"".join(parts)

    def _too_long(self) -> LimitExceededError:
        return LimitExceededError("body_limit", self._max_body, "The body is too long, in bytes")
