"""Connections to servers that speak Temporal's API: ``host:port``, or ``https://host:port`` for TLS."""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message
from temporalio.api.common.v1 import GrpcStatus

SERVICE = "temporal.api.workflowservice.v1.WorkflowService"
DETAILS = "grpc-status-details-bin"
MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""The most bytes of a request: what Temporal's own server takes."""
MAX_ANSWER_BYTES = 128 * 1024 * 1024
"""The most bytes of an answer; histories are large."""
A = TypeVar("A", bound=Message)


def channel_to(target: str) -> grpc.aio.Channel:
    """A channel to a server; it connects when it is first used, and reconnects when it was cut off."""
    options = [
        ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
        ("grpc.max_send_message_length", MAX_REQUEST_BYTES),
        ("grpc.max_reconnect_backoff_ms", 5000),
    ]
    plain = target.removeprefix("https://")
    if plain == target:
        return grpc.aio.insecure_channel(plain, options=options)
    return grpc.aio.secure_channel(plain, grpc.ssl_channel_credentials(), options=options)


class TemporalConnection:
    """A connection to a server, with a token if the server asks for one."""

    def __init__(self, target: str, token: str | None = None) -> None:
        self.target = target
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._channel: grpc.aio.Channel | None = None

    async def send(self, request: Message, kind: type[A], seconds: float) -> A:
        """Send a request and return the answer; raise the server's error as it is."""
        if self._channel is None:  # a channel belongs to the event loop that uses it
            self._channel = channel_to(self.target)
        method = type(request).__name__.removesuffix("Request")
        send: Any = self._channel.unary_unary(f"/{SERVICE}/{method}")
        answer = await send(request.SerializeToString(), timeout=seconds, metadata=self._metadata)
        return kind.FromString(answer)

    async def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            await self._channel.close()
            self._channel = None


def detail_of(error: grpc.aio.AioRpcError, kind: type[A]) -> A:
    """The detail of a kind that an error carries; an empty one if it carries none."""
    packed = {str(name): value for name, value in error.trailing_metadata() or ()}.get(DETAILS)
    detail = kind()
    if isinstance(packed, bytes):
        with contextlib.suppress(DecodeError):
            any(each.Unpack(detail) for each in GrpcStatus.FromString(packed).details)
    return detail
