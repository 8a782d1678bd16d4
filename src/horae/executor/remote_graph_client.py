"""The executing side behind HTTP: sends requests to another Horae service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from horae.config import Config
from horae.errors import ExecutionInProgressError, IdempotencyMismatchError, NoCreditError, NotStartedError
from horae.executor.graph_executor import Watch
from horae.extras import import_extra
from horae.grant_model import GRANT_ERRORS, ExecutionOutcome, ExecutionRequest
from horae.model import Reason

if TYPE_CHECKING:
    import httpx

ANSWERED_WITHIN = 90
"""Seconds; the executing side answers within a minute that a graph is still running."""
CONNECTED_WITHIN = 10
TOKEN_LIFETIME = 300


class RemoteExecution:
    """Sends requests to the executing side. A request whose outcome is not known is sent again, with the same key."""

    def __init__(self, config: Config, graphs: Callable[[], Collection[str]], now: Callable[[], int]) -> None:
        self._config = config
        self.graphs = graphs
        self._now = now
        self._client: httpx.AsyncClient | None = None

    async def execute(self, request: ExecutionRequest, watch: Watch) -> ExecutionOutcome:
        """Execute a request on the other service."""
        path = f"/api/internal/graphs/{quote(request.graph_id, safe='')}/runs"
        fields = ("run_id", "user_id", "grant_id", "attempt", "input")
        body = {name: getattr(request, name) for name in fields}
        try:
            answer = await self._post(path, request.key, body)
        except asyncio.CancelledError:
            with contextlib.suppress(NotStartedError, asyncio.CancelledError):
                await asyncio.shield(self._post(f"{path}/cancel", request.key, {"user_id": request.user_id}))
            raise
        if answer.status_code == 200:
            outcome = _read(answer)
            for event in outcome.events:
                watch.event(event)
            return outcome
        raise _error(answer, request)

    async def _post(self, path: str, key: str, body: dict[str, Any]) -> httpx.Response:
        import httpx  # noqa: PLC0415 - an extra

        if self._client is None:
            timeout = httpx.Timeout(ANSWERED_WITHIN, connect=CONNECTED_WITHIN)
            self._client = httpx.AsyncClient(
                base_url=self._config.graph_execution_url.rstrip("/"), timeout=timeout, trust_env=False
            )
        headers = {
            "Authorization": f"Bearer {self._token()}", "Content-Type": "application/json",
            "Idempotency-Key": quote(key, safe=":/"),
        }  # fmt: skip
        try:
            return await self._client.post(path, content=msgspec.json.encode(body), headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise NotStartedError(f"the executing side cannot be reached: {reason}") from None

    def _token(self) -> str:
        config = self._config
        if config.graph_execution_token or not config.jwt_secret:
            return config.graph_execution_token or "none"
        jwt = import_extra("jwt")
        now = self._now() // 1000
        claims = {
            "sub": "horae-worker", "aud": config.jwt_audience, "scope": "service", "iat": now, "exp": now + TOKEN_LIFETIME,
        }  # fmt: skip
        claims |= {"iss": config.jwt_issuer} if config.jwt_issuer else {}
        return str(jwt.encode(claims, config.jwt_secret, "HS256"))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _read(answer: httpx.Response) -> ExecutionOutcome:
    try:
        return msgspec.json.decode(answer.content, type=ExecutionOutcome)
    except msgspec.MsgspecError:
        raise NotStartedError("the executing side's answer is not an outcome") from None


def _error(answer: httpx.Response, request: ExecutionRequest) -> Exception:
    """The error that an answer of the executing side stands for; after an answer that is not clear, the request may be made again."""
    try:
        code = str(msgspec.json.decode(answer.content)["code"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        code = ""
    match code:
        case "execution_in_progress":
            after = answer.headers.get("Retry-After", "1")
            return ExecutionInProgressError(float(after) if after.isdecimal() else 1)
        case "idempotency_mismatch":
            return IdempotencyMismatchError(request.key)
        case "no_credit":
            return NoCreditError(request.user_id)
        case _ if code in GRANT_ERRORS:
            return GRANT_ERRORS[Reason(code)](request.grant_id)
        case _:
            return NotStartedError(f"the executing side answered {answer.status_code} {code}".rstrip())
