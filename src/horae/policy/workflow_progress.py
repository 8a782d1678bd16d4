"""Which nodes of a workflow's region are ready, skipped or lost, and whether the region has ended; what its edges and rounds mean.

Everything is derived from the nodes that have ended and the edges that were followed from them. Nothing here evaluates an expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from horae.workflow.document import Edge, IfNode, JoinNode, Node, SwitchNode, When
from horae.workflow.node_checkpoint import NodeState
from horae.workflow.regions import Plan, Region


class NodeEnd(msgspec.Struct, frozen=True, gc=False):
    """How a node ended, and the edges that were followed from it, by their positions in the document."""

    state: NodeState
    followed: tuple[int, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a region."""

    ready: tuple[str, ...]
    """Nodes that have not ended and can run now, or are running."""
    skipped: frozenset[str]
    """Nodes that will not run."""
    waiting: frozenset[str]
    unhandled: tuple[str, ...]
    """Nodes that failed and whose failure no edge handles."""


def progress(plan: Plan, region: Region, ended: Mapping[str, NodeEnd], fired: frozenset[str]) -> Progress:
    """Compute the progress of a region from the nodes that have ended. ``fired`` are the triggers that started the run, and the loop
    whose body it is: what has no edge to it begins if it fired.
    """
    edges, nodes, lost = plan.edges, plan.nodes, _lost(plan, region, ended)
    ready: list[str] = []
    skipped: set[str] = set()
    waiting: set[str] = set()
    failed: list[str] = []
    for name in region.order:  # sources before targets
        if (own := ended.get(name)) is not None:
            if own.state is NodeState.FAILED and not own.followed:
                failed.append(name)
            continue
        incoming = region.incoming[name]
        followed, pending = _arrivals(edges, incoming, ended, skipped)
        least, all_known = _needed(nodes[name], len(incoming))
        if name in lost:
            skipped.add(name)
        elif not incoming:
            (ready.append if name in fired else skipped.add)(name)
        elif followed >= least and (pending == 0 or not all_known):
            ready.append(name)
        elif followed + pending < least:
            skipped.add(name)
        else:
            waiting.add(name)
    return Progress(
        ready=tuple(ready), skipped=frozenset(skipped), waiting=frozenset(waiting), unhandled=tuple(failed)
    )  # fmt: skip


def _arrivals(
    edges: Sequence[Edge], incoming: Sequence[int], ended: Mapping[str, NodeEnd], skipped: AbstractSet[str]
) -> tuple[int, int]:
    """Count the edges to a node that were followed, and those that are not decided yet."""
    followed = pending = 0
    for number in incoming:
        source = edges[number].source
        if (end := ended.get(source)) is None:
            pending += source not in skipped
        elif number in end.followed:
            followed += 1
    return followed, pending


def _needed(node: Node, incoming: int) -> tuple[int, bool]:
    """How many edges to a node must be followed before it runs, and whether all edges must be decided first."""
    if not isinstance(node, JoinNode):
        return 1, True
    match node.data.mode:
        case "all":
            return incoming, False
        case "any":
            return 1, False
        case "quorum":
            return node.data.quorum or 1, False


def _lost(plan: Plan, region: Region, ended: Mapping[str, NodeEnd]) -> set[str]:
    """Nodes that lead only to a join that no longer needs them."""
    lost: set[str] = set()
    for join, feeders in region.feeders.items():
        node = plan.nodes[join]
        if isinstance(node, JoinNode) and node.data.mode != "all" and feeders and join not in lost:
            followed = sum(
                number in ended[plan.edges[number].source].followed
                for number in region.incoming[join]
                if plan.edges[number].source in ended
            )
            if join in ended or followed >= _needed(node, 0)[0]:
                lost |= feeders
    return lost


def lost_nodes(plan: Plan, region: Region, ended: Mapping[str, NodeEnd]) -> frozenset[str]:
    """The open nodes whose results no node needs any more; they are cancelled."""
    return frozenset(_lost(plan, region, ended) - ended.keys())


def candidates(plan: Plan, region: Region, name: str, state: NodeState) -> tuple[int, ...]:
    """The edges that may be followed after a node ended in this way, in the order in which a gateway evaluates them."""
    if state is NodeState.SUCCEEDED:
        kind = When.SUCCESS
    elif state is NodeState.FAILED:
        kind = When.ERROR
    else:
        return ()
    numbers = [
        number
        for number in region.outgoing.get(name, ())
        if (when := plan.edges[number].when) is kind or when is When.ALWAYS
    ]
    if is_gateway(plan.nodes[name]):
        # An edge without a condition comes last; the others stay in the order in which they are written.
        numbers.sort(key=lambda number: plan.edges[number].condition is None)
    return tuple(numbers)


def is_gateway(node: Node) -> bool:
    """Whether at most one edge of a node is followed."""
    return isinstance(node, IfNode | SwitchNode)


def round_sources(region: Region, ended: Mapping[str, NodeEnd]) -> tuple[str, ...]:
    """The nodes from which a round of a loop came back to it: their outputs are the round's."""
    back = set(region.back)
    return tuple(name for name in region.order if name in ended and back.intersection(ended[name].followed))
