"""The store for whoever is not the engine: a few at a time, so that time is kept however many ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from horae.model import Node
from horae.store.port import Store, Transaction

MOST = 6
"""How many guests a store has at once: what the engine may have to wait behind, and the connections that they take."""


class StoreAccess(Protocol):
    """What operations ask of a store."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that writes."""

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that only reads."""

    async def nodes(self) -> list[Node]:
        """All nodes, and whether they live."""


class LimitedStore:
    """A store that others than the engine use; those who come when it is full wait here, and not in the engine's way."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places = asyncio.Semaphore(MOST)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._places, self._store.transaction() as transaction:
            yield transaction

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        async with self._places, self._store.reading() as transaction:
            yield transaction

    async def nodes(self) -> list[Node]:
        async with self._places:
            return await self._store.nodes()
