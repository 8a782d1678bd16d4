"""The HTTP service of an app, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn

from horae.app import App
from horae.config import Config
from horae.face.service import Service
from tests.support.wait import wait_until


def service_of(app: App, config: Config | None = None) -> Service:
    """The service of an app."""
    return Service(app, config or Config())


def client_of(app: App, config: Config | None = None) -> httpx.AsyncClient:
    """A client of the service of an app."""
    transport = httpx.ASGITransport(app=service_of(app, config), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)


@asynccontextmanager
async def served(app: App, config: Config | None = None) -> AsyncIterator[tuple[int, Service]]:
    """The service of an app behind a real server on a free port of this machine; the port, and the service."""
    service = service_of(app, config)
    server = uvicorn.Server(uvicorn.Config(service, port=0, log_config=None, lifespan="off"))
    task = asyncio.create_task(server.serve())
    await wait_until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1], service
    finally:
        if service.console is not None:
            service.console.feed.close()
        server.should_exit = True
        await task
