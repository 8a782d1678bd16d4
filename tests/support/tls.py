"""Trusted certificates, loaded once for all tests of a process: each load takes longer than most tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any
from unittest import mock

import httpx
from httpx._transports import default as httpx_transports

from horae.executor import http_connection


@contextmanager
def shared_trust() -> Iterator[None]:
    """Clients and executors of HTTP share what they trust, as long as the environment names the same files."""
    with (
        mock.patch.object(httpx_transports, "create_ssl_context", _once(httpx.create_ssl_context)),
        mock.patch.object(http_connection, "load_trust", _once(http_connection.load_trust)),
    ):
        yield


def _once(load: Callable[..., SSLContext]) -> Callable[..., SSLContext]:
    loaded: dict[object, SSLContext] = {}

    def load_once(*given: Any, **named: Any) -> SSLContext:
        files = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        key = (given, *named.items(), files)
        if key not in loaded:
            loaded[key] = load(*given, **named)
        return loaded[key]

    return load_once
