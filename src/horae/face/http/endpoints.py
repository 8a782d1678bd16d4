"""Answers requests by routes: for a program in this process, or for a server (``asgi``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from horae.errors import InvalidInputError
from horae.face.http.arguments import Arguments, Provided
from horae.face.http.errors import HttpError
from horae.face.http.json_body import HAS_NUL
from horae.face.http.paths import Paths, Place, parameters_in
from horae.face.http.requests import Request
from horae.face.http.responses import Response, empty
from horae.face.http.routes import Guard, Route, Router


class Terms(msgspec.Struct, frozen=True):
    """What the routes of a part of a service share."""

    provided: Mapping[str, Provided]
    """What handlers take by name."""
    admit: Callable[[Request, Endpoint], Awaitable[None]]
    """Refuses a request that must not be answered, before its body is read."""
    on_error: Callable[[Request, Exception], Response[Any]]
    """The answer to a request that failed."""


class Endpoint:
    """A route of a service. Its types are looked at when it is first asked for: a command needs few routes, and starts sooner."""

    def __init__(self, route: Route, terms: Terms) -> None:
        self.route, self.terms = route, terms
        self.path_parameters = list(parameters_in(route.path))

    @cached_property
    def arguments(self) -> Arguments:
        """How the arguments of its handler are read."""
        return self._arguments(self.route.fn)

    @cached_property
    def _guards(self) -> list[tuple[Guard, Arguments]]:
        return [(each, self._arguments(each)) for each in self.route.guards]

    def _arguments(self, function: Callable[..., Any]) -> Arguments:
        return Arguments(function, self.path_parameters, self.terms.provided)

    async def answer(self, request: Request) -> Response[Any]:
        """Check a request, and let the handler answer it."""
        for guard, arguments in self._guards:
            await guard(**arguments.values(request))
        await self.terms.admit(request, self)
        answered = await self.route.fn(**await self.arguments.read(request))
        if isinstance(answered, Response):
            return answered
        return Response(answered, self.route.status_code, media_type=self.route.media_type)


class Endpoints:
    """The routes of a service, and what answers if there is none for a request."""

    def __init__(self, on_error: Callable[[Request, Exception], Response[Any]]) -> None:
        self._paths = Paths[Endpoint]()
        self._on_error = on_error

    def add(self, routers: Iterable[Router], terms: Terms) -> None:
        """Let routes answer."""
        for router in routers:
            for route in router.routes():
                self._paths.add(route.path, route.method, Endpoint(route, terms))

    async def answer(self, request: Request) -> Response[Any]:
        """The answer to a request, whatever happens."""
        on_error = self._on_error
        try:
            place, values = self._paths.find(request.path)
            endpoint = _asked_for(place, request)
            request.route, on_error = endpoint.route, endpoint.terms.on_error
            if request.method == "OPTIONS":
                return empty(headers={"Allow": place.allowed})
            request.ids = {
                name: _decoded(name, value)
                for name, value in zip(endpoint.path_parameters, values, strict=True)
            }
            _decoded("query", request.query_string)
            return await endpoint.answer(request)
        except Exception as error:
            return on_error(request, error)


def _asked_for(place: Place[Endpoint], request: Request) -> Endpoint:
    """What answers a request at a place; for ``OPTIONS`` any of what is there."""
    if request.method == "OPTIONS":
        return next(iter(place.endpoints.values()))
    if request.method not in place.endpoints:
        raise HttpError(405, headers={"Allow": place.allowed})
    return place.endpoints[request.method]


def _decoded(part: str, given: str | bytes) -> str:
    """A part of an address that is percent-encoded, as text."""
    try:
        text = unquote_to_bytes(given if isinstance(given, bytes) else given.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise InvalidInputError(part, "is not UTF-8 text") from None
    if "\x00" in text:
        raise InvalidInputError(part, HAS_NUL)
    return text
