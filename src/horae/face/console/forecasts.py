"""Forecasts, kept for a while: with many schedules one takes seconds, and all viewers may share it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from horae.app import ScopedOperations

KEPT = 30.0
"""Seconds that a forecast is good for."""
MAX_KEPT = 200


class Forecasts:
    """The latest forecast of each scope; of several who ask at once, one computes."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: dict[str | None, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, there: ScopedOperations, minutes: int) -> Any:  # noqa: ANN401 - a forecast, of the policies
        """The load ahead."""
        made, task = self._kept.get(there.owner, (-KEPT, None))
        if (
            task is None
            or self._monotonic() - made > KEPT
            or (task.done() and (task.cancelled() or task.exception()))
        ):
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            task = asyncio.create_task(there.why.forecast(minutes=minutes), name="horae:forecast")
            self._kept[there.owner] = (self._monotonic(), task)
        return await asyncio.shield(task)
