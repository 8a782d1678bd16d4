"""A cache of answers that take long with many schedules. All viewers share it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

KEPT = 20.0
"""Seconds for which an answer is served again."""
MAX_KEPT = 500
T = TypeVar("T")


class KeptAnswers:
    """The latest answer to each question. Callers that ask at the same time share one computation."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: dict[str, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to a question, however long it takes."""
        answer: T = await asyncio.shield(self._task(key, ask))
        return answer

    def _task(self, key: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        asked_at, task = self._kept.get(key, (0.0, None))
        old = task is None or (
            task.done()
            and (self._monotonic() - asked_at > KEPT or task.cancelled() or bool(task.exception()))
        )
        if task is None or old:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            task = asyncio.create_task(ask(), name="horae:kept")
            self._kept[key] = (self._monotonic(), task)
        return task
