"""The network of the campaign does to connections what it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from horae.clock import SystemClock
from tests.support.network import Network


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    """A network in front of a server that repeats what it hears."""
    socket = Path(f"/tmp/horae-echo-{uuid.uuid4().hex[:12]}")  # noqa: S108

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(100):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(echo, socket)
    network = await Network(str(socket)).open()
    yield network
    await network.close()
    server.close()
    await asyncio.to_thread(socket.unlink, missing_ok=True)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, network: Network) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", network.port))

    async def ask(self, words: bytes) -> bytes:
        self._writer.write(words)
        return await self._reader.read(100)

    def close(self) -> None:
        self._writer.transport.abort()


async def test_what_is_held_comes_later_and_nothing_is_closed(network: Network):
    connection = await Connection.open(network)
    assert await connection.ask(b"one") == b"one"
    network.hold()
    answer = asyncio.create_task(connection.ask(b"two"))
    newcomer = await Connection.open(network)
    greeting = asyncio.create_task(newcomer.ask(b"three"))
    await asyncio.sleep(0.05)
    assert not answer.done()
    assert not greeting.done()
    network.release()
    assert (await answer, await greeting) == (b"two", b"three")
    connection.close()
    newcomer.close()


async def test_what_is_cut_is_closed_and_refused_until_it_is_mended(network: Network):
    connection = await Connection.open(network)
    assert await connection.ask(b"one") == b"one"
    network.cut()
    assert await _answer(connection) == b""
    assert await _answer(await Connection.open(network)) == b""
    network.mend()
    again = await Connection.open(network)
    assert await again.ask(b"two") == b"two"
    again.close()


async def _answer(connection: Connection) -> bytes:
    try:
        return await connection.ask(b"more")
    except ConnectionError:
        return b""
    finally:
        connection.close()


async def test_what_is_delayed_takes_its_time_both_ways(network: Network):
    connection = await Connection.open(network)
    network.delay = 0.05
    clock = SystemClock()
    begun = clock.monotonic()
    assert await connection.ask(b"one") == b"one"
    assert clock.monotonic() - begun >= 0.1
    connection.close()
