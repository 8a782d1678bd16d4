"""Validation of bodies and addresses before any other code uses them.

A body must be declared as JSON: a page of another site can make a browser send text and forms, but not JSON. Texts must not contain
NUL, which our databases treat differently; integers must be exact in every JSON reader; and a body must be neither too deep nor too wide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from litestar import Request, Response
from litestar.exceptions import ClientException, HTTPException, InternalServerException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.routes import BaseRoute, HTTPRoute
from litestar.status_codes import HTTP_413_REQUEST_ENTITY_TOO_LARGE, HTTP_415_UNSUPPORTED_MEDIA_TYPE

from horae.checked import input_error
from horae.errors import InvalidInputError, LimitExceededError, did_you_mean
from horae.json_bounds import MAX_INTEGER, JsonTooLargeError, check_json, convert_json

_NUL = "must not contain the character NUL"


class JsonRequest(Request[Any, Any, Any]):
    """A request whose body, if any, is JSON that can be stored."""

    async def body(self) -> bytes:
        """The whole body; refused if it is too long or the client disconnects before its end."""
        try:
            return await super().body()
        except InternalServerException:
            raise ClientException("The connection ended before the end of the body") from None
        except HTTPException as error:
            if error.status_code != HTTP_413_REQUEST_ENTITY_TOO_LARGE:
                raise
            most = self.route_handler.resolve_request_max_body_size() or 0
            raise LimitExceededError("body_limit", most, "The body is too long, in bytes") from None

    async def json(self) -> Any:  # noqa: ANN401 - JSON
        """The decoded body."""
        media_type = self.content_type[0].lower()
        if media_type != "application/json" and not (
            media_type.startswith("application/") and media_type.endswith("+json")
        ):
            raise HTTPException(
                "The body must be JSON, and the header Content-Type: application/json must say so",
                status_code=HTTP_415_UNSUPPORTED_MEDIA_TYPE,
            )
        body = await self.body()
        try:
            check_json(body)
            value = msgspec.json.decode(body)
        except JsonTooLargeError as error:
            raise InvalidInputError("body", str(error)) from None
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ClientException(f"The body is not valid JSON: {error}") from None
        if _SUSPECT.search(body):
            check_value(value)
        wanted = self.route_handler.parsed_fn_signature.parameters["data"].annotation
        try:
            return convert_json(value, wanted)
        except msgspec.ValidationError as error:
            found = input_error(error, wanted, whole="body")
            if isinstance(error.__cause__, InvalidInputError):
                raise found from None
            fault = {"key": found.details["field"], "message": found.details["reason"], "hint": found.hint}
            raise ValidationException("The body is not what it should be", extra=[fault]) from None


_SUSPECT = re.compile(rb"\\u0000|[0-9]{16}")
"""Matches every body that may contain a value to refuse; few do, and only those are checked value by value."""
_Place = tuple["_Place | None", str | int, object]
"""The place of the parent, the key or index in it, and the value: the path is only built for an error."""


def check_value(value: object) -> None:
    """Refuse texts and integers that cannot be stored, or that JSON readers interpret differently."""
    waiting: list[_Place] = [(None, "", value)]
    while waiting:
        place = waiting.pop()
        each = place[2]
        if isinstance(each, list):
            waiting.extend((place, index, inner) for index, inner in enumerate(each))
        elif isinstance(each, dict):
            if any("\x00" in key for key in each):
                raise InvalidInputError(_path(place), _NUL)
            waiting.extend((place, key, inner) for key, inner in each.items())
        elif isinstance(each, str):
            if "\x00" in each:
                raise InvalidInputError(_path(place), _NUL)
        elif isinstance(each, int) and abs(each) > MAX_INTEGER:
            raise InvalidInputError(_path(place), f"must be from -{MAX_INTEGER} to {MAX_INTEGER}")


def _path(place: _Place) -> str:
    """The path of a value in a body, such as ``spec.crons[2]``."""
    parts: list[str] = []
    parent, key, _ = place
    while parent is not None:
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
        parent, key, _ = parent
    return "".join(reversed(parts)).removeprefix(".") or "body"


async def check_address(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Decode the ids in a path; refuse a path or a query that is not text then. Answer ``OPTIONS`` with the path's methods."""
    if request.method == "OPTIONS":
        here = [each for each in request.app.routes if each.path_format == request.scope["path_template"]]
        methods = {method for route in here if isinstance(route, HTTPRoute) for method in route.methods}
        return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))})
    ids = {part: _decoded(part, given) for part, given in request.path_params.items()}
    request.scope["path_params"] = ids  # a new one: Litestar gives the same one to every request of a path
    _decoded("query", request.scope["query_string"])
    return None


def check_parameters(request: Request[Any, Any, Any]) -> None:
    """Refuse query parameters that are repeated, or that the path does not take."""
    query = request.scope["query_string"].decode()
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    if len(set(names)) < len(names):
        raise InvalidInputError("query", "has a parameter more than once")
    known = request.app.state.parameters[request.route_handler]
    for name in names:
        if name not in known:
            listed = f"known are: {', '.join(known)}" if known else "this path takes none"
            hint = did_you_mean(name, known) or listed
            raise InvalidInputError(name, "is not a parameter of this path", hint=hint)


def known_parameters(routes: Iterable[BaseRoute]) -> dict[BaseRouteHandler, list[str]]:
    """The names of the query parameters that each route and its dependencies take."""
    models = [
        found
        for route in routes
        if isinstance(route, HTTPRoute)
        for found in route.route_handler_map.values()
    ]
    return {
        handler: sorted(each.field_alias for each in model.expected_query_params) for handler, model in models
    }


def _decoded(part: str, given: str | bytes) -> str:
    """A part of an address that is percent-encoded, as text."""
    try:
        text = unquote_to_bytes(given).decode()
    except UnicodeDecodeError:
        raise InvalidInputError(part, "is not UTF-8 text") from None
    if "\x00" in text:
        raise InvalidInputError(part, _NUL)
    return text
