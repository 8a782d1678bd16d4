"""The checkpoint that stores how a node of a run ended, under the node's place in the run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from horae.model import Instant

PREFIX = "node:"
"""The prefix of the keys of such checkpoints."""


class NodeState(StrEnum):
    """The state of a node in a run."""

    WAITING = "waiting"
    """Earlier nodes have not ended."""
    RUNNING = "running"
    RETRYING = "retrying"
    """An attempt failed, and another follows."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """A join no longer needed the node, or the run was stopped."""
    SKIPPED = "skipped"
    """No edge to it was followed."""


ENDED = (NodeState.SUCCEEDED, NodeState.FAILED, NodeState.CANCELLED)
"""The states of nodes that ran, and do not run again."""


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How a node ended, or failed and is attempted again."""

    state: NodeState
    followed: tuple[int, ...] = ()
    """The edges that were followed from it, by their positions in the document."""
    input: Any = None
    output: Any = None
    failure: str | None = None
    fault: str | None = None
    """Why the condition of an edge from it has no value: nothing handles that, so the run fails."""
    attempts: int = 0
    """How many attempts it made; nodes without an action make none."""
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    retry_at_ms: int | None = None

    started_at = Instant[datetime | None]()
    ended_at = Instant[datetime | None]()
    retry_at = Instant[datetime | None]()


def place_of(rounds: Iterable[tuple[str, int]], node_id: str) -> str:
    """The place of a node in a run: its id; within the rounds of a loop ``LOOP/ROUND/ID``."""
    return "/".join([*(f"{loop}/{number}" for loop, number in rounds), node_id])
