"""Flows of the service that the console is tested on: each gets one order when it starts, and each meets it in its own way."""

from typing import Any

from horae.flows import Flow, LogicError, PrepareContext, Prepared, ProducerContext, Reservation


def _flow(name: str, title: str) -> Flow:
    """A flow whose producer reads one order, and no more."""
    flow = Flow(name, title=title)

    @flow.producer(publishes=["orders"], every="1h")
    async def read_shop(ctx: ProducerContext, state: int | None) -> int:
        if state is None:
            ctx.register_input("shop", "order", "o-1", "Order 1")
            ctx.publish("orders", "o-1", {"rows": 1})
        return 1

    return flow


orders, stuck, paid, fed = (
    _flow("orders", "Orders into the <b>books</b>"),
    _flow("stuck", "Stuck orders"),
    _flow("paid", "Paid orders"),
    _flow("fed", "Orders from anywhere"),
)
_failures = [LogicError("the <i>sheet</i> has no column")]


async def _reserved(ctx: PrepareContext) -> Prepared[Any]:
    found = await ctx.peek("orders", limit=1)
    return Prepared([Reservation("orders", [each.id for each in found])], [each.payload for each in found])


@orders.consumer(subscribes=["orders"])
class Book:
    """Fails once, and then no more."""

    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[Any]:
        prepared = await _reserved(ctx)
        if _failures and prepared.data:
            raise _failures.pop()
        return prepared


@stuck.consumer(subscribes=["orders"])
class Stay:
    """Fails as long as there is an order."""

    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[Any]:
        if await ctx.peek("orders", limit=1):
            raise LogicError("nothing can be done with it")
        return Prepared()


@paid.consumer(subscribes=["orders"])
class Charge:
    """Cannot say whether it charged the card."""

    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[Any]:
        return await _reserved(ctx)

    async def mutate(self, ctx: Any, prepared: Prepared[Any]) -> None:
        raise ConnectionError("the bank hung up")


@fed.consumer(subscribes=["orders"])
class Take:
    """Takes each order."""

    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[Any]:
        return await _reserved(ctx)
