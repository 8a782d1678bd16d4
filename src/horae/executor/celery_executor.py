"""Hands actions to Celery: a task by its name, followed to its result, revoked when its run is stopped.

The id of a hand-off is that of the task. If a process dies before it could record that it sent a task, the task is sent again, so none
is lost. :func:`start_once` lets workers start each id once, so none is started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from horae.errors import MissingExtraError
from horae.executor.hand_off import End, Ending, HandOff, HandOffExecutor

try:
    from celery import Celery
    from celery.exceptions import Ignore
except ImportError:
    raise MissingExtraError("celery", "celery") from None

STARTED_FOR_S = 7 * 24 * 60 * 60
"""How long Redis remembers that a task was started."""
_ENDINGS = {
    "SUCCESS": Ending.SUCCEEDED,
    "FAILURE": Ending.FAILED,
    "REJECTED": Ending.FAILED,
    "IGNORED": Ending.FAILED,
    "REVOKED": Ending.STOPPED,
}


class CeleryExecutor(HandOffExecutor):
    """The kind ``celery``: ``celery:NAME`` runs the task of that name with the action's input as its keyword arguments."""

    kind = "celery"
    engine = "Celery"

    def __init__(self, app: Celery, tasks: Collection[str]) -> None:
        """``app`` is the program's Celery app, which needs a result backend; ``tasks`` are the names of tasks that may be run."""
        super().__init__(tasks)
        self._app = app

    async def submit(self, work: HandOff) -> None:
        """Send the task."""
        send = self._app.send_task
        await asyncio.to_thread(send, work.name, kwargs=work.input, task_id=work.id, retry=False)

    async def ask(self, works: Sequence[HandOff]) -> Mapping[str, End]:
        """Ask the result backend."""

        def ask() -> Mapping[str, End]:
            return {each.id: end for each in works if (end := self._end_of(each.id)) is not None}

        return await asyncio.to_thread(ask)

    def _end_of(self, task_id: str) -> End | None:
        # An `AsyncResult` would talk to the backend once more when it is deleted.
        meta = self._app.backend.get_task_meta(task_id, cache=False)
        ending, value = _ENDINGS.get(meta["status"]), meta["result"]
        if ending is None:
            return None
        if ending is Ending.SUCCEEDED:
            return End(ending=ending, result=value)
        return End(ending=ending, reason=f"{type(value).__name__}: {value}")

    async def stop(self, work: HandOff, *, force: bool) -> None:
        """Revoke the task: the process that runs it gets SIGTERM, or SIGKILL."""
        signal = "SIGKILL" if force else "SIGTERM"
        await asyncio.to_thread(self._app.control.revoke, work.id, terminate=True, signal=signal)


def start_once(app: Celery) -> None:
    """Let the workers of a Celery app start each task that Horae handed over once, even if it was sent twice.

    Call it before tasks are defined; the result backend must be Redis. Celery's own retries of a task are started.
    """

    class StartedOnce(app.Task):  # type: ignore[misc]
        def __call__(self, *args: object, **given: object) -> object:
            key = f"horae-started-{self.request.id}-{self.request.retries}"
            if not self.backend.client.set(key, 1, nx=True, ex=STARTED_FOR_S):
                raise Ignore
            return self.run(*args, **given)

    app.Task = StartedOnce
