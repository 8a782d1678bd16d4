"""The figures of a contestant: rates, with the processor time that they took, and latencies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.page import percentile


class Rate:
    """How many a second, and how many microseconds of processor time each took, in the program and in the server."""

    def __init__(self) -> None:
        self.per_second = 0.0
        self.cpu_us = 0.0


class Figures(NamedTuple):
    """The figures of one contestant."""

    name: str
    published: Rate
    one_to_one: Rate | None
    batched: Rate | None
    wake_p50: float
    wake_p99: float


def better(one: Figures, other: Figures) -> Figures:
    """The better of two figures each, of one contestant."""
    return Figures(
        one.name, _better(one.published, other.published) or one.published, _better(one.one_to_one, other.one_to_one),
        _better(one.batched, other.batched), min(one.wake_p50, other.wake_p50), min(one.wake_p99, other.wake_p99),
    )  # fmt: skip


def _better(one: Rate | None, other: Rate | None) -> Rate | None:
    if one is None or other is None:
        return None
    found = Rate()
    found.per_second, found.cpu_us = max(one.per_second, other.per_second), min(one.cpu_us, other.cpu_us)
    return found


class Meter:
    """Measures rates. ``server_cpu`` is the processor time of the database server so far, in seconds."""

    def __init__(self, server_cpu: Callable[[], float] = lambda: 0.0) -> None:
        self._server_cpu = server_cpu

    @contextmanager
    def rate(self, number: int) -> Iterator[Rate]:
        """The rate of what is done within the block; it is there after the block."""
        found = Rate()
        server, own, begun = self._server_cpu(), time.process_time(), time.perf_counter()
        yield found
        taken, used = time.perf_counter() - begun, time.process_time() - own + self._server_cpu() - server
        found.per_second, found.cpu_us = number / taken, used / number * 1e6


async def until(done: list[float], number: int) -> None:
    while len(done) < number:
        await asyncio.sleep(0.002)


async def woken(
    done: list[float],
    wakes: int,
    publish: Callable[[int], Awaitable[object]],
    settled: Callable[[], Awaitable[object]],
) -> tuple[float, float]:
    """Percentiles of the times from the call that publishes an event to the handler that sees it; it is idle before each."""
    waits = []
    for number in range(wakes):
        done.clear()
        begun = time.perf_counter()
        await publish(number)
        await until(done, 1)
        waits.append((done[0] - begun) * 1000)
        await settled()
        await asyncio.sleep(0.01)
    return percentiles(waits)


def percentiles(waits: list[float]) -> tuple[float, float]:
    """The median, and what 99 of 100 do not exceed."""
    ascending = sorted(waits)
    return percentile(ascending, 50), percentile(ascending, 99)
