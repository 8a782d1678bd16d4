"""Wait until something is so; a test fails if it does not happen in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

PAUSE = 0.05
PATIENCE = 180
"""Seconds in which something must happen, also on a machine that is busy with much else: only a failure takes as long."""


def wait_for(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until a condition is true; its value."""
    for _ in range(int(seconds / PAUSE)):
        if found := condition():
            return found
        time.sleep(PAUSE)
    raise AssertionError("it did not happen in time")


async def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait in an event loop; the condition may be a coroutine function."""
    for _ in range(int(seconds / PAUSE)):
        answer = condition()
        if await answer if asyncio.iscoroutine(answer) else answer:
            return
        await asyncio.sleep(PAUSE)
    raise AssertionError("it did not happen in time")
