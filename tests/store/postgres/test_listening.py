"""The connection on which a node hears what others change: reopened when it is lost, after a pause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from horae.store.postgres import PostgresStore
from tests.support.network import Network
from tests.support.wait import wait_until


@pytest.fixture
async def network(postgres: str) -> AsyncIterator[Network]:
    """A network in front of the server."""
    network = await Network(f"{postgres.partition('?host=')[2]}/.s.PGSQL.5432").open()
    yield network
    await network.close()


def behind(network: Network, database: str) -> str:
    """The address of a database behind a network."""
    name = database.partition("?")[0].rpartition("/")[2]
    return f"postgresql://postgres@127.0.0.1:{network.port}/{name}?sslmode=disable"


async def connections_in(network: Network, seconds: float) -> int:
    before = len(network.connections)
    await asyncio.sleep(seconds)
    return len(network.connections) - before


@pytest.mark.parametrize("reached", [True, False])
async def test_a_node_that_gives_up_its_connections_does_not_storm_the_server_for_new_ones(
    postgres: str, network: Network, reached: bool
):
    store = PostgresStore(behind(network, postgres), lease=4)
    await store.open(lambda: None)
    try:
        await wait_until(lambda: len(network.connections) >= 2)  # the first one, and the one that listens
        if not reached:
            network.cut()
        await store._reconnect()
        await asyncio.sleep(0.2)
        assert await connections_in(network, 0.5) <= 2
    finally:
        network.mend()
        await store.close()


async def test_what_others_change_is_heard_again_after_the_network_is_mended(postgres: str, network: Network):
    heard: list[None] = []
    store = PostgresStore(behind(network, postgres), lease=4)
    await store.open(lambda: heard.append(None))
    try:
        await wait_until(lambda: len(network.connections) >= 2)
        network.cut()
        await store._reconnect()
        network.mend()

        async def is_heard() -> bool:
            async with store.transaction() as transaction:
                await transaction.notify()
            return bool(heard)

        await wait_until(is_heard)
    finally:
        await store.close()


async def test_a_notification_about_one_decider_wakes_that_one_on_other_nodes(postgres: str):
    heard: list[tuple[str, ...]] = []
    one, two = PostgresStore(postgres), PostgresStore(postgres)
    await one.open(lambda *about: heard.append(about))
    await two.open(lambda: None)
    try:

        async def tell(store: PostgresStore, about: str) -> bool:
            async with store.transaction() as transaction:
                await transaction.notify(about)
            return bool(heard)

        await wait_until(lambda: tell(one, ""))  # it listens
        await tell(one, "flows")
        await tell(two, "flows")
        await tell(two, "last")  # notifications come in the order of commits
        await wait_until(lambda: ("last",) in heard)
        assert [each for each in heard if each] == [("flows",), ("last",)], "its own is not heard"
    finally:
        await one.close()
        await two.close()
