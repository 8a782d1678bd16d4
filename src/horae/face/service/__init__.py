"""The service: an app behind HTTP, for people and programs."""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Request, Response, Router
from litestar.exceptions import HTTPException
from litestar.types import ControllerRouterHandler

from horae import __version__
from horae.app import App
from horae.config import Config
from horae.errors import HoraeError
from horae.face.registrar.routes import registrar_router
from horae.face.service.auth import Authenticator
from horae.face.service.bulk import bulk_router
from horae.face.service.calendars import calendars_router
from horae.face.service.flows import flows_router
from horae.face.service.grants import grants_router
from horae.face.service.internal import internal_router
from horae.face.service.metrics import Metrics
from horae.face.service.nodes import nodes_router
from horae.face.service.openapi import Document, document_of
from horae.face.service.problems import (
    BadRequestError,
    PreconditionFailedError,
    on_bad_request,
    on_defect,
    on_failed_precondition,
    on_horae_error,
    on_http_error,
)
from horae.face.service.rate_limit import RateLimit
from horae.face.service.reports import count_failed, reports_router
from horae.face.service.request_reading import JsonRequest, check_address, check_parameters, known_parameters
from horae.face.service.route_helpers import dependencies
from horae.face.service.runs import runs_router
from horae.face.service.schedules import schedules_router
from horae.face.service.system import health, home, metrics, openapi, readiness
from horae.face.service.usage import usage_router
from horae.face.service.why import why_router
from horae.face.service.workflows import launcher_router, workflows_router

__all__ = ["Service", "make_service"]


class Service(Litestar):
    """The routes of an app. Paths are matched undecoded, so that an id may contain an encoded slash."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        """Answer a request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("latin-1")
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


SAFE = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing. Other routes that change nothing say so (``READS``)."""


def make_service(app: App, config: Config, counted: Metrics | None = None, *, pages: bool = True) -> Service:
    """The service of an open app; it neither starts nor stops the app. Without ``pages`` it has no console."""
    authenticator = Authenticator(config, app.now)
    pace = RateLimit(config.requests_per_second, app.clock.monotonic)

    async def check_request(request: Request[Any, Any, Any]) -> Response[None] | None:
        """Refuse invalid addresses, unknown callers and callers beyond their rate limit, before any body is read."""
        answered = await check_address(request)
        if answered is None and not request.route_handler.opt.get("anonymous"):
            state = request.scope["state"]
            found = state.get("caller") or await authenticator.caller(
                request.scope["headers"], state.get("peer")
            )
            pace.check(found.user, f'the user "{found.user}" asks too often')
            if request.method not in SAFE and not request.route_handler.opt.get("reads"):
                found.check_change()
            state["caller"] = found  # a page of the console asks for its own caller
        if answered is None:
            check_parameters(request)
        return answered

    provided = dependencies(app)
    routes = _routes()
    if pages:
        from horae.face.console.console import Console  # noqa: PLC0415 - it takes parts of this package

        console = Console(app, config, authenticator, pace)
        routes += [console.router(), home]
    service = Service(
        route_handlers=routes,
        dependencies=provided,
        exception_handlers={
            HoraeError: on_horae_error,
            PreconditionFailedError: on_failed_precondition,
            BadRequestError: on_bad_request,
            HTTPException: on_http_error,
            Exception: on_defect,
        },
        before_request=check_request,
        request_class=JsonRequest,
        request_max_body_size=config.body_limit,
        logging_config=None,
        openapi_config=None,  # its pages load scripts from other sites; we build the document on demand
    )
    if pages:
        service.state.console = console
    service.state.monotonic = app.clock.monotonic
    service.state.parameters = known_parameters(service)
    service.state.runs = app.runs
    service.state.reports = RateLimit(config.requests_per_second, app.clock.monotonic)
    service.state.failed_reports = RateLimit(config.requests_per_second, app.clock.monotonic)
    service.state.metrics = counted or Metrics()
    service.state.openapi = Document(
        lambda: document_of(_routes(), provided, __version__, app.executors.option_types)
    )
    return service


def _routes() -> list[ControllerRouterHandler]:
    routers = [
        schedules_router, runs_router, reports_router, why_router, bulk_router, calendars_router, nodes_router,
        grants_router, usage_router, flows_router, workflows_router,
    ]  # fmt: skip
    api = Router("/api/v1", route_handlers=[router() for router in routers])
    return [
        api,
        internal_router(),
        registrar_router(),
        launcher_router(),
        health,
        readiness,
        metrics,
        openapi,
    ]
