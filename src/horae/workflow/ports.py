"""The replaceable interfaces between a fired schedule and a workflow's nodes: launcher, store and executor."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

Dag = Mapping[str, Any]
"""A workflow's document, as JSON has it."""


class RunMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a run that an executor gets besides the workflow."""

    source: str
    """The cause of the run: ``schedule``, ``trigger``, ``backfill`` or ``rerun``."""
    user_id: str
    scheduled_for: datetime
    idempotency_key: str


class RunLauncher(Protocol):
    """Starts the workflow of a slot, once per key however often it is called; a coroutine, or a plain method, called in a thread.

    ``False`` is final: there is no such workflow. After an exception it is called again, at most three times in all.
    """

    def start(
        self, workflow_id: str, version: int, user_id: str, scheduled_for: datetime, idempotency_key: str
    ) -> bool | Awaitable[bool]: ...


class WorkflowStore(Protocol):
    """Loads workflows; a coroutine, or a plain method, called in a thread."""

    def load_dag(self, workflow_id: str, version: int, user_id: str) -> Dag | Awaitable[Dag | None] | None:
        """The document of a version; ``None`` if it does not exist."""


class DagExecutor(Protocol):
    """Runs workflows, or hands them on; a coroutine, or a plain method, called in a thread.

    The return value is the result of the run. After an exception it is called again, at most three times in all.
    """

    def run(self, dag: Dag, meta: RunMeta) -> Any: ...  # noqa: ANN401 - any JSON
