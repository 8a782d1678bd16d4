"""``/api/v1/bulk``: many schedules at once."""

from __future__ import annotations

from litestar import Response, Router, get, post

from horae.app import App, Filter
from horae.app.views import Changed, Count, CreatedView, PageView, created_view
from horae.errors import LimitExceededError
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import CreateSchedules, ManyByFilter
from horae.face.service.route_helpers import Owner, filter_of, operations
from horae.face.service.schedules import check_backfills, new_schedule


@post(
    "/schedules",
    operation_id="createSchedules",
    summary="Create many schedules",
    status_code=201,
)
async def create_many(
    app: App, caller: Caller, data: CreateSchedules, owner: Owner = None
) -> Response[PageView[CreatedView]]:
    """All or none, at most 1,000 schedules and 100 backfills in one request. If each has a `request_id`, repeating the request
    creates nothing and answers 200.
    """
    most = app.config.batch_limit
    if len(data.schedules) > most:
        raise LimitExceededError("batch_limit", most, f"the request has {len(data.schedules)} schedules")
    check_backfills(sum(len(each.backfills) for each in data.schedules))
    there = app.owned_by(caller.owner_of_new(owner))
    made = await there.schedules.create_once([new_schedule(each, caller) for each in data.schedules])
    items = await there.evaluate(lambda: [created_view(each) for each in made.schedules])
    return Response(PageView(items=items), status_code=200 if made.repeated else 201)


@post(
    "/pause",
    operation_id="pauseSchedules",
    summary="Pause many schedules",
    status_code=200,
)
async def pause_many(app: App, caller: Caller, data: ManyByFilter, owner: Owner = None) -> Changed:
    """All schedules that match the filter, in batches; the answer says how many. If it is interrupted, repeat it to complete the change."""
    there = operations(app, caller, owner).schedules
    return Changed(changed=await there.pause_all(filter_of(data.filter), data.note))


@post(
    "/resume",
    operation_id="resumeSchedules",
    summary="Resume many schedules",
    status_code=200,
)
async def resume_many(app: App, caller: Caller, data: ManyByFilter, owner: Owner = None) -> Changed:
    """All schedules that match the filter, in batches; the answer says how many. If it is interrupted, repeat it to complete the change."""
    there = operations(app, caller, owner).schedules
    return Changed(changed=await there.resume_all(filter_of(data.filter), data.note))


@get("/count", operation_id="countSchedules", summary="Count schedules")
async def count(
    app: App,
    caller: Caller,
    only: Filter,
    owner: Owner = None,
) -> Count:
    """Counts the schedules that match all given parameters."""
    return Count(count=await operations(app, caller, owner).schedules.count(only))


def bulk_router() -> Router:
    """The routes of many schedules at once."""
    return Router("/bulk", route_handlers=[create_many, pause_many, resume_many, count], tags=["bulk"])
