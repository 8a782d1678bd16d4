"""``/api/v1/calendars``: shared calendars."""

from __future__ import annotations

from litestar import Router, delete, get, put

from horae.app import App
from horae.app.views import CalendarView, PageView, calendar_view
from horae.face.service.caller import Caller
from horae.face.service.route_helpers import Cursor, Limit, Owner, named, operations, page_view
from horae.spec import SharedCalendar


@get("/", operation_id="listCalendars", summary="List shared calendars")
async def calendars(
    app: App, caller: Caller, owner: Owner = None, limit: Limit = 100, cursor: Cursor = None
) -> PageView[CalendarView]:
    """Those of the owner and those that all owners share, in the order of their names. A page ends early when it has 4 MiB."""
    found = await operations(app, caller, owner).calendars.list(cursor=cursor, limit=limit)
    return page_view(found, calendar_view)


@get("/{name:str}", operation_id="getCalendar", summary="A shared calendar")
async def show_calendar(app: App, caller: Caller, name: str, owner: Owner = None) -> CalendarView:
    """The owner's, or else the one that all owners share."""
    return calendar_view(await operations(app, caller, owner).calendars.get(named(name)))


@put(
    "/{name:str}",
    operation_id="putCalendar",
    summary="Create or change a shared calendar",
)
async def put_calendar(
    app: App, caller: Caller, name: str, data: SharedCalendar, owner: Owner = None
) -> CalendarView:
    """Every schedule that excludes it changes with it, from now on; the answer says how many."""
    stored, changed = await operations(app, caller, owner).calendars.put(named(name), data)
    return calendar_view(stored, changed)


@delete(
    "/{name:str}",
    operation_id="deleteCalendar",
    summary="Remove a shared calendar",
    status_code=204,
)
async def delete_calendar(app: App, caller: Caller, name: str, owner: Owner = None) -> None:
    """Refused while a schedule excludes it."""
    await operations(app, caller, owner).calendars.delete(named(name))


def calendars_router() -> Router:
    """The routes of shared calendars."""
    handlers = [calendars, show_calendar, put_calendar, delete_calendar]
    return Router("/calendars", route_handlers=handlers, tags=["calendars"])
