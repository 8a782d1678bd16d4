"""The service: an app behind HTTP, for people and programs."""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Request, Response, Router
from litestar.di import Provide
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
from horae.face.service.caller import Caller
from horae.face.service.metrics import Metrics
from horae.face.service.nodes import nodes_router
from horae.face.service.openapi import Document, document_of
from horae.face.service.problems import (
    PreconditionFailedError,
    on_defect,
    on_failed_precondition,
    on_horae_error,
    on_http_error,
)
from horae.face.service.rate_limit import RateLimit
from horae.face.service.request_reading import JsonRequest, check_address
from horae.face.service.runs import count_failed, runs_router
from horae.face.service.schedules import asked_filter, schedules_router
from horae.face.service.system import healthz, metrics_page, openapi, readyz
from horae.face.service.why import why_router

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


def make_service(app: App, config: Config, metrics: Metrics | None = None) -> Service:
    """The service of an open app; it neither starts nor stops the app."""
    authenticator = Authenticator(config, app.now)
    pace = RateLimit(config.requests_per_second, app.clock.monotonic)

    async def check_request(request: Request[Any, Any, Any]) -> Response[None] | None:
        """Refuse invalid addresses, unknown callers and callers beyond their rate limit, before any body is read."""
        answered = await check_address(request)
        if answered is None and "caller" in request.route_handler.parsed_fn_signature.parameters:
            peer = request.scope["state"].get("peer")
            found = await authenticator.caller(request.scope["headers"], peer)
            pace.check(found.user, f'the user "{found.user}" asks too often')
            request.scope["state"]["caller"] = found
        return answered

    def caller(request: Request[Any, Any, Any]) -> Caller:
        """The caller of a request, as ``check_request`` found it."""
        found: Caller = request.scope["state"]["caller"]
        return found

    dependencies = {
        "app": Provide(lambda: app, sync_to_thread=False, use_cache=True),
        "only": Provide(asked_filter, sync_to_thread=False),
        "caller": Provide(caller, sync_to_thread=False),
    }
    service = Service(
        route_handlers=_routes(),
        dependencies=dependencies,
        exception_handlers={
            HoraeError: on_horae_error,
            PreconditionFailedError: on_failed_precondition,
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
    service.state.metrics = metrics or Metrics()
    service.state.openapi = Document(
        lambda: document_of(_routes(), dependencies, __version__, app.executors.option_types)
    )
    return service


def _routes() -> list[ControllerRouterHandler]:
    routers = [schedules_router, runs_router, why_router, bulk_router, calendars_router, nodes_router]
    api = Router("/api/v1", route_handlers=[router() for router in routers])
    return [api, registrar_router(), healthz, readyz, metrics_page, openapi]
