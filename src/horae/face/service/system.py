"""Health, readiness, metrics, and the description of the API."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, Router, get
from litestar.response import Redirect

from horae.app import App, Readiness
from horae.face.service.metrics import MEDIA_TYPE
from horae.face.service.route_helpers import ANONYMOUS


class Health(msgspec.Struct, frozen=True):
    """The process is alive."""

    status: str = "ok"


@get("/healthz", summary="Whether the process is alive", tags=["system"], opt=ANONYMOUS, sync_to_thread=False)
def health() -> Health:
    """Answers 200 as long as the process is alive."""
    return Health()


@get("/", include_in_schema=False, opt=ANONYMOUS, sync_to_thread=False)
def home() -> Redirect:
    """The console."""
    return Redirect("/console", status_code=303)


@get("/readyz", summary="Whether the service can work", tags=["system"], opt=ANONYMOUS)
async def readiness(app: App) -> Response[Readiness]:
    """Answers 503 if the database is unavailable, full or replaced, its schema is newer, the clock is off, or the lease is lost."""
    ready = await app.readiness()
    return Response(ready, status_code=200 if ready.status == "ready" else 503)


@get("/metrics", summary="Metrics", tags=["system"], media_type=MEDIA_TYPE)
async def metrics(app: App, request: Request[Any, Any, Any]) -> Response[bytes]:
    """For Prometheus; no label names a schedule, a run or a user."""
    return Response(await request.app.state.metrics.page(app), media_type=MEDIA_TYPE)


@get("/openapi.json", include_in_schema=False, opt=ANONYMOUS)
async def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The OpenAPI document of the API."""
    return Response(await request.app.state.openapi.text(), media_type="application/json")


system_router = Router("/", route_handlers=[health, readiness, metrics, openapi, home])
