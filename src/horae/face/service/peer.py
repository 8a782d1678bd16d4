"""Whose certificate a connection brought: mutual TLS for uvicorn."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from horae.config import Config
from horae.face.service.auth import takes_tokens

PEER = "peer"
"""Where in the ``state`` of a request the name stands; ``None`` if there was no certificate."""


class PeerProtocol(H11Protocol):
    """HTTP/1.1 that tells each request the common name of the client's certificate, once TLS has verified it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class does
        super().connection_made(transport)
        # Each connection has a protocol of its own, and the state is copied for each request.
        self.app_state = self.app_state | {PEER: common_name(transport.get_extra_info("ssl_object"))}


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
