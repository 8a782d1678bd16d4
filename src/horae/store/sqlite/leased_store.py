"""SQLite where there is no ``flock``: a lease shows that a node is alive, and only one node at a time holds the file."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from horae.errors import DatabaseHeldError, StoreUnavailableError
from horae.model import Node, instant
from horae.store.dialect import query
from horae.store.row_mapping import Row
from horae.store.sqlite import SQLITE, SqliteStore
from horae.store.sqlite.node_lock import HAS_FLOCK
from horae.store.tables import NODE

LOOK_AGAIN = 0.2
"""Seconds between two looks at the deadline of another node."""


def file_store(
    path: str, *, lease: float, inline: bool = False, monotonic: Callable[[], float] = lambda: 0.0
) -> SqliteStore:
    """The store for a file on this platform. On a virtual clock a lease would never end, so there is none."""
    if HAS_FLOCK or inline:
        return SqliteStore(path, inline=inline, grace=lease, monotonic=monotonic)
    return LeasedSqliteStore(path, lease=lease)


class LeasedSqliteStore(SqliteStore):
    """A file that one node at a time holds, until the deadline in its row, which it renews.

    The machine's clock judges the deadline, within the statement, so that all processes judge alike. If that clock is set forward, or the
    node stands still, another one may take the file: the first then finds its lease expired, in every transaction that claims and at its
    next renewal. A process that is no node, such as a command, needs no lease: it reads and writes in transactions beside the node.
    """

    lease: float

    def __init__(self, path: str, *, lease: float) -> None:
        super().__init__(path)
        self.lease = lease
        self._epoch: int | None = None  # of the node of this process

    async def register_node(self, node: Node) -> bool:
        """Hold the file. A node that has it and renews its lease is alive: that is an error. A dead one loses it at its deadline."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + self.lease + LOOK_AGAIN
        before = holder = await self._take(node)
        while holder is not None:
            if holder != before or loop.time() > patience:
                name, deadline = holder
                raise DatabaseHeldError(name, instant(deadline))
            await asyncio.sleep(LOOK_AGAIN)
            holder = await self._take(node)
        self._epoch = node.epoch
        return True

    async def _take(self, node: Node) -> Row | None:
        """Register a node, unless another one holds the file: return that one's name and deadline."""
        async with self.transaction() as transaction:
            if found := await transaction.rows("holder", epoch=node.epoch):
                return found[0]
            await transaction.rows("insert_node", **NODE.parameters(node), lease_ms=int(self.lease * 1000))
        return None

    async def renew(self, epoch: int) -> bool:
        async with self.transaction() as transaction:
            return bool(await transaction.rows("renew", epoch=epoch, lease_ms=int(self.lease * 1000)))

    async def nodes(self) -> list[Node]:
        async with self._lock:
            rows = await self.work(lambda c: c.execute(query(SQLITE, "nodes")).fetchall())
        return [msgspec.structs.replace(NODE.decode(columns), alive=bool(alive)) for *columns, alive in rows]

    async def close(self) -> None:
        """Release everything: the next program may begin at once."""
        if self._epoch is not None:
            with contextlib.suppress(StoreUnavailableError):
                await self.work(lambda c: c.execute(query(SQLITE, "end_lease"), {"epoch": self._epoch}))
            self._epoch = None
        await super().close()
