"""Workflows: their graphs drawn in layers, and in the page of a run each node with its state, input and output."""

from __future__ import annotations

from typing import Any

from litestar import Response, get

from horae.app.view import page_of, view_of
from horae.app.views import RunView
from horae.app.workflow_views import WorkflowDocumentView, WorkflowNodeView, WorkflowView, node_view
from horae.errors import HoraeError
from horae.face.console.dag import Drawing, draw
from horae.face.console.visit import Visit

MAX_LISTED = 500
"""How many nodes of a run are listed with their inputs and outputs."""


def drawing_of(document: dict[str, Any], states: dict[str, str]) -> Drawing | None:
    """The graph of a workflow's document, coloured by the states of its nodes."""
    nodes = [(str(each["id"]), str(each["type"])) for each in document.get("nodes", [])]
    edges = [
        (str(each["source"]), str(each["target"]), str(each.get("condition") or "")) for each in document.get("edges", [])
    ]  # fmt: skip
    return draw(nodes, edges, states)


@get("/workflows")
async def workflows_page(visit: Visit) -> Response[Any]:
    """The versions of workflows that are deployed."""

    async def build() -> dict[str, Any]:
        page = page_of(
            WorkflowView, await visit.there.workflows.list(cursor=visit.query.get("cursor") or None)
        )
        return {"workflows": page.items, "next": page.next}

    return await visit.live_page("workflows.html", build)


@get("/workflows/{workflow_id:str}")
async def workflow_page(visit: Visit, workflow_id: str) -> Response[Any]:
    """A version of a workflow, or the latest: its graph and its document."""
    asked = visit.query.get("version", "")
    found = await visit.there.workflows.get(workflow_id, int(asked) if asked.isdecimal() else None)
    workflow = view_of(WorkflowDocumentView, found)
    drawing = drawing_of(workflow.document, {})
    return visit.page(
        "workflow.html", workflow=workflow, drawing=drawing, count=len(workflow.document.get("nodes", []))
    )


async def nodes_of(visit: Visit, run: RunView) -> dict[str, Any]:
    """The nodes of a workflow's run and its graph; none for other runs."""
    nodes: list[WorkflowNodeView] = []
    drawing = None
    if run.action == "workflow":
        nodes = [node_view(each) for each in await visit.there.workflows.nodes(run.id)]
    if nodes and isinstance(run.input, dict) and "workflow_id" in run.input:
        try:
            found = await visit.there.workflows.get(str(run.input["workflow_id"]), run.input.get("version"))
            document = view_of(WorkflowDocumentView, found).document
            drawing = drawing_of(document, {each.place: each.state for each in nodes})
        except HoraeError:  # its version is gone, or another owner's
            drawing = None
    return {"nodes": nodes[:MAX_LISTED], "node_count": len(nodes), "drawing": drawing}


HANDLERS = [workflows_page, workflow_page]
