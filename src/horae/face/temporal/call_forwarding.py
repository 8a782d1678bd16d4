"""Forwards calls that Horae does not answer to a Temporal cluster, unchanged."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
import grpc.aio
from temporalio.api.workflowservice import v1 as api

from horae.errors import PermissionDeniedError
from horae.executor.temporal_connection import DETAILS, channel_to
from horae.face.service.caller import Caller
from horae.face.temporal.rpc_errors import Answer, Refusal, answer_to, read_message

_OWN_HEADERS = {"user-agent", "content-type", "te", "host"}
Headers = Iterable[tuple[bytes, bytes]]


class Forwarder:
    """A connection to a Temporal cluster: ``host:port``, or ``https://host:port`` for TLS."""

    def __init__(self, target: str, *, keeps_tokens: bool) -> None:
        """With ``keeps_tokens`` the authorization header is for Horae, and is not forwarded."""
        self._dropped = _OWN_HEADERS | {"authorization"} if keeps_tokens else _OWN_HEADERS
        self._channel = channel_to(target)

    async def call(self, path: str, request: bytes, headers: Headers, seconds: float | None) -> bytes:
        """The cluster's answer; its errors are raised unchanged."""
        given = [(name.decode("latin-1"), value) for name, value in headers]
        metadata = [
            (name, value if name.endswith("-bin") else value.decode("utf-8", "replace"))
            for name, value in given
            if name not in self._dropped and not name.startswith("grpc-")
        ]
        send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        return await send(request, timeout=seconds, metadata=metadata)

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()


def check_forwarded(
    caller: Caller, method: str, request: bytes, *, known_service: bool, for_everyone: bool
) -> None:
    """Refuse a call in another's namespace, and one without a namespace unless it is ``for_everyone`` or the caller sees all."""
    kind = getattr(api, f"{method}Request", None) if known_service else None
    if kind is not None and "namespace" in kind.DESCRIPTOR.fields_by_name:
        caller.owner_for(read_message(kind, request).namespace)
    elif not for_everyone and not caller.sees_all:
        raise PermissionDeniedError(f"Only the scope admin may call {method}, which names no namespace")


def passed_back(error: grpc.aio.AioRpcError) -> Answer:
    """A cluster's error as Horae's answer."""
    trailing = {str(name): value for name, value in error.trailing_metadata() or ()}
    details = trailing.get(DETAILS, b"")
    message = error.details() or ""
    if isinstance(details, bytes) and details:
        return Answer(error.code(), message, details)
    return answer_to(Refusal(error.code(), message))
