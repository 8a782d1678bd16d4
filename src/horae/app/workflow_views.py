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
    created: Annotated[
        bool, about("Whether this request deployed it; false if the same document was deployed before.")
    ]
    schedules: Annotated[list[str], about("The ids of the schedules of its triggers.")]


class LaunchBody(Body, frozen=True):
    """A run of a workflow without a schedule."""

    version: Annotated[Natural | None, about("The version to run. The latest if omitted.")] = None
    input: Annotated[Any, about("The input of the workflow: any JSON.")] = None
    key: Annotated[
        Text | None,
        about("An idempotency key: the same key again starts nothing, and returns the existing run."),
    ] = None


class LaunchInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow to start, as a scheduler asks a launcher."""

    workflow_id: Annotated[str, about("The workflow to start.")]
    version: Annotated[int, about("The version of the workflow.")]
    user_id: Annotated[str, about("The user for whom it runs.")]
    scheduled_for: Annotated[datetime, about("The planned time, with an offset.")]
    idempotency_key: Annotated[str, about("Each key starts one run.")]


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
    """Whether a workflow was started; false if this version does not exist."""

    started: bool


class WorkflowNodeView(View, frozen=True):
    """A node of a workflow's run."""

    place: Annotated[str, about("The id of the node; within the rounds of a loop `LOOP/ROUND/ID`.")]
    id: str
    type: str
    action: Annotated[str | None, about("The action that the node calls, if any.")]
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
    """The nodes of a run in the order of the workflow; those of rounds follow their loop."""

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
