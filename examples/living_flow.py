"""An example flow: a mailbox that gets a mail a minute, and a sheet that gets a row for each. ``make run`` hosts it.

Now and then the sheet is away, which is a temporary problem: ``horae flows show mail-to-sheet`` says so, and it tries again.
"""

from __future__ import annotations

from typing import Any

from horae.flows import (  # fmt: skip
    Flow,
    MutateContext,
    NextContext,
    Outcome,
    PrepareContext,
    Prepared,
    ProducerContext,
    Reservation,
    Transient,
)

flow = Flow("mail-to-sheet", title="Mails into the spreadsheet")


@flow.producer(publishes=["mails"], every="1m")
async def read_mailbox(ctx: ProducerContext, state: int | None) -> int:
    """A real one would ask a mail server through ``ctx.read``; this one makes a mail up."""
    number = (state or 0) + 1
    ctx.register_input("mailbox", "mail", str(number), f"Mail {number}")
    ctx.publish("mails", str(number), {"subject": f"Hello {number}"})
    return number


@flow.consumer(subscribes=["mails"])
class WriteRow:
    async def prepare(self, ctx: PrepareContext, state: int | None) -> Prepared[list[Any]]:
        mails = await ctx.peek("mails", limit=10)
        title = f"Processed {len(mails)} email{'s' if len(mails) > 1 else ''} → added to spreadsheet"
        ids = [mail.id for mail in mails]
        return Prepared([Reservation("mails", ids)], [mail.payload["subject"] for mail in mails], title=title)

    async def mutate(self, ctx: MutateContext, prepared: Prepared[list[Any]]) -> int:
        if ctx.now.minute % 10 == 0 and ctx.now.second < 5:
            raise Transient("the spreadsheet does not answer", applied=False)
        return await ctx.effect(lambda: len(prepared.data))

    async def next(
        self, ctx: NextContext, prepared: Prepared[list[Any]], outcome: Outcome[int | None]
    ) -> int | None:
        return outcome.result
