"""``/api/v1/bulk``: many schedules at once."""

from __future__ import annotations

from horae.app import App, ScopedOperations
from horae.app.schedule_views import CreatedView
from horae.app.view_base import PageView, view_of
from horae.app.views import Changed, Count
from horae.errors import LimitExceededError
from horae.face.http.responses import Response
from horae.face.http.routes import Router, get, post
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import CreateSchedules, ManyByFilter, Which
from horae.face.service.route_helpers import API, filter_of
from horae.face.service.schedules import check_backfills, new_schedule


@post("/schedules", summary="Create many schedules")
async def create_schedules(
    app: App, own: ScopedOperations, caller: Caller, data: CreateSchedules
) -> Response[PageView[CreatedView]]:
    """All or none; at most 1,000 schedules and 100 backfills in one request. If each schedule has a `request_id`, repeating the request
    creates nothing and answers 200.
    """
    most = app.config.batch_limit
    if len(data.schedules) > most:
        raise LimitExceededError("batch_limit", most, f"the request has {len(data.schedules)} schedules")
    check_backfills(sum(len(each.backfills) for each in data.schedules))
    creation = await own.schedules.create_once([new_schedule(each, caller) for each in data.schedules])
    items = await own.evaluate(
        lambda: [view_of(CreatedView, each, warnings=own.warnings_of(each)) for each in creation.schedules]
    )
    return Response(PageView(items=items), status_code=200 if creation.repeated else 201)


@post("/pause", summary="Pause many schedules", status_code=200)
async def pause_schedules(operations: ScopedOperations, data: ManyByFilter) -> Changed:
    """All schedules that match the filter, in batches. The answer says how many changed. If the request is interrupted, repeat it."""
    return Changed(changed=await operations.schedules.pause_all(filter_of(data.filter), data.note))


@post("/resume", summary="Resume many schedules", status_code=200)
async def resume_schedules(operations: ScopedOperations, data: ManyByFilter) -> Changed:
    """All schedules that match the filter, in batches. The answer says how many changed. If the request is interrupted, repeat it."""
    return Changed(changed=await operations.schedules.resume_all(filter_of(data.filter), data.note))


@get("/count", summary="Count schedules")
async def count_schedules(operations: ScopedOperations, which: Which) -> Count:
    """Counts the schedules that match all given parameters."""
    return Count(count=await operations.schedules.count(filter_of(which)))


_HANDLERS = [create_schedules, pause_schedules, resume_schedules, count_schedules]
bulk_router = Router(f"{API}/bulk", route_handlers=_HANDLERS, tags=("bulk",))
