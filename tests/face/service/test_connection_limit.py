"""However many connections there are, and however silent their clients: the next client connects, and gets its answer."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from horae.config import Config
from horae.face.service import connection_limit as module
from horae.face.service import http_protocol
from horae.face.service.connection_limit import Connections, Listener, group_of, most_connections
from horae.face.service.http_protocol import HttpProtocol, in_pieces, tls_options
from tests.face.service.certificates import Authority
from tests.support.process import Server, StartServer

WAIT = 60
LARGE = 16 * 1024 * 1024
"""More than the buffers of two sockets."""
MOST = 20
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Ends:
    """The sockets of connections that are registered by hand, and what became of them."""

    def __init__(self, most: int) -> None:
        self.open = Connections(lambda: most)
        self.ended: list[str] = []
        self._sockets: list[socket.socket] = []

    def admit(self, name: str, address: str, *, busy: bool = False) -> Any:
        sock, other = socket.socketpair()
        self._sockets += [sock, other]
        self.open.admit(sock, address)
        connection = self.open.claim(sock, lambda: self.ended.append(name))
        assert connection is not None
        if busy:
            self.open.mark(connection, waiting=False)
        return connection

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def ends() -> Any:
    made: list[Ends] = []

    def make(most: int) -> Ends:
        made.append(Ends(most))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_the_address_with_the_most_connections_loses_the_one_that_waited_longest(ends: Callable[[int], Ends]):
    here = ends(6)
    for number in range(2):
        here.admit(f"quiet{number}", "quiet")
    for number in range(3):
        here.admit(f"busy{number}", "loud", busy=number == 0)
    here.admit("other", "other")
    assert here.ended == []
    here.admit("new", "newcomer")
    assert here.ended == ["busy1"]
    assert len(here.open) == 6


def test_one_address_has_half_of_the_places(ends: Callable[[int], Ends]):
    here = ends(6)
    for number in range(5):
        here.admit(f"a{number}", "a")
    assert here.ended == ["a0", "a1"]
    here.admit("b0", "b")
    assert here.ended == ["a0", "a1"]


def test_where_nothing_waits_the_newest_of_the_loudest_ends(ends: Callable[[int], Ends]):
    here = ends(4)
    here.admit("a0", "a", busy=True)
    here.admit("a1", "a", busy=True)
    here.admit("b0", "b", busy=True)
    here.admit("c0", "c", busy=True)
    here.admit("d0", "d", busy=True)
    assert here.ended == ["a1"]


def test_what_began_to_wait_last_ends_last(ends: Callable[[int], Ends]):
    here = ends(8)
    first, second = here.admit("a0", "a"), here.admit("a1", "a")
    here.open.mark(first, waiting=False)
    here.open.mark(first, waiting=True)
    here.open.mark(second, waiting=True)  # it did already
    here.open.end(here.admit("b0", "b"))
    assert len(here.open) == 2
    assert here.open.drop_one()
    assert here.ended == ["a1"]
    assert here.open.drop_one()
    assert not here.open.drop_one()


def test_all_addresses_of_a_network_are_one():
    assert (
        group_of("2001:db8:1:2:3::4") == group_of("2001:db8:1:2:ffff::1%eth0") != group_of("2001:db8:1:3::1")
    )
    assert group_of("::ffff:192.0.2.1") == group_of("192.0.2.1") != group_of("192.0.2.2")


def test_connections_take_half_of_the_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
    try:
        assert most_connections() == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Real sockets


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers ``/large`` with much, ``/never`` never, and everything else at once."""
    if scope["path"] == "/never":
        await receive()
        await receive()  # until the client is gone
        return
    body = b"x" * LARGE if scope["path"] == "/large" else b"well"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(most: int = 10_000, **options: Any) -> AsyncIterator[tuple[int, Connections]]:
    config = uvicorn.Config(
        in_pieces(application), lifespan="off", log_config=None, timeout_keep_alive=600, **options
    )
    config.load()
    state, connections = ServerState(), Connections(lambda: most)
    listener = Listener(connections)
    listener.bind(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(
        lambda: HttpProtocol(connections, config, state, {}), sock=listener, ssl=config.ssl
    )
    async with server:
        yield server.sockets[0].getsockname()[1], connections
        for each in list(state.connections):
            each.transport.abort()


@asynccontextmanager
async def client(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Any]:
    """A connection whose client has hardly room for what it does not read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    options: dict[str, Any] = {"ssl": tls, "server_hostname": "localhost"} if tls else {}
    reader, writer = await asyncio.open_connection(sock=sock, limit=2048, **options)
    yield reader, writer
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.01)


async def gets_its_answer(port: int, tls: ssl.SSLContext | None = None) -> bool:
    async with client(port, tls) as (reader, writer):
        writer.write(GET % b"/")
        return b"well" in await asyncio.wait_for(reader.readuntil(b"well"), WAIT)


@pytest.fixture
def certificates(tmp_path: Path) -> tuple[dict[str, Any], ssl.SSLContext]:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")
    trusting = ssl.create_default_context(cafile=str(authority.file))
    trusting.check_hostname = False
    return tls_options(Config(tls_certificate=str(certificate), tls_key=str(key))), trusting


@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "tls"])
async def test_a_client_that_does_not_read_its_answer_is_left(
    monkeypatch: pytest.MonkeyPatch, certificates: Any, over_tls: bool
):
    monkeypatch.setattr(http_protocol, "WRITE_WINDOW", 0.2)
    options, tls = certificates if over_tls else ({}, None)
    async with serving(**options) as (port, connections), client(port, tls) as (_, writer):
        writer.write(GET % b"/large")
        await until(lambda: len(connections) == 1)
        await until(lambda: len(connections) == 0)


async def test_one_that_reads_at_a_fair_pace_gets_all_of_it():
    async with serving() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % b"/large" + GET % b"/")
        head = await reader.readuntil(b"\r\n\r\n")
        left = LARGE
        while left:
            left -= len(await reader.read(min(left, 256 * 1024)))
            await asyncio.sleep(0)
        assert head.startswith(b"HTTP/1.1 200")
        assert b"well" in await asyncio.wait_for(reader.readuntil(b"well"), WAIT)
        writer.close()


async def test_an_answer_has_an_end_however_steadily_it_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_protocol, "WRITE_WINDOW", 0.2)
    monkeypatch.setattr(http_protocol, "MIN_BYTES_PER_SECOND", 0)
    monkeypatch.setattr(http_protocol, "MAX_ANSWER_SECONDS", 0.5)
    async with serving() as (port, connections), client(port) as (reader, writer):
        writer.write(GET % b"/large")
        await until(lambda: len(connections) == 1)
        got = 0
        with contextlib.suppress(ConnectionError):
            while connections and got < LARGE // 16:
                got += len(await reader.read(1000))
                await asyncio.sleep(0.01)
        assert len(connections) == 0


@pytest.mark.parametrize(
    "request_", [b"", GET % b"/large", GET % b"/never"], ids=["silent", "not reading", "waiting"]
)
async def test_the_next_one_gets_in(request_: bytes):
    async with serving(MOST) as (port, connections), contextlib.AsyncExitStack() as stack:
        for _ in range(2 * MOST):
            _, writer = await stack.enter_async_context(client(port))
            writer.write(request_)
        for _ in range(3):
            assert await gets_its_answer(port)
        await until(lambda: 0 < len(connections) <= MOST // 2)  # all are of one address


async def test_who_never_begins_with_tls_keeps_no_one_out(monkeypatch: pytest.MonkeyPatch, certificates: Any):
    options, tls = certificates
    async with serving(MOST, **options) as (port, connections), contextlib.AsyncExitStack() as stack:
        for _ in range(2 * MOST):
            await stack.enter_async_context(client(port))
        for _ in range(3):
            assert await gets_its_answer(port, tls)
        assert len(connections) <= MOST // 2
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.1)
    async with serving(MOST, **options) as (port, connections), client(port):
        await until(lambda: len(connections) == 1)
        await until(lambda: len(connections) == 0)


def test_a_process_short_of_files_answers_the_next_client(start: StartServer):
    server = start()
    assert server.client.get("/openapi.json").status_code == 200
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (200, 200))
    host, port = server.url.removeprefix("http://").split(":")
    blocked = []
    for _ in range(250):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((host, int(port)))
        with contextlib.suppress(OSError):
            sock.sendall(GET % b"/openapi.json" * 40)
        blocked.append(sock)
    for _ in range(3):
        assert asks_anew(server).startswith(b"HTTP/1.1 200")
    for each in blocked:
        each.close()
    assert server.end() == 0
    assert "Traceback" not in server.log


def asks_anew(server: Server) -> bytes:
    """Ask for /healthz over a new connection."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as sock:
        sock.sendall(GET % b"/healthz")
        return sock.recv(1000)
