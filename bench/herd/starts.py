"""The one action that every contestant runs: it notes when it was started."""

from __future__ import annotations

import asyncio
import time

TIMES: list[float] = []
"""Seconds since the epoch at which actions started. One list a process, as there is one contestant in each."""


def wall() -> float:
    """The time of day. Not by Horae's clock: a peer's memory must not hold Horae."""
    return time.time()  # noqa: TID251


async def until(due: float) -> None:
    """Wait for an instant."""
    while (ahead := due - wall()) > 0:
        await asyncio.sleep(ahead)


async def no_operation(*_: object) -> None:
    """The action. Job stores keep a reference to it by name."""
    TIMES.append(wall())
