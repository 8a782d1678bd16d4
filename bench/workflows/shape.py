"""The workflow that all contestants run: ten nodes that do nothing, two of its six layers three nodes wide."""

from __future__ import annotations

from bench.herd.starts import TIMES, wall

LAYERS: tuple[tuple[str, ...], ...] = (
    ("a",),
    ("b1", "b2", "b3"),
    ("c",),
    ("d1", "d2", "d3"),
    ("e",),
    ("f",),
)
"""The nodes of a layer run once all those of the layer before have ended, and that is durable."""
NODES = sum(len(layer) for layer in LAYERS)
TOGETHER = 500
"""The records of nodes of so many runs at most are written in one transaction."""


async def first() -> str:
    """The first node: notes that its run has begun."""
    TIMES.append(wall())
    return "done"


async def nothing() -> str:
    """Every other node."""
    return "done"
