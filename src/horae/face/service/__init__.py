"""The service: an app behind HTTP, for people and programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from litestar import Litestar, Request, Response, Router
from litestar.exceptions import HTTPException
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

from horae import __version__
from horae.app import App
from horae.config import Config
from horae.errors import HoraeError
from horae.face.registrar.routes import registrar_router
from horae.face.service.auth import Authenticator
from horae.face.service.bulk import bulk_router
from horae.face.service.calendars import calendars_router
from horae.face.service.explain import why_router
from horae.face.service.external_worker_reports import count_failed, reports_router
from horae.face.service.flows import flows_router
from horae.face.service.grants import grants_router
from horae.face.service.graph_execution import internal_router
from horae.face.service.metrics import Metrics
from horae.face.service.nodes import nodes_router
from horae.face.service.openapi import Document, document_of
from horae.face.service.problems import (
    StatusError,
    on_defect,
    on_horae_error,
    on_http_error,
    on_status_error,
)
from horae.face.service.rate_limit import RateLimit
from horae.face.service.request_reading import JsonRequest, check_address, check_parameters, known_parameters
from horae.face.service.route_helpers import dependencies
from horae.face.service.runs import runs_router
from horae.face.service.schedules import once_router, schedules_router
from horae.face.service.system import system_router
from horae.face.service.workflows import launcher_router, workflows_router

if TYPE_CHECKING:
    from horae.face.console.console import Console

__all__ = ["Service", "make_service"]


class Service(Litestar):
    """The routes of an app. Paths are matched undecoded, so that an id may contain an encoded slash.

    Registering a route takes Litestar milliseconds: the routes of a part of the paths are registered when a path in it is first requested.
    """

    def __init__(
        self,
        routers: Iterable[Router],
        make_console: Callable[[], Console],
        **options: Any,  # noqa: ANN401 - Litestar's own
    ) -> None:
        self._make_console = make_console
        self.console: Console | None = None
        """The console, once a page was requested."""
        self._parts: dict[tuple[str, ...], list[Router]] = {}
        for router in routers:
            for part in dict.fromkeys(part_of(route.path) for route in router.routes):
                self._parts.setdefault(part, []).append(router)
        super().__init__(**options)

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        """Leave out the plugins for pydantic and attrs: they are slow to load, and no route needs them."""
        return [*plugins, MsgspecDIPlugin()]

    def register_part(self, path: str) -> None:
        """Register the routes of the part that a path belongs to, unless they are registered."""
        part = part_of(path)
        if part == ("console",) and self.console is None:
            self.console = self._make_console()
            self._parts[part] = [self.console.router()]
        routers = self._parts.pop(part, ())
        for router in routers:
            self.register(router)
            for others in self._parts.values():
                if router in others:
                    others.remove(router)
        if routers:
            self.state.parameters = known_parameters(self.routes)

    def close_feed(self) -> None:
        """End the streams of open pages, which would never end by themselves."""
        if self.console is not None:
            self.console.feed.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        """Answer a request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("latin-1")
        self.register_part(scope["path"])
        begun, status = self.state.monotonic(), 500

        async def watched(message: Any) -> None:  # noqa: ANN401
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await super().__call__(scope, receive, watched)
        seconds = self.state.monotonic() - begun
        count_failed(self.state, scope, status)
        self.state.metrics.answered(scope["method"], scope.get("path_template"), status, seconds)


def part_of(path: str) -> tuple[str, ...]:
    """The part that a path belongs to: its first word, or its first three words below ``/api``."""
    words = [each for each in path.split("/") if each]
    return tuple(words[: 3 if words[:1] == ["api"] else 1])


ROUTERS = (
    schedules_router, once_router, runs_router, reports_router, why_router, bulk_router, calendars_router, nodes_router, grants_router,
    flows_router, workflows_router, internal_router, registrar_router(), launcher_router, system_router,
)  # fmt: skip
"""The routes of the API, and those beside it. Each service registers copies of them."""
SAFE = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing. Other routes that change nothing have the option ``READS``."""


def make_service(app: App, config: Config, counted: Metrics | None = None) -> Service:
    """The service of an open app; it neither starts nor stops the app."""
    authenticator = Authenticator(config, app.now)
    limit = RateLimit(config.requests_per_second, app.clock.monotonic)

    async def check_request(request: Request[Any, Any, Any]) -> Response[None] | None:
        """Refuse invalid addresses, unknown callers and callers beyond their rate limit, before any body is read."""
        answered = await check_address(request)
        if answered is None and not request.route_handler.opt.get("anonymous"):
            state = request.scope["state"]
            caller = state.get("caller") or await authenticator.caller(
                request.scope["headers"], state.get("peer")
            )
            limit.check_user(caller.user)
            if request.method not in SAFE and not request.route_handler.opt.get("reads"):
                caller.check_change()
            state["caller"] = caller
        if answered is None:
            check_parameters(request)
        return answered

    provided = dependencies(app)

    def make_console() -> Console:
        from horae.face.console.console import Console  # noqa: PLC0415 - it imports this package

        return Console(app, config, authenticator, limit)

    service = Service(
        ROUTERS,
        make_console,
        dependencies=provided,
        exception_handlers={
            HoraeError: on_horae_error,
            StatusError: on_status_error,
            HTTPException: on_http_error,
            Exception: on_defect,
        },
        before_request=check_request,
        request_class=JsonRequest,
        request_max_body_size=config.body_limit,
        logging_config=None,
        openapi_config=None,  # its pages load scripts from other sites; we build the document on demand
    )
    service.state.monotonic = app.clock.monotonic
    service.state.runs = app.runs
    service.state.reports = RateLimit(config.requests_per_second, app.clock.monotonic)
    service.state.failed_reports = RateLimit(config.requests_per_second, app.clock.monotonic)
    service.state.metrics = counted or Metrics()
    service.state.openapi = Document(
        lambda: document_of(ROUTERS, provided, __version__, app.executors.option_types)
    )
    return service
