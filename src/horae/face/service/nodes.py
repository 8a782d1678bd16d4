"""``/api/v1/nodes`` and ``/api/v1/actions``: the processes that drive the database, and what they can run."""

from __future__ import annotations

from litestar import Router, get

from horae.app import App
from horae.app.views import NodeView, PageView, node_view
from horae.face.service.caller import Caller


@get("/nodes", operation_id="listNodes", summary="The processes that drive the database")
async def nodes(app: App, caller: Caller) -> PageView[NodeView]:  # noqa: ARG001 - the caller must be known
    """The actions that each can run, and whether it is alive."""
    return PageView(items=[node_view(each) for each in await app.nodes()])


@get("/actions", operation_id="listActions", summary="What can be run")
async def actions(app: App, caller: Caller) -> PageView[str]:  # noqa: ARG001 - the caller must be known
    """The addresses of the actions that live nodes have announced."""
    announced = {action for node in await app.nodes() if node.alive for action in node.actions}
    return PageView(items=sorted(announced | set(app.executors.actions)))


def nodes_router() -> Router:
    """The routes of nodes and actions."""
    return Router("/", route_handlers=[nodes, actions], tags=["system"])
