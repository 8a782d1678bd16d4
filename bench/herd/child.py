"""One contestant in a process of its own: ``python -m bench.herd.child PLACE URL COUNT ALLOWANCE``.

It prints one line of JSON: its figures, or ``{"late": seconds}`` if registering took longer than allowed.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import sys
from time import perf_counter
from typing import Any

from bench.herd import memory
from bench.herd.contestant import Contestant
from bench.herd.starts import TIMES, wall

SETTLE = 1.0
"""Seconds that a contestant has before the instant, at least, to begin and to be at rest."""

GLANCE = 0.005
"""Seconds between two looks at what has happened, at least."""


async def measure(contestant: Contestant, count: int, allowance: float) -> dict[str, float | None]:
    async with contestant.opened():
        every = contestant.granularity
        due = math.ceil((wall() + allowance + SETTLE) / every) * every
        began = perf_counter()
        await contestant.register(count, due)
        registering = perf_counter() - began
        await _count_rows(contestant.url)
        if wall() > due - SETTLE:
            return {"late": perf_counter() - began}
        async with contestant.running():
            while len(TIMES) < count:
                await asyncio.sleep(GLANCE)
            ended = await _all_ended(contestant, count) if contestant.records_ends else None
    if len(TIMES) != count:
        raise RuntimeError(f"{count} jobs were started {len(TIMES)} times")
    return _figures(due, registering, ended)


async def _count_rows(url: str) -> None:
    if url.startswith("postgresql:"):
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.herd.analyze", url)
        if await process.wait():
            raise RuntimeError("PostgreSQL could not count its rows")


async def _all_ended(contestant: Contestant, count: int) -> float:
    """When the last end was seen to be durable. Looking takes a sixth of the time at most."""
    while True:
        looked = wall()
        if await contestant.ended() >= count:
            return looked
        await asyncio.sleep(max(GLANCE, 5 * (wall() - looked)))


def _figures(due: int, registering: float, ended: float | None) -> dict[str, float | None]:
    late = sorted(time - due for time in TIMES)
    return {
        "register_rate": len(late) / registering,
        "first": late[0] * 1000,
        "last": late[-1] * 1000,
        "median": late[math.ceil(len(late) * 0.50) - 1] * 1000,
        "p99": late[math.ceil(len(late) * 0.99) - 1] * 1000,
        "start_rate": len(late) / late[-1],
        "end_rate": None if ended is None else len(late) / (ended - due),
        "memory": memory.peak(),
    }


def main(place: str, url: str, count: str, allowance: str) -> None:
    module, _, name = place.partition(":")
    contestant: Any = getattr(importlib.import_module(module), name)(url)
    print(json.dumps(asyncio.run(measure(contestant, int(count), float(allowance)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
