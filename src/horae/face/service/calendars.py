"""``/api/v1/calendars``: shared calendars."""

from __future__ import annotations

from horae.app import ScopedOperations
from horae.app.view_base import PageView, page_of, view_of
from horae.app.views import CalendarView
from horae.face.http.routes import Router, delete, get, put
from horae.face.service.route_helpers import API, Cursor, Limit
from horae.spec import SharedCalendar


@get("/", summary="List shared calendars")
async def list_calendars(
    operations: ScopedOperations, limit: Limit = 100, cursor: Cursor = None
) -> PageView[CalendarView]:
    """The owner's calendars and those that all owners share, ordered by name. A page ends early at 4 MiB."""
    return page_of(CalendarView, await operations.calendars.list(cursor=cursor, limit=limit))


@get("/{name}", summary="A shared calendar")
async def get_calendar(operations: ScopedOperations, name: str) -> CalendarView:
    """The owner's calendar, or else the one that all owners share."""
    return view_of(CalendarView, await operations.calendars.get(name))


@put("/{name}", summary="Create or change a shared calendar")
async def put_calendar(operations: ScopedOperations, name: str, data: SharedCalendar) -> CalendarView:
    """Every schedule that excludes the calendar changes with it, from now on. The answer says how many."""
    stored, changed = await operations.calendars.put(name, data)
    return view_of(CalendarView, stored, schedules=changed)


@delete("/{name}", summary="Remove a shared calendar")
async def delete_calendar(operations: ScopedOperations, name: str) -> None:
    """Refused while a schedule excludes the calendar."""
    await operations.calendars.delete(name)


_HANDLERS = [list_calendars, get_calendar, put_calendar, delete_calendar]
calendars_router = Router(f"{API}/calendars", route_handlers=_HANDLERS, tags=("calendars",))
