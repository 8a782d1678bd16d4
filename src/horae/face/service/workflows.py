"""``/api/v1/workflows``: deploy, read and launch workflows; and the nodes of their runs."""

from __future__ import annotations

from typing import Annotated, Any

from horae.app import App, ScopedOperations
from horae.app.view_base import PageView, page_of, view_of
from horae.app.views import RunView
from horae.app.workflow_schedules import convert
from horae.app.workflow_views import (
    CheckedView,
    DeployedView,
    LaunchBody,
    LaunchInput,
    StartedView,
    WorkflowDocumentView,
    WorkflowNodesView,
    WorkflowView,
    node_view,
)
from horae.errors import InvalidInputError
from horae.face.http.arguments import DescribedAs
from horae.face.http.responses import Response
from horae.face.http.routes import Router, get, post, put
from horae.face.service.caller import Caller
from horae.face.service.route_helpers import API, Cursor, Limit
from horae.workflow import json_schema
from horae.workflow.document import Workflow

WorkflowBody = Annotated[dict[str, Any], DescribedAs(Workflow)]
LaunchBodyOfRegistrar = Annotated[dict[str, Any], DescribedAs(LaunchInput)]


@get("/workflows", summary="List workflows")
async def list_workflows(
    operations: ScopedOperations, limit: Limit = 100, cursor: Cursor = None
) -> PageView[WorkflowView]:
    """Every version of the owner's workflows and of those that all owners share, ordered by id, owner and version."""
    return page_of(WorkflowView, await operations.workflows.list(cursor=cursor, limit=limit))


@get("/workflows/{workflow_id}", summary="The latest version of a workflow")
async def get_latest_workflow(operations: ScopedOperations, workflow_id: str) -> WorkflowDocumentView:
    """The owner's workflow, or else the one that all owners share."""
    return view_of(WorkflowDocumentView, await operations.workflows.get(workflow_id))


@get("/workflows/{workflow_id}/{version}", summary="A version of a workflow")
async def get_workflow(operations: ScopedOperations, workflow_id: str, version: str) -> WorkflowDocumentView:
    """As it was deployed. A version never changes."""
    return view_of(
        WorkflowDocumentView, await operations.workflows.get(workflow_id, version_of_path(version))
    )


@put("/workflows/{workflow_id}/{version}", summary="Deploy a workflow")
async def deploy_workflow(
    own: ScopedOperations, workflow_id: str, version: str, data: WorkflowBody
) -> Response[DeployedView]:
    """Its triggers become schedules; schedules of removed triggers are deleted. Deploying the same document again changes nothing; another
    document under the same version is a conflict.
    """
    return await deploy(own, workflow_id, version, data)


@post("/workflows/validate", summary="Check a workflow", status_code=200)
async def validate_workflow(operations: ScopedOperations, data: WorkflowBody) -> CheckedView:
    """Checks it as deploying would, and stores nothing. `details.faults` names every faulty node and edge."""
    plan = await operations.workflows.check(data)
    workflow = plan.workflow
    return CheckedView(
        workflow_id=workflow.workflow_id,
        version=workflow.version,
        nodes=len(workflow.nodes),
        edges=len(workflow.edges),
    )


@post("/workflows/{workflow_id}/runs", summary="Run a workflow", status_code=202)
async def launch_workflow(own: ScopedOperations, workflow_id: str, data: LaunchBody | None = None) -> RunView:
    """Now, whatever its triggers say."""
    wanted = data or LaunchBody()
    run = await own.workflows.launch(workflow_id, wanted.version, input=wanted.input, key=wanted.key)
    return view_of(RunView, run)


@get("/workflow-schema", summary="The JSON Schema of workflows")
async def workflow_schema() -> dict[str, Any]:
    """The schema of a workflow's document."""
    return json_schema()


@get("/runs/{run_id}/nodes", summary="The nodes of a workflow's run")
async def get_run_nodes(operations: ScopedOperations, run_id: str) -> WorkflowNodesView:
    """Each with its state, input, output, attempts and times; empty if the run is not of a workflow."""
    return WorkflowNodesView(items=[node_view(each) for each in await operations.workflows.nodes(run_id)])


@put("/workflows/{workflow_id}/{version}", summary="Deploy a workflow, as the registrar has it")
async def put_workflow(
    own: ScopedOperations, workflow_id: str, version: str, data: WorkflowBody
) -> Response[DeployedView]:
    """Like the route under `/api/v1`."""
    return await deploy(own, workflow_id, version, data)


@post("/run-launcher/start", summary="Start a workflow that no schedule asked for", status_code=200)
async def start_run(app: App, caller: Caller, data: LaunchBodyOfRegistrar) -> StartedView:
    """Starts once per key, however often it is requested; `started` is false if the workflow does not exist. Its run is in the ledger."""
    wanted = convert(data, LaunchInput)
    theirs = app.owned_by(caller.owner_of_new(wanted.user_id)).workflows
    started = await theirs.start(
        wanted.workflow_id, wanted.version, wanted.user_id, wanted.scheduled_for, wanted.idempotency_key
    )
    return StartedView(started=started)


async def deploy(
    own: ScopedOperations, workflow_id: str, version: str, document: dict[str, Any]
) -> Response[DeployedView]:
    """Deploy a document under the id and version of the path, which the document may omit."""
    wanted = {"workflow_id": workflow_id, "version": version_of_path(version)}
    for name, value in wanted.items():
        if document.setdefault(name, value) != value:
            raise InvalidInputError(name, f"is {document[name]!r:.100}, and in the path it is {value!r:.100}")
    deployed = await own.workflows.deploy(document)
    shown = view_of(DeployedView, deployed, schedules=list(deployed.schedules))
    return Response(shown, status_code=201 if deployed.created else 200)


def version_of_path(text: str) -> int:
    """The version in a path."""
    if not text.isdecimal() or not text.isascii() or len(text) > 16:
        raise InvalidInputError("version", f"must be a whole number, and is {text[:100]!r}")
    return int(text)


launcher_router = Router("/", route_handlers=[put_workflow, start_run], tags=("registrar",))

_HANDLERS = [
    list_workflows, get_latest_workflow, get_workflow, deploy_workflow, validate_workflow, launch_workflow, workflow_schema,
    get_run_nodes,
]  # fmt: skip
workflows_router = Router(API, route_handlers=_HANDLERS, tags=("workflows",))
