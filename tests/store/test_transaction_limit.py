"""However many callers ask, the engine has its connections."""

from __future__ import annotations

import asyncio

from horae import App, Context
from horae.store.transaction_limit import MAX_TRANSACTIONS
from tests.support.nodes import running, soon
from tests.support.wait import wait_until


async def test_time_is_kept_while_more_ask_than_there_are_connections(postgres: str):
    done: list[int] = []
    begun = 0
    over = asyncio.Event()

    async with running(App(postgres)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            done.append(context.attempt)

        async def ask() -> None:
            nonlocal begun
            async with app.transaction():
                begun += 1
                await over.wait()

        await app.schedules.create("s", soon(app, 3), "work")
        asking = [asyncio.create_task(ask()) for _ in range(5 * MAX_TRANSACTIONS)]
        await wait_until(lambda: begun == MAX_TRANSACTIONS)
        await wait_until(lambda: done == [1])
        over.set()
        # Those that stood still for too long were undone, so that they hold up no other node.
        await asyncio.gather(*asking, return_exceptions=True)
    assert begun == len(asking)
