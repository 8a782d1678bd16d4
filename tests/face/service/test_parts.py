"""Every route answers at its path, and what a request does not need is not loaded."""

from __future__ import annotations

from horae import App
from horae.face.http.endpoints import Endpoint
from horae.face.service import ROUTERS
from tests.support.process import printed_by
from tests.support.service import client_of, service_of

LOADED = """
import sys, asyncio
from horae import App, Config
from horae.face.api_client import Client
from horae.face.service import Service

async def main():
    async with App(":memory:") as app:
        client = Client(Service(app, Config()).for_this_process(), "here")
        await client.get("/schedules")

asyncio.run(main())
unwanted = {"attr", "httpx", "jinja2", "jwt", "prometheus_client", "pydantic", "structlog", "uvicorn", "yaml"}
print(*unwanted & set(sys.modules))
"""


def test_what_a_request_does_not_need_is_not_loaded():
    assert printed_by(LOADED).split() == []


async def test_every_route_answers_at_its_path():
    routes = [route for router in ROUTERS for route in router.routes()]
    assert len({route.path for route in routes}) > 60
    async with App(":memory:") as app, client_of(app) as client:
        for route in routes:
            answer = await client.options(route.path)
            assert answer.status_code == 204
            assert route.method in answer.headers["allow"].split(", "), route.path


def test_every_route_has_arguments_that_can_be_read():
    service = service_of(App(":memory:"))
    service.open_console()
    assert service.console is not None
    of_api = [Endpoint(route, service.terms) for router in ROUTERS for route in router.routes()]
    pages = [Endpoint(route, service.console.terms()) for route in service.console.router().routes()]
    for endpoint in of_api + pages:
        in_path = {each.name for each in endpoint.arguments.parameters() if each.place == "path"}
        assert in_path == set(endpoint.path_parameters), endpoint.route.path
