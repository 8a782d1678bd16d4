"""Routes are registered when one of their part is first asked for."""

from __future__ import annotations

from horae import App
from horae.face.service import ROUTERS, part_of
from tests.support.process import printed_by
from tests.support.service import service_of

LOADED = """
import sys, horae.face.service
from horae import App, Config
horae.face.service.make_service(App(":memory:"), Config())
print(*{"pydantic", "attr", "jwt", "jinja2"} & set(sys.modules))
"""


def test_what_no_route_needs_is_not_loaded():
    assert printed_by(LOADED).split() == []


def test_every_path_brings_its_routes_and_no_others():
    paths = [route.path for router in ROUTERS for route in router.routes]
    assert len(paths) > 60
    alone = service_of(App(":memory:"))
    assert not alone.routes
    alone.register_part("//api/v1/flows/x")  # as Litestar reads it
    assert {part_of(route.path) for route in alone.routes} == {("api", "v1", "flows")}
    service = service_of(App(":memory:"))
    for path in paths:
        service.register_part(path)
        assert path in {route.path for route in service.routes}
    assert sorted(route.path for route in service.routes) == sorted(paths)
