"""One contestant in its own process: ``python -m bench.herd.child PLACE URL COUNT ALLOWANCE SECONDS``.

It prints one line of JSON: its figures, or ``{"late": seconds}`` if registering took longer than allowed.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import sys
from time import perf_counter, process_time
from typing import Any, NamedTuple

from bench.herd import memory
from bench.herd.contestant import Contestant
from bench.herd.ledger import Count
from bench.herd.starts import TIMES, until, wall

SETTLE = 1.0
"""Seconds that a contestant has before the instant, at least, to begin and to be at rest."""

GLANCE = 0.005
"""Seconds between two checks of what has happened, at least."""


class Times(NamedTuple):
    """When things happened, in seconds since the epoch."""

    due: int
    seconds: int
    """For how many seconds jobs were due; 0 is at one instant."""
    starts: list[float]
    ended: float | None


async def measure(contestant: Contestant, count: int, allowance: float) -> dict[str, float | None]:
    async with contestant.opened():
        every = contestant.granularity
        due = math.ceil((wall() + allowance + SETTLE) / every) * every
        began, used = perf_counter(), process_time()
        await contestant.register(count, due)
        registering, register_work = perf_counter() - began, process_time() - used
        await count_rows(contestant.url)
        if wall() > due - SETTLE:
            return {"late": perf_counter() - began}
        starts = count * max(contestant.seconds, 1)
        async with contestant.running():
            await until(due)
            used = process_time()
            while len(TIMES) < starts:
                await asyncio.sleep(GLANCE)
            ended = await all_ended(contestant.ended, starts) if contestant.records_ends else None
            run_work = process_time() - used
    if len(TIMES) != starts:
        raise RuntimeError(f"{starts} starts were due, and there were {len(TIMES)}")
    times = Times(due, contestant.seconds, TIMES, ended)
    return {
        "register_rate": count / registering,
        **figures(times),
        "register_work": register_work / count * 1_000_000,
        "run_work": run_work / starts * 1_000_000,
        "memory": memory.peak(),
    }


async def count_rows(url: str) -> None:
    if url.startswith("postgresql:"):
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.herd.analyze", url)
        if await process.wait():
            raise RuntimeError("PostgreSQL could not count its rows")


async def all_ended(ended: Count, count: int) -> float:
    """When the last end was seen to be durable. Checking takes a sixth of the time at most."""
    while True:
        looked = wall()
        if await ended() >= count:
            return looked
        await asyncio.sleep(max(GLANCE, 5 * (wall() - looked)))


def figures(times: Times) -> dict[str, float | None]:
    """Milliseconds late, and how many a second. The first starts count as those of the first second, and so on."""
    count = len(times.starts)
    each = count // max(times.seconds, 1)
    late = sorted(time - times.due - place // each for place, time in enumerate(sorted(times.starts)))
    # Who keeps up is done when the last second is over: more than was due cannot be started.
    took = max(max(times.starts) - times.due, times.seconds)
    return {
        "first": late[0] * 1000,
        "last": late[-1] * 1000,
        "median": late[math.ceil(count * 0.50) - 1] * 1000,
        "p99": late[math.ceil(count * 0.99) - 1] * 1000,
        "start_rate": count / took,
        "end_rate": None if times.ended is None else count / max(times.ended - times.due, times.seconds),
    }


def main(place: str, url: str, count: str, allowance: str, seconds: str) -> None:
    module, _, name = place.partition(":")
    contestant: Any = getattr(importlib.import_module(module), name)(url, int(seconds))
    print(json.dumps(asyncio.run(measure(contestant, int(count), float(allowance)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
