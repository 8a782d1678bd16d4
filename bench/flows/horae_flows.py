"""Horae's figures: publishing, one event a run, a hundred a run, and the time from publishing to ``prepare``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from horae import App
from horae.flows import Flow, Prepared, Reservation

FLOWS = 100
"""Over how many flows the events of the one-to-one figure are spread: a flow runs one handler at a time."""
PUBLISHED_TOGETHER = 1000


class Figures(NamedTuple):
    """What one contestant reached."""

    name: str
    published: float
    one_to_one: float | None
    batched: float | None
    wake_p50: float
    wake_p99: float


def taking(flow: Flow, size: int, done: list[float]) -> Flow:
    """Add a consumer that takes so many events a run, and notes when it saw each of them."""

    @flow.consumer(subscribes=["in"], name="take")
    class Take:
        async def prepare(self, ctx: Any, _: Any) -> Any:
            events = await ctx.peek("in", limit=size)
            now = time.perf_counter()  # what is measured
            done.extend([now] * len(events))
            return Prepared([Reservation("in", [each.id for each in events])] if events else [])

    return flow


@asynccontextmanager
async def hosting(database: str, *flows: Flow) -> AsyncIterator[App]:
    async with App(database) as app:
        for flow in flows:
            await app.flows.deploy(flow)
        serving = asyncio.create_task(app.serve())
        try:
            await asyncio.sleep(0.3)  # the first looks
            yield app
        finally:
            serving.cancel()
            await asyncio.wait([serving])


async def publish(app: App, flow: str, number: int) -> None:
    for start in range(0, number, PUBLISHED_TOGETHER):
        some = range(start, min(start + PUBLISHED_TOGETHER, number))
        await app.flows.publish_many(flow, [("in", str(each), {"n": each}) for each in some])


async def until(done: list[float], number: int) -> None:
    while len(done) < number:
        await asyncio.sleep(0.002)


async def consumed(app: App, flows: list[str]) -> None:
    """Wait until nothing is open: the last run has committed."""
    for flow in flows:
        while (await app.flows.show(flow)).operator.events:  # type: ignore[union-attr]
            await asyncio.sleep(0.002)


async def measure(name: str, database: str, events: int, wakes: int) -> Figures:
    """All figures of Horae on one database."""
    done: list[float] = []
    flows = [taking(Flow(f"one-{number}"), 1, done) for number in range(FLOWS)]
    batch_done: list[float] = []
    batch = taking(Flow("batch"), 100, batch_done)
    async with hosting(database, *flows, batch) as app:
        for flow in (*flows, batch):
            await app.flows.pause(flow.name)
        begun = time.perf_counter()
        await publish(app, "batch", events)
        publishing = events / (time.perf_counter() - begun)
        each = max(events // FLOWS // 10, 1)
        for flow in flows:
            await publish(app, flow.name, each)
        begun = time.perf_counter()
        for flow in flows:
            await app.flows.resume(flow.name)
        await until(done, each * FLOWS)
        await consumed(app, [flow.name for flow in flows])
        one = each * FLOWS / (time.perf_counter() - begun)
        begun = time.perf_counter()
        await app.flows.resume("batch")
        await until(batch_done, events)
        await consumed(app, ["batch"])
        batched = events / (time.perf_counter() - begun)
        waits = await _wakes(app, done, wakes)
    return Figures(name, publishing, one, batched, *_percentiles(waits))


async def _wakes(app: App, done: list[float], wakes: int) -> list[float]:
    waits = []
    for number in range(wakes):
        done.clear()
        begun = time.perf_counter()
        await app.flows.publish("one-0", "in", f"wake-{number}")
        await until(done, 1)
        waits.append((done[0] - begun) * 1000)
        await asyncio.sleep(0.01)
    return waits


def _percentiles(waits: list[float]) -> tuple[float, float]:
    found = sorted(waits)
    return found[len(found) // 2], found[min(int(len(found) * 0.99), len(found) - 1)]
