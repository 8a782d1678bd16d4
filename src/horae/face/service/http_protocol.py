"""HTTP/1.1 connections with what uvicorn lacks: the name in the client's certificate, and time limits for slow clients.

A request must arrive within seconds. An answer must be read fast enough, and completely within minutes.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from horae.config import Config
from horae.face.service.auth import takes_tokens
from horae.face.service.connection_limit import Connection, Connections

PEER = "peer"
"""The key of the certificate's name in the ``state`` of a request; the value is ``None`` without a certificate."""
SECONDS = {h11.IDLE: 10, h11.SEND_BODY: 30}
"""How long the head of a request may take from when it could begin, and its body from the end of the head."""
WRITE_WINDOW = 10
"""The window in seconds over which the reading speed of a client is measured."""
MIN_BYTES_PER_SECOND = 4096
"""How fast a client must read an answer, over each window."""
MAX_ANSWER_SECONDS = 300
"""How long a client may take to read an answer, from when it first fell behind."""
PIECE = 64 * 1024
"""How many bytes of an answer are written at once. Under TLS, the bytes that wait after a write cannot be measured."""


class HttpProtocol(H11Protocol):
    """HTTP/1.1 that gives each request the common name in the client's certificate, once TLS has verified it."""

    _arrival: asyncio.TimerHandle | None = None
    """Closes the connection if what it waits for does not arrive."""
    _awaited: tuple[Any, object] | None = None
    """What the connection waits for: a part of a request, and the request before it."""
    _reading: asyncio.TimerHandle | None = None
    """Checks whether the client reads what was written."""
    _slow: tuple[object, float] | None = None
    """The request whose answer the client is slow to read, and the deadline for reading it."""
    _connection: Connection | None = None

    def __init__(self, connections: Connections, /, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*arguments, **named)
        self._connections = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class does
        super().connection_made(transport)
        self._connection = self._connections.claim(transport.get_extra_info("socket"), transport.abort)
        if self._connection is None:  # it was closed for another connection before it began
            transport.abort()
            return
        # Call `pause_writing` whenever anything waits to be written, and `resume_writing` when nothing does.
        transport.set_write_buffer_limits(high=1, low=0)
        # Each connection has its protocol object, and the state is copied for each request.
        self.app_state = self.app_state | {PEER: common_name(transport.get_extra_info("ssl_object"))}
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        now = self.loop.time()
        if self._slow is None or self._slow[0] is not self.cycle:
            self._slow = self.cycle, now + MAX_ANSWER_SECONDS
        self._watch_reading()
        self._wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch_no_more()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._watch_no_more()
        if self._connection is not None:
            self._connections.end(self._connection)
            self._connection = None
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Update what the connection waits for, and its deadline. If it still waits for the same, the deadline stays."""
        if self._connection is None:
            return
        part = self.conn.their_state
        is_behind, is_closing = self.flow.write_paused, self.transport.is_closing()
        if is_behind or is_closing or part not in SECONDS:
            self._wait_no_more()
        elif self._awaited != (part, self.cycle):
            self._wait_no_more()
            self._awaited = part, self.cycle
            self._arrival = self.loop.call_later(SECONDS[part], self.transport.close)
        waiting = is_behind or is_closing or self._awaited is not None
        self._connections.mark(self._connection, waiting=waiting)

    def _wait_no_more(self) -> None:
        self._awaited = None
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _watch_reading(self) -> None:
        """Check after a window how much of the answer is still unread."""
        self._watch_no_more()
        waits = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(WRITE_WINDOW, self._check_reading, waits)

    def _check_reading(self, waited: int) -> None:
        read = waited - self.transport.get_write_buffer_size()
        is_late = self._slow is not None and self.loop.time() >= self._slow[1]
        if is_late or read < WRITE_WINDOW * MIN_BYTES_PER_SECOND:
            self.transport.abort()
        else:
            self._watch_reading()

    def _watch_no_more(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


def in_pieces(service: Any) -> Any:  # noqa: ANN401 - an ASGI application
    """Wrap a service so that its answers are written piece by piece, as the client reads them."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        async def send_pieces(message: Any) -> None:  # noqa: ANN401
            body = message.get("body", b"")
            for begin in range(0, len(body) - PIECE, PIECE):
                await send(message | {"body": body[begin : begin + PIECE], "more_body": True})
            if len(body) > PIECE:
                message = message | {"body": body[(len(body) - 1) // PIECE * PIECE :]}
            await send(message)

        await service(scope, receive, send_pieces)

    return answer


def common_name(connection: ssl.SSLObject | None) -> str | None:
    """The common name of a verified certificate; ``None`` if it has several, which would be ambiguous."""
    if connection is None or connection.context.verify_mode is ssl.CERT_NONE:
        return None
    certificate = connection.getpeercert() or {}
    subject: Any = certificate.get("subject", ())
    names = [value for parts in subject for key, value in parts if key == "commonName"]
    return names[0] if len(names) == 1 else None


def tls_options(config: Config) -> dict[str, Any]:
    """The options of uvicorn for HTTPS; empty without TLS."""
    if not config.tls_certificate:
        return {}
    options: dict[str, Any] = {"ssl_certfile": config.tls_certificate, "ssl_keyfile": config.tls_key}
    if config.tls_client_ca:
        options["ssl_ca_certs"] = config.tls_client_ca
        # Where tokens are accepted too, a connection may have no certificate.
        options["ssl_cert_reqs"] = ssl.CERT_OPTIONAL if takes_tokens(config) else ssl.CERT_REQUIRED
    return options
