"""A client of the HTTP API, for commands and for pages of the console that do what commands do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlencode

import msgspec

from horae.errors import InvalidInputError, ServerError

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/v1"
PAGE = 1000
"""The most items that one request asks for."""
EVERYTHING = 1_000_000
"""A limit above any number of items."""

_HINTS = {
    "authentication": "give a token with --token, or set HORAE_TOKEN",
    "schedule_ambiguous": 'name the owner with --owner NAME; --owner "" is that of schedules without one',
    "internal": "this is a bug in Horae; please report it with the lines of the server's log",
    "not_found": "the server may have another version; horae --version shows this one",
} | {
    f"{kind}_not_found": f"horae {kind}s list shows what exists"
    for kind in ("schedule", "calendar", "flow", "workflow", "run")
}


def path(*parts: str) -> str:
    """The path of a resource. Ids may have any characters; dots are escaped too, because clients resolve ``..``."""
    if "" in parts:
        raise InvalidInputError("id", "is empty", hint="give an id")
    return "/" + "/".join(quote(part, safe="").replace(".", "%2E") for part in parts)


class Transport(Protocol):
    """Sends requests to a service: over a network, or in this process."""

    async def send(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """Send a request; the status and the body of the answer. If there is none, this raises a ``ConnectionError``."""


class Network:
    """Sends requests over a network."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def send(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        import httpx  # noqa: PLC0415 - an optional part

        address = f"{path}?{query}" if query else path
        try:
            answer = await self._http.request(method, address, headers=headers, content=body or None)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectionError(str(error) or type(error).__name__) from None
        return answer.status_code, answer.content


class Client:
    """Calls the API. Errors are raised as :class:`~horae.errors.ServerError`."""

    def __init__(
        self, transport: Transport, address: str, owner: str | None = None, source: str = "--url"
    ) -> None:
        self._transport = transport
        self._address = address
        self._owner = owner
        self._source = source

    async def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 - any JSON
        return await self._ask("GET", path, query=query)

    async def find(self, path: str, **query: object) -> Any:  # noqa: ANN401
        """Like ``get``, but ``None`` if there is nothing at the path."""
        try:
            return await self.get(path, **query)
        except ServerError as error:
            if not error.details["code"].endswith("_not_found"):
                raise
            return None

    async def post(self, path: str, body: object = None, **query: object) -> Any:  # noqa: ANN401
        return await self._ask("POST", path, {} if body is None else body, query)

    async def put(self, path: str, body: object, *, new: bool = False, **query: object) -> Any:  # noqa: ANN401
        """Create or replace; with ``new`` only create."""
        return await self._ask("PUT", path, body, query, {"If-None-Match": "*"} if new else None)

    async def patch(self, path: str, body: object, **query: object) -> Any:  # noqa: ANN401
        return await self._ask("PATCH", path, body, query)

    async def delete(self, path: str, *, version: int | None = None, **query: object) -> None:
        """Delete; with a version only if it is still the current one."""
        await self._ask(
            "DELETE", path, query=query, headers=None if version is None else {"If-Match": f'"{version}"'}
        )

    async def items(self, path: str, limit: int, **query: object) -> list[dict[str, Any]]:
        """Up to ``limit`` items of a list, from as many pages as needed."""
        items: list[dict[str, Any]] = []
        cursor = None
        while len(items) < limit:
            page = await self.get(path, limit=min(limit - len(items), PAGE), cursor=cursor, **query)
            items += page["items"]
            cursor = page.get("next")
            if cursor is None:
                break
        return items

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401
        asked = {key: _text(value) for key, value in (query or {}).items() if value is not None}
        named = asked if self._owner is None else {"owner": self._owner, **asked}
        content = b"" if body is None else msgspec.json.encode(body)
        declared = {"Content-Type": "application/json"} if content else {}
        try:
            status, answer = await self._transport.send(
                method, PREFIX + path, urlencode(named), {**declared, **(headers or {})}, content
            )
        except ConnectionError as error:
            raise self._unreachable(str(error)) from None
        if status >= 300:
            raise self._refused(status, answer)
        if not answer:
            return None
        try:
            return msgspec.json.decode(answer)
        except msgspec.DecodeError:
            raise self._no_horae(status) from None

    def _unreachable(self, reason: str) -> ServerError:
        return ServerError(
            f"The server {self._address} cannot be reached: {reason}",
            {"code": "unreachable", "url": self._address, "reason": reason},
            hint=f"start it with horae serve, look at {self._source}, or work on a database with --database",
        )

    def _refused(self, status: int, answer: bytes) -> ServerError:
        """An answer that is an error, with the command's own hint where there is one."""
        try:
            problem = msgspec.json.decode(answer)
        except (msgspec.DecodeError, UnicodeError):
            problem = None
        if not isinstance(problem, dict) or "code" not in problem:
            return self._no_horae(status)
        code = str(problem["code"])
        details = problem.get("details")
        more = {"errors": problem["errors"]} if problem.get("errors") else {}
        return ServerError(
            str(problem.get("detail") or problem.get("title") or code),
            {
                "code": code,
                "status": status,
                **(details if isinstance(details, dict) else {}),
                **more,
            },
            hint=_hint(code, problem.get("hint")),
        )

    def _no_horae(self, status: int) -> ServerError:
        return ServerError(
            f"The server at {self._address} is not Horae: it answered {status}",
            {"code": "no_horae", "url": self._address, "status": status},
            hint=f"look at {self._source}: it must be the server's address, without /api",
        )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _hint(code: str, given: str | None) -> str | None:
    if code == "unknown_action":
        return f"{given} (horae serve --app MODULE); horae nodes shows what each node can run"
    own = _HINTS.get(code)
    return f"{given} {own}" if own and given and code.endswith("_not_found") else own or given
