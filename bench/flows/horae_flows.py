"""Horae's figures: publishing, one event a run, a hundred a run, and the time from publishing to ``prepare``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.flows.figures import PUBLISHED_TOGETHER, Figures, Meter, Rate, percentiles, until
from horae import App
from horae.flows import Flow, Prepared, Reservation

FLOWS = 100
"""Over how many flows the events of the one-to-one figure are spread: a flow runs one handler at a time."""
IDLE = "SELECT NOT EXISTS (SELECT 1 FROM flow_lane WHERE run_id IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM flow_signal)"
LEFT = "SELECT count(*) FROM flow_event WHERE flow_id >= 0 AND topic = 'in' AND status = 'pending'"


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
async def serving(app: App) -> AsyncIterator[None]:
    task = asyncio.create_task(app.serve())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def publish(app: App, flow: str, number: int) -> None:
    for start in range(0, number, PUBLISHED_TOGETHER):
        some = range(start, min(start + PUBLISHED_TOGETHER, number))
        await app.flows.publish_many(flow, [("in", str(each), {"n": each}) for each in some])


async def committed(app: App) -> None:
    """Wait until nothing runs and nothing waits: the last run has committed."""
    while True:
        async with app.reading() as transaction:
            if (await transaction.execute(IDLE))[0][0]:
                break
        await asyncio.sleep(0.002)
    async with app.reading() as transaction:
        left = (await transaction.execute(LEFT))[0][0]
    if left:
        raise RuntimeError(f"{left} events were not consumed")


async def measure(meter: Meter, database: str, events: int, wakes: int) -> Figures:
    """All figures of Horae on one database. What is consumed was published before: each rate is of one thing alone."""
    done: list[float] = []
    async with App(database) as app:
        await app.flows.deploy(taking(Flow("batch"), 100, done))
        with meter.rate(events) as published:
            await publish(app, "batch", events)
        with meter.rate(events) as batched:
            async with serving(app):
                await until(done, events)
                await committed(app)
    return Figures(
        "Horae", published, await _one_to_one(meter, database, max(events // 10, 1)), batched,
        *percentiles(await _wakes(database, wakes)),
    )  # fmt: skip


async def _one_to_one(meter: Meter, database: str, events: int) -> Rate:
    done: list[float] = []
    flows = [taking(Flow(f"one-{number}"), 1, done) for number in range(FLOWS)]
    each = max(events // FLOWS, 1)
    async with App(database) as app:
        for flow in flows:
            await app.flows.deploy(flow)
            await publish(app, flow.name, each)
        with meter.rate(each * FLOWS) as rate:
            async with serving(app):
                await until(done, each * FLOWS)
                await committed(app)
    return rate


async def _wakes(database: str, wakes: int) -> list[float]:
    """The times from the call that publishes an event to the handler that sees it; the flow is idle before each."""
    waits: list[float] = []
    done: list[float] = []
    async with App(database) as app:
        await app.flows.deploy(taking(Flow("wake"), 1, done))
        async with serving(app):
            await asyncio.sleep(0.3)  # the first look
            for number in range(wakes):
                done.clear()
                begun = time.perf_counter()
                await app.flows.publish("wake", "in", f"wake-{number}")
                await until(done, 1)
                waits.append((done[0] - begun) * 1000)
                await committed(app)
                await asyncio.sleep(0.01)
    return waits
