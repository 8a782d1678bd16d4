"""``/api/v1/workflows``: deploy, read and launch workflows; and the nodes of their runs."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, Router, get, post, put
from litestar.enums import RequestEncodingType
from litestar.params import BodyKwarg

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
from horae.face.service.caller import Caller
from horae.face.service.route_helpers import API, Cursor, Limit
from horae.workflow import json_schema
from horae.workflow.document import Workflow

WorkflowBody = Annotated[
    dict[str, Any],
    BodyKwarg(media_type=RequestEncodingType.JSON, schema_extra={"title": Workflow.__name__}),
]

LaunchBodyOfRegistrar = Annotated[
    dict[str, Any],
    BodyKwarg(media_type=RequestEncodingType.JSON, schema_extra={"title": LaunchInput.__name__}),
]


@get("/workflows", summary="List workflows")
async def list_workflows(
    operations: ScopedOperations, limit: Limit = 100, cursor: Cursor = None
) -> PageView[WorkflowView]:
    """Every version, by id, owner and version: those of the owner and those that all owners share."""
    return page_of(WorkflowView, await operations.workflows.list(cursor=cursor, limit=limit))


@get("/workflows/{workflow_id:str}", summary="The latest version of a workflow")
async def get_latest_workflow(operations: ScopedOperations, workflow_id: str) -> WorkflowDocumentView:
    """The owner's, or else the one that all owners share."""
    return view_of(WorkflowDocumentView, await operations.workflows.get(workflow_id))


@get("/workflows/{workflow_id:str}/{version:str}", summary="A version of a workflow")
async def get_workflow(operations: ScopedOperations, workflow_id: str, version: str) -> WorkflowDocumentView:
    """As it was deployed; it never changes."""
    return view_of(
        WorkflowDocumentView, await operations.workflows.get(workflow_id, version_of_path(version))
    )


@put("/workflows/{workflow_id:str}/{version:str}", summary="Deploy a workflow")
async def deploy_workflow(
    own: ScopedOperations, workflow_id: str, version: str, data: WorkflowBody
) -> Response[DeployedView]:
    """Its triggers become schedules, and those of triggers that are gone are deleted. The same again changes nothing; another document
    under the same version is a conflict.
    """
    return await deploy(own, workflow_id, version, data)


@post("/workflows/validate", summary="Check a workflow", status_code=200)
async def validate_workflow(operations: ScopedOperations, data: WorkflowBody) -> CheckedView:
    """As deploying it would, and stores nothing. Every node and edge that is wrong is named in `details.faults`."""
    plan = await operations.workflows.check(data)
    found = plan.workflow
    return CheckedView(
        workflow_id=found.workflow_id, version=found.version, nodes=len(found.nodes), edges=len(found.edges)
    )


@post("/workflows/{workflow_id:str}/runs", summary="Run a workflow", status_code=202)
async def launch_workflow(own: ScopedOperations, workflow_id: str, data: LaunchBody | None = None) -> RunView:
    """Now, whatever its triggers say."""
    wanted = data or LaunchBody()
    run = await own.workflows.launch(workflow_id, wanted.version, input=wanted.input, key=wanted.key)
    return view_of(RunView, run)


@get("/workflow-schema", summary="The JSON Schema of workflows", media_type="application/json")
async def workflow_schema() -> dict[str, Any]:
    """What a workflow's document may be."""
    return json_schema()


@get("/runs/{run_id:str}/nodes", summary="The nodes of a workflow's run")
async def get_run_nodes(operations: ScopedOperations, run_id: str) -> WorkflowNodesView:
    """Each with its state, input, output, attempts and times; none if the run is of no workflow."""
    return WorkflowNodesView(items=[node_view(each) for each in await operations.workflows.nodes(run_id)])


@put("/workflows/{workflow_id:str}/{version:str}", summary="Deploy a workflow, as the registrar has it")
async def put_workflow(
    own: ScopedOperations, workflow_id: str, version: str, data: WorkflowBody
) -> Response[DeployedView]:
    """The same as below `/api/v1`."""
    return await deploy(own, workflow_id, version, data)


@post("/run-launcher/start", summary="Start a workflow that no schedule asked for", status_code=200)
async def start_run(app: App, caller: Caller, data: LaunchBodyOfRegistrar) -> StartedView:
    """Once per key, however often it is asked; `started` is false if there is no such workflow. Its run is in the ledger."""
    wanted = convert(data, LaunchInput)
    theirs = app.owned_by(caller.owner_of_new(wanted.user_id)).workflows
    started = await theirs.start(
        wanted.workflow_id, wanted.version, wanted.user_id, wanted.scheduled_for, wanted.idempotency_key
    )
    return StartedView(started=started)


async def deploy(
    own: ScopedOperations, workflow_id: str, version: str, document: dict[str, Any]
) -> Response[DeployedView]:
    """Deploy a document under the id and version of a path, which it may leave out."""
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


def launcher_router() -> Router:
    """The routes of workflows at the root of the service, beside the registrar's."""
    return Router("/", route_handlers=[put_workflow, start_run], tags=["registrar"])


def workflows_router() -> Router:
    """The routes of workflows."""
    handlers = [
        list_workflows, get_latest_workflow, get_workflow, deploy_workflow, validate_workflow, launch_workflow, workflow_schema,
        get_run_nodes,
    ]  # fmt: skip
    return Router(API, route_handlers=handlers, tags=["workflows"])
