"""Auto-fix: when a handler fails with a logic error, the next version of its flow is loaded from a folder, and the run is retried.

A developer, a pipeline or a program that writes code puts versions there. After two fixes in a row the flow needs attention.
In a service: ``horae serve --flows examples.flow_fixer --flow-fixes examples/flow_versions``. In a program, before flows run:
``app.flow_host.fixer = horae.flows.FolderFixer(VERSIONS)``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from horae.flows import Flow, MutateContext, PrepareContext, Prepared, Reservation

VERSIONS = Path(__file__).parent / "flow_versions"


booked: list[float] = []
"""Stands for the outside world."""

# The first version expects numbers. "12,50" is a fault of its own: it knows no commas.
flow = Flow("invoices")


@flow.consumer(subscribes=["mails"])
class Book:
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[float]]:
        mails = await ctx.peek("mails", limit=1)
        return Prepared(
            [Reservation("mails", [each.id for each in mails])], [float(each.payload) for each in mails]
        )

    async def mutate(self, ctx: MutateContext, prepared: Prepared[list[float]]) -> Any:
        return await ctx.effect(lambda: booked.extend(prepared.data))
