"""The service: an app behind HTTP, for people and programs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from horae import __version__
from horae.app import App
from horae.config import Config
from horae.errors import InvalidInputError, did_you_mean
from horae.face.http.arguments import Constant, Made
from horae.face.http.asgi import Send, request_of, send_response
from horae.face.http.endpoints import Endpoint, Endpoints, Terms
from horae.face.http.in_process import InProcess
from horae.face.http.requests import Message, Receive, Request
from horae.face.http.responses import Response
from horae.face.http.routes import words_of
from horae.face.registrar.routes import registrar_router
from horae.face.service.auth import Authenticator
from horae.face.service.bulk import bulk_router
from horae.face.service.calendars import calendars_router
from horae.face.service.caller import Caller
from horae.face.service.explain import why_router
from horae.face.service.external_worker_reports import ReportLimits, reports_router
from horae.face.service.flows import flows_router
from horae.face.service.grants import grants_router
from horae.face.service.graph_execution import internal_router
from horae.face.service.nodes import nodes_router
from horae.face.service.problems import on_error
from horae.face.service.rate_limit import RateLimit
from horae.face.service.route_helpers import CALLER, provided_for
from horae.face.service.runs import runs_router
from horae.face.service.schedules import once_router, schedules_router
from horae.face.service.system import Document, system_router
from horae.face.service.workflows import launcher_router, workflows_router

if TYPE_CHECKING:
    from horae.face.console.console import Console
    from horae.face.service.metrics import Metrics

__all__ = ["Service"]

ROUTERS = (
    schedules_router, once_router, runs_router, reports_router, why_router, bulk_router, calendars_router, nodes_router, grants_router,
    flows_router, workflows_router, internal_router, registrar_router, launcher_router, system_router,
)  # fmt: skip
"""The routes of the API, and those beside it."""
SAFE = ("GET", "OPTIONS")
"""The methods that change nothing. Other routes that change nothing have the mark ``READS``."""


class Service:
    """The routes of an open app, for a server (as an ASGI application) and for this process (``answer``).

    It neither starts nor stops the app. What not every request needs is loaded when it is first needed: pages, metrics, the OpenAPI document.
    """

    def __init__(self, app: App, config: Config, counted: Metrics | None = None) -> None:
        self._app, self._config = app, config
        self._authenticator = Authenticator(config, app.now)
        self._limit = RateLimit(config.requests_per_second, app.clock.monotonic)
        self._report_limits = ReportLimits(config.requests_per_second, app.clock.monotonic)
        self._provided = {
            **provided_for(app),
            "report_limits": Constant(self._report_limits),
            "document": Made(lambda: self.document),
            "counted": Made(lambda: self.metrics),
        }
        if counted is not None:
            self.metrics = counted
        self.console: Console | None = None
        """The console, once a page was requested."""
        self._endpoints = Endpoints(on_error)
        self.terms = Terms(self._provided, self._admit, on_error)
        """What the routes of the API share."""
        self._endpoints.add(ROUTERS, self.terms)

    @cached_property
    def metrics(self) -> Metrics:
        """What was counted of this service."""
        from horae.face.service.metrics import Metrics  # noqa: PLC0415 - only servers need it

        return Metrics()

    @cached_property
    def document(self) -> Document:
        """The OpenAPI document."""

        def make() -> bytes:
            from horae.face.service.openapi import document_of  # noqa: PLC0415 - it is slow to load

            return document_of(ROUTERS, self._provided, __version__, self._app.executors.option_types)

        return Document(make)

    async def answer(self, request: Request) -> Response[Any]:
        """The answer to a request. Programs in this process may ask, without a server between."""
        if self.console is None and words_of(request.path)[:1] == ["console"]:
            self.open_console()
        return await self._endpoints.answer(request)

    def for_this_process(self, caller: Caller | None = None) -> InProcess:
        """What sends requests from this process: of a caller who is known already, or else of whoever the settings accept."""
        return InProcess(self.answer, self._config.body_limit, {} if caller is None else {CALLER: caller})

    def open_console(self) -> None:
        """Load the pages, and let them be answered."""
        from horae.face.console.console import Console  # noqa: PLC0415 - it imports this package, and is slow to load

        self.console = Console(
            self._app, self._config, self._authenticator, self._limit, self.for_this_process
        )
        self._endpoints.add([self.console.router()], self.console.terms())

    def close_feed(self) -> None:
        """End the streams of open pages, which would never end by themselves."""
        if self.console is not None:
            self.console.feed.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request that a server received."""
        begun = self._app.clock.monotonic()
        request = request_of(scope, receive, self._config.body_limit)
        response = await self.answer(request)
        await send_response(response, receive, send, head_only=scope["method"] == "HEAD")
        seconds = self._app.clock.monotonic() - begun
        self._report_limits.count(request, response.status_code)
        route = None if request.route is None else request.route.path
        self.metrics.answered(request.method, route, response.status_code, seconds)

    async def _admit(self, request: Request, endpoint: Endpoint) -> None:
        """Refuse unknown callers and callers beyond their rate limit, and parameters that a path does not take."""
        marks = endpoint.route.marks
        if "anonymous" not in marks:
            state = request.state
            caller = state.get(CALLER) or await self._authenticator.caller(
                request.raw_headers, state.get("peer")
            )
            self._limit.check_user(caller.user)
            if request.method not in SAFE and "reads" not in marks:
                caller.check_change()
            state[CALLER] = caller
        check_parameters(request, endpoint.arguments.query_names)


def check_parameters(request: Request, known: list[str]) -> None:
    """Refuse query parameters that are repeated, or that the path does not take."""
    names = [name for name, _ in request.query_pairs]
    if len(set(names)) < len(names):
        raise InvalidInputError("query", "has a parameter more than once")
    for name in names:
        if name not in known:
            listed = f"known are: {', '.join(known)}" if known else "this path takes none"
            hint = did_you_mean(name, known) or listed
            raise InvalidInputError(name, "is not a parameter of this path", hint=hint)
