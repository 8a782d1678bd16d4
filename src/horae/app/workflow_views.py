"""Views of workflows, and of the nodes of their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from horae.app.schedule_fields import Body, Natural, Text, about
from horae.app.view_base import View
from horae.model import StoredWorkflow
from horae.policy.workflow_states import PlacedNode
from horae.workflow.document import ActionNode, type_of
from horae.workflow.node_checkpoint import NodeRecord


class DeployedView(View, frozen=True):
    """A version of a workflow that is deployed."""

    workflow_id: str
    version: int
    created: Annotated[bool, about("Whether this request deployed it; not if the same document was there.")]
    schedules: Annotated[list[str], about("The ids of the schedules of its triggers.")]


class LaunchBody(Body, frozen=True):
    """A run of a workflow that no schedule asks for."""

    version: Annotated[Natural | None, about("Which version; without one the latest.")] = None
    input: Annotated[Any, about("The input of the workflow: any JSON.")] = None
    key: Annotated[
        Text | None, about("The same again starts nothing, and answers with the run that is there.")
    ] = None


class LaunchInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow to start, as a scheduler asks a launcher."""

    workflow_id: Annotated[str, about("Which workflow.")]
    version: Annotated[int, about("Which version of it.")]
    user_id: Annotated[str, about("For whom.")]
    scheduled_for: Annotated[datetime, about("The planned time, with an offset.")]
    idempotency_key: Annotated[str, about("A key is started once.")]


class WorkflowView(View, frozen=True):
    """A version of a workflow in a list."""

    workflow_id: str
    owner: Annotated[str, about("Empty if it belongs to all owners.")]
    version: int
    deployed_at: datetime


class WorkflowDocumentView(WorkflowView, frozen=True):
    """A version of a workflow."""

    document: Annotated[dict[str, Any], about("As it was deployed, with every default filled in.")]

    @classmethod
    def computed(cls, workflow: StoredWorkflow) -> dict[str, Any]:
        return {"document": msgspec.json.decode(workflow.document)}


class CheckedView(View, frozen=True):
    """A document that can be deployed."""

    workflow_id: str
    version: int
    nodes: int
    edges: int


class StartedView(View, frozen=True):
    """Whether a workflow was started: not if there is none of this version."""

    started: bool


class WorkflowNodeView(View, frozen=True):
    """A node of a workflow's run."""

    place: Annotated[str, about("Its id; within rounds of loops `LOOP/ROUND/ID`.")]
    id: str
    type: str
    action: Annotated[str | None, about("The action that it calls, if it calls one.")]
    state: Annotated[
        str, about("`waiting`, `running`, `retrying`, `succeeded`, `failed`, `cancelled` or `skipped`.")
    ]
    attempts: int
    started_at: datetime | None
    ended_at: datetime | None
    retry_at: datetime | None
    input: Any
    output: Any
    failure: str | None


class WorkflowNodesView(View, frozen=True):
    """The nodes of a run in the order of the workflow, those of rounds after their loop."""

    items: list[WorkflowNodeView]


def node_view(placed: PlacedNode) -> WorkflowNodeView:
    """A node as it is shown."""
    node, record = placed.node, placed.record or NodeRecord(state=placed.state)
    return WorkflowNodeView(
        place=placed.place, id=node.id, type=type_of(node), state=placed.state.value,
        action=node.data.action if isinstance(node, ActionNode) else None, attempts=record.attempts,
        started_at=record.started_at, ended_at=record.ended_at, retry_at=record.retry_at, input=record.input,
        output=record.output, failure=record.failure or record.fault,
    )  # fmt: skip
