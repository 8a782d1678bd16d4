"""``horae workflows``: deploy, check, show, draw and run workflows."""

from __future__ import annotations

from typing import Annotated

from rich.console import RenderableType
from rich.text import Text

from horae.face.api_client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Input, Limit, Wait, argument, flag, option
from horae.face.cli.printing import word
from horae.face.cli.render import Json, at, details, listing
from horae.face.cli.run_following import show_run
from horae.face.cli.schedule_options import start_fields
from horae.face.cli.workflow_drawing import drawing, mermaid
from horae.face.documents.files import WORKFLOW_EXAMPLE, document

cli = group("workflows", "Deploy, show, draw and run workflows.")

File = Annotated[str, argument("FILE|-", "The workflow as JSON or YAML; - is standard input.")]
WorkflowId = Annotated[str, argument("ID", "The workflow's id.")]
Version = Annotated[int | None, option("--version", "N", "The version.  \\[default: the latest]", min=0)]
_table = listing(
    "No workflows.",
    {"workflow!": "workflow_id", "version>": "version", "owner": "owner", "deployed (UTC)?": at("deployed_at")},
)  # fmt: skip
_details = details(
    {
        "workflow": "workflow_id", "version": "version", "owner": "owner", "deployed": at("deployed_at"),
        "nodes": lambda answer: drawing(answer["document"], {}),
    }
)  # fmt: skip
_nodes = listing(
    "This run is not a workflow's.",
    {
        "node!": "place", "type": "type", "state": lambda each: word(each["state"]),
        "attempts>": lambda each: each["attempts"] or None, "started (UTC)?": at("started_at"), "ended?": at("ended_at"),
        "failure~": "failure",
    },
)  # fmt: skip


@command(cli, "deploy")
async def deploy(session: Session, file: File) -> None:
    """Deploy a version of a workflow; its triggers become schedules. Deploying it again changes nothing.

    horae workflows deploy report.json
    """
    given = document(file, "FILE", WORKFLOW_EXAMPLE)
    place = path("workflows", str(given.get("workflow_id", "")), str(given.get("version", "")))
    session.show(await session.client.put(place, given), _deployed)


def _deployed(answer: Json) -> RenderableType:
    done = "Deployed" if answer["created"] else "Already deployed:"
    lines = [f"{done} {answer['workflow_id']}, version {answer['version']}."]
    lines += [f"Schedule {each}" for each in answer["schedules"]]
    return Text("\n".join(lines))


@command(cli, "validate")
async def validate(session: Session, file: File) -> None:
    """Check a workflow as deploy does, without storing it.

    horae workflows validate report.json
    """
    answer = await session.client.post(
        path("workflows", "validate"), document(file, "FILE", WORKFLOW_EXAMPLE)
    )
    counted = f"{answer['nodes']} nodes, {answer['edges']} edges"
    session.show(answer, f"{answer['workflow_id']}, version {answer['version']}, is valid: {counted}.")


@command(cli, "list")
async def list_workflows(session: Session, limit: Limit = 100) -> None:
    """List all versions of all workflows.

    horae workflows list
    """
    await session.show_list("/workflows", limit, _table)


@command(cli, "show")
async def show(session: Session, workflow_id: WorkflowId, version: Version = None) -> None:
    """Show a workflow: its nodes and what follows each.

    horae workflows show report --version 3
    """
    session.show(await _workflow(session, workflow_id, version), _details)


@command(cli, "draw")
async def draw(
    session: Session,
    workflow_id: WorkflowId,
    version: Version = None,
    run_id: Annotated[
        str | None, option("--run", "RUN_ID", "Colour nodes by their state in this run.")
    ] = None,
    as_mermaid: Annotated[bool, flag("--mermaid", "Print a Mermaid diagram.")] = False,
) -> None:
    """Draw a workflow, with --run in the colours of its nodes' states.

    horae workflows draw report --run 019a4752-5d20-8b13-a3a0-c0e9bee3be20

    horae workflows draw report --mermaid > report.mmd
    """
    answer = await _workflow(session, workflow_id, version)
    nodes = [] if run_id is None else (await session.client.get(path("runs", run_id, "nodes")))["items"]
    states = {each["place"]: each["state"] for each in nodes}
    drawn = mermaid if as_mermaid else drawing
    session.show(
        {"document": answer["document"], "nodes": nodes}, lambda _: drawn(answer["document"], states)
    )


async def _workflow(session: Session, workflow_id: str, version: int | None) -> Json:
    parts = [workflow_id] if version is None else [workflow_id, str(version)]
    answer: Json = await session.client.get(path("workflows", *parts))
    return answer


@command(cli, "run")
async def run(
    session: Session,
    workflow_id: WorkflowId,
    version: Version = None,
    given: Input = None,
    key: Annotated[str | None, option("--key", "KEY", "Start nothing if a run already has this key.")] = None,
    wait: Wait = False,
) -> None:
    """Run a workflow now.

    horae workflows run report --input '{"day": "2026-11-17"}' --wait
    """
    body = {"version": version, "key": key, **start_fields(None, given, None)}
    started = await session.client.post(path("workflows", workflow_id, "runs"), body)
    await show_run(session, started, wait=wait)


@command(cli, "nodes")
async def nodes(session: Session, run_id: Annotated[str, argument("RUN_ID", "The run's id.")]) -> None:
    """Show the nodes of a workflow's run: states, attempts and times; with --json inputs and outputs too.

    horae workflows nodes 019a4752-5d20-8b13-a3a0-c0e9bee3be20
    """
    answer = (await session.client.get(path("runs", run_id, "nodes")))["items"]
    session.show(answer, _nodes)
