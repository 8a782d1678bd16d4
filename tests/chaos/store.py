"""The two databases of a campaign: how they are reached, read and disturbed."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from tests.chaos.plan import CUT, DELAY, LOCK, NODES, RESTART, SILENCE, Fault
from tests.support.network import Network
from tests.support.postgres import FragileServer

STARTS = 10
"""How often a server that was stopped is started before the campaign is given up."""


class Database(Protocol):
    """What a campaign needs of its database."""

    name: str
    one_clock: bool
    """Whether all nodes go by one machine's clock, because the database has none."""

    def address(self, node: int | None) -> str:
        """The address for a node, or for the operator, whose way is not disturbed."""

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query finds; waits while the database is away."""

    def connections(self) -> list[list[int]]:
        """When each node asked for connections, in milliseconds of the monotonic clock."""

    def disturbed(self, fault: Fault) -> contextlib.AbstractAsyncContextManager[None]:
        """As long as this lasts, the fault does."""

    async def close(self) -> None: ...


class PostgresDatabase:
    """A server of our own, and a network for each node."""

    name = "postgresql"
    one_clock = False

    def __init__(self, server: FragileServer, networks: list[Network]) -> None:
        self._server = server
        self._networks = networks
        self._restarting = asyncio.Lock()  # it may take longer than planned

    @classmethod
    async def open(cls) -> PostgresDatabase:
        server = await asyncio.to_thread(FragileServer)
        return cls(server, [await Network(server.socket).open() for _ in range(NODES)])

    async def close(self) -> None:
        for network in self._networks:
            await network.close()
        await asyncio.to_thread(self._server.end)

    def address(self, node: int | None) -> str:
        if node is None:
            return self._server.address
        return f"postgresql://postgres@127.0.0.1:{self._networks[node].port}/postgres?sslmode=disable"

    def connections(self) -> list[list[int]]:
        return [[int(at * 1000) for at in network.connections] for network in self._networks]

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(self._server.address)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    async def _start(self) -> None:
        """Start the server; on a busy machine that takes longer than its starter waits."""
        for _ in range(STARTS):
            try:
                await asyncio.to_thread(self._server.start)
            except (subprocess.SubprocessError, AssertionError):
                await asyncio.sleep(1)
            else:
                return
        raise TimeoutError("the server does not start")

    @contextlib.asynccontextmanager
    async def disturbed(self, fault: Fault) -> AsyncIterator[None]:
        if fault.kind == RESTART:
            async with self._restarting:
                await asyncio.to_thread(self._server.stop, "immediate")
                yield
                await self._start()
            return
        network = self._networks[fault.node]
        if fault.kind == CUT:
            network.cut()
            yield
            network.mend()
        elif fault.kind == SILENCE:
            network.hold()
            yield
            network.release()
        else:
            assert fault.kind == DELAY
            network.delay = fault.amount / 1000
            yield
            network.delay = 0.0


class SqliteDatabase:
    """A file that three processes share."""

    name = "sqlite"
    one_clock = True

    def __init__(self, file: Path) -> None:
        self._file = file

    async def close(self) -> None:
        pass

    def address(self, node: int | None) -> str:
        return f"sqlite:///{self._file}"

    def connections(self) -> list[list[int]]:
        return []

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        return await asyncio.to_thread(self._read, query)

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self._file, timeout=30)) as connection:
            return connection.execute(query).fetchall()

    @contextlib.asynccontextmanager
    async def disturbed(self, fault: Fault) -> AsyncIterator[None]:
        assert fault.kind == LOCK
        connection = await asyncio.to_thread(self._lock)
        yield
        await asyncio.to_thread(connection.close)

    def _lock(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=60, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN IMMEDIATE")
        return connection
