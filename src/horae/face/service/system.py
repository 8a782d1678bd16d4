"""Health, readiness, metrics, and the description of the API."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, get

from horae.app import App, Readiness
from horae.face.service.caller import Caller
from horae.face.service.metrics import MEDIA_TYPE


class Health(msgspec.Struct, frozen=True):
    """The process is alive."""

    status: str = "ok"


@get(
    "/healthz",
    operation_id="health",
    summary="Whether the process lives",
    tags=["system"],
    sync_to_thread=False,
)
def healthz() -> Health:
    """Answers 200 as long as the process is alive."""
    return Health()


@get("/readyz", operation_id="readiness", summary="Whether the service can work", tags=["system"])
async def readyz(app: App) -> Response[Readiness]:
    """503 if it cannot work: the database is unavailable, full or replaced, its schema is newer, the clock is off, or the lease is lost."""
    readiness = await app.readiness()
    return Response(readiness, status_code=200 if readiness.status == "ready" else 503)


@get(
    "/metrics",
    operation_id="metrics",
    summary="What was counted and measured",
    tags=["system"],
    media_type=MEDIA_TYPE,
)
async def metrics_page(app: App, caller: Caller, request: Request[Any, Any, Any]) -> Response[bytes]:  # noqa: ARG001 - the caller must be known
    """For Prometheus; no label names a schedule, a run or a user."""
    return Response(await request.app.state.metrics.page(app), media_type=MEDIA_TYPE)


@get("/openapi.json", include_in_schema=False)
async def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The OpenAPI document of the API."""
    return Response(await request.app.state.openapi.text(), media_type="application/json")
