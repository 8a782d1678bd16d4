"""The reports of external workers on runs, with the run's own token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from horae.app import App
from horae.app.view_base import view_of
from horae.app.views import ReportView
from horae.errors import AuthenticationError
from horae.face.http.arguments import Header
from horae.face.http.requests import Request
from horae.face.http.routes import Router, post
from horae.face.service.rate_limit import RateLimit
from horae.face.service.request_bodies import FailedBody, SucceededBody
from horae.face.service.route_helpers import ANONYMOUS, API

Token = Annotated[str | None, Header("Authorization", "Bearer, and the run's own token.")]
MAX_RUN_ID_LENGTH = 100
"""The length to which ids are cut in rate limits, to bound memory; no run has a longer id."""
_REPORTS = "reports"
"""The key, in the ``state`` of a request, of its being a report."""


class ReportLimits:
    """Limit the rate of reports from one address: reports on one run, whatever their token; and, after too many refused ones, reports
    on any run, since an attacker can name another run each time.

    An external worker may report on many runs, and an attacker cannot block workers at other addresses.
    """

    def __init__(self, per_second: int, monotonic: Callable[[], float]) -> None:
        self._reports = RateLimit(per_second, monotonic)
        self._refused = RateLimit(per_second, monotonic)

    def check(self, request: Request, run_id: str) -> None:
        """Refuse a report beyond the limits."""
        self._refused.check_left(request.client, "too many reports from this address were refused")
        key = f"{request.client} {run_id[:MAX_RUN_ID_LENGTH]}"
        self._reports.check(key, "the run is reported on too often")
        request.state[_REPORTS] = True

    def count(self, request: Request, status: int) -> None:
        """Count a report that was refused with a 4xx status."""
        if _REPORTS in request.state and 400 <= status < 500:
            self._refused.take(request.client)


async def check_rate(request: Request, report_limits: ReportLimits, run_id: str) -> None:
    """Refuse a report beyond the limits, before it is read."""
    report_limits.check(request, run_id)


async def check_token(app: App, run_id: str, authorization: Token = None) -> None:
    """Refuse a report without the report token of its run before its body is read, so that an attacker causes little work."""
    await app.runs.check_token(run_id, _token(authorization))


@post("/started", summary="Report that the work has begun", status_code=200)
async def report_started(app: App, run_id: str, authorization: Token = None) -> ReportView:
    """For work that an external worker has accepted. Takes the run's report token."""
    return await _report(app, run_id, authorization, "started")


@post("/heartbeat", summary="Report that the work goes on", status_code=200)
async def report_heartbeat(app: App, run_id: str, authorization: Token = None) -> ReportView:
    """A sign of life; the answer says whether the run was asked to stop."""
    return await _report(app, run_id, authorization, "heartbeat")


@post("/succeeded", guards=(check_token,), summary="Report that the work has succeeded", status_code=200)
async def report_succeeded(
    app: App, run_id: str, data: SucceededBody | None = None, authorization: Token = None
) -> ReportView:
    """With its result, which the next run of the schedule also receives."""
    return await _report(app, run_id, authorization, "succeeded", result=(data or SucceededBody()).result)


@post("/failed", guards=(check_token,), summary="Report that the work has failed", status_code=200)
async def report_failed(
    app: App, run_id: str, data: FailedBody | None = None, authorization: Token = None
) -> ReportView:
    """With its failure; the retry policy of the schedule decides what follows."""
    return await _report(app, run_id, authorization, "failed", failure=(data or FailedBody()).failure)


async def _report(app: App, run_id: str, authorization: str | None, what: str, **more: Any) -> ReportView:  # noqa: ANN401 - JSON
    return view_of(ReportView, await app.runs.report(run_id, _token(authorization), what, **more))


def _token(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationError("The report has no token of its run")
    return token.strip()


_HANDLERS = [report_started, report_heartbeat, report_succeeded, report_failed]
reports_router = Router(
    API + "/runs/{run_id}", route_handlers=_HANDLERS, guards=(check_rate,), marks=ANONYMOUS, tags=("runs",)
)
