"""The second version of the flow "invoices": it reads amounts with a comma too."""

from __future__ import annotations

from examples.flow_fixer import Book as FirstBook
from horae.flows import Flow, PrepareContext, Prepared, Reservation

flow = Flow("invoices")


@flow.consumer(subscribes=["mails"])
class Book(FirstBook):
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[float]]:
        mails = await ctx.peek("mails", limit=1)
        amounts = [float(str(each.payload).replace(",", ".")) for each in mails]
        return Prepared([Reservation("mails", [each.id for each in mails])], amounts)
