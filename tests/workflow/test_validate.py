"""Documents of workflows: what is accepted, and what is refused with the node or edge that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from horae.config import Config
from horae.errors import InvalidInputError, InvalidWorkflowError, LimitExceededError
from horae.workflow import WorkflowBuilder, json_schema
from horae.workflow.document import NODE_TYPES
from horae.workflow.regions import Plan
from horae.workflow.validate import read_workflow
from tests.support.cases import each_of

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "workflow.schema.json"


def known(address: str) -> str | None:
    return None if address in {"work", "request:mail"} else f'calls an unknown action, "{address}"'


def read(nodes: list[Any], edges: list[Any] = [], limits: Config | None = None, **more: Any) -> Plan:  # noqa: B006
    document = {"workflow_id": "w", "version": 1, "nodes": nodes, "edges": edges} | more
    return read_workflow(document, limits or Config(), known)


def faults(nodes: list[Any], *edges: str | dict[str, Any], **more: Any) -> dict[str, str]:
    with pytest.raises(InvalidWorkflowError) as raised:
        read(nodes, [link(each) if isinstance(each, str) else each for each in edges], **more)
    return {each["where"]: each["reason"] for each in raised.value.details["faults"]}


def link(text: str) -> dict[str, str]:
    source, target = text.split(">")
    return {"source": source, "target": target}


def node(name: str, kind: str = "parallel", **data: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "data": data}


def action(name: str, **data: Any) -> dict[str, Any]:
    return node(name, "action", **{"action": "work"} | data)


T = node("t", "trigger")


@pytest.mark.contract("CRON-24")
@each_of(
    ("nodes", "edges", "where", "reason"),
    [
        ([T, node("a"), node("b")], ["t>a", "a>b", "b>a"], "node a", "is in a cycle that is no loop: a → b → a"),
        ([T, node("a", "magic")], ["t>a"], "node a", "has an unknown type, 'magic'"),
        ([T, action("a", action="rm")], ["t>a"], "node a", 'calls an unknown action, "rm"'),
        ([T, action("a")], ["t>a", "a>gone"], "edge a → gone", 'has a target that is no node: "gone"'),
        ([T, action("a"), action("b")], ["t>a"], "node b", "cannot be reached from any trigger"),
        ([T, T], [], "node t", "has the id of another node"),
        ([node("a")], [], "nodes", "have no trigger"),
        ([], [], "nodes", "are none"),
        ([T, action("a", timeout=5)], ["t>a"], "node a", "data.timeout is 5, a number without a unit"),
        ([T, action("a", retry={"attempts": 0})], ["t>a"], "node a", "data.retry.attempts"),
        ([T, action("a", input={"x": "1 +"})], ["t>a"], "node a", "has an invalid input.x: 1:4: Syntax error"),
        ([T, action("a", input={"x": "nodes.b.output"})], ["t>a"], "node a", 'there is no node "b"'),
        ([T, action("a", input={"x": "open('f')"})], ["t>a"], "node a", "undeclared reference to 'open'"),
        ([T, node("e", "end"), node("a")], ["t>e", "e>a"], "node e", "is an end, and has an edge"),
        ([T, node("l", "loop_foreach", items="[1]")], ["t>l"], "node l", "is a loop without a body"),
        ([T, node("j", "join", mode="quorum", quorum=2)], ["t>j"], "node j", "needs 2 branches, and 1 lead to it"),
        ([T, node("j", "join", mode="quorum")], ["t>j"], "node j", "must have a quorum"),
        ([T, node("g", "gateway_if"), node("a")], ["t>g", "g>a"], "node g", "no edge from it has a condition"),
        ([T, node("a")], ["t>a", "a>t"], "edge a → t", "leads to a trigger"),
        ([T, node("a")], ["t>a", "t>a"], "edge t → a", "is there twice"),
        (["x"], [], "nodes[0]", "must be an object"),
        ([T, {"id": "a b", "type": "end"}], [], "node a b", "matching regex"),
        ([{**T, "extra": 1}], [], "node t", "extra"),
    ],
)  # fmt: skip
def test_a_fault_names_the_node_or_edge(nodes: list[Any], edges: list[str], where: str, reason: str):
    assert reason in faults(nodes, *edges)[where]


@pytest.mark.contract("CRON-24")
def test_every_fault_is_named_at_once():
    found = faults(
        [T, action("a", action="rm"), action("b", input={"x": "1 +"}), node("u")], "t>a", "a>b", "t>u",
        {"source": "t", "target": "b", "condition": "nope"},
    )  # fmt: skip
    assert set(found) == {"node a", "node b", "edge t → b"}


def test_an_edge_out_of_a_loop_is_refused():
    loop = node("l", "loop_while", condition="false")
    found = faults([T, loop, node("a"), node("b"), node("c")], "t>l", "l>a", "a>b", "b>l", "a>c")
    assert 'leads out of the body of the loop "l"' in found["edge a → c"]


def test_loops_lie_within_loops():
    plan = read(
        [T, node("outer", "loop_foreach", items="[1]"), node("inner", "loop_while", condition="false"), node("a"), node("z")],
        [link(each) for each in ("t>outer", "outer>inner", "inner>a", "a>inner", "inner>outer", "outer>z")],
    )  # fmt: skip
    assert {name: region.order for name, region in plan.regions.items()} == {
        None: ("t", "outer", "z"), "outer": ("inner",), "inner": ("a",),
    }  # fmt: skip


@pytest.mark.contract("CRON-24")
@pytest.mark.parametrize(
    ("limit", "nodes"),
    [
        ("workflow_nodes", [T, *(node(f"n{number}") for number in range(501))]),
        ("workflow_bytes", [{**T, "data": {"kind": "x", "more": "y" * 300_000}}]),
    ],
)
def test_a_limit_is_named(limit: str, nodes: list[Any]):
    with pytest.raises(LimitExceededError) as raised:
        read(nodes)
    assert raised.value.details["limit"] == limit
    assert hasattr(Config(), limit)


def test_a_loop_without_a_reasonable_bound_is_refused():
    loop = node("l", "loop_foreach", items="[1]", max_rounds=10_001)
    assert "the limit workflow_rounds is 10000" in faults([T, loop, node("a")], "t>l", "l>a", "a>l")["node l"]
    loop = node("l", "loop_while", condition="'" + "x" * 3000 + "' == ''")
    assert (
        "the limit expression_length is 2000" in faults([T, loop, node("a")], "t>l", "l>a", "a>l")["node l"]
    )


@pytest.mark.parametrize(
    "given", [b"", b"[]", b"null", b"{", b'{"nodes": 5}', "\ud800", b"[" * 100_000, {"nodes": [], "x": 1}, {"a": object()}]
)  # fmt: skip
def test_what_is_no_document_is_refused(given: Any):
    with pytest.raises(InvalidWorkflowError):
        read_workflow(given, Config(), known)


@pytest.mark.parametrize(
    ("field", "value"), [("workflow_id", ""), ("workflow_id", 5), ("version", -1), ("version", "1")]
)
def test_a_workflow_has_an_id_and_a_version(field: str, value: Any):
    with pytest.raises(InvalidWorkflowError, match=field):
        read([T], **{field: value})


def test_the_schema_is_published_and_agrees_with_what_is_accepted():
    published = json.loads(SCHEMA.read_text("utf-8"))
    assert published == json.loads(json.dumps(json_schema()))
    check = jsonschema_rs.validator_for(published)
    good = {"workflow_id": "w", "version": 1, "nodes": [T, action("a", timeout="5s")], "edges": [link("t>a")]}
    assert check.is_valid(good)
    assert not check.is_valid(good | {"nodes": [{"id": "a", "type": "magic"}]})
    assert not check.is_valid(good | {"extra": 1})
    assert not check.is_valid(good | {"edges": [{"source": "t", "target": "a", "when": "never"}]})


def work(x: int) -> int:
    return x


def test_the_builder_makes_the_same_document():
    flow = WorkflowBuilder("report", 3)
    daily = flow.schedule("0 9 * * *", "Europe/Berlin")
    fetched = flow.task(work, after=daily, id="fetch", input={"x": 3}, attempts=2, timeout="5m")
    gate = flow.choose("big", after=fetched)
    mail = flow.task("request:mail", after=[gate.if_("nodes.fetch.output > 10")], input={"x": fetched})
    other = flow.task(work, after=[gate], id="other", input={"x": "run.version"})
    loop = flow.foreach("each", "[1, 2]", after=other)
    body = flow.task(work, after=loop, id="body", input={"x": "item"})
    flow.again(loop, after=body)
    flow.end(after=[mail.ended, loop], output={"all": loop})
    document = json.loads(flow.json())
    assert read_workflow(document, Config(), known).workflow == flow.build()
    assert {each["type"] for each in document["nodes"]} <= set(NODE_TYPES)
    by_id = {each["id"]: each for each in document["nodes"]}
    assert by_id["fetch"]["data"]["input"] == {"x": "3"}
    assert by_id["request-mail"]["data"]["input"] == {"x": 'nodes["fetch"].output'}
    assert {"source": "request-mail", "target": "end", "when": "always"} in document["edges"]


def test_the_builder_refuses_two_nodes_of_one_id_and_checks_what_it_builds():
    flow = WorkflowBuilder("w", 1)
    flow.task(work)
    with pytest.raises(InvalidInputError, match="that of another node"):
        flow.task(work)
    flow.task(work, id="other", input={"x": "1 +"})
    with pytest.raises(InvalidWorkflowError, match="node other"):
        flow.build()
