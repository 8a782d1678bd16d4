"""Errors as answers: ``application/problem+json`` with a stable code, the faulty field, and a hint."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from horae import errors
from horae.errors import HoraeError, InvalidSpecError, LimitExceededError, SpecError
from horae.face.http.errors import Fault, HttpError
from horae.face.http.requests import Request
from horae.face.http.responses import Response

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


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response[Problem]:
    """A problem as an answer."""
    return Response(problem, problem.status, headers, MEDIA_TYPE)


def on_error(request: Request, error: Exception) -> Response[Problem]:
    """The answer to a request that failed."""
    match error:
        case HoraeError():
            return on_horae_error(error)
        case StatusError():
            return answer(error.problem)
        case HttpError():
            return _on_http_error(request, error)
        case _:
            return on_defect(request, error)


def on_horae_error(error: HoraeError) -> Response[Problem]:
    """An error that Horae raised deliberately."""
    problem = problem_of(error)
    headers = {}
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="horae"'
    if problem.status in {429, 503} or "retryAfter" in error.details:
        headers["Retry-After"] = str(error.details.get("retryAfter", 1))
    return answer(problem, headers)


_CODES = {404: "not_found", 405: "method_not_allowed", 413: "limit_exceeded", 415: "unsupported_media_type"}


def _on_http_error(request: Request, error: HttpError) -> Response[Problem]:
    """A request that failed before it reached its handler."""
    detail = error.detail or "; ".join(f"{each.path} {each.message}" for each in error.faults[:5])
    hint = error.hint
    if error.status == 404:
        detail, hint = f"There is nothing at {request.path}", "/openapi.json lists every path"
    elif error.status == 405:
        detail, hint = f"{request.path} does not take {request.method}", f"it takes {error.headers['Allow']}"
    problem = Problem(
        title=HTTPStatus(error.status).phrase, status=error.status, detail=detail,
        code=_CODES.get(error.status, "invalid_request"), errors=list(error.faults), hint=hint,
    )  # fmt: skip
    return answer(problem, error.headers)


def on_defect(request: Request, error: Exception) -> Response[Problem]:
    """A defect of ours: it is logged, and the caller sees no internal details."""
    _log.error("%s %s failed", request.method, request.path, exc_info=error)
    problem = Problem(
        title="Internal Server Error", status=500, code="internal",
        detail="The request could not be carried out. The log of the service says why.",
    )  # fmt: skip
    return answer(problem)
