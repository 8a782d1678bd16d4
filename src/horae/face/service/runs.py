"""``/api/v1/runs`` and ``/api/v1/backfills``: read and stop them, and take reports of external workers."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Router, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter
from litestar.status_codes import HTTP_400_BAD_REQUEST, HTTP_500_INTERNAL_SERVER_ERROR
from litestar.types import Scope

from horae.app import App
from horae.app.views import (
    BackfillView,
    ReportView,
    RunView,
    RunWithAttempts,
    backfill_view,
    run_view,
    run_with_attempts,
)
from horae.errors import AuthenticationError
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import FailedBody, SucceededBody
from horae.face.service.route_helpers import Owner, named, operations
from horae.model import Run

RunToken = Annotated[
    str | None, HeaderParameter(name="Authorization", description="Bearer, and the run's own token.")
]


MAX_RUN_ID_LENGTH = 100
"""The length to which ids are cut in rate limits, to bound memory; no run has a longer id."""


REPORTER = "reporter"
"""The key of a report's client address in the ``state`` of a request."""


async def check_pace(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Limit the rate of reports from one address, before they are read: reports on one run, whatever their token; and, after
    too many refused ones, reports on any run, since an attacker can name another run each time.

    An external worker may report on many runs, and an attacker cannot block workers at other addresses.
    """
    place = connection.client.host if connection.client else ""
    run_id = connection.path_params["run_id"][:MAX_RUN_ID_LENGTH]
    paces = connection.app.state
    paces.failed_reports.check_left(place, "too many reports from there were refused")
    paces.reports.check(f"{place} {run_id}", "the run is reported on too often")
    connection.scope["state"][REPORTER] = place


async def check_token(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Refuse a report without the report token of its run before its body is read, so that an attacker causes little work."""
    runs = connection.app.state.runs
    token = _token(connection.headers.get("Authorization"))
    await runs.check_token(named(connection.path_params["run_id"]), token)


def count_failed(state: State, scope: Scope, status: int) -> None:
    """Count a report that was refused with a 4xx status."""
    place = scope["state"].get(REPORTER)
    if place is not None and HTTP_400_BAD_REQUEST <= status < HTTP_500_INTERNAL_SERVER_ERROR:
        state.failed_reports.take(place)


@get("/runs/{run_id:str}", operation_id="getRun", summary="A run and its attempts")
async def show(app: App, caller: Caller, run_id: str, owner: Owner = None) -> RunWithAttempts:
    """The run of a slot or a trigger, its earlier attempts, and the keys of their checkpoints."""
    there, name = operations(app, caller, owner).runs, named(run_id)
    return run_with_attempts(await there.get(name), await there.attempts(name), await there.checkpoints(name))


@post("/runs/{run_id:str}/cancel", operation_id="cancelRun", summary="Ask a run to stop", status_code=200)
async def cancel(app: App, caller: Caller, run_id: str, owner: Owner = None) -> RunView:
    """It may finish within `timeouts.cancel`; after that it is terminated. A waiting run never starts."""
    return run_view(await operations(app, caller, owner).runs.cancel(named(run_id)))


@post("/runs/{run_id:str}/terminate", operation_id="terminateRun", summary="Make a run stop", status_code=200)
async def terminate(app: App, caller: Caller, run_id: str, owner: Owner = None) -> RunView:
    """Stops it at once. A waiting run never starts."""
    return run_view(await operations(app, caller, owner).runs.terminate(named(run_id)))


@post(
    "/runs/{run_id:str}/started",
    operation_id="reportStarted",
    guards=[check_pace],
    summary="Report that the work has begun",
    status_code=200,
)
async def started(app: App, run_id: str, authorization: RunToken = None) -> ReportView:
    """For work that an external worker has accepted, with the run's report token."""
    return _reported(await app.runs.report(named(run_id), _token(authorization), "started"))


@post(
    "/runs/{run_id:str}/heartbeat",
    operation_id="reportHeartbeat",
    guards=[check_pace],
    summary="Report that the work goes on",
    status_code=200,
)
async def heartbeat(app: App, run_id: str, authorization: RunToken = None) -> ReportView:
    """A sign of life; the answer says whether the run was asked to stop."""
    return _reported(await app.runs.report(named(run_id), _token(authorization), "heartbeat"))


@post(
    "/runs/{run_id:str}/succeeded",
    operation_id="reportSucceeded",
    guards=[check_pace, check_token],
    summary="Report that the work has succeeded",
    status_code=200,
)
async def succeeded(
    app: App, run_id: str, data: SucceededBody | None = None, authorization: RunToken = None
) -> ReportView:
    """With its result, which the next run of the schedule also receives."""
    result = (data or SucceededBody()).result
    token = _token(authorization)
    return _reported(await app.runs.report(named(run_id), token, "succeeded", result=result))


@post(
    "/runs/{run_id:str}/failed",
    operation_id="reportFailed",
    guards=[check_pace, check_token],
    summary="Report that the work has failed",
    status_code=200,
)
async def failed(
    app: App, run_id: str, data: FailedBody | None = None, authorization: RunToken = None
) -> ReportView:
    """With its failure; the retry policy of the schedule decides what follows."""
    failure = (data or FailedBody()).failure
    token = _token(authorization)
    return _reported(await app.runs.report(named(run_id), token, "failed", failure=failure))


def _token(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationError("The report brought no token of its run")
    return token.strip()


def _reported(run: Run) -> ReportView:
    return ReportView(status=run.status.value, stop=run.stop)


@get("/backfills/{backfill_id:str}", operation_id="getBackfill", summary="A backfill and how far it has come")
async def show_backfill(app: App, caller: Caller, backfill_id: str, owner: Owner = None) -> BackfillView:
    """`made` of `total` slots have become runs."""
    return backfill_view(await operations(app, caller, owner).backfills.get(named(backfill_id)))


@post(
    "/backfills/{backfill_id:str}/cancel",
    operation_id="cancelBackfill",
    summary="Cancel a backfill",
    status_code=200,
)
async def cancel_backfill(app: App, caller: Caller, backfill_id: str, owner: Owner = None) -> BackfillView:
    """No more of its slots become runs; waiting runs never start, running ones continue."""
    return backfill_view(await operations(app, caller, owner).backfills.cancel(named(backfill_id)))


def runs_router() -> Router:
    """The routes of runs and backfills."""
    handlers = [
        show, cancel, terminate, started, heartbeat, succeeded, failed, show_backfill, cancel_backfill,
    ]  # fmt: skip
    return Router("/", route_handlers=handlers, tags=["runs"])
