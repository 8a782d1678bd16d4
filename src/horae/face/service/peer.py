"""Connections: whose certificate one brought, and for how long one may say nothing. What uvicorn leaves open.

Who is silent keeps nobody out: a request must arrive in some seconds, and when there are too many connections, the one that has been
waiting for a request the longest is closed for the next one.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from horae.config import Config
from horae.face.service.auth import takes_tokens

PEER = "peer"
"""Where in the ``state`` of a request the name stands; ``None`` if there was no certificate."""
SECONDS = {h11.IDLE: 10, h11.SEND_BODY: 30}
"""How long the head of a request may take from when it could have begun, and its body from when the head was there."""
MOST_CONNECTIONS = 10_000


class PeerProtocol(H11Protocol):
    """HTTP/1.1 that tells each request the common name of the client's certificate, once TLS has verified it."""

    _waiting: ClassVar[dict[PeerProtocol, None]] = {}
    """The connections of this process on which a request is still to arrive, the longest wait first."""
    _arrival: asyncio.TimerHandle | None = None
    """Ends the connection if what it waits for does not arrive."""
    _awaited: tuple[Any, object] | None = None
    """What it waits for: a part of a request, after which other request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class does
        super().connection_made(transport)
        # Each connection has a protocol of its own, and the state is copied for each request.
        self.app_state = self.app_state | {PEER: common_name(transport.get_extra_info("ssl_object"))}
        self._wait()
        if len(self.connections) > most_connections():
            longest = next(iter(self._waiting), self)
            longest._wait_no_more()  # noqa: SLF001 - of this class; it is not chosen again
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """See what the connection waits for now. What it waited for already gets no more time."""
        part = self.conn.their_state
        if part not in SECONDS or self.transport.is_closing():
            self._wait_no_more()
        elif self._awaited != (part, self.cycle):
            self._wait_no_more()
            self._awaited = part, self.cycle
            self._waiting[self] = None
            self._arrival = self.loop.call_later(SECONDS[part], self.transport.close)

    def _wait_no_more(self) -> None:
        self._awaited = None
        self._waiting.pop(self, None)
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None


def most_connections() -> int:
    """How many connections may be open: they take half of the files that this process may have open now."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(files // 2, MOST_CONNECTIONS)


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
