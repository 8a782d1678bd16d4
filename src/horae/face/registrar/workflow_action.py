"""The action ``workflow``, which makes a launcher start the workflow of a slot."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import msgspec

from horae.app import App
from horae.errors import NotStartedError
from horae.executor.context import Context
from horae.executor.function import call_action, is_coroutine_function
from horae.executor.signature import ActionFunction
from horae.model import Action

WORKFLOW = "workflow"
"""The name of the action that schedules of the registrar have."""


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow of a schedule: the input of the action ``workflow``."""

    workflow_id: str
    version: int
    user_id: str


class RunLauncher(Protocol):
    """Starts the workflow of a slot, once per key however often it is called; a coroutine, or a plain method, called in a thread.

    ``False`` is final: there is no such workflow. After an exception it is called again, at most three times in all.
    """

    def start(
        self, workflow_id: str, version: int, user_id: str, scheduled_for: datetime, idempotency_key: str
    ) -> bool | Awaitable[bool]: ...


def workflow_of(action: Action) -> Workflow | None:
    """The workflow of an action; ``None`` if it has none."""
    if action.name != WORKFLOW:
        return None
    try:
        return msgspec.convert(action.input, Workflow)
    except msgspec.ValidationError:
        return None


def register(app: App, launcher: RunLauncher | None) -> None:
    """Register the action that starts workflows in an app: through a launcher, or as actions of this program."""
    if launcher is not None:
        app.functions.register(WORKFLOW, _through(launcher), replace=True)
        app.wake()
    elif not app.executors.knows(WORKFLOW):
        app.action(WORKFLOW)(_here(app))


def _through(launcher: RunLauncher) -> ActionFunction:
    """The action that makes a launcher start a workflow; an exception is a failed launch, not a failed run."""
    threaded = not is_coroutine_function(launcher.start)

    async def launch(context: Context) -> None:
        workflow = _wanted(context)
        start = partial(
            launcher.start, workflow.workflow_id, workflow.version, workflow.user_id, context.nominal, context.key
        )  # fmt: skip
        try:
            started = await call_action(start, context, threaded=threaded)
        except NotStartedError:
            raise
        except Exception as error:
            raise NotStartedError(f"the launcher failed: {type(error).__name__}: {error}") from error
        if not started:
            raise _missing(workflow)

    return launch


def _here(app: App) -> ActionFunction:
    """The action that runs the action of this program with the workflow's name."""

    async def run(context: Context) -> Any:  # noqa: ANN401 - any JSON
        workflow = _wanted(context)
        if workflow.workflow_id not in app.functions.actions() or workflow.workflow_id == WORKFLOW:
            raise _missing(workflow)
        return await app.functions.call(workflow.workflow_id, context)

    return run


def _wanted(context: Context) -> Workflow:
    workflow = workflow_of(Action(name=WORKFLOW, input=context.input))
    if workflow is None:
        raise NotStartedError(
            f'the input of "{context.schedule_id}" names no workflow_id, version and user_id', permanent=True
        )
    return workflow


def _missing(workflow: Workflow) -> NotStartedError:
    return NotStartedError(
        f'there is no workflow "{workflow.workflow_id}" of version {workflow.version}', permanent=True
    )
