"""A connection that is lost in the middle of something is given up without a complaint of the driver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from horae.errors import StoreUnavailableError
from horae.store.postgres import PostgresStore
from tests.support.nodes import fetch


async def ask_twice_at_once(store: PostgresStore) -> None:
    """A connection answers one question at a time: the second is refused while the first is open."""
    async with store.transaction() as transaction:
        await asyncio.gather(transaction.rows("time"), transaction.rows("time"))


async def test_a_connection_that_still_waits_for_an_answer_is_closed_and_not_reset(postgres: str):
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    store = PostgresStore(postgres, lease=10)
    await store.open(lambda: None)
    try:
        with pytest.raises(StoreUnavailableError):
            await ask_twice_at_once(store)
        assert await store.time() is not None  # the others go on
    finally:
        await store.close()
    assert complaints == []


async def lose_the_connection(store: PostgresStore, postgres: str) -> None:
    async with store.transaction() as transaction:
        ((pid,),) = await transaction.execute("SELECT pg_backend_pid()")
        await fetch(postgres, "SELECT pg_terminate_backend($1, 10000)", pid)  # it waits for the end
        await asyncio.sleep(0.1)  # the driver hears of it, and takes the connection back
        await transaction.rows("wake_at")


async def test_a_lost_connection_is_told_by_what_ended_it(postgres: str):
    store = PostgresStore(postgres)
    await store.open(lambda: None)
    try:
        with pytest.raises(StoreUnavailableError) as lost:
            await lose_the_connection(store, postgres)
        assert "is_closed" not in str(lost.value.__cause__)  # the question failed, and not the clean-up
        async with store.transaction() as transaction:  # and the next one gets another connection
            await transaction.rows("wake_at")
    finally:
        await store.close()
