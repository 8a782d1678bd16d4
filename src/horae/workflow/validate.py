"""Checks a workflow's document as a whole, and names every node and edge that is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from horae.checked import input_error
from horae.config import Config
from horae.errors import ExpressionError, InvalidInputError, InvalidWorkflowError, LimitExceededError
from horae.json_bounds import JsonTooLargeError, check_json, convert_json
from horae.spec.duration import milliseconds
from horae.workflow.document import (
    NODE_TYPES,
    SCHEDULE_BASED,
    ActionNode,
    Edge,
    EndNode,
    ForeachNode,
    IfNode,
    JoinNode,
    Node,
    ParallelNode,
    SwitchNode,
    TriggerNode,
    TriggerSchedule,
    When,
    WhileNode,
    Workflow,
)
from horae.workflow.expression import check_expression, nodes_in
from horae.workflow.regions import Fault, Plan, is_loop, plan_of

MAX_TIMEOUT = "24h"
MAX_LOOP_DEPTH = 4
"""The maximum depth of loops within loops."""
EDGES_PER_NODE = 4
_FIELDS = ("workflow_id", "version", "nodes", "edges")

KnownAction = Callable[[str], str | None]
"""Returns why a node cannot call an action; ``None`` if it can."""
Given = Workflow | Mapping[str, Any] | bytes | str
"""A document, as a value or as JSON."""


def read_workflow(given: Given, config: Config, known_action: KnownAction) -> Plan:
    """Read and check a document. Raises ``InvalidWorkflowError`` with every fault, or ``LimitExceededError`` with the limit."""
    workflow = _shaped(_parsed(given, config))
    _check_size(workflow, config)
    plan, faults = plan_of(workflow)
    for node in workflow.nodes:
        faults += _wrong_node(node, config, known_action)
    for edge in workflow.edges:
        faults += _wrong_expression(f"edge {edge}", "condition", edge.condition, config)
    faults += _unknown_references(workflow)
    if plan is not None:
        faults += _wrong_degrees(plan)
    if faults or plan is None:
        raise InvalidWorkflowError(faults)
    return plan


def document_text(workflow: Workflow) -> str:
    """A workflow as it is stored: the same text for equal documents."""
    return msgspec.json.encode(workflow, order="sorted").decode()


@lru_cache(maxsize=16)
def stored_plan(text: str) -> Plan:
    """The plan of a stored document, which was checked before and never changes."""
    plan, faults = plan_of(msgspec.json.decode(text, type=Workflow))
    if plan is None:
        raise InvalidWorkflowError(faults)
    return plan


def schedule_of(node: Node) -> TriggerSchedule | None:
    """The schedule of a trigger; ``None`` if the node is not a trigger with a schedule."""
    if not isinstance(node, TriggerNode) or node.data.get("kind") != SCHEDULE_BASED:
        return None
    found: TriggerSchedule = convert_json(node.data.get("schedule"), TriggerSchedule)
    return found


def _parsed(given: Given, config: Config) -> dict[str, Any]:
    """The document as a mapping, if it is within the limits of JSON and of its size."""
    try:
        text = given.encode() if isinstance(given, str) else given
        text = text if isinstance(text, bytes) else msgspec.json.encode(text)
        if len(text) > config.workflow_bytes:
            raise LimitExceededError(
                "workflow_bytes", config.workflow_bytes, f"the document has {len(text)} bytes"
            )
        check_json(text)
        return msgspec.json.decode(text, type=dict[str, Any])
    except (JsonTooLargeError, RecursionError) as error:
        raise InvalidWorkflowError([("the document", str(error) or "is too deep")]) from None
    except (msgspec.MsgspecError, TypeError, UnicodeError) as error:
        raise InvalidWorkflowError([("the document", f"is no JSON object: {error}")]) from None


def _shaped(document: dict[str, Any]) -> Workflow:
    """The document as a workflow; nodes and edges that cannot be read are an error that names all of them."""
    faults = [Fault(name, "is no field of a workflow") for name in document if name not in _FIELDS]
    lists = [name for name in ("nodes", "edges") if not isinstance(document.get(name, []), list)]
    faults += [Fault(name, "must be a list") for name in lists]
    if not document.get("nodes"):
        faults.append(Fault("nodes", "are none: a workflow has at least one"))
    if faults:
        raise InvalidWorkflowError(faults)
    nodes = [_node(each, number, faults) for number, each in enumerate(document["nodes"])]
    edges = [_edge(each, number, faults) for number, each in enumerate(document.get("edges", []))]
    if faults:  # faults of the structure without these nodes and edges would only confuse
        raise InvalidWorkflowError(faults)
    try:
        head: dict[str, Any] = {
            name: document[name] for name in ("workflow_id", "version") if name in document
        }
        named: Workflow = convert_json({**head, "nodes": [{"type": "trigger", "id": "t"}]}, Workflow)
    except msgspec.ValidationError as error:
        problem = input_error(error, Workflow, "workflow")
        raise InvalidWorkflowError([("the document", problem.message)]) from None
    if not named.workflow_id.isprintable():
        raise InvalidWorkflowError([("workflow_id", "has a character that cannot be shown")])
    return msgspec.structs.replace(named, nodes=nodes, edges=edges)


def _node(given: Any, number: int, faults: list[Fault]) -> Any:  # noqa: ANN401 - any JSON, a node or None
    if not isinstance(given, dict):
        faults.append(Fault(f"nodes[{number}]", "must be an object"))
        return None
    name, type_ = given.get("id"), given.get("type")
    where = f"node {name}"[:100] if isinstance(name, str) and name else f"nodes[{number}]"
    kind = NODE_TYPES.get(type_) if isinstance(type_, str) else None
    if kind is None:
        known = ", ".join(NODE_TYPES)
        faults.append(Fault(where, f"has an unknown type, {repr(type_)[:60]}: there are {known}"))
        return None
    return _read(given, kind, where, faults)


def _edge(given: Any, number: int, faults: list[Fault]) -> Any:  # noqa: ANN401 - any JSON, an edge or None
    source, target = (given.get("source"), given.get("target")) if isinstance(given, dict) else (None, None)
    where = f"edges[{number}]"
    if isinstance(source, str) and isinstance(target, str):
        where = f"edge {source[:70]} → {target[:70]}"
    return _read(given, Edge, where, faults)


def _read(given: Any, kind: Any, where: str, faults: list[Fault]) -> Any:  # noqa: ANN401 - any JSON, a type, a value of it
    try:
        return convert_json(given, kind)
    except msgspec.ValidationError as error:
        faults.append(Fault(where, f"is wrong: {input_error(error, kind, 'it').message.removeprefix('it.')}"))
    except InvalidInputError as error:
        faults.append(Fault(where, f"is wrong: {error.message}"))
    return None


def _check_size(workflow: Workflow, config: Config) -> None:
    if len(workflow.nodes) > config.workflow_nodes:
        raise LimitExceededError(
            "workflow_nodes", config.workflow_nodes, f"the workflow has {len(workflow.nodes)} nodes"
        )
    if len(workflow.edges) > config.workflow_nodes * EDGES_PER_NODE:
        reason = f"the workflow has {len(workflow.edges)} edges, and may have {EDGES_PER_NODE} for each node of the limit"
        raise LimitExceededError("workflow_nodes", config.workflow_nodes, reason)


def _wrong_node(node: Node, config: Config, known_action: KnownAction) -> Iterator[Fault]:
    where = f"node {node.id}"
    for name, text in _expressions(node):
        yield from _wrong_expression(where, name, text, config)
    match node:
        case ActionNode():
            yield from _wrong_action(where, node, known_action)
        case ForeachNode() | WhileNode():
            if node.data.max_rounds > config.workflow_rounds:
                reason = f"has max_rounds {node.data.max_rounds}, and the limit workflow_rounds is {config.workflow_rounds}"
                yield Fault(where, reason)
        case TriggerNode():
            yield from _wrong_trigger(where, node)
        case JoinNode():
            if (node.data.mode == "quorum") != (node.data.quorum is not None):
                yield Fault(where, 'must have a quorum if its mode is "quorum", and only then')
        case _:
            pass


def _wrong_action(where: str, node: ActionNode, known_action: KnownAction) -> Iterator[Fault]:
    if (reason := known_action(node.data.action)) is not None:
        yield Fault(where, reason)
    if not 1 <= milliseconds(node.data.timeout) <= milliseconds(MAX_TIMEOUT):
        yield Fault(where, f"has a timeout that is not from 1ms to {MAX_TIMEOUT}")
    if milliseconds(node.data.retry.max_delay) > milliseconds(MAX_TIMEOUT):
        yield Fault(where, f"has a retry.max_delay over {MAX_TIMEOUT}")


def _wrong_trigger(where: str, node: TriggerNode) -> Iterator[Fault]:
    kind = node.data.get("kind")
    if kind is not None and not isinstance(kind, str):
        yield Fault(where, "has a kind that is no text")
    try:
        schedule_of(node)
    except msgspec.ValidationError as error:
        yield Fault(where, input_error(error, TriggerSchedule, "schedule").message)


def _expressions(node: Node) -> Iterator[tuple[str, str]]:
    match node:
        case ActionNode():
            yield from ((f"input.{key}", text) for key, text in node.data.input.items())
        case ForeachNode():
            yield "items", node.data.items
        case WhileNode():
            yield "condition", node.data.condition
        case EndNode():
            yield from ((f"output.{key}", text) for key, text in node.data.output.items())
        case _:
            pass


def _wrong_expression(where: str, name: str, text: str | None, config: Config) -> Iterator[Fault]:
    try:
        if text is not None:
            check_expression(text, config.expression_length)
    except ExpressionError as error:
        yield Fault(where, f"has an invalid {name[:100]}: {error.details['reason']}")


def _unknown_references(workflow: Workflow) -> Iterator[Fault]:
    """Expressions that name nodes which the workflow does not have."""
    known = {node.id for node in workflow.nodes}
    texts = [(f"node {node.id}", name, text) for node in workflow.nodes for name, text in _expressions(node)]
    texts += [(f"edge {edge}", "condition", edge.condition) for edge in workflow.edges if edge.condition]
    for where, name, text in texts:
        for missing in sorted((nodes_in(text) or frozenset()) - known):
            yield Fault(where, f'has an invalid {name[:100]}: there is no node "{missing[:64]}"')


def _wrong_degrees(plan: Plan) -> Iterator[Fault]:
    """Nodes whose edges do not fit their types."""
    leaving: dict[str, list[Edge]] = {name: [] for name in plan.nodes}
    for edge in plan.edges:
        leaving[edge.source].append(edge)
    arriving = Counter(edge.target for edge in plan.edges)
    for name, node in plan.nodes.items():
        own = leaving[name]
        match node:
            case EndNode() if own:
                yield Fault(f"node {name}", "is an end, and has an edge to another node")
            case IfNode() | SwitchNode():
                yield from _wrong_gateway(node, own)
            case TriggerNode() | ParallelNode() | JoinNode():
                for edge in own:
                    if edge.when is When.ERROR:
                        yield Fault(f"edge {edge}", "is never followed: its source cannot fail")
            case _:
                pass
        if isinstance(node, JoinNode) and (node.data.quorum or 0) > arriving[name]:
            yield Fault(f"node {name}", f"needs {node.data.quorum} branches, and {arriving[name]} lead to it")
    yield from _too_deep(plan)


def _wrong_gateway(node: IfNode | SwitchNode, own: Iterable[Edge]) -> Iterator[Fault]:
    chosen = [edge for edge in own if edge.when is not When.ERROR]
    if sum(edge.condition is None for edge in chosen) > 1:
        yield Fault(
            f"node {node.id}", "has several edges without a condition, and follows one of them at most"
        )
    if not any(edge.condition for edge in chosen):
        yield Fault(f"node {node.id}", "is a gateway, and no edge from it has a condition")
    if isinstance(node, IfNode) and len(chosen) > 2:
        yield Fault(f"node {node.id}", "chooses between two edges at most; gateway_switch has more")


def _too_deep(plan: Plan) -> Iterator[Fault]:
    parents = {name: region.loop for region in plan.regions.values() for name in region.order}
    for name, node in plan.nodes.items():
        depth, outer = 1, parents[name]
        while outer is not None:
            depth, outer = depth + 1, parents[outer]
        if is_loop(node) and depth > MAX_LOOP_DEPTH:
            yield Fault(f"node {name}", f"is a loop more than {MAX_LOOP_DEPTH} deep within loops")
