"""The states of all nodes of a workflow's run, derived from the saved ends of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from horae.policy.workflow_progress import NodeEnd, progress
from horae.workflow.document import Node
from horae.workflow.node_checkpoint import ENDED, NodeRecord, NodeState
from horae.workflow.regions import Plan, Region, is_loop


class PlacedNode(NamedTuple):
    """A node at a place of a run, its state, and what was saved of it."""

    place: str
    node: Node
    state: NodeState
    record: NodeRecord | None


def node_states(
    plan: Plan, records: Mapping[str, NodeRecord], fired: frozenset[str], *, running: bool
) -> list[PlacedNode]:
    """The nodes of a run in the order of the workflow; the nodes of a round follow their loop. ``running`` says whether the run is
    active.
    """
    return list(_region(plan, plan.root, "", records, fired, running=running))


def _region(
    plan: Plan,
    region: Region,
    prefix: str,
    records: Mapping[str, NodeRecord],
    fired: frozenset[str],
    *,
    running: bool,
) -> Iterator[PlacedNode]:
    ended = {
        name: NodeEnd(record.state, record.followed)
        for name in region.order
        if (record := records.get(prefix + name)) is not None and record.state in ENDED
    }
    if region.loop is not None:  # a condition at the entry of a round is known by what followed
        entered = [
            number
            for number in region.outgoing[region.loop]
            if plan.edges[number].condition is None or prefix + plan.edges[number].target in records
        ]
        ended[region.loop] = NodeEnd(NodeState.SUCCEEDED, tuple(entered))
    state = progress(plan, region, ended, fired)
    for name in region.order:
        record = records.get(prefix + name)
        if name in ended:
            node_state = ended[name].state
        elif name in state.skipped:
            node_state = NodeState.SKIPPED
        elif not running:
            node_state = NodeState.CANCELLED
        elif name in state.waiting:
            node_state = NodeState.WAITING
        else:
            node_state = NodeState.RUNNING if record is None else record.state
        yield PlacedNode(prefix + name, plan.nodes[name], node_state, record)
        if is_loop(plan.nodes[name]):
            for number in _rounds(prefix + name, records):
                inner = plan.regions[name]
                within = f"{prefix}{name}/{number}/"
                yield from _region(
                    plan, inner, within, records, frozenset(), running=node_state is NodeState.RUNNING
                )


def _rounds(place: str, records: Mapping[str, NodeRecord]) -> list[int]:
    """The rounds of a loop that have saved nodes."""
    start = len(place) + 1
    return sorted({int(each[start:].partition("/")[0]) for each in records if each.startswith(f"{place}/")})
