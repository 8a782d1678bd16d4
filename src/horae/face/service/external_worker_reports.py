"""The reports of external workers on runs, with the run's own token."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from litestar import Router, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter
from litestar.status_codes import HTTP_400_BAD_REQUEST, HTTP_500_INTERNAL_SERVER_ERROR
from litestar.types import Scope

from horae.app import App
from horae.app.view_base import view_of
from horae.app.views import ReportView
from horae.errors import AuthenticationError
from horae.face.service.request_bodies import FailedBody, SucceededBody
from horae.face.service.route_helpers import ANONYMOUS, API

Token = Annotated[
    str | None, HeaderParameter(name="Authorization", description="Bearer, and the run's own token.")
]
MAX_RUN_ID_LENGTH = 100
"""The length to which ids are cut in rate limits, to bound memory; no run has a longer id."""
REPORTER = "reporter"
"""The key of a report's client address in the ``state`` of a request."""


async def check_rate(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Limit the rate of reports from one address, before they are read: reports on one run, whatever their token; and, after
    too many refused ones, reports on any run, since an attacker can name another run each time.

    An external worker may report on many runs, and an attacker cannot block workers at other addresses.
    """
    address = connection.client.host if connection.client else ""
    run_id = connection.path_params["run_id"][:MAX_RUN_ID_LENGTH]
    limits = connection.app.state
    limits.failed_reports.check_left(address, "too many reports from this address were refused")
    limits.reports.check(f"{address} {run_id}", "the run is reported on too often")
    connection.scope["state"][REPORTER] = address


async def check_token(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Refuse a report without the report token of its run before its body is read, so that an attacker causes little work."""
    runs = connection.app.state.runs
    token = _token(connection.headers.get("Authorization"))
    await runs.check_token(unquote(connection.path_params["run_id"]), token)


def count_failed(state: State, scope: Scope, status: int) -> None:
    """Count a report that was refused with a 4xx status."""
    address = scope["state"].get(REPORTER)
    if address is not None and HTTP_400_BAD_REQUEST <= status < HTTP_500_INTERNAL_SERVER_ERROR:
        state.failed_reports.take(address)


@post("/started", summary="Report that the work has begun", status_code=200)
async def report_started(app: App, run_id: str, authorization: Token = None) -> ReportView:
    """For work that an external worker has accepted. Takes the run's report token."""
    return await _report(app, run_id, authorization, "started")


@post("/heartbeat", summary="Report that the work goes on", status_code=200)
async def report_heartbeat(app: App, run_id: str, authorization: Token = None) -> ReportView:
    """A sign of life; the answer says whether the run was asked to stop."""
    return await _report(app, run_id, authorization, "heartbeat")


@post("/succeeded", guards=[check_token], summary="Report that the work has succeeded", status_code=200)
async def report_succeeded(
    app: App, run_id: str, data: SucceededBody | None = None, authorization: Token = None
) -> ReportView:
    """With its result, which the next run of the schedule also receives."""
    return await _report(app, run_id, authorization, "succeeded", result=(data or SucceededBody()).result)


@post("/failed", guards=[check_token], summary="Report that the work has failed", status_code=200)
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
    API + "/runs/{run_id:str}", route_handlers=_HANDLERS, guards=[check_rate], opt=ANONYMOUS, tags=["runs"]
)
