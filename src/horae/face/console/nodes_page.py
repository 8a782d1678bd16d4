"""Nodes: the processes that drive the database."""

from __future__ import annotations

from collections import Counter
from typing import Any

from horae.app.view_base import view_of
from horae.app.views import NodeView
from horae.face.console.page_request import Visit
from horae.face.http.responses import Response
from horae.face.http.routes import get


@get("/nodes")
async def nodes_page(visit: Visit) -> Response[Any]:
    """The nodes, what each can run, and whether this one can work."""

    async def build() -> dict[str, Any]:
        nodes = [view_of(NodeView, each) for each in await visit.app.nodes()]
        ready = await visit.app.readiness()
        backlog = await visit.app.backlog() if visit.caller.sees_all else None
        versions = Counter(each.tzdata for each in nodes if each.alive)
        actions = sorted({action for each in nodes if each.alive for action in each.actions})
        return {"nodes": nodes, "ready": ready, "backlog": backlog, "versions": versions, "actions": actions}

    return await visit.live_page("nodes.html", build)


HANDLERS = [nodes_page]
