"""Errors as answers: ``application/problem+json`` with a stable code, the faulty field, and a hint."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.status_codes import HTTP_500_INTERNAL_SERVER_ERROR

from horae import errors
from horae.checked import in_words
from horae.errors import HoraeError, InvalidSpecError, LimitExceededError, SpecError

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("horae")

_ERRORS: dict[int, tuple[type[HoraeError], ...]] = {
    401: (errors.AuthenticationError,),
    402: (errors.NoCreditError,),
    403: (
        errors.PermissionDeniedError, errors.ActionNotAllowedError, errors.GrantRevokedError, errors.GrantExpiredError,
        errors.GrantScopeError,
    ),
    404: (
        errors.ScheduleNotFoundError, errors.RunNotFoundError, errors.BackfillNotFoundError, errors.CalendarNotFoundError,
        errors.GrantNotFoundError, errors.WorkflowNotFoundError, errors.FlowNotFoundError, errors.FlowRunNotFoundError,
        errors.FlowInputNotFoundError,
    ),
    409: (
        errors.ScheduleExistsError, errors.ScheduleAmbiguousError, errors.ScheduleUnreadableError, errors.CalendarInUseError,
        errors.ConflictTokenMismatchError, errors.ExecutionInProgressError, errors.ReportRefusedError, errors.RerunRefusedError,
        errors.WorkflowConflictError, errors.FlowRefusedError,
    ),
    429: (errors.TooManyEvaluationsError,),
    503: (
        errors.StoreUnavailableError, errors.ClockOffError, errors.DatabaseVersionError, errors.EvaluationTimeoutError,
    ),
}  # fmt: skip
STATUSES = {kind: status for status, kinds in _ERRORS.items() for kind in kinds}
"""The HTTP status of each error; all others have 422."""

_INSIDE = (errors.StoreUnavailableError, errors.DatabaseVersionError)
"""Errors for the operator: their details are not shown to callers."""
_LIMITS = {"body_limit": 413, "requests_per_second": 429}


class Fault(msgspec.Struct, frozen=True):
    """One fault of a request: where it is, and what is wrong."""

    path: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as in RFC 9457. ``code`` is stable, even if the wording changes."""

    title: str
    status: int
    detail: str
    code: str
    type: str = "about:blank"
    hint: str | None = None
    errors: list[Fault] = []
    details: dict[str, Any] = {}


class StatusError(Exception):
    """An error that a route answers with another status than usual."""

    def __init__(self, error: HoraeError, status: int) -> None:
        super().__init__(error.message)
        self.problem = problem_of(error, status)


def code_of(error: HoraeError) -> str:
    """The stable name of an error: its class name in lower case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower()


def problem_of(error: HoraeError, status: int | None = None) -> Problem:
    """An error that Horae raised deliberately."""
    if status is None:
        status = STATUSES.get(type(error), 422)
        if isinstance(error, LimitExceededError):
            status = _LIMITS.get(error.details["limit"], 422)
    path = _path(error)
    faults = [Fault(path, str(error.details.get("reason", error.message)))] if path else []
    return Problem(
        title=HTTPStatus(status).phrase, status=status, detail=error.message, code=code_of(error), hint=error.hint,
        errors=faults, details={} if isinstance(error, _INSIDE) else _plain(error.details),
    )  # fmt: skip


def _path(error: HoraeError) -> str:
    """The place of an error in a request; empty if it has no single place."""
    if isinstance(error, InvalidSpecError):
        element = str(error.details["element"])
        return element if element.split(".", maxsplit=1)[0] == "spec" else f"spec.{element}"
    if isinstance(error, SpecError):
        return "spec"
    return str(error.details.get("field", ""))


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Details converted to JSON, whatever their types."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(details, enc_hook=str))
    return plain


def answer(problem: Problem, headers: dict[str, str] | None = None) -> Response[bytes]:
    """A problem as an answer."""
    return Response(
        msgspec.json.encode(problem), media_type=MEDIA_TYPE, status_code=problem.status, headers=headers
    )


def on_horae_error(_: Request[Any, Any, Any], error: HoraeError) -> Response[bytes]:
    """An error that Horae raised deliberately."""
    problem = problem_of(error)
    headers = {}
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="horae"'
    if problem.status in {429, 503} or "retryAfter" in error.details:
        headers["Retry-After"] = str(error.details.get("retryAfter", 1))
    return answer(problem, headers)


def on_status_error(_: Request[Any, Any, Any], error: StatusError) -> Response[bytes]:
    """An error with the status of its route."""
    return answer(error.problem)


_BODY = "data"
"""What Litestar calls a body."""
_MISSING_PARAMETER = re.compile(r"Missing required (?:query|header) parameter '(.+?)'")
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "limit_exceeded", 415: "unsupported_media_type"}


def on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """A request that failed before it reached its handler."""
    if error.status_code >= HTTP_500_INTERNAL_SERVER_ERROR:
        return on_defect(request, error)
    faults = _faults(error) if isinstance(error, ValidationException) else []
    code = _CODES.get(error.status_code, "invalid_request")
    detail = str(error.detail)
    hint = next((each["hint"] for each in _extra(error) if "hint" in each), None)
    if error.status_code == 404:
        detail, hint = f"There is nothing at {request.url.path}", "/openapi.json lists every path"
    elif error.status_code == 405:
        detail = f"{request.url.path} does not take {request.method}"
        allowed = {name.lower(): value for name, value in (error.headers or {}).items()}.get("allow", "")
        hint = f"it takes {', '.join(sorted(allowed.split(', ')))}" if allowed else None
    elif missing := _MISSING_PARAMETER.match(detail):
        faults, detail = [Fault(missing[1], "is missing")], f"{missing[1]} is missing"
    elif [each.path for each in faults] == [_BODY]:  # the parameter of a handler that takes a body
        faults, detail, hint = [Fault("body", "is missing")], "The body is missing", "send a JSON object"
    elif faults:
        detail = "; ".join(f"{each.path} {each.message}" for each in faults[:5])
    problem = Problem(
        title=HTTPStatus(error.status_code).phrase, status=error.status_code, detail=detail, code=code, errors=faults,
        hint=hint,
    )  # fmt: skip
    return answer(problem, dict(error.headers or {}))


def _faults(error: ValidationException) -> list[Fault]:
    """The faults of a body, which have a hint, or of parameters, in the words of msgspec."""
    return [
        Fault(
            str(each.get("key") or "body"),
            str(each["message"]) if "hint" in each else in_words(str(each.get("message"))),
        )
        for each in _extra(error)
    ]


def _extra(error: HTTPException) -> list[dict[str, Any]]:
    return [each for each in error.extra if isinstance(each, dict)] if isinstance(error.extra, list) else []


def on_defect(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """A defect of ours: it is logged, and the caller sees no internal details."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = Problem(
        title="Internal Server Error", status=500, code="internal",
        detail="The request could not be carried out. The log of the service says why.",
    )  # fmt: skip
    return answer(problem)
