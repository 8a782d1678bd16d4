"""HTTP requests as actions: what is sent, and what the answer means."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from horae.config import Config
from horae.errors import DestinationRefusedError, HttpStatusError, MissingExtraError, NotStartedError
from horae.executor.attempt_context import Accepted, Context
from horae.executor.http_destination import Destinations, Target, target_of
from horae.executor.http_options import HttpRequest, check_redirected, check_request
from horae.executor.port import Executor
from horae.executor.stored_output import MAX_RESULT_LENGTH, Secrets, kept_result, secrets_in, text_of, without
from horae.model import Action, Denial, Reason
from horae.spec.duration import duration_text, milliseconds

if TYPE_CHECKING:
    import httpcore

    from horae.executor.http_connection import Resolve

WITHOUT_BODY = {"GET", "HEAD", "DELETE"}
SHOWN_OF_ANSWER = 500


class HttpExecutor(Executor):
    """The kind ``http``: makes the request of a schedule."""

    kind = "http"
    options = HttpRequest
    secrets = ("headers", "secret")

    def __init__(
        self,
        config: Config,
        now: Callable[[], int],
        address: str = "",
        *,
        resolve: Resolve | None = None,
    ) -> None:
        """``address`` is where external workers report to, ``now`` the time in milliseconds."""
        self._config = config
        self._destinations = Destinations(config.http_allow, config.http_private)
        self._address = address.rstrip("/")
        self._now = now
        self._resolve = resolve
        self._pool: httpcore.AsyncConnectionPool | None = None

    def check(self, action: Action, options: HttpRequest, stored: HttpRequest | None) -> HttpRequest:  # noqa: ARG002
        """Refuse a request that is invalid, whose host is not allowed, or that takes stored secrets to another host."""
        check_request(options, self._destinations)
        if stored is not None:
            check_redirected(options, stored)
        return options

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - what the answer says
        """Make the request; the answer is the run's result, an error its failure."""
        request: HttpRequest = context.options
        check_request(request, self._destinations)
        token = await context.report_token() if request.reports else ""
        secrets = secrets_in([*request.headers.values(), request.secret, token])
        message = self._message(context, request, token)
        answer = await self._ask(message, milliseconds(request.timeout), secrets)
        if not (answer.status in request.success if request.success else 200 <= answer.status <= 299):
            raise HttpStatusError(answer.status, text_of(answer.body, MAX_RESULT_LENGTH)[:SHOWN_OF_ANSWER])
        return Accepted() if request.reports else _result(answer)

    def admit(self, action: Action) -> Denial | None:
        """Deny a destination that the operator no longer allows."""
        target = target_of(str(action.options.get("url")))
        try:
            self._destinations.check_host(target.host, target.port)
        except DestinationRefusedError as error:
            return Denial(Reason.NOT_ALLOWED, error.message)
        return None

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    def _message(self, context: Context, request: HttpRequest, token: str) -> _Message:
        """The request to send for a slot."""
        facts = _facts(context)
        if token:
            url = f"{self._address}/api/v1/runs/{quote(context.run_id, safe='')}"
            facts["report"] = {"url": url, "token": token}
        body = b"" if request.method in WITHOUT_BODY else msgspec.json.encode(facts)
        target = target_of(request.url)
        headers = {"Host": target.authority, "Accept-Encoding": "identity"}
        headers |= _fact_headers(facts) if request.method in WITHOUT_BODY else {}
        given = {name.lower() for name in request.headers}
        headers |= {name: value for name, value in _defaults(body).items() if name.lower() not in given}
        headers |= request.headers | {"Idempotency-Key": context.key}
        if request.secret:
            headers["Horae-Signature"] = signature(request.secret, self._now() // 1000, body)
        return _Message(request.method, target, headers, body)

    async def _ask(self, message: _Message, timeout_ms: int, secrets: Secrets) -> _Answer:
        """Send the request, and read the answer. An error before anything was sent counts as not started."""
        pool, failures = self._connected()
        sent = False

        async def trace(event: str, _: object) -> None:
            nonlocal sent
            sent = sent or event == "http11.send_request_headers.started"

        target = message.target
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._exchange(pool, message, trace, secrets)
        except TimeoutError:
            if sent:
                raise TimeoutError(f"no answer within {duration_text(timeout_ms)}") from None
            raise NotStartedError(
                f"no connection to {target.authority} within {duration_text(timeout_ms)}"
            ) from None
        except failures as error:
            if sent:
                raise ConnectionError(
                    f"the connection was lost before the answer: {type(error).__name__}"
                ) from None
            raise NotStartedError(f"cannot connect to {target.authority}: {error}") from None

    async def _exchange(
        self, pool: httpcore.AsyncConnectionPool, message: _Message, trace: object, secrets: Secrets
    ) -> _Answer:
        from horae.executor.http_connection import read_body  # noqa: PLC0415 - it came with the connection

        limit = self._config.output_limit
        # Read a little more, so that a secret at the limit is not cut in two and then missed.
        enough = limit + max(map(len, secrets), default=0)
        headers = [(name.encode(), value.encode()) for name, value in message.headers.items()]
        async with pool.stream(
            message.method,
            message.url(),
            headers=headers,
            content=message.body or None,
            extensions={"trace": trace},
        ) as response:
            body = await read_body(response, enough)
        return _Answer(response.status, without(body, secrets)[:limit], len(body) > limit)

    def _connected(self) -> tuple[httpcore.AsyncConnectionPool, tuple[type[Exception], ...]]:
        try:
            from horae.executor.http_connection import FAILURES, look_up, new_pool  # noqa: PLC0415 - if it is needed
        except ImportError as error:
            raise MissingExtraError("service", error.name or "httpx") from None
        if self._pool is None:
            self._pool = new_pool(self._destinations, self._resolve or look_up)
        return self._pool, FAILURES


class _Answer(msgspec.Struct, frozen=True):
    """The answer, with its body up to the limit."""

    status: int
    body: bytes
    truncated: bool


class _Message(msgspec.Struct, frozen=True):
    """A request as it is sent."""

    method: str
    target: Target
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Method and destination only: the rest may be secret."""
        return f"{self.method} {self.target.authority}"

    def url(self) -> httpcore.URL:
        import httpcore  # noqa: PLC0415 - it came with the connection

        target = self.target
        return httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)


def _defaults(body: bytes) -> dict[str, str]:
    """The default headers, which a schedule may override."""
    headers = {"User-Agent": f"horae/{_version()}"}
    return headers | {"Content-Type": "application/json"} if body else headers


@cache
def _version() -> str:
    try:
        return metadata.version("horae")
    except metadata.PackageNotFoundError:  # it runs from a folder
        return "0"


def signature(secret: str, seconds: int, body: bytes) -> str:
    """The header ``Horae-Signature``: the time of signing, and the HMAC-SHA256 of that time, a dot and the body."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (seconds, body), hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def _facts(context: Context) -> dict[str, Any]:
    """The facts about its slot that a request carries."""
    return {
        "schedule_id": context.schedule_id, "run_id": context.run_id, "action_id": context.action_id,
        "nominal": context.nominal, "fire_time": context.fire_time, "attempt": context.attempt,
        "origin": context.origin, "idempotency_key": context.key, "input": context.input,
        "last_result": context.last_result, "last_failure": context.last_failure,
    }  # fmt: skip


_IN_HEADERS = ("schedule_id", "run_id", "action_id", "nominal", "fire_time", "attempt", "origin")


def _fact_headers(facts: dict[str, Any]) -> dict[str, str]:
    """The facts as headers, for a request without a body; characters that a header cannot have are percent-encoded."""
    headers = {}
    for name in _IN_HEADERS:
        fact = facts[name]
        text = str(msgspec.to_builtins(fact) if isinstance(fact, datetime) else fact)
        headers[_header(name)] = quote(text, safe="!#$&'()*+,/:;=?@[]-._~")
    return headers | {_header(f"report_{name}"): value for name, value in facts.get("report", {}).items()}


def _header(fact: str) -> str:
    return f"Horae-{fact.replace('_', '-').title()}"


def _result(answer: _Answer) -> dict[str, Any]:
    """The result of an answer: its body as JSON if it is JSON, else as text."""
    most = MAX_RESULT_LENGTH // 2
    if answer.truncated:
        return {"status": answer.status, "body": text_of(answer.body, most), "truncated": True}
    try:
        result = {"status": answer.status, "body": msgspec.json.decode(answer.body)}
        if len(kept_result(result)) <= most:
            return result
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # text then
    return {"status": answer.status, "body": text_of(answer.body, most)}
