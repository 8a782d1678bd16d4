"""Wait until something is so; a test fails if it does not happen in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

PATIENCE = 180
"""Seconds in which something must happen, also on a machine that is busy with much else: only a failure takes as long."""


def pauses(seconds: float) -> Iterator[float]:
    """Pauses between looks, each a tenth of the time that has passed: looking often costs more than the tests that wait."""
    waited = 0.0
    while waited < seconds:
        pause = min(max(waited / 10, 0.05), 0.15)
        yield pause
        waited += pause


def wait_for(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until a condition is true; its value."""
    for pause in pauses(seconds):
        if found := condition():
            return found
        time.sleep(pause)
    raise AssertionError("it did not happen in time")


async def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait in an event loop; the condition may be a coroutine function."""
    for pause in pauses(seconds):
        answer = condition()
        if await answer if asyncio.iscoroutine(answer) else answer:
            return
        await asyncio.sleep(pause)
    raise AssertionError("it did not happen in time")
