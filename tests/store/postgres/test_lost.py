"""A connection that is lost in the middle of something is given up without a complaint of the driver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from horae.errors import StoreUnavailableError
from horae.store.postgres import PostgresStore


async def test_a_connection_that_still_waits_for_an_answer_is_closed_and_not_reset(postgres: str):
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    store = PostgresStore(postgres, lease=10)
    await store.open(lambda: None)
    try:
        with pytest.raises(StoreUnavailableError):
            async with store.transaction() as transaction:
                first, second = (asyncio.ensure_future(transaction.rows("time")) for _ in range(2))
                await asyncio.sleep(0)  # both are asked, and the connection answers one at a time
                await second
        await asyncio.gather(first, return_exceptions=True)
        assert await store.time() is not None  # the others go on
    finally:
        await store.close()
    assert complaints == []
