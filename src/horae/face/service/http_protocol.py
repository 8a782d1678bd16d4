"""Connections over HTTP/1.1: whose certificate one brought, and for how long the client may keep it waiting. What uvicorn leaves open.

A request must arrive in some seconds, and an answer must be read: not too slowly, and to its end within some minutes.
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
"""Where in the ``state`` of a request the name stands; ``None`` if there was no certificate."""
SECONDS = {h11.IDLE: 10, h11.SEND_BODY: 30}
"""How long the head of a request may take from when it could have begun, and its body from when the head was there."""
WRITE_WINDOW = 10
"""Seconds in which a client that reads an answer must have read enough of it, or all."""
MIN_BYTES_PER_SECOND = 4096
"""How fast an answer must be read, over each window."""
MAX_ANSWER_SECONDS = 300
"""How long an answer may take to be read, from when the client first fell behind."""
PIECE = 64 * 1024
"""How much of an answer is written at once. Under TLS what was written cannot be seen waiting."""


class HttpProtocol(H11Protocol):
    """HTTP/1.1 that tells each request the common name of the client's certificate, once TLS has verified it."""

    _arrival: asyncio.TimerHandle | None = None
    """Ends the connection if what it waits for does not arrive."""
    _awaited: tuple[Any, object] | None = None
    """What it waits for: a part of a request, after which other request."""
    _reading: asyncio.TimerHandle | None = None
    """Sees whether the client reads what was written for it."""
    _slow: tuple[object, float] | None = None
    """The request whose answer the client fell behind with, and when it must have read it."""
    _connection: Connection | None = None

    def __init__(self, connections: Connections, /, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*arguments, **named)
        self._connections = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class does
        super().connection_made(transport)
        self._connection = self._connections.claim(transport.get_extra_info("socket"), transport.abort)
        if self._connection is None:  # another one got its place before it began
            transport.abort()
            return
        # Whenever anything waits to be written, this says so; and again when nothing does.
        transport.set_write_buffer_limits(high=1, low=0)
        # Each connection has a protocol of its own, and the state is copied for each request.
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
        """See what the connection waits for now. What it waited for already gets no more time."""
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
        if is_behind or is_closing or self._awaited is not None:
            self._connections.waits(self._connection)
        else:
            self._connections.works(self._connection)

    def _wait_no_more(self) -> None:
        self._awaited = None
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _watch_reading(self) -> None:
        """Look again, when a window has passed, at how much of the answer still waits."""
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
    """A service whose answers are written piece by piece, as the client reads them."""

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
    """The one common name of a verified certificate; with several nobody could say who it is."""
    if connection is None or connection.context.verify_mode is ssl.CERT_NONE:
        return None
    certificate = connection.getpeercert() or {}
    subject: Any = certificate.get("subject", ())
    names = [value for parts in subject for key, value in parts if key == "commonName"]
    return names[0] if len(names) == 1 else None


def tls_options(config: Config) -> dict[str, Any]:
    """What uvicorn must know to speak https; nothing if it shall not."""
    if not config.tls_certificate:
        return {}
    options: dict[str, Any] = {"ssl_certfile": config.tls_certificate, "ssl_keyfile": config.tls_key}
    if config.tls_client_ca:
        options["ssl_ca_certs"] = config.tls_client_ca
        # Where a token will do instead, a connection without a certificate may bring one.
        options["ssl_cert_reqs"] = ssl.CERT_OPTIONAL if takes_tokens(config) else ssl.CERT_REQUIRED
    return options
