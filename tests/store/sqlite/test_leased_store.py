"""A file without ``flock``: a lease in a row, by which one node at a time holds it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from horae.errors import DatabaseHeldError
from horae.model import Node
from horae.store.sqlite.leased_store import LeasedSqliteStore
from tests.support.nodes import end_leases


def node(epoch: int) -> Node:
    return Node(epoch=epoch, name=f"node {epoch}", actions=("a",), tzdata="2026a", started_at_ms=0)


@asynccontextmanager
async def opened(folder: Path, number: int = 1, lease: float = 60) -> AsyncIterator[list[LeasedSqliteStore]]:
    """The same file, opened by several processes."""
    async with AsyncExitStack() as stack:
        stores = [LeasedSqliteStore(str(folder / "horae.db"), lease=lease) for _ in range(number)]
        for each in stores:
            await each.open(lambda: None)
            stack.push_async_callback(each.close)
        yield stores


async def is_node(store: LeasedSqliteStore, epoch: int) -> bool:
    async with store.transaction() as transaction:
        return await transaction.is_node(epoch, 0)


async def alive(store: LeasedSqliteStore) -> list[int]:
    return [each.epoch for each in await store.nodes() if each.alive]


async def test_a_node_that_renews_its_lease_keeps_the_file(tmp_path: Path):
    async with opened(tmp_path, 2) as (first, second):
        assert await first.register_node(node(4))
        joining = asyncio.create_task(second.register_node(node(5)))
        while not joining.done():
            assert await first.renew(4)
            await asyncio.sleep(0.01)
        with pytest.raises(DatabaseHeldError, match=r'The node "node 4" holds the database until 2\d\d\d-'):
            await joining
        assert await alive(second) == [4]
        assert await is_node(first, 4)
        assert not await is_node(second, 5)


async def test_a_file_that_was_closed_is_free(tmp_path: Path):
    async with opened(tmp_path, 2) as (first, second):
        await first.register_node(node(4))
        await first.close()
        assert await alive(second) == []
        assert await second.register_node(node(5))
        assert await alive(second) == [5]


async def test_the_file_of_a_dead_node_is_free_when_its_lease_has_ended(tmp_path: Path):
    async with opened(tmp_path, 2, lease=1) as (first, second):
        await first.register_node(node(4))
        assert await second.register_node(node(5))  # it waits
        assert await alive(second) == [5]


async def test_a_node_whose_lease_has_ended_claims_nothing_and_cannot_renew_it(tmp_path: Path):
    async with opened(tmp_path) as (store,):
        await store.register_node(node(4))
        await end_leases(f"sqlite:///{tmp_path}/horae.db")
        assert not await is_node(store, 4)
        assert not await store.renew(4)
        await store.register_node(node(4))  # as when its actions change
        assert not await is_node(store, 4)
        assert await store.register_node(node(5))
        assert await is_node(store, 5)


async def test_a_deadline_that_lies_far_ahead_because_the_clock_was_set_back_is_not_waited_for(
    tmp_path: Path,
):
    async with opened(tmp_path, 2, lease=0.5) as (first, second):
        await first.register_node(node(4))
        with closing(sqlite3.connect(tmp_path / "horae.db", isolation_level=None)) as connection:
            connection.execute("UPDATE node SET deadline_ms = deadline_ms + 3600000")
        with pytest.raises(DatabaseHeldError):
            await second.register_node(node(5))
        assert await first.renew(4)  # by the clock as it is now
        assert await first.renew(4)


async def test_of_two_that_wait_for_a_dead_node_one_gets_the_file(tmp_path: Path):
    async with opened(tmp_path, 3) as (dead, *others):
        await dead.register_node(node(4))
        joining = {asyncio.create_task(each.register_node(node(5 + n))): n for n, each in enumerate(others)}
        await end_leases(f"sqlite:///{tmp_path}/horae.db")
        (first,), (second,) = await asyncio.wait(joining, return_when=asyncio.FIRST_COMPLETED)
        while not second.done():
            assert await others[joining[first]].renew(5 + joining[first])
            await asyncio.sleep(0.01)
        assert first.result()
        assert isinstance(second.exception(), DatabaseHeldError)
