"""Horae: schedules of one workflow that are all due at one second, run by one node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.herd.horae_app import OneShot
from bench.workflows.shape import LAYERS, first, nothing
from horae import Context
from horae.model import Action
from horae.workflow import WorkflowBuilder

SAVED = {
    "state": "succeeded",
    "followed": [3, 4, 5],
    "output": "done",
    "attempts": 1,
    "started_at_ms": 1794942671000,
    "ended_at_ms": 1794942671000,
}
"""The record of a node that ended."""


class HoraeWorkflows(OneShot):
    """Runs of a workflow."""

    action: Any = Action(kind="workflow", input={"workflow_id": "layers", "version": 1, "user_id": ""})

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with super().opened():
            self._app.action("save")(save)
            await self._app.workflows.deploy(workflow())
            yield


class BareCheckpoints(HoraeWorkflows):
    """Runs of an action that saves what the nodes of the workflow would, and does nothing else."""

    action = "save"


async def save(context: Context) -> None:
    """Save each layer, the next once it is durable."""
    await first()
    for layer in LAYERS:
        await context.checkpoint_all({f"node:{name}": SAVED for name in layer})


def workflow() -> WorkflowBuilder:
    """The shape as a workflow."""
    flow = WorkflowBuilder("layers", 1)
    before = [flow.task(first, id=name) for name in LAYERS[0]]
    for layer in LAYERS[1:]:
        before = [flow.task(nothing, id=name, after=before) for name in layer]
    return flow
