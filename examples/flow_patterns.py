"""Five patterns of consumers, one flow each. ``sent`` stands for the outside world.

Host them in the service: ``horae serve --flows examples.flow_patterns``.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from horae.flows import Event, Flow, MutateContext, PrepareContext, Prepared, Reservation

sent: list[tuple[str, Any]] = []
"""What the flows did: the name of the flow, and what it sent."""


def taking(topic: str, events: list[Event[Any]], **more: Any) -> Prepared[list[Any]]:
    """Reserve events of a topic, and hand their payloads on."""
    return Prepared(
        [Reservation(topic, [each.id for each in events])], [each.payload for each in events], **more
    )


class Sends:
    """Sends what was prepared, in one effect."""

    async def mutate(self, ctx: MutateContext, prepared: Prepared[list[Any]]) -> int:
        async def send() -> int:
            sent.append((ctx.flow, prepared.data))
            return len(prepared.data)

        return await ctx.effect(send)


# First in, first out: one event a run, in order.
fifo = Flow("fifo")


@fifo.consumer(subscribes=["orders"])
class Ship(Sends):
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[Any]]:
        return taking("orders", await ctx.peek("orders", limit=1))


# Correlation: an order and its payment, whichever comes first. Every new event starts the consumer.
correlation = Flow("correlation")


@correlation.consumer(subscribes=["orders", "payments"])
class Match(Sends):
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[Any]]:
        payments = {each.id: each for each in await ctx.peek("payments")}
        for order in await ctx.peek("orders"):
            if order.id in payments:
                both = [Reservation("orders", [order.id]), Reservation("payments", [order.id])]
                return Prepared(both, [order.payload, payments[order.id].payload])
        return Prepared()


# Time window: each event waits for an hour, in which it may still be changed.
window = Flow("window")
WAIT = timedelta(hours=1)


@window.consumer(subscribes=["edits"])
class Settle(Sends):
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[Any]]:
        events = await ctx.peek("edits")
        ready = [each for each in events if each.created_at + WAIT <= ctx.now]
        waiting = [each.created_at + WAIT for each in events if each not in ready]
        return taking("edits", ready, wake_at=min(waiting, default=None))


# Batch with a timeout: ten events at once, or after an hour those that are pending.
batch = Flow("batch")
SIZE = 10


@batch.consumer(subscribes=["rows"])
class Insert(Sends):
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[Any]]:
        events = await ctx.peek("rows", limit=SIZE)
        if not events:
            return Prepared()
        latest = events[0].created_at + WAIT
        if len(events) < SIZE and ctx.now < latest:
            return Prepared(wake_at=latest)
        return taking("rows", events, title=f"Inserted {len(events)} rows")


# Daily digest: all events of the day at nine; earlier starts of the consumer do nothing.
digest = Flow("digest")
NINE = time(9)


@digest.consumer(subscribes=["news"])
class Digest(Sends):
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[Any]]:
        today = datetime.combine(ctx.now.date(), NINE, tzinfo=ctx.now.tzinfo)
        following = today if ctx.now < today else today + timedelta(days=1)
        if not today <= ctx.now < today + timedelta(minutes=5):
            return Prepared(wake_at=following)
        return taking("news", await ctx.peek("news", limit=1000), wake_at=following)
