"""The open connections, and which of them to close to make room for the next one.

A connection is registered when it is accepted, before the TLS handshake. When there are too many, one that waits for its client is
closed: its request has not arrived, or its answer is not read. It is chosen from the address with the most connections, so that an
attacker displaces their own connections first.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Any

MAX_CONNECTIONS = 10_000
MAX_CLOSING = 64
"""How many connections may be closing, with their files still open, before accepting pauses."""
HANDSHAKE_SECONDS = 10
"""How long the TLS handshake may take."""


class Connection:
    """An open connection."""

    __slots__ = ("abort", "address", "file", "handshake", "socket")

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.socket = sock
        self.file = sock.fileno()
        self.address = address
        self.abort: Callable[[], None] = self._shut_down
        """Closes the connection at once. Until it has a transport, shutting down its socket makes asyncio do so."""
        self.handshake: asyncio.TimerHandle | None = None

    def _shut_down(self) -> None:
        with contextlib.suppress(OSError):  # it has already ended
            self.socket.shutdown(socket.SHUT_RDWR)


class _Group:
    """The connections of one address."""

    __slots__ = ("busy", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[Connection, None] = {}
        """Connections that wait for the client, the longest wait first."""
        self.busy: dict[Connection, None] = {}
        """Connections whose client waits for us, the newest last."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.busy)

    def first_to_end(self) -> Connection:
        """The connection that has waited the longest for its client; if none waits, the one that became busy last."""
        return next(iter(self.waiting)) if self.waiting else next(reversed(self.busy))


class Connections:
    """The connections of a process. ``most`` returns how many are allowed; one address may have half of them."""

    def __init__(self, most: Callable[[], int] | None = None) -> None:
        self._most = most or most_connections
        self._groups: dict[str, _Group] = {}
        self._by_file: dict[int, Connection] = {}
        self._closing: set[Connection] = set()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def admit(self, sock: socket.socket, address: str) -> Connection:
        """Register an accepted connection; close another one if there are too many."""
        if (stale := self._by_file.get(sock.fileno())) is not None:
            self.end(stale)  # its TLS never began, and the new connection has its file number
        most = max(self._most(), 1)
        group = self._groups.get(address)
        if group is not None and len(group) >= max(most // 2, 1):
            self.drop(group.first_to_end())
        elif self._number >= most:
            self.drop_one()
        connection = Connection(sock, address)
        self._groups.setdefault(address, _Group()).waiting[connection] = None
        self._number += 1
        self._by_file[connection.file] = connection
        return connection

    def drop_one(self) -> bool:
        """Close the most dispensable connection; return whether there was one."""
        groups = [each for each in self._groups.values() if each.waiting] or list(self._groups.values())
        if groups:
            self.drop(max(groups, key=len).first_to_end())
        return bool(groups)

    def drop(self, connection: Connection) -> None:
        """Close a connection."""
        self._forget(connection)
        self._closing.add(connection)
        connection.abort()

    def claim(self, sock: socket.socket, abort: Callable[[], None]) -> Connection | None:
        """The connection of a socket that now has a transport; ``None`` if it was closed before."""
        connection = self._by_file.get(sock.fileno())
        if connection is None or connection in self._closing:
            return None
        connection.abort = abort
        _cancel(connection)
        return connection

    def mark(self, connection: Connection, *, waiting: bool) -> None:
        """Mark a connection as waiting for its client, or as busy: its client waits for us."""
        group = self._groups.get(connection.address)
        if group is not None and connection in (group.busy if waiting else group.waiting):
            source, target = (group.busy, group.waiting) if waiting else (group.waiting, group.busy)
            del source[connection]
            target[connection] = None

    def end(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self._forget(connection)
        self._closing.discard(connection)
        if self._by_file.get(connection.file) is connection:
            del self._by_file[connection.file]

    @property
    def is_closing_too_many(self) -> bool:
        """Whether so many connections are still closing that the process may run out of files."""
        if len(self._closing) > MAX_CLOSING:
            self._closing = {each for each in self._closing if each.socket.fileno() >= 0}
        return len(self._closing) > MAX_CLOSING

    def _forget(self, connection: Connection) -> None:
        _cancel(connection)
        group = self._groups.get(connection.address)
        if group is None:
            return
        before = len(group)
        group.waiting.pop(connection, None)
        group.busy.pop(connection, None)
        self._number -= before - len(group)
        if not group:
            del self._groups[connection.address]


def _cancel(connection: Connection) -> None:
    if connection.handshake is not None:
        connection.handshake.cancel()
        connection.handshake = None


class Listener(socket.socket):
    """A listening socket that registers the connections it accepts."""

    def __init__(self, connections: Connections, family: int = socket.AF_INET) -> None:
        # Name the protocol: asyncio sends small answers at once only on sockets that are declared as TCP.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; raise ``BlockingIOError`` while too many others are closing and still have their files."""
        if self._connections.is_closing_too_many:
            raise BlockingIOError  # asyncio tries again once it has closed them
        try:
            sock, peer = super().accept()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE} and self._connections.drop_one():
                raise BlockingIOError from error
            raise
        connection = self._connections.admit(sock, group_of(peer[0]))
        loop = asyncio.get_running_loop()
        connection.handshake = loop.call_later(HANDSHAKE_SECONDS, self._connections.drop, connection)
        return sock, peer


def group_of(host: str) -> str:
    """The address by which connections are counted: for IPv6 the /64 network, because one machine has all of its addresses."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))


def most_connections() -> int:
    """How many connections may be open: half of the files that this process may have open now, if there is such a limit."""
    try:
        import resource  # noqa: PLC0415 - only POSIX has it
    except ModuleNotFoundError:
        return MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(files // 2, MAX_CONNECTIONS)
