"""Python functions as actions: coroutine functions in the event loop, plain ones in threads."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from horae.model import Run


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What an action gets to know about its run."""

    schedule_id: str
    run_id: str
    key: str
    """The same for every attempt of the same slot, and for no other: use it to make effects idempotent."""
    attempt: int
    nominal: datetime
    """The time that the schedule names."""
    fire_time: datetime
    """The nominal time, moved by jitter."""
    input: Any = None


class Finished(msgspec.Struct, frozen=True):
    """How an attempt of a run ended: with a result as JSON, or with a failure in words."""

    run: Run
    result: str | None
    failure: str | None
    stopped: bool = False


ActionFunction = Callable[[Context], Awaitable[Any]] | Callable[[Context], Any]


class FunctionExecutor:
    """Runs actions of this program, and collects how they ended."""

    def __init__(self, actions: Mapping[str, ActionFunction], wake: Callable[[], None]) -> None:
        self._actions = actions
        self._wake = wake
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._finished: deque[Finished] = deque()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What is going on."""
        return list(self._tasks.values())

    @property
    def known(self) -> set[tuple[str, int]]:
        """The attempts that are going on, or have ended and are not recorded yet."""
        return set(self._tasks) | {(each.run.id, each.run.attempt) for each in self._finished}

    def launch(self, run: Run, action: str, key: str) -> None:
        """Begin an attempt whose claim is durable."""
        context = Context(
            schedule_id=run.schedule_id, run_id=run.id, key=key, attempt=run.attempt, input=run.input,
            nominal=datetime.fromtimestamp(run.nominal, UTC),
            fire_time=datetime.fromtimestamp(run.fire_at / 1000, UTC),
        )  # fmt: skip
        task = asyncio.create_task(self._attempt(run, action, context), name=f"horae:{run.schedule_id}")
        self._tasks[run.id, run.attempt] = task

    async def _attempt(self, run: Run, action: str, context: Context) -> None:
        result: str | None = None
        failure: str | None = None
        stopped = False
        try:
            result = msgspec.json.encode(await self._call(action, context)).decode()
        except asyncio.CancelledError:
            failure, stopped = "the run was stopped", True
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            failure = f"{type(error).__name__}: {error}"
        self._finished.append(Finished(run, result, failure, stopped))
        self._tasks.pop((run.id, run.attempt), None)
        self._wake()

    async def _call(self, action: str, context: Context) -> Any:  # noqa: ANN401 - an action returns what it likes
        function = self._actions.get(action)
        if function is None:
            raise LookupError(f'no action "{action}" is registered in this program')
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            return await function(context)
        return await asyncio.to_thread(function, context)

    def stop(self, run: Run) -> None:
        """Ask a run to stop; it ends when its action does."""
        if task := self._tasks.get((run.id, run.attempt)):
            task.cancel()

    def finished(self) -> list[Finished]:
        """What has ended and is not recorded yet."""
        return list(self._finished)

    def forget(self, recorded: list[Finished]) -> None:
        """These were recorded: the first ones that had ended."""
        for _ in recorded:
            self._finished.popleft()
