"""Hands actions to Celery: a task by its name, followed to its result, revoked when its run is stopped.

A hand-off has an id that is saved before the task is sent, and sent again if a process died before it could record that it had sent it. So no
task is lost; :func:`start_once` lets workers start each id once, so none is started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from horae.errors import HandOffFailedError, MissingExtraError, NotStartedError
from horae.executor.context import Context
from horae.executor.port import Executor

if TYPE_CHECKING:
    from celery import Celery

CHECKPOINT = "celery"
FIRST_POLL_S, MAX_POLL_S = 0.02, 1.0
STARTED_FOR_S = 7 * 24 * 60 * 60
"""How long it is remembered that a task was started."""
_ENDED_BADLY = {"FAILURE", "REVOKED", "REJECTED", "IGNORED"}


class CeleryExecutor(Executor):
    """The kind ``celery``: ``celery:NAME`` runs the task of that name with the action's input as its keyword arguments."""

    kind = "celery"
    for_nodes = True

    def __init__(self, app: Celery, tasks: Collection[str]) -> None:
        """``app`` is the program's Celery app, which needs a result backend; ``tasks`` are the names of tasks that may be run."""
        try:
            import celery  # noqa: F401, PLC0415 - an optional part
        except ImportError:
            raise MissingExtraError("celery", "celery") from None
        self._app = app
        self._tasks = {f"{self.kind}:{name}": name for name in tasks}

    def actions(self) -> Collection[str]:
        """``celery:NAME`` for each task."""
        return self._tasks.keys()

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - what the task returns
        """Hand the task over, unless an earlier attempt has, and wait for its end."""
        given = context.input
        if given is not None and not isinstance(given, dict):
            raise NotStartedError(
                "the input must be an object: its keys are the task's arguments", permanent=True
            )
        handed = context.checkpoints.get(CHECKPOINT)
        if handed is None or handed["ended"]:
            number = 1 if handed is None else handed["number"] + 1
            handed = {"number": number, "id": f"{context.key}-{number}", "sent": False, "ended": False}
            await context.checkpoint(CHECKPOINT, handed)
        if not handed["sent"]:
            await self._send(context, handed["id"], given or {})
            handed = handed | {"sent": True}
            await context.checkpoint(CHECKPOINT, handed)
        try:
            state, value = await self._end(context, handed["id"])
        except asyncio.CancelledError:
            if context.stop_requested() and not context.is_given_away:
                await asyncio.shield(asyncio.to_thread(self._revoke, handed["id"]))
            raise
        if state in _ENDED_BADLY:
            await context.checkpoint(CHECKPOINT, handed | {"ended": True})
            raise HandOffFailedError(
                "Celery", self._tasks[context.action], f"{type(value).__name__}: {value}"
            )
        return value

    async def _send(self, context: Context, task_id: str, given: dict[str, Any]) -> None:
        def send() -> None:
            self._app.send_task(self._tasks[context.action], kwargs=given, task_id=task_id, retry=False)

        try:
            await asyncio.to_thread(send)
        except Exception as error:  # of the broker's and the backend's own libraries, which differ
            said = " ".join(str(error).split())
            raise NotStartedError(
                f"the task cannot be handed to Celery: {type(error).__name__}: {said}"
            ) from None

    async def _end(self, context: Context, task_id: str) -> tuple[str, Any]:
        """How the task ended, once it has; while the result backend is away, it is asked again."""
        wait = FIRST_POLL_S
        while True:
            state, value = await asyncio.to_thread(self._look, task_id)
            if state == "SUCCESS" or state in _ENDED_BADLY:
                return state, value
            context.heartbeat()
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, MAX_POLL_S)

    def _look(self, task_id: str) -> tuple[str, Any]:
        result = self._app.AsyncResult(task_id)
        try:
            state, value = result.state, result.result
        except Exception:  # the backend's own errors, which differ
            return "PENDING", None
        return state, value

    def _revoke(self, task_id: str) -> None:
        self._app.control.revoke(task_id, terminate=True)


def start_once(app: Celery) -> None:
    """Let the workers of a Celery app start each task that Horae handed over once, even if it was sent twice.

    Call it before tasks are defined; the result backend must be Redis. Celery's own retries of a task are started.
    """
    from celery.exceptions import Ignore  # noqa: PLC0415 - it came with Celery

    class StartedOnce(app.Task):  # type: ignore[misc]
        def __call__(self, *args: object, **given: object) -> object:
            key = f"horae-started-{self.request.id}-{self.request.retries}"
            if not self.backend.client.set(key, 1, nx=True, ex=STARTED_FOR_S):
                raise Ignore
            return self.run(*args, **given)

    app.Task = StartedOnce
