"""Limit how many transactions operations run at a time, so that they never starve the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from horae.errors import AppNotOpenError
from horae.model import Node
from horae.store.port import Store, Transaction

MAX_TRANSACTIONS = 6
"""How many transactions of operations run at once: the engine may wait behind them, and each takes a connection."""


class StoreAccess(Protocol):
    """The methods of a store that operations use."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that writes."""

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that only reads."""

    async def nodes(self) -> list[Node]:
        """All registered nodes, and whether each is alive."""


class LimitedStore:
    """A store with a limit: transactions beyond it wait here, not for connections or locks that the engine needs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._free: asyncio.Semaphore | None = None

    @property
    def dialect(self) -> str:
        """The kind of database: ``postgresql`` or ``sqlite``."""
        return self._store.dialect

    def open(self) -> None:
        """Allow transactions, in the running event loop."""
        self._free = asyncio.Semaphore(MAX_TRANSACTIONS)

    def close(self) -> None:
        """Allow no more transactions."""
        self._free = None

    def _place(self) -> asyncio.Semaphore:
        if self._free is None:
            raise AppNotOpenError
        return self._free

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._place(), self._store.transaction() as transaction:
            yield transaction

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        async with self._place(), self._store.reading() as transaction:
            yield transaction

    async def nodes(self) -> list[Node]:
        async with self._place():
            return await self._store.nodes()
