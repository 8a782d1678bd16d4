"""Connections of the action ``http``: a name is looked up once, and only an address that was checked is connected to.

So it does not help to change what a name means between the check and the connection. Every request has a connection of its own:
what it goes to is checked each time, and an error before anything was sent is known for what it is.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from ipaddress import ip_address
from typing import Any

import certifi
import httpcore

from horae.executor.destination import Destinations

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses behind a name."""

MOST_LOOK_UPS = 8
"""How many names are looked up at once."""

FAILURES = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)
"""What a connection may end with."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses behind a name, as this machine knows them."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(_resolvers(), _addresses, host, port)
    except UnicodeError as error:  # a label that is empty or too long
        raise OSError(f"no name can be {host!r}") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _addresses(host: str, port: int) -> Sequence[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


@cache
def _resolvers() -> ThreadPoolExecutor:
    """Threads of their own: names that are long in being found keep nothing else waiting."""
    return ThreadPoolExecutor(MOST_LOOK_UPS, thread_name_prefix="horae-look-up")


def new_pool(destinations: Destinations, resolve: Resolve) -> httpcore.AsyncConnectionPool:
    """What sends requests, and only where they may go. It follows no redirect and knows no proxy."""
    trust = ssl.create_default_context()  # what this machine trusts, and what everybody does
    trust.load_verify_locations(certifi.where())
    return httpcore.AsyncConnectionPool(
        ssl_context=trust,
        max_connections=None,  # as many as the node runs at once
        max_keepalive_connections=0,
        network_backend=_Guarded(destinations, resolve),
    )


class _Guarded(httpcore.AsyncNetworkBackend):
    """Looks a name up, checks all that is behind it, and connects to that."""

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
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed
