"""Health, readiness, metrics, and the description of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from horae.app import App, Readiness
from horae.face.http.responses import Response, redirect
from horae.face.http.routes import Router, get
from horae.face.service.route_helpers import ANONYMOUS


class Counted(Protocol):
    """The metrics of a service; what counts them is slow to load."""

    media_type: str

    async def page(self, app: App) -> bytes:
        """All metrics, in the format of Prometheus."""


class Document:
    """The OpenAPI document of a service. It takes a second to build: once, in a thread, so that no other request waits."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._text: asyncio.Future[bytes] | None = None

    async def text(self) -> bytes:
        """The document as JSON; callers that arrive while it is being built wait for the same one."""
        if self._text is None or (self._text.done() and self._text.exception() is not None):
            self._text = asyncio.ensure_future(asyncio.to_thread(self._make))
        return await asyncio.shield(self._text)


class Health(msgspec.Struct, frozen=True):
    """The process is alive."""

    status: str = "ok"


@get("/healthz", summary="Whether the process is alive", tags=("system",), marks=ANONYMOUS)
async def health() -> Health:
    """Answers 200 as long as the process is alive."""
    return Health()


@get("/", is_described=False, marks=ANONYMOUS)
async def home() -> Response[bytes]:
    """The console."""
    return redirect("/console")


@get("/readyz", summary="Whether the service can work", tags=("system",), marks=ANONYMOUS)
async def readiness(app: App) -> Response[Readiness]:
    """Answers 503 if the database is unavailable, full or replaced, its schema is newer, the clock is off, or the lease is lost.

    Anyone may ask, so what blocked the event loop last is not named here: the log names it.
    """
    ready = await app.readiness()
    if ready.loop_blocked is not None:
        unnamed = msgspec.structs.replace(ready.loop_blocked, schedule=None, action=None)
        ready = msgspec.structs.replace(ready, loop_blocked=unnamed)
    return Response(ready, status_code=200 if ready.status == "ready" else 503)


@get("/metrics", summary="Metrics", tags=("system",), media_type="text/plain")
async def metrics(app: App, counted: Counted) -> Response[bytes]:
    """For Prometheus; no label names a schedule, a run or a user."""
    return Response(await counted.page(app), media_type=counted.media_type)


@get("/openapi.json", is_described=False, marks=ANONYMOUS)
async def openapi(document: Document) -> Response[bytes]:
    """The OpenAPI document of the API."""
    return Response(await document.text())


system_router = Router("/", route_handlers=[health, readiness, metrics, openapi, home])
