"""The gRPC server: reads the caller and the request, lets ``calls.py`` answer, and turns failures into status codes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from temporalio.api.workflowservice import v1 as api

from horae.app import App
from horae.config import Config
from horae.errors import HoraeError, LimitExceededError, ListenError
from horae.executor.temporal_connection import DETAILS, MAX_REQUEST_BYTES, SERVICE
from horae.face.service.auth import Authenticator, takes_tokens
from horae.face.service.caller import Caller
from horae.face.service.listen_errors import cannot_listen
from horae.face.service.rate_limit import RateLimit
from horae.face.temporal.call_forwarding import Forwarder, check_forwarded, passed_back
from horae.face.temporal.rpc_errors import INTERNAL, Answer, Code, Refusal, answer_to, read_message
from horae.face.temporal.schedule_calls import ANSWERED_BY_THE_CLUSTER, HANDLERS, Call, Served, with_schedules

HEALTH = "grpc.health.v1.Health"
READING = ("Get", "Describe", "List", "Count", "Scan", "Query")
"""Calls whose names begin so change nothing."""
_SERVING = Int32Value(value=1).SerializeToString()
"""A ``HealthCheckResponse``, which has the same encoding as an ``Int32Value``; the request has that of a ``StringValue``."""
_KEEPALIVE_S = 10
_UNIMPLEMENTED = (
    "Horae answers only Temporal's schedule calls, and not {method}. Start horae serve with --temporal-forward "
    "to forward other calls to a Temporal cluster"
)
_GRACE = 5
"""How many seconds calls may take to finish at shutdown."""
_log = logging.getLogger("horae")
Counted = Callable[[str, str, float], None]
Context = grpc.aio.ServicerContext[bytes, bytes]


class TemporalServer(grpc.GenericRpcHandler):
    """Serves the calls of Temporal's service on an open app."""

    def __init__(self, app: App, config: Config, counted: Counted | None = None) -> None:
        """``counted`` is called with the method, the code and the seconds of each answered call."""
        self._config = config
        self._counted = counted
        self._monotonic = app.clock.monotonic
        self._authenticator = Authenticator(config, app.now)
        self._pace = RateLimit(config.requests_per_second, app.clock.monotonic)
        self._served = Served(app)
        self._handler = lru_cache(maxsize=1000)(self._new_handler)
        self._server: grpc.aio.Server | None = None
        self._forward: Forwarder | None = None

    async def start(self) -> int:
        """Start to listen, and return the port."""
        config = self._config
        if config.temporal_forward:
            self._forward = Forwarder(config.temporal_forward, keeps_tokens=takes_tokens(config))
        self._server = grpc.aio.server(
            maximum_concurrent_rpcs=config.temporal_calls,
            options=[
                ("grpc.max_receive_message_length", self._most_bytes),
                ("grpc.max_concurrent_streams", config.temporal_calls),
                ("grpc.max_metadata_size", 32 * 1024),
                ("grpc.http2.min_ping_interval_without_data_ms", _KEEPALIVE_S * 1000),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.so_reuseport", 0),
            ],
        )
        self._server.add_generic_rpc_handlers((self,))
        try:
            port = self._listen(self._server, config)
        except ListenError:
            await self.stop()
            raise
        await self._server.start()
        return port

    @property
    def _most_bytes(self) -> int:
        limit = self._config.body_limit
        return max(limit, MAX_REQUEST_BYTES) if self._config.temporal_forward else limit

    def _listen(self, server: grpc.aio.Server, config: Config) -> int:
        host = f"[{config.host}]" if ":" in config.host else config.host
        place = f"{host}:{config.temporal_port}"
        try:
            if config.tls_certificate:
                return server.add_secure_port(place, _credentials(config))
            return server.add_insecure_port(place)
        except RuntimeError:
            raise _cannot_listen(config) from None

    async def stop(self) -> None:
        """Accept no more calls, and let current ones finish."""
        if self._server is not None:
            await self._server.stop(_GRACE)
        if self._forward is not None:
            await self._forward.close()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as grpc has it
        """The handler of any call, known or not. It decodes requests itself, so that malformed ones get a proper code."""
        return self._handler(handler_call_details.method)

    def _new_handler(self, path: str) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def handle(request: bytes, context: Context) -> bytes:
            return await self._answer(path, request, context)

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _answer(self, path: str, request: bytes, context: Context) -> bytes:
        begun, code = self._monotonic(), Code.CANCELLED
        try:
            answer = await self._answered(path, request, context)
            if isinstance(answer, bytes):
                code = Code.OK
                return answer
            code = answer.code
            await context.abort(code, answer.message, trailing_metadata=((DETAILS, answer.details),))
            raise AssertionError("abort ends the call")
        finally:
            if self._counted is not None:
                self._counted(_counted_name(path), code.name, self._monotonic() - begun)

    async def _answered(self, path: str, request: bytes, context: Context) -> bytes | Answer:
        try:
            return await self._dispatch(path, request, context)
        except (HoraeError, Refusal) as error:
            return answer_to(error)
        except grpc.aio.AioRpcError as error:
            return passed_back(error)
        except Exception:
            _log.exception("%s failed", path)
            return answer_to(Refusal(Code.INTERNAL, INTERNAL))

    async def _dispatch(self, path: str, request: bytes, context: Context) -> bytes:
        service, _, method = path.strip("/").rpartition("/")
        if service == HEALTH and method == "Check":
            return _health(request)
        headers = _headers(context)
        caller = await self._authenticator.caller(headers, _peer(context))
        self._pace.check_user(caller.user)
        if not method.startswith(READING):
            caller.check_change()
        own = service == SERVICE and method in HANDLERS
        if self._forward is not None and (not own or method in ANSWERED_BY_THE_CLUSTER):
            check_forwarded(caller, method, request, known_service=service == SERVICE, for_everyone=own)
            try:
                answer = await self._forward.call(path, request, headers, context.time_remaining())
                return with_schedules(answer) if method == "GetSystemInfo" else answer
            except grpc.aio.AioRpcError as error:
                if not own or error.code() is not Code.UNAVAILABLE:
                    raise
        if not own:
            raise Refusal(Code.UNIMPLEMENTED, _UNIMPLEMENTED.format(method=method or "this"))
        return await self._own(method, request, caller)

    async def _own(self, method: str, request: bytes, caller: Caller) -> bytes:
        """Answer one of Horae's own calls."""
        if len(request) > self._config.body_limit:
            reason = f"the message has {len(request)} bytes"
            raise LimitExceededError("body_limit", self._config.body_limit, reason)
        message = read_message(getattr(api, f"{method}Request"), request)
        answer = await HANDLERS[method](Call(self._served, caller), message)
        return answer.SerializeToString()


def _cannot_listen(config: Config) -> ListenError:
    """Why gRPC could not listen; it does not say, so ask the operating system."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    error = OSError("gRPC cannot use it")
    with socket.socket(family) as probe:
        try:
            probe.bind((config.host, config.temporal_port or 0))
        except OSError as found:
            error = found
    return cannot_listen(config.host, config.temporal_port or 0, error, option="--temporal-port")


def _counted_name(path: str) -> str:
    """The name to count a call under; unknown names are counted together."""
    service, _, method = path.strip("/").rpartition("/")
    known = hasattr(api, f"{method}Request") if service == SERVICE else (service, method) == (HEALTH, "Check")
    return method if known else "other"


def _health(request: bytes) -> bytes:
    try:
        asked = StringValue.FromString(request).value
    except DecodeError:
        raise Refusal(Code.INVALID_ARGUMENT, "The message is no HealthCheckRequest") from None
    if asked not in {"", SERVICE}:
        raise Refusal(Code.NOT_FOUND, f"There is no service {asked[:200]!r} here")
    return _SERVING


def _headers(context: Context) -> list[tuple[bytes, bytes]]:
    """The headers of a call. Browsers cannot call gRPC, so the host need not be checked, and is localhost."""
    given = context.invocation_metadata() or ()
    headers = [(_bytes(name).lower(), _bytes(value)) for name, value in given]
    return [*(each for each in headers if each[0] != b"host"), (b"host", b"localhost")]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _peer(context: Context) -> str | None:
    """The common name of the client's verified certificate, if it has one."""
    names = context.auth_context().get("x509_common_name", ())
    return next((each.decode("utf-8", "replace") for each in names), None)


def _credentials(config: Config) -> grpc.ServerCredentials:
    """The TLS credentials of the HTTP service; if tokens are accepted too, client certificates are optional."""
    key, certificate = Path(config.tls_key).read_bytes(), Path(config.tls_certificate).read_bytes()
    if not config.tls_client_ca:
        return grpc.ssl_server_credentials([(key, certificate)])
    authority = Path(config.tls_client_ca).read_bytes()
    return grpc.ssl_server_credentials(
        [(key, certificate)], authority, require_client_auth=not takes_tokens(config)
    )
