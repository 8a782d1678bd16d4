"""What runs on a Dask cluster: the function on its workers, and a plugin of its scheduler that keeps Horae's tasks.

Dask drops a task once no client references it. A program that died right after a submission would lose the task, and the next attempt
would start it again. :class:`KeepTasks` holds a reference from the moment of submission.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import TYPE_CHECKING, Any

from distributed import get_worker
from distributed.diagnostics.plugin import SchedulerPlugin

from horae.executor.stored_output import kept_result

if TYPE_CHECKING:
    from distributed import Scheduler

PREFIX = "horae-"
"""How the keys of Horae's tasks begin."""
ANSWER_WITHIN_S = 10.0
"""How long a scheduler may take to answer."""
_KEEPER = "horae"


class KeepTasks(SchedulerPlugin):  # type: ignore[misc]
    """Keeps the tasks of Horae on a scheduler until a while after they have ended."""

    name = _KEEPER
    idempotent = True

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._scheduler: Scheduler | None = None

    async def start(self, scheduler: Scheduler) -> None:
        """Learn the scheduler."""
        self._scheduler = scheduler

    def update_graph(self, scheduler: Scheduler, *, keys: set[Any], **_: Any) -> None:  # noqa: ANN401 - Dask's own
        """Want the tasks of Horae, in the same step that makes them known."""
        ours = [key for key in keys if str(key).startswith(PREFIX)]
        if ours:
            scheduler.client_desires_keys(ours, _KEEPER)

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:  # noqa: ANN401, ARG002 - Dask's own
        """Want a task that has ended for a while longer."""
        if self._scheduler is not None and finish in {"memory", "erred"} and str(key).startswith(PREFIX):
            self._scheduler.loop.call_later(self._keep_s, self._release, key)

    def _release(self, key: Any) -> None:  # noqa: ANN401 - a key of Dask
        if self._scheduler is not None and key in self._scheduler.tasks:
            self._scheduler.client_releases_keys([key], _KEEPER)


def call(target: str, given: dict[str, Any]) -> str:
    """Call ``module:function`` on a worker and return its result as JSON. Every client can read the exceptions that this raises."""
    try:
        module, _, name = target.partition(":")
        value = getattr(importlib.import_module(module), name)(**given)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
        return kept_result(value)
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


async def _awaited(value: Any) -> Any:  # noqa: ANN401 - what the function returns
    return await value


def work_id() -> str:
    """The id of the work of a function that runs on a worker: use it to make effects idempotent."""
    return str(get_worker().get_current_task()).removeprefix(PREFIX)


def stop_requested() -> bool:
    """Whether the run of a function on a worker was asked to stop: a long one should ask now and then."""
    worker = get_worker()
    # An `Event` would make a client of the worker.
    asked = worker.scheduler.event_is_set(name=stop_name(work_id()))
    return bool(asyncio.run_coroutine_threadsafe(asked, worker.loop.asyncio_loop).result(ANSWER_WITHIN_S))


def stop_name(work: str) -> str:
    """The name of the event that asks for work to stop."""
    return f"{PREFIX}stop-{work}"
