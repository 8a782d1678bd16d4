"""The structure of a workflow: the nodes in the body of each loop, the order in which nodes can run, and faults of the structure.

The graph of a valid workflow consists of regions: the workflow itself, and the body of each loop. The edges within a region have no
cycle. A loop is one node of the region that it stands in; its body is a region of its own, entered over the edges from the loop, and
left over edges back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import msgspec

from horae.workflow.document import Edge, ForeachNode, JoinNode, Node, TriggerNode, WhileNode, Workflow


class Fault(NamedTuple):
    """A fault of a document: the node or edge, and the reason."""

    where: str
    reason: str


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a workflow that has no cycles: all of it, or the body of a loop, with edges by their positions in the document."""

    loop: str | None
    """The loop whose body it is; ``None`` for the workflow itself."""
    order: tuple[str, ...]
    """Its nodes, sources before targets."""
    incoming: Mapping[str, tuple[int, ...]]
    outgoing: Mapping[str, tuple[int, ...]]
    """The edges from each node, and from the loop into the body. Those back to the loop are among them."""
    back: tuple[int, ...]
    """The edges that lead back to the loop."""
    feeders: Mapping[str, frozenset[str]]
    """For each join, the nodes that lead only to it."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The structure of a valid workflow: its nodes by id, its edges, and its regions by loop."""

    workflow: Workflow
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    regions: Mapping[str | None, Region]

    @property
    def root(self) -> Region:
        """The region that is the workflow itself."""
        return self.regions[None]


def is_loop(node: Node | None) -> bool:
    """Whether a node is a loop."""
    return isinstance(node, ForeachNode | WhileNode)


def plan_of(workflow: Workflow) -> tuple[Plan | None, list[Fault]]:
    """The plan of a workflow, or the faults of its structure."""
    faults = [*_wrong_ids(workflow), *_wrong_edges(workflow)]
    if faults:
        return None, faults
    graph = _Graph(workflow)
    if faults := list(graph.unreachable()):
        return None, faults
    back = graph.back_edges()
    faults = [*graph.cycles(back), *graph.loops_without_body(back)]
    if faults:
        return None, faults
    bodies = graph.bodies(back)
    if faults := list(graph.leaving(bodies)):
        return None, faults
    regions = {loop: graph.region(loop, bodies, back) for loop in (None, *bodies)}
    return Plan(workflow=workflow, nodes=graph.nodes, edges=tuple(workflow.edges), regions=regions), []


def _wrong_ids(workflow: Workflow) -> Iterator[Fault]:
    seen: set[str] = set()
    for node in workflow.nodes:
        if node.id in seen:
            yield Fault(f"node {node.id}", "has the id of another node")
        seen.add(node.id)
    if not any(isinstance(node, TriggerNode) for node in workflow.nodes):
        yield Fault("nodes", "have no trigger: a run could not begin")


def _wrong_edges(workflow: Workflow) -> Iterator[Fault]:
    nodes = {node.id: node for node in workflow.nodes}
    seen: set[tuple[str, str, str, str | None]] = set()
    for edge in workflow.edges:
        for end, name in (("source", edge.source), ("target", edge.target)):
            if name not in nodes:
                yield Fault(f"edge {edge}", f'has a {end} that is no node: "{name}"')
        if edge.source == edge.target:
            yield Fault(f"edge {edge}", "leads from a node to itself")
        if isinstance(nodes.get(edge.target), TriggerNode):
            yield Fault(f"edge {edge}", "leads to a trigger, where runs only begin")
        key = (edge.source, edge.target, edge.when, edge.condition)
        if key in seen:
            yield Fault(f"edge {edge}", "is there twice")
        seen.add(key)


class _Graph:
    """The graph of a document with valid ids and edges. Sets of nodes are bits of integers, so that large graphs are fast."""

    def __init__(self, workflow: Workflow) -> None:
        self.nodes = {node.id: node for node in workflow.nodes}
        self.edges = workflow.edges
        self._triggers = [node.id for node in workflow.nodes if isinstance(node, TriggerNode)]
        self._next: dict[str, list[str]] = {name: [] for name in self.nodes}
        self._before: dict[str, list[str]] = {name: [] for name in self.nodes}
        for edge in self.edges:
            self._next[edge.source].append(edge.target)
            self._before[edge.target].append(edge.source)

    def unreachable(self) -> Iterator[Fault]:
        reached = set(_reached(self._triggers, self._next))
        for name in self.nodes:
            if name not in reached:
                yield Fault(f"node {name}", "cannot be reached from any trigger")

    def back_edges(self) -> set[int]:
        """The edges that lead back to a loop from a node that can only be reached through it."""
        dominators = self._dominators()
        numbers = {name: 1 << number for number, name in enumerate(self.nodes)}
        return {
            number
            for number, edge in enumerate(self.edges)
            if is_loop(self.nodes[edge.target]) and dominators[edge.source] & numbers[edge.target]
        }

    def _dominators(self) -> dict[str, int]:
        """For each node, the nodes on every path from a trigger to it, itself included."""
        numbers = {name: 1 << number for number, name in enumerate(self.nodes)}
        everything = (1 << len(numbers)) - 1
        found = {name: numbers[name] if name in self._triggers else everything for name in self.nodes}
        order = _reached(self._triggers, self._next)
        changed = True
        while changed:
            changed = False
            for name in order:
                if name in self._triggers:
                    continue
                shared = everything
                for source in self._before[name]:
                    shared &= found[source]
                if (now := shared | numbers[name]) != found[name]:
                    found[name], changed = now, True
        return found

    def _forward(self, back: set[int]) -> dict[str, list[str]]:
        forward: dict[str, list[str]] = {name: [] for name in self.nodes}
        for number, edge in enumerate(self.edges):
            if number not in back:
                forward[edge.source].append(edge.target)
        return forward

    def cycles(self, back: set[int]) -> Iterator[Fault]:
        try:
            _sorted(self.nodes, self._forward(back))
        except CycleError as error:
            cycle: list[str] = error.args[1]
            yield Fault(f"node {cycle[0]}", f"is in a cycle that is no loop: {' → '.join(cycle)}")

    def loops_without_body(self, back: set[int]) -> Iterator[Fault]:
        looped = {self.edges[number].target for number in back}
        for name, node in self.nodes.items():
            if is_loop(node) and name not in looped:
                yield Fault(f"node {name}", "is a loop without a body: no edge leads back to it")

    def bodies(self, back: set[int]) -> dict[str, frozenset[str]]:
        """The nodes in the body of each loop, those of loops within it included; outer loops first."""
        found = {}
        for name in {self.edges[number].target: None for number in sorted(back)}:
            sources = [self.edges[number].source for number in back if self.edges[number].target == name]
            found[name] = frozenset(_reached(sources, self._before, but=name))
        return dict(sorted(found.items(), key=lambda each: -len(each[1])))

    def leaving(self, bodies: Mapping[str, frozenset[str]]) -> Iterator[Fault]:
        for loop, body in bodies.items():
            for edge in self.edges:
                if edge.source in body and edge.target not in body and edge.target != loop:
                    yield Fault(
                        f"edge {edge}",
                        f'leads out of the body of the loop "{loop}": only the loop itself is left',
                    )

    def region(self, loop: str | None, bodies: Mapping[str, frozenset[str]], back: set[int]) -> Region:
        body = frozenset(self.nodes) if loop is None else bodies[loop]
        within = frozenset().union(*(inner for name, inner in bodies.items() if name in body))
        inside = body - within
        members = [name for name in self.nodes if name in inside]
        known = {*members, loop}
        incoming: dict[str, list[int]] = {name: [] for name in members}
        outgoing: dict[str, list[int]] = {name: [] for name in known if name is not None}
        returning = []
        for number, edge in enumerate(self.edges):
            if edge.source not in known or (edge.source == loop and edge.target not in body):
                continue
            if edge.target in incoming and number not in back:
                incoming[edge.target].append(number)
            elif number in back and edge.target == loop:
                returning.append(number)
            else:
                continue  # into the body of a loop within this region
            outgoing[edge.source].append(number)
        forward = {name: [self.edges[n].target for n in outgoing[name] if n not in back] for name in members}
        order = _sorted(members, forward)
        feeders = {
            name: _feeders(name, order, outgoing, self.edges)
            for name in members
            if isinstance(self.nodes[name], JoinNode)
        }
        return Region(
            loop=loop, order=tuple(order), back=tuple(returning), feeders=feeders,
            incoming={name: tuple(each) for name, each in incoming.items()},
            outgoing={name: tuple(each) for name, each in outgoing.items()},
        )  # fmt: skip


def _feeders(
    join: str, order: Sequence[str], outgoing: Mapping[str, Sequence[int]], edges: Sequence[Edge]
) -> frozenset[str]:
    """The nodes of a region that lead to a join, and to nothing else."""
    found = {join}
    for name in reversed(order):
        targets = [edges[number].target for number in outgoing[name]]
        if name != join and targets and found.issuperset(targets):
            found.add(name)
    return frozenset(found - {join})


def _reached(start: Iterable[str], following: Mapping[str, Sequence[str]], but: str = "") -> list[str]:
    """The nodes that can be reached, in the order in which a breadth-first search meets them; not through or at ``but``."""
    reached = [name for name in dict.fromkeys(start) if name != but]
    seen = {but, *reached}
    for name in reached:
        new = [each for each in dict.fromkeys(following[name]) if each not in seen]
        seen.update(new)
        reached += new
    return reached


def _sorted(names: Iterable[str], forward: Mapping[str, Sequence[str]]) -> list[str]:
    """Nodes with sources before targets, otherwise in the given order; raises ``CycleError`` with a cycle if there is one."""
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(names, ()))
    for name, targets in forward.items():
        for target in targets:
            sorter.add(target, name)
    return list(sorter.static_order())
