"""``/api/v1/once``: run an action once."""

from __future__ import annotations

from litestar import Response, Router, post

from horae.app import ScopedOperations
from horae.app.operations import SingleRun
from horae.app.schedule_views import StoredSchedule
from horae.face.service.request_bodies import RunOnce
from horae.face.service.route_helpers import API
from horae.face.service.schedules import created
from horae.spec.duration import milliseconds


@post("/", summary="Run an action once")
async def run_once(own: ScopedOperations, data: RunOnce) -> Response[StoredSchedule]:
    """After a span, on the clock of the service, or at a time: a schedule with one time. It runs even if that time is over when the
    schedule is stored. With a `key`, repeating the request creates nothing and answers 200.
    """
    if data.in_ is not None:
        milliseconds(data.in_, "in")  # a mistake names the field
    run = SingleRun(
        action=data.action, in_=data.in_, at=data.at, timezone=data.timezone, key=data.key, policies=data.policies
    )  # fmt: skip
    return await created(own, await own.create_single_run(run))


def once_router() -> Router:
    """The route of single runs."""
    return Router(f"{API}/once", route_handlers=[run_once], tags=["schedules"])
