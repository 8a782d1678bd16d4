"""Workflows: deploy and run them, draw their graphs, and show the nodes of a run with state, input and output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from horae.app import Filter, ScopedOperations
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import page_of, view_of
from horae.app.views import RunView
from horae.app.workflow_views import WorkflowDocumentView, WorkflowNodeView, WorkflowView, node_view
from horae.app.workflows import launch_schedule
from horae.errors import HoraeError, InvalidWorkflowError
from horae.face.console.dag import Drawing, draw
from horae.face.console.error_text import error_text
from horae.face.console.form_fields import json_of
from horae.face.console.page_request import Visit
from horae.face.documents.files import WORKFLOW_EXAMPLE, document_of
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.face.service.route_helpers import READS, known_actions

MAX_LISTED = 500
"""How many nodes of a run are listed with their inputs and outputs."""
VERSIONS = 50
"""How many versions of a workflow its page links to."""
SCHEDULES, RUNS = 20, 10
EXAMPLE = """{
  "workflow_id": "report",
  "version": 1,
  "nodes": [
    {"id": "daily", "type": "trigger", "data": {
      "kind": "schedule_based",
      "schedule": {"cron_expr": "0 9 * * *", "timezone": "UTC"}}},
    {"id": "fetch", "type": "action", "data": {"action": "NAME"}},
    {"id": "send", "type": "action", "data": {
      "action": "NAME",
      "input": {"rows": "nodes.fetch.output"}}}
  ],
  "edges": [
    {"source": "daily", "target": "fetch"},
    {"source": "fetch", "target": "send"}
  ]
}
"""
"""The initial text of the form; the first action of this service replaces ``NAME``."""


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
        page = page_of(WorkflowView, await visit.operations.workflows.list(cursor=visit.cursor))
        return {"workflows": page.items, "next": page.next}

    return await visit.live_page("workflows.html", build)


@get("/workflows/new")
async def new_workflow_page(visit: Visit) -> Response[Any]:
    """The form that deploys a workflow. The address may name a workflow whose next version to begin with."""
    text = ""
    if workflow_id := visit.query.get("from", ""):
        document = view_of(WorkflowDocumentView, await visit.operations.workflows.get(workflow_id)).document
        document = {**document, "version": document["version"] + 1}
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return await _form(
        visit, text or EXAMPLE.replace("NAME", next(iter(await known_actions(visit.app)), "work"))
    )


@post("/workflows/new")
async def deploy_workflow(visit: Visit) -> Response[Any]:
    """Deploy the document, or show what is wrong with it beside it."""
    text = visit.form.get("document", "")
    if visit.form.get("do") != "deploy":
        return await _form(visit, text)
    try:
        done = await visit.own.workflows.deploy(document_of(text.encode(), "the document", WORKFLOW_EXAMPLE))
    except InvalidWorkflowError:
        return await _form(visit, text, 422)  # the preview names every fault
    except HoraeError as error:
        return await _form(visit, text, 422, error_text(error))
    made = "Deployed" if done.created else "It was deployed before:"
    when, link = await _when_it_runs(visit, done.schedules)
    to = visit.url("workflows", done.workflow_id, version=done.version)
    return visit.back(to, f"{made} version {done.version}. {when}", link=link)


async def _when_it_runs(visit: Visit, schedules: Sequence[str]) -> tuple[str, tuple[str, str]]:
    """When the triggers of a workflow start it, and a link to its schedule."""
    if not schedules:
        return "It runs when it is started.", ("", "")
    if len(schedules) > 1:
        return f"It has {len(schedules)} schedules.", ("When it runs", "#h-schedules")
    schedule = view_of(ScheduleView, await visit.own.schedules.get(schedules[0]))
    sentence = schedule.sentence[:1].lower() + schedule.sentence[1:]
    return f"It runs {sentence}.", ("Its schedule", visit.of_schedule(schedule))


@post("/workflows/preview", marks=READS)
async def preview_part(visit: Visit) -> Response[Any]:
    """The preview of a document: its graph, or its faults; a part of the form's page."""
    return visit.page("workflow_preview.html", **await preview(visit, visit.form.get("document", "")))


async def _form(visit: Visit, text: str, status: int = 200, refused: str = "") -> Response[Any]:
    shown = await preview(visit, text)
    return visit.page("new_workflow.html", status, text=text, refused=refused, **shown)


async def preview(visit: Visit, text: str) -> dict[str, Any]:
    """The graph of a document as far as it is readable, and its faults."""
    faults: list[dict[str, str]] = []
    drawing, problem, document, free = None, "", {}, None
    try:
        document = document_of(text.encode(), "the document", WORKFLOW_EXAMPLE)
        free = await visit.own.workflows.free_version(await visit.own.workflows.check(document))
    except InvalidWorkflowError as error:
        faults = error.details["faults"]
    except HoraeError as error:
        problem = error_text(error)
    try:
        bad = {each["where"].removeprefix("node ") for each in faults if each["where"].startswith("node ")}
        drawing = drawing_of(document, dict.fromkeys(bad, "failed")) if document else None
    except (KeyError, TypeError, AttributeError):  # malformed nodes or edges, which the faults name
        drawing = None
    return {
        "drawing": drawing, "faults": faults, "problem": problem, "document": document, "free": free,
        "count": len(document["nodes"]) if isinstance(document.get("nodes"), list) else 0,
    }  # fmt: skip


@get("/workflows/{workflow_id}")
async def workflow_page(visit: Visit, workflow_id: str) -> Response[Any]:
    """A version of a workflow, or the latest: its graph, its runs, its schedules and its document."""
    asked = visit.query.get("version", "")
    operations = visit.operations
    found = await operations.workflows.get(workflow_id, int(asked) if asked.isdecimal() else None)
    workflow = view_of(WorkflowDocumentView, found)
    document = {
        name: workflow.document[name] for name in ("workflow_id", "version", "nodes")
    } | workflow.document
    versions = await operations.workflows.versions(workflow_id, found.owner, VERSIONS)
    drawing = drawing_of(workflow.document, {})
    count = len(workflow.document.get("nodes", []))

    async def build() -> dict[str, Any]:
        schedules, runs = await _activity(operations, workflow_id, found.owner or visit.caller.user)
        return {
            "workflow": workflow, "document": document, "drawing": drawing, "count": count, "versions": list(reversed(versions)),
            "schedules": schedules, "shown": runs,
        }  # fmt: skip

    return await visit.live_page("workflow.html", build)


async def _activity(
    operations: ScopedOperations, workflow_id: str, user: str
) -> tuple[list[Any], list[RunView]]:
    """The schedules of a workflow's triggers, and its latest runs."""
    triggers = await operations.schedules.list(Filter(managed_by=f"workflow:{workflow_id}"), limit=SCHEDULES)
    runs: list[RunView] = []
    for each in [*(each.id for each in triggers), launch_schedule(workflow_id, user)]:
        try:
            runs += page_of(RunView, await operations.runs.list(each, RUNS)).items
        except HoraeError:  # it was never launched manually
            continue
    shown = await operations.evaluate(lambda: [view_of(ScheduleView, each) for each in triggers])
    return shown, sorted(runs, key=lambda run: run.decided_at, reverse=True)[:RUNS]


@post("/workflows/{workflow_id}")
async def run_workflow(visit: Visit, workflow_id: str) -> Response[Any]:
    """Run a version of a workflow now."""
    asked = visit.query.get("version", "")
    try:
        run = await visit.own.workflows.launch(
            workflow_id, int(asked) if asked.isdecimal() else None, input=json_of(visit, "input"),
            key=visit.form.get("key", "").strip() or None,
        )  # fmt: skip
    except HoraeError as error:
        return await visit.show_again(error, workflow_page.fn(visit, workflow_id))
    return visit.back(visit.url("runs", run.id), "Started: this is its run.")


async def nodes_of(visit: Visit, run: RunView) -> dict[str, Any]:
    """The nodes of a workflow's run and its graph; none for other runs."""
    nodes: list[WorkflowNodeView] = []
    drawing = None
    if run.action == "workflow":
        nodes = [node_view(each) for each in await visit.operations.workflows.nodes(run.id)]
    if nodes and isinstance(run.input, dict) and "workflow_id" in run.input:
        try:
            found = await visit.operations.workflows.get(
                str(run.input["workflow_id"]), run.input.get("version")
            )
            document = view_of(WorkflowDocumentView, found).document
            drawing = drawing_of(document, {each.place: each.state for each in nodes})
        except HoraeError:  # its version is gone, or another owner's
            drawing = None
    listed = nodes[:MAX_LISTED]
    entries = {each.place: f"node-{number}" for number, each in enumerate(listed, 1)}
    return {"nodes": listed, "node_count": len(nodes), "drawing": drawing, "entries": entries}


HANDLERS = [workflows_page, new_workflow_page, deploy_workflow, preview_part, workflow_page, run_workflow]
