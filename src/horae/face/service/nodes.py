"""``/api/v1/nodes`` and ``/api/v1/actions``: the processes that drive the database, and what they can run."""

from __future__ import annotations

from horae.app import App
from horae.app.view_base import PageView, view_of
from horae.app.views import NodeView
from horae.face.http.routes import Router, get
from horae.face.service.route_helpers import API, known_actions


@get("/nodes", summary="The processes that drive the database")
async def list_nodes(app: App) -> PageView[NodeView]:
    """The actions that each can run, and whether it is alive."""
    return PageView(items=[view_of(NodeView, each) for each in await app.nodes()])


@get("/actions", summary="What can be run")
async def list_actions(app: App) -> PageView[str]:
    """The addresses of the actions that live nodes have announced."""
    return PageView(items=await known_actions(app))


nodes_router = Router(API, route_handlers=[list_nodes, list_actions], tags=("system",))
