"""The HTTP service of an app, in this process."""

from __future__ import annotations

import httpx

from horae.app import App
from horae.config import Config
from horae.face.service import Service, make_service


def service_of(app: App, config: Config | None = None) -> Service:
    """The service of an app."""
    return make_service(app, config or Config())


def client_of(app: App, config: Config | None = None) -> httpx.AsyncClient:
    """A client of the service of an app."""
    transport = httpx.ASGITransport(app=service_of(app, config), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
