"""The options of the kind ``http``: a request, and the checks of it."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from horae.errors import DestinationRefusedError, InvalidInputError
from horae.executor.http_destination import Destinations, target_of
from horae.executor.secret_sealing import HIDDEN
from horae.spec.duration import Duration, DurationFields, milliseconds

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
MAX_TIMEOUT = "1h"
MAX_HEADERS = 50
MAX_HEADERS_LENGTH = 16 * 1024

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e\t]*")
_OURS = {
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
    "proxy-authorization", "proxy-connection", "idempotency-key",
}  # fmt: skip


class HttpRequest(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that the action ``http`` makes. Its JSON body says which slot it is for; see ``docs/reference/http-action.md``."""

    url: Annotated[str, Meta(description="Where it goes: `https://example.com/path`.")]
    method: Annotated[str, Meta(description="`GET`, `POST`, `PUT`, `PATCH`, `DELETE` or `HEAD`.")] = "POST"
    headers: Annotated[
        dict[str, str], Meta(description="Their values are stored encrypted, and never shown.")
    ] = msgspec.field(default_factory=dict)
    secret: Annotated[
        str, Meta(description="What the body is signed with; stored encrypted, and never shown.")
    ] = ""
    success: Annotated[
        tuple[int, ...],
        Meta(description="The statuses that mean success; none named is any from 200 to 299."),
    ] = ()
    timeout: Annotated[Duration, Meta(description="How long an answer may take.")] = "30s"
    reports: Annotated[
        bool,
        Meta(
            description="Whether success only means that the work was accepted: an external worker reports its end with the run's own token."
        ),
    ] = False

    def __repr__(self) -> str:
        """Omit the secret and the values of headers."""
        return f"HttpRequest({self.method} {self.url}, headers={sorted(self.headers)})"


def check_request(request: HttpRequest, destinations: Destinations) -> None:
    """Refuse a request that is invalid, or whose host is not allowed."""
    target = target_of(request.url)
    try:
        destinations.check_host(target.host, target.port)
    except DestinationRefusedError as error:
        raise InvalidInputError(
            "action.options.url", f"is not allowed: {error.details['reason']}", hint=error.hint
        ) from None
    if request.method not in METHODS:
        raise InvalidInputError("action.options.method", f"must be one of {', '.join(METHODS)}")
    if not 1 <= milliseconds(request.timeout) <= milliseconds(MAX_TIMEOUT):
        raise InvalidInputError(
            "action.options.timeout", f"must be from 1ms to {MAX_TIMEOUT}, and is {request.timeout}"
        )
    if not all(100 <= status <= 599 for status in request.success):
        raise InvalidInputError("action.options.success", "must be statuses from 100 to 599")
    _check_headers(request.headers)


def _check_headers(headers: dict[str, str]) -> None:
    """Refuse illegal names and values, and headers that Horae sets itself. Errors never show values."""
    if len(headers) > MAX_HEADERS or sum(map(len, (*headers, *headers.values()))) > MAX_HEADERS_LENGTH:
        reason = f"must be at most {MAX_HEADERS}, and {MAX_HEADERS_LENGTH} characters"
        raise InvalidInputError("action.options.headers", reason)
    seen = set()
    for name, value in headers.items():
        field, lower = f"action.options.headers.{name[:100]}", name.lower()
        if not _NAME.fullmatch(name):
            raise InvalidInputError(field, "is not a valid header name")
        if lower in _OURS or lower.startswith("horae-"):
            raise InvalidInputError(field, "is set by Horae, and cannot be given")
        if lower in seen:
            raise InvalidInputError(field, "is given twice")
        if not _VALUE.fullmatch(value):
            raise InvalidInputError(field, "has a value with a character that no header can have")
        seen.add(lower)


def check_redirected(request: HttpRequest, stored: HttpRequest) -> None:
    """Refuse to send stored secrets to another host: the caller who changes where a request goes must know them."""
    if urlsplit(request.url)[:2] == urlsplit(stored.url)[:2]:
        return
    values = {f"headers.{name}": value for name, value in request.headers.items()}
    for name, value in (values | {"secret": request.secret}).items():
        if value == HIDDEN:
            raise InvalidInputError(
                f"action.options.{name}",
                f"is {HIDDEN}, and the request goes to another host now",
                hint="give the value again: the caller who changes where a request goes must know what it carries",
            )
