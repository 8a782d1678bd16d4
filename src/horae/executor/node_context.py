"""The context of a workflow's node: that of the run, with the node's own input, key, attempt and checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from horae.errors import NotStartedError
from horae.executor.attempt_context import Context
from horae.model import Run

USER_PREFIX = "user:"
"""The prefix of the keys of checkpoints that the actions of nodes save."""


class NodeContext(Context):
    """The context of one attempt of a node."""

    __slots__ = ("_action", "_input", "_node_attempt", "_outer", "_stopping_ms", "place")

    def __init__(self, outer: Context, place: str, action: str, given: Any, attempt: int) -> None:  # noqa: ANN401 - any JSON
        run, running, save = outer.parts
        super().__init__(run, None, running, _no_token, save_checkpoints=save)
        self._outer = outer
        self._action = action
        self._input = given
        self._node_attempt = attempt
        self._stopping_ms: int | None = None
        self.place = place
        """Where in the run the node is: its id, within rounds of loops ``LOOP/ROUND/ID``."""

    @property
    def action(self) -> str:
        """The address of the node's action."""
        return self._action

    @property
    def key(self) -> str:
        """The same for every attempt of the same node of the same run, and for no other."""
        return node_key(self._run.key, self.place)

    @property
    def attempt(self) -> int:
        """Which attempt of the node this is, counted from 1."""
        return self._node_attempt

    @property
    def work_id(self) -> str:
        """The id of the work of this attempt of the node."""
        return f"{self.key}-{self.failures + 1}-{self.attempt}"

    @property
    def input(self) -> Any:  # noqa: ANN401 - any JSON
        """The values of the node's input expressions, by key; ``None`` if it has none."""
        return self._input

    @property
    def checkpoints(self) -> Mapping[str, Any]:
        """The values that this and earlier attempts of the node saved, by key."""
        prefix = f"{USER_PREFIX}{self.place}:"
        saved = self._outer.checkpoints
        return {key.removeprefix(prefix): saved[key] for key in saved if key.startswith(prefix)}

    async def checkpoint(self, key: str, value: Any = None) -> None:  # noqa: ANN401 - any JSON
        """Save a value for the next attempts of this node."""
        await self._outer.checkpoint(f"{USER_PREFIX}{self.place}:{key}", value)

    def ask_to_stop(self, within_ms: int) -> None:
        """Ask this attempt to stop, because its time is up or nothing needs its result."""
        self._stopping_ms = within_ms

    def stop_requested(self) -> bool:
        """Whether the run, or this node, was asked to stop."""
        return self._stopping_ms is not None or super().stop_requested()

    @property
    def time_to_stop(self) -> timedelta | None:
        """How long it has before it is given up."""
        if self._stopping_ms is not None:
            return timedelta(milliseconds=self._stopping_ms)
        return super().time_to_stop


def node_key(run_key: str, place: str) -> str:
    """The idempotency key of a node of a run."""
    return hashlib.sha256(f"{run_key}:{place}".encode()).hexdigest()


async def _no_token(run: Run, token_hash: str) -> None:  # noqa: ARG001 - the signature of KeepToken
    raise NotStartedError("a node of a workflow cannot be handed to an external worker", permanent=True)
