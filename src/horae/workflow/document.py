"""The document of a workflow: nodes and edges as people and programs write them, as JSON or with :mod:`horae.workflow.builder`."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from horae.spec.duration import Duration, DurationFields

SCHEDULE_BASED = "schedule_based"
"""The kind of triggers that become schedules; triggers of other kinds are ignored."""
ID_PATTERN = "^[A-Za-z0-9_-]{1,64}$"
MAX_VERSION = 2**53 - 1

NodeId = Annotated[str, Meta(pattern=ID_PATTERN, description="Unique in the workflow.")]
Expression = Annotated[
    str,
    Meta(
        description="CEL over `input`, `nodes.ID.output`, `nodes.ID.error`, `run`, and within a loop `item` and `index`."
    ),
]
Inputs = dict[str, Expression]


class When(StrEnum):
    """The end of its source after which an edge may be followed."""

    ALWAYS = "always"
    SUCCESS = "success"
    ERROR = "error"


class Edge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Leads from one node to another."""

    source: Annotated[str, Meta(description="The id of the node that the edge leads from.")]
    target: Annotated[str, Meta(description="The id of the node that the edge leads to.")]
    when: Annotated[
        When,
        Meta(
            description="The end of the source after which it is followed: `success`, `error`, or `always`."
        ),
    ] = When.SUCCESS
    condition: Annotated[
        Expression | None, Meta(description="The edge is followed only if this is true. Always, if omitted.")
    ] = None

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


class Retry(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often an action is attempted, and how long to wait in between: the delay grows by the factor each time."""

    attempts: Annotated[int, Meta(ge=1, le=100, description="How many attempts there are in all.")] = 1
    delay: Annotated[Duration, Meta(description="The wait before the second attempt.")] = "1s"
    factor: Annotated[float, Meta(ge=1, le=100, description="How much longer each wait is.")] = 2
    max_delay: Annotated[Duration, Meta(description="The longest wait.")] = "5m"


class CronFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a workflow starts, and what happens to its slots: the same in a trigger and in the registrar."""

    cron_expr: Annotated[str, Meta(description="Five fields, or six with the seconds first.")]
    timezone: Annotated[str, Meta(description="An IANA name, such as `America/New_York`.")]
    start_at: Annotated[
        datetime | None,
        Meta(
            description="The start of the window, included. A time without an offset is in the schedule's zone."
        ),
    ] = None
    end_at: Annotated[datetime | None, Meta(description="The end of the window, included.")] = None
    jitter_ms: Annotated[int | None, Meta(description="By how much a start may move.")] = None
    overlap_policy: Annotated[
        Literal["allow", "skip", "queue"] | None,
        Meta(description="What happens while another run is going on."),
    ] = None
    catchup_policy: Annotated[
        Literal["none", "fire_immediately", "spread"] | None,
        Meta(description="What happens after a downtime."),
    ] = None


class TriggerSchedule(CronFields, frozen=True, kw_only=True, omit_defaults=True):
    """When a trigger fires: the fields of a schedule of the registrar."""

    input: Annotated[Any, Meta(description="The input of its runs: any JSON.")] = None


class ActionData(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The action to call, its input, its retries, and its timeout."""

    action: Annotated[
        str,
        Meta(
            description="A function of the program, `request:NAME` or `command:NAME` as the operator named it."
        ),
    ]
    input: Annotated[
        Inputs, Meta(description="The action's input: the value of each expression by its key.")
    ] = msgspec.field(default_factory=dict)
    retry: Annotated[Retry, Meta(description="Whether and when a failed attempt is repeated.")] = Retry()
    timeout: Annotated[Duration, Meta(description="How long one attempt may take.")] = "45s"


class ForeachData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rounds of a loop over a list."""

    items: Annotated[Expression, Meta(description="The list; `item` and `index` are known in its body.")]
    max_rounds: Annotated[int, Meta(ge=1, description="With more, the loop fails.")] = 100
    concurrency: Annotated[int, Meta(ge=1, le=100, description="How many rounds run at once.")] = 1


class WhileData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rounds of a loop with a condition, which is evaluated before each round."""

    condition: Annotated[
        Expression, Meta(description="`item` is the result of the round before, null at first.")
    ]
    max_rounds: Annotated[int, Meta(ge=1, description="With more, the loop fails.")] = 100


class JoinData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of its incoming edges a join waits for."""

    mode: Annotated[
        Literal["all", "any", "quorum"],
        Meta(
            description="How many branches to wait for. With `any` and `quorum`, later branches are cancelled."
        ),
    ] = "all"
    quorum: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The number of branches, if the mode is quorum.")
    ] = None


class EndData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of the run when an end is reached."""

    output: Annotated[Inputs, Meta(description="The result of the run.")] = {}


class NoData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing."""


class _Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    id: NodeId


class TriggerNode(_Node, frozen=True, kw_only=True, tag="trigger"):
    """Where runs begin. One of the kind `schedule_based` becomes a schedule when the workflow is deployed."""

    data: Annotated[
        dict[str, Any],
        Meta(
            description='`{"kind": "schedule_based", "schedule": {…}}`; the data of other kinds is ignored.'
        ),
    ] = {}


class ActionNode(_Node, frozen=True, kw_only=True, tag="action"):
    """Calls an action."""

    data: Annotated[ActionData, Meta(description="The action to call, and how.")]


class IfNode(_Node, frozen=True, kw_only=True, tag="gateway_if"):
    """Follows one of two edges: the one whose condition holds, or the one without a condition."""

    data: Annotated[NoData, Meta(description="Nothing.")] = NoData()


class SwitchNode(_Node, frozen=True, kw_only=True, tag="gateway_switch"):
    """Follows the first edge whose condition holds, or the one without a condition."""

    data: Annotated[NoData, Meta(description="Nothing.")] = NoData()


class ParallelNode(_Node, frozen=True, kw_only=True, tag="parallel"):
    """Follows all its edges at once."""

    data: Annotated[NoData, Meta(description="Nothing.")] = NoData()


class JoinNode(_Node, frozen=True, kw_only=True, tag="join"):
    """Waits for branches."""

    data: Annotated[JoinData, Meta(description="How many branches.")] = JoinData()


class ForeachNode(_Node, frozen=True, kw_only=True, tag="loop_foreach"):
    """Runs its body for each item of a list. The body is the nodes from which an edge leads back to the loop."""

    data: Annotated[ForeachData, Meta(description="The rounds.")]


class WhileNode(_Node, frozen=True, kw_only=True, tag="loop_while"):
    """Runs its body while a condition holds. The body is the nodes from which an edge leads back to the loop."""

    data: Annotated[WhileData, Meta(description="The rounds.")]


class EndNode(_Node, frozen=True, kw_only=True, tag="end"):
    """An end of the run, with its result."""

    data: Annotated[EndData, Meta(description="The result.")] = EndData()


Node = (
    TriggerNode
    | ActionNode
    | IfNode
    | SwitchNode
    | ParallelNode
    | JoinNode
    | ForeachNode
    | WhileNode
    | EndNode
)
NODE_TYPES: dict[str, type[Node]] = {str(each.__struct_config__.tag): each for each in get_args(Node)}


class Workflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow: a graph of nodes, without cycles except those that lead back to a loop."""

    workflow_id: Annotated[str, Meta(min_length=1, max_length=200, description="The id of the workflow.")]
    version: Annotated[int, Meta(ge=0, le=MAX_VERSION, description="A version never changes.")]
    nodes: Annotated[list[Node], Meta(min_length=1, description="The nodes of the workflow.")]
    edges: Annotated[list[Edge], Meta(description="The edges between the nodes.")] = []


def type_of(node: Node) -> str:
    """The type of a node, as documents name it."""
    return str(node.__struct_config__.tag)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a workflow's document."""
    schema = msgspec.json.schema(Workflow)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A workflow of Horae",
        **schema,
    }
