"""The network between a node and a server, PostgreSQL or another: a proxy on loopback that cuts, holds or delays what passes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self


class Network:
    """One node's way to the server."""

    def __init__(self, socket: str) -> None:
        """``socket`` is the path of a Unix socket, or ``127.0.0.1:PORT``."""
        self._socket = socket
        self._server: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._refuses = False
        self.delay = 0.0
        """Seconds that each message takes longer."""
        self.connections: list[float] = []
        """When each was asked for, by the event loop's clock, which is the monotonic one."""

    async def open(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def close(self) -> None:
        self._flows.set()
        if self._server is not None:
            self._server.close()
        self._abort()
        for task in list(self._passing):
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """Close what is open, and refuse what comes."""
        self._refuses = True
        self._abort()

    def mend(self) -> None:
        """Take new connections again."""
        self._refuses = False

    def hold(self) -> None:
        """Let nothing through, and close nothing: the other side is silent."""
        self._flows.clear()

    def release(self) -> None:
        """Let through what was held."""
        self._flows.set()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        self._writers.add(writer)
        self.connections.append(asyncio.get_running_loop().time())
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._connect(reader, writer)
        writer.transport.abort()
        self._writers.discard(writer)
        self._passing.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        if self._refuses:
            return
        host, _, port = self._socket.partition(":")
        server, question = await (
            asyncio.open_connection(host, int(port))
            if port.isdigit()
            else asyncio.open_unix_connection(self._socket)
        )
        self._writers.add(question)
        ways = [
            asyncio.ensure_future(self._copy(reader, question)),
            asyncio.ensure_future(self._copy(server, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            question.transport.abort()
            self._writers.discard(question)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while chunk := await source.read(1 << 16):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flows.wait()
            target.write(chunk)
            await target.drain()
