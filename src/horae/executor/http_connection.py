"""Connections of the action ``http``: a name is looked up once, and only an address that was checked is connected to.

So changing what a name resolves to between the check and the connection has no effect. Every request has its own connection:
its destination is checked each time, and an error before anything was sent is known to be one.

A destination may be hostile, so an answer has bounds: bytes before its body, bytes around its body, and pieces. Beyond one of them
the attempt ends with :class:`HttpAnswerError`. How long all of it may take is the request's ``timeout``.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from ipaddress import ip_address
from typing import Any

import certifi
import httpcore

from horae.errors import HttpAnswerError
from horae.executor.http_destination import Destinations

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses behind a name."""

MAX_LOOK_UPS = 8
"""How many names are looked up at once."""

PORTION = 4096
"""How many bytes are taken in one turn of the event loop: at most a few hundred chunks or interim answers."""

MAX_HEAD_LENGTH = 64 * 1024
"""How many bytes the interim answers (1xx) and the headers of an answer have together."""

MAX_PIECES = 10_000
"""How many chunks and reads an answer takes; more only if a longer body may be kept."""

SMALLEST_PIECE = 64
"""How many bytes the pieces of a longer body must have on average."""

FRAMING = 32
"""How many bytes besides its data a chunk has on average; what is longer are extensions that nothing reads."""

FAILURES = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)
"""The errors with which a connection may fail."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses behind a name, as this machine knows them."""
    loop = asyncio.get_running_loop()
    try:
        resolve = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(_resolvers(), resolve)
    except UnicodeError as error:  # a label that is empty or too long
        raise OSError(f"no name can be {host!r}") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@cache
def _resolvers() -> ThreadPoolExecutor:
    """Separate threads, so that slow look-ups delay nothing else."""
    return ThreadPoolExecutor(MAX_LOOK_UPS, thread_name_prefix="horae-look-up")


def load_trust() -> ssl.SSLContext:
    """The certificates that this machine trusts, and those that certifi does."""
    trust = ssl.create_default_context()
    trust.load_verify_locations(certifi.where())
    return trust


def new_pool(destinations: Destinations, resolve: Resolve) -> httpcore.AsyncConnectionPool:
    """A pool that connects only to allowed destinations. It follows no redirect and uses no proxy."""
    return httpcore.AsyncConnectionPool(
        ssl_context=load_trust(),
        max_connections=None,  # as many as the node runs at once
        max_keepalive_connections=0,
        network_backend=_Guarded(destinations, resolve),
    )


class _Guarded(httpcore.AsyncNetworkBackend):
    """Looks up a name, checks all its addresses, and connects to one of them."""

    def __init__(self, destinations: Destinations, resolve: Resolve) -> None:
        self._destinations = destinations
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self._destinations.check_host(host, port)
        addresses = await self._resolve(host, port)
        for address in addresses:
            self._destinations.check_address(host, ip_address(address))
        failed: Exception = OSError(f"there is no address behind {host}")
        for address in addresses:
            try:
                stream = await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Metered(stream)
        raise failed


class _Metered(httpcore.AsyncNetworkStream):
    """A connection with bounds on the bytes and pieces of an answer; beyond them it raises ``HttpAnswerError``."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._pieces = 0
        self._most_pieces = MAX_PIECES
        self._left = MAX_HEAD_LENGTH
        self._beyond = f"its interim answers and headers have more than {MAX_HEAD_LENGTH} bytes"

    def begin_body(self, longest: int) -> None:
        """Switch from the bounds of the head to those of a body of ``longest`` bytes."""
        self._most_pieces = max(MAX_PIECES, longest // SMALLEST_PIECE)
        self._left = longest + self._most_pieces * FRAMING
        self._beyond = f"its body has more than {self._left} bytes, framing included"

    def count_piece(self) -> None:
        """Count a chunk, or a read: the work is the same, however few bytes it has."""
        self._pieces += 1
        if self._pieces > self._most_pieces:
            raise HttpAnswerError(f"it came in more than {self._most_pieces} pieces")

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.count_piece()
        if not self._left:
            raise HttpAnswerError(self._beyond)
        await asyncio.sleep(0)  # reading what has arrived does not wait, and would let no other task run
        data = await self._stream.read(min(max_bytes, PORTION, self._left), timeout)
        self._left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Metered(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as the interface has it
        return self._stream.get_extra_info(info)


async def read_body(response: httpcore.Response, longest: int) -> bytes:
    """The body of an answer; of a longer one, a little more than ``longest`` bytes."""
    stream = response.extensions["network_stream"]
    if not isinstance(stream, _Metered):
        return b""  # it switched protocols (101): what follows is no answer
    stream.begin_body(longest)
    body = bytearray()
    async for chunk in response.aiter_stream():
        stream.count_piece()
        body += chunk
        if len(body) > longest:
            break
    return bytes(body)
