"""A client of the HTTP API, for commands and for pages of the console that do what commands do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

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


class Client:
    """Calls the API. Errors are raised as :class:`~horae.errors.ServerError`."""

    def __init__(
        self, http: httpx.AsyncClient, address: str, owner: str | None = None, source: str = "--url"
    ) -> None:
        self._http = http
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
        import httpx  # noqa: PLC0415 - an optional part

        asked = {key: _text(value) for key, value in (query or {}).items() if value is not None}
        named = asked if self._owner is None else {"owner": self._owner, **asked}
        content = None if body is None else msgspec.json.encode(body)
        declared = {} if content is None else {"Content-Type": "application/json"}
        try:
            answer = await self._http.request(
                method, PREFIX + path, params=named, content=content, headers={**declared, **(headers or {})}
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        if answer.status_code >= 300:
            raise self._refused(answer)
        if not answer.content:
            return None
        try:
            return msgspec.json.decode(answer.content)
        except msgspec.DecodeError:
            raise self._no_horae(answer.status_code) from None

    def _unreachable(self, error: Exception) -> ServerError:
        reason = str(error) or type(error).__name__
        return ServerError(
            f"The server {self._address} cannot be reached: {reason}",
            {"code": "unreachable", "url": self._address, "reason": reason},
            hint=f"start it with horae serve, look at {self._source}, or work on a database with --database",
        )

    def _refused(self, answer: httpx.Response) -> ServerError:
        """An answer that is an error, with the command's own hint where there is one."""
        try:
            problem = msgspec.json.decode(answer.content)
        except (msgspec.DecodeError, UnicodeError):
            problem = None
        if not isinstance(problem, dict) or "code" not in problem:
            return self._no_horae(answer.status_code)
        code = str(problem["code"])
        details = problem.get("details")
        more = {"errors": problem["errors"]} if problem.get("errors") else {}
        return ServerError(
            str(problem.get("detail") or problem.get("title") or code),
            {
                "code": code,
                "status": answer.status_code,
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
