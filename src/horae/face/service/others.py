"""The other routes: many schedules at once, shared calendars, and what the service knows of itself."""

from __future__ import annotations

from litestar import Response, Router, delete, get, post, put

from horae.app import App, Filter, next_time
from horae.errors import LimitExceededError
from horae.face.service.caller import Caller
from horae.face.service.requests import CreateSchedules, ManyByFilter, PreviewSpec
from horae.face.service.routes import Cursor, Limit, Owner, filter_of, named, operations
from horae.face.service.schedules import check_backfills, new_schedule
from horae.face.service.views import (
    CalendarView,
    Changed,
    Count,
    CreatedView,
    NodeView,
    Page,
    SpecPreview,
    calendar_view,
    instant,
    node_view,
    spec_view,
    times_of,
)
from horae.spec import SharedCalendar


@post(
    "/bulk/schedules",
    operation_id="createSchedules",
    summary="Create many schedules",
    tags=["bulk"],
    status_code=201,
)
async def create_many(
    app: App, caller: Caller, data: CreateSchedules, owner: Owner = None
) -> Response[Page[CreatedView]]:
    """All or none, at most 1,000 at once, and with at most 100 backfills together. With the `request_id` of each, sending the same
    again creates nothing and answers 200.
    """
    most = app.config.batch_limit
    if len(data.schedules) > most:
        raise LimitExceededError("batch_limit", most, f"the request has {len(data.schedules)} schedules")
    check_backfills(sum(len(each.backfills) for each in data.schedules))
    there = app.owned_by(caller.owner_of_new(owner))
    made = await there.schedules.create_once([new_schedule(each, caller) for each in data.schedules])
    items = await there.evaluate(
        lambda: [
            CreatedView(id=each.id, version=each.version, next_time=next_time(each))
            for each in made.schedules
        ]
    )
    return Response(Page(items=items), status_code=200 if made.repeated else 201)


@post(
    "/bulk/pause",
    operation_id="pauseSchedules",
    summary="Pause many schedules",
    tags=["bulk"],
    status_code=200,
)
async def pause_many(app: App, caller: Caller, data: ManyByFilter, owner: Owner = None) -> Changed:
    """All that the filter lets through, in batches; the answer says how many. If it is interrupted, ask again: that does the rest."""
    there = operations(app, caller, owner).schedules
    return Changed(changed=await there.pause_all(filter_of(data.filter), data.note))


@post(
    "/bulk/resume",
    operation_id="resumeSchedules",
    summary="Resume many schedules",
    tags=["bulk"],
    status_code=200,
)
async def resume_many(app: App, caller: Caller, data: ManyByFilter, owner: Owner = None) -> Changed:
    """All that the filter lets through, in batches; the answer says how many. If it is interrupted, ask again: that does the rest."""
    there = operations(app, caller, owner).schedules
    return Changed(changed=await there.resume_all(filter_of(data.filter), data.note))


@get("/bulk/count", operation_id="countSchedules", summary="Count schedules", tags=["bulk"])
async def count(
    app: App,
    caller: Caller,
    only: Filter,
    owner: Owner = None,
) -> Count:
    """Those that are so in every way that is named."""
    return Count(count=await operations(app, caller, owner).schedules.count(only))


@post("/preview", operation_id="previewSpec", summary="What a spec means", tags=["why"], status_code=200)
async def preview_spec(app: App, caller: Caller, data: PreviewSpec, owner: Owner = None) -> SpecPreview:
    """Its canonical form, a sentence, and its next times; nothing is stored."""
    there = operations(app, caller, owner)
    spec, nominals = await there.schedules.meaning(data.spec, data.limit)
    last = nominals[-1] if nominals else instant(app.now())
    ended = None if len(nominals) == data.limit else await there.evaluate(lambda: spec.why_never(last))
    return SpecPreview(
        spec=spec_view(spec), sentence=spec.sentence(), times=times_of(spec, [(each, each) for each in nominals]),
        ended=ended,
    )  # fmt: skip


@get("/calendars", operation_id="listCalendars", summary="List shared calendars", tags=["calendars"])
async def calendars(
    app: App, caller: Caller, owner: Owner = None, limit: Limit = 100, cursor: Cursor = None
) -> Page[CalendarView]:
    """One's own, and everybody's, in the order of their names. A page ends early when it has 4 MiB."""
    name, _, whose = (cursor or "").partition("\x1f")
    found = await operations(app, caller, owner).calendars.page(after=(name, whose), limit=limit)
    following = f"{found.items[-1].name}\x1f{found.items[-1].owner}" if found.more else None
    return Page(items=[calendar_view(each) for each in found.items], next=following)


@get("/calendars/{name:str}", operation_id="getCalendar", summary="A shared calendar", tags=["calendars"])
async def show_calendar(app: App, caller: Caller, name: str, owner: Owner = None) -> CalendarView:
    """One's own, or else everybody's."""
    return calendar_view(await operations(app, caller, owner).calendars.get(named(name)))


@put(
    "/calendars/{name:str}",
    operation_id="putCalendar",
    summary="Create or change a shared calendar",
    tags=["calendars"],
)
async def put_calendar(
    app: App, caller: Caller, name: str, data: SharedCalendar, owner: Owner = None
) -> CalendarView:
    """Every schedule that excludes it changes with it, from now on; the answer says how many."""
    stored, changed = await operations(app, caller, owner).calendars.put(named(name), data)
    return calendar_view(stored, changed)


@delete(
    "/calendars/{name:str}",
    operation_id="deleteCalendar",
    summary="Remove a shared calendar",
    tags=["calendars"],
    status_code=204,
)
async def delete_calendar(app: App, caller: Caller, name: str, owner: Owner = None) -> None:
    """Only one that no schedule excludes."""
    await operations(app, caller, owner).calendars.delete(named(name))


@get("/nodes", operation_id="listNodes", summary="The processes that drive the database", tags=["system"])
async def nodes(app: App, caller: Caller) -> Page[NodeView]:  # noqa: ARG001 - whoever asks must be known
    """What each can run, and whether it lives."""
    return Page(items=[node_view(each) for each in await app.nodes()])


@get("/actions", operation_id="listActions", summary="What can be run", tags=["system"])
async def actions(app: App, caller: Caller) -> Page[str]:  # noqa: ARG001 - whoever asks must be known
    """The names of the actions that living nodes have announced."""
    announced = {action for node in await app.nodes() if node.alive for action in node.actions}
    return Page(items=sorted(announced | set(app.functions.actions)))


def others_router() -> Router:
    """The routes of everything that is neither a schedule nor a run."""
    handlers = [
        create_many, pause_many, resume_many, count, preview_spec, calendars, show_calendar, put_calendar,
        delete_calendar, nodes, actions,
    ]  # fmt: skip
    return Router("/", route_handlers=handlers)
