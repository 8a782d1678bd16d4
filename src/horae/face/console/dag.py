"""Draws a graph in layers: each node right of its predecessors, edges as curves. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

MAX_DRAWN = 300
"""How many nodes are drawn; a larger graph is listed."""
WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 168, 44, 56, 18, 12


class Box(msgspec.Struct, frozen=True):
    """A node in the drawing."""

    id: str
    kind: str
    state: str
    x: int
    y: int


class Line(msgspec.Struct, frozen=True):
    """An edge in the drawing: the path of a curve."""

    path: str
    label: str


class Drawing(msgspec.Struct, frozen=True):
    """A graph, laid out."""

    boxes: list[Box]
    lines: list[Line]
    width: int
    height: int


def draw(
    nodes: Sequence[tuple[str, str]], edges: Sequence[tuple[str, str, str]], states: Mapping[str, str]
) -> Drawing | None:
    """Lay out nodes (id and kind) and edges (from, to and condition); ``None`` if there are too many to look at."""
    if not nodes or len(nodes) > MAX_DRAWN:
        return None
    ids = {node for node, _ in nodes}
    edges = [each for each in edges if each[0] in ids and each[1] in ids]
    layers = _ordered(_layers([node for node, _ in nodes], edges), edges)
    places = {
        node: (EDGE + column * (WIDTH + GAP_X), EDGE + row * (HEIGHT + GAP_Y))
        for column, layer in enumerate(layers)
        for row, node in enumerate(layer)
    }
    boxes = [Box(node, kind, states.get(node, "waiting"), *places[node]) for node, kind in nodes]
    lines = [Line(_curve(places[source], places[target]), condition) for source, target, condition in edges]
    width = 2 * EDGE + len(layers) * (WIDTH + GAP_X) - GAP_X
    height = 2 * EDGE + max(map(len, layers)) * (HEIGHT + GAP_Y) - GAP_Y
    return Drawing(boxes, lines, width, height)


def _layers(ids: Sequence[str], edges: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """The nodes by the length of their longest path from a start. Nodes in a cycle come last."""
    following: dict[str, list[str]] = defaultdict(list)
    waits = dict.fromkeys(ids, 0)
    for source, target, _ in edges:
        following[source].append(target)
        waits[target] += 1
    depth = dict.fromkeys(ids, 0)
    ready = [node for node in ids if not waits[node]]
    placed = set(ready)
    while ready:
        node = ready.pop()
        for target in following[node]:
            depth[target] = max(depth[target], depth[node] + 1)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
                placed.add(target)
    last = max((depth[node] for node in placed), default=0)
    layers: dict[int, list[str]] = defaultdict(list)
    for node in ids:
        layers[depth[node] if node in placed else last + 1].append(node)
    return [layers[each] for each in sorted(layers)]


def _ordered(layers: list[list[str]], edges: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """The layers, each sorted by the mean row of its nodes' predecessors, so that few edges cross."""
    before: dict[str, list[str]] = defaultdict(list)
    for source, target, _ in edges:
        before[target].append(source)
    rows = {node: float(row) for layer in layers for row, node in enumerate(layer)}
    ordered = []
    for layer in layers:
        middle = {
            node: sum(rows[each] for each in before[node]) / len(before[node]) if before[node] else rows[node] for node in layer
        }  # fmt: skip
        layer = sorted(layer, key=lambda node: middle[node])  # noqa: PLW2901 - called at once
        rows |= {node: float(row) for row, node in enumerate(layer)}
        ordered.append(layer)
    return ordered


def _curve(source: tuple[int, int], target: tuple[int, int]) -> str:
    x1, y1 = source[0] + WIDTH, source[1] + HEIGHT // 2
    x2, y2 = target[0], target[1] + HEIGHT // 2
    bend = max((x2 - x1) // 2, GAP_X // 2)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
