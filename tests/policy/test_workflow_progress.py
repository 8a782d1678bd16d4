"""Which nodes of a workflow are ready, waiting, skipped or lost: tables of small graphs."""

from __future__ import annotations

from typing import Any

import pytest

from horae.config import Config
from horae.policy.workflow_progress import NodeEnd, lost_nodes, progress
from horae.policy.workflow_states import node_states
from horae.workflow.node_checkpoint import NodeRecord, NodeState
from horae.workflow.regions import Plan
from horae.workflow.validate import read_workflow

WELL, BADLY = NodeState.SUCCEEDED, NodeState.FAILED


def plan_of(edges: str, **joins: dict[str, Any]) -> Plan:
    """A graph of parallel nodes and joins; ``t`` is its trigger. Edges are numbered as they are written."""
    links = [each.split(">") for each in edges.split()]
    names = dict.fromkeys(name for link in links for name in link)
    nodes: list[dict[str, Any]] = [
        {"id": name, "type": "trigger" if name == "t" else "join" if name in joins else "parallel", "data": joins.get(name, {})}
        for name in names
    ]  # fmt: skip
    document = {
        "workflow_id": "w", "version": 1, "nodes": nodes, "edges": [{"source": a, "target": b} for a, b in links],
    }  # fmt: skip
    return read_workflow(document, Config(), lambda _: None)


DIAMOND = "t>a t>b a>c b>c c>d"


@pytest.mark.contract("CRON-14")
@pytest.mark.parametrize(
    ("ended", "ready", "waiting", "skipped"),
    [
        ({}, "t", "abcd", ""),
        ({"t": (0, 1)}, "ab", "cd", ""),
        ({"t": (0, 1), "a": (2,)}, "b", "cd", ""),  # c waits until it is known whether b leads to it
        ({"t": (0, 1), "a": (2,), "b": ()}, "c", "d", ""),
        ({"t": (0, 1), "a": (), "b": ()}, "", "", "cd"),
        ({"t": (0,), "a": (2,)}, "c", "d", "b"),  # what is skipped leads nowhere
        ({"t": ()}, "", "", "abcd"),
        ({"t": (0, 1), "a": (2,), "b": (3,), "c": (4,), "d": ()}, "", "", ""),
    ],
)
def test_a_node_runs_when_all_edges_to_it_are_known_and_one_is_followed(
    ended: dict[str, tuple[int, ...]], ready: str, waiting: str, skipped: str
):
    plan = plan_of(DIAMOND)
    found = progress(
        plan, plan.root, {name: NodeEnd(WELL, followed) for name, followed in ended.items()}, frozenset("t")
    )
    assert ("".join(found.ready), found.waiting, found.skipped) == (
        ready,
        frozenset(waiting),
        frozenset(skipped),
    )


@pytest.mark.contract("CRON-14")
@pytest.mark.parametrize(
    ("join", "a", "b", "state"),
    [
        ({"mode": "all"}, (2,), None, "waiting"),
        ({"mode": "all"}, (2,), (3,), "ready"),
        ({"mode": "all"}, (), None, "skipped"),
        ({"mode": "any"}, (2,), None, "ready"),
        ({"mode": "any"}, (), None, "waiting"),
        ({"mode": "any"}, (), (), "skipped"),
        ({"mode": "quorum", "quorum": 2}, (2,), None, "waiting"),
        ({"mode": "quorum", "quorum": 2}, (), None, "skipped"),
        ({"mode": "quorum", "quorum": 1}, (2,), None, "ready"),
    ],
)
def test_joins(join: dict[str, Any], a: tuple[int, ...] | None, b: tuple[int, ...] | None, state: str):
    plan = plan_of(DIAMOND, c=join)
    given = {"t": (0, 1), "a": a, "b": b}
    ended = {name: NodeEnd(WELL, followed) for name, followed in given.items() if followed is not None}
    found = progress(plan, plan.root, ended, frozenset("t"))
    where = {"ready": found.ready, "waiting": found.waiting, "skipped": found.skipped}
    assert "c" in where[state]
    lost = join["mode"] != "all" and state == "ready" and b is None
    assert lost_nodes(plan, plan.root, ended) == (frozenset("b") if lost else frozenset())


def test_only_what_leads_to_nothing_else_is_lost():
    plan = plan_of("t>a t>b t>x a>j b>j x>j x>z b>y y>j", j={"mode": "any"})
    ended = {"t": NodeEnd(WELL, (0, 1, 2)), "a": NodeEnd(WELL, (3,))}
    assert lost_nodes(plan, plan.root, ended) == frozenset("by")


def test_a_failure_that_no_edge_follows_is_unhandled():
    plan = plan_of("t>a a>b")
    ended = {"t": NodeEnd(WELL, (0,)), "a": NodeEnd(BADLY)}
    assert progress(plan, plan.root, ended, frozenset("t")).unhandled == ("a",)


@pytest.mark.parametrize(
    ("running", "states"), [(True, "running running waiting"), (False, "cancelled cancelled cancelled")]
)
def test_the_states_of_nodes_that_have_not_ended_follow_from_those_that_have(running: bool, states: str):
    plan = plan_of("t>a t>b a>c b>c")
    records = {"t": NodeRecord(state=WELL, followed=(0, 1))}
    found = node_states(plan, records, frozenset("t"), running=running)
    assert " ".join(each.state.value for each in found) == f"succeeded {states}"
