"""Horae's figures: publishing, one event a run, a hundred a run, and the time from publishing to ``prepare``."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.flows.figures import Figures, Meter, Rate, until, woken
from bench.herd.contestant import background, batches
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


async def publish(app: App, flow: str, number: int) -> None:
    for batch in batches(number):
        await app.flows.publish_many(flow, [("in", str(each), {"n": each}) for each in batch])


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
            async with background(app.serve()):
                await until(done, events)
                await committed(app)
    return Figures(
        "Horae", published, await _one_to_one(meter, database, max(events // 10, 1)), batched, *await _wakes(database, wakes),
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
            async with background(app.serve()):
                await until(done, each * FLOWS)
                await committed(app)
    return rate


async def _wakes(database: str, wakes: int) -> tuple[float, float]:
    done: list[float] = []
    async with App(database) as app:
        await app.flows.deploy(taking(Flow("wake"), 1, done))
        async with background(app.serve()):
            await asyncio.sleep(0.3)  # the first look
            return await woken(
                done, wakes, lambda number: app.flows.publish("wake", "in", f"wake-{number}"), lambda: committed(app)
            )  # fmt: skip
