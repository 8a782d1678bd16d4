"""Shared calendars: their days in a year at a glance, made and changed here."""

from __future__ import annotations

import calendar
from datetime import date
from typing import Any

import msgspec

from horae.app.view_base import page_of, view_of
from horae.app.views import CalendarView
from horae.errors import HoraeError
from horae.face.console.error_text import error_text
from horae.face.console.form_fields import unknown_action
from horae.face.console.page_request import Visit
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.spec import SharedCalendar

FIRST_YEAR, LAST_YEAR = 1970, 2199


class Month(msgspec.Struct, frozen=True):
    """A month of a year: its name and its weeks, each with seven days; a day that is not in it is ``None``."""

    name: str
    weeks: list[list[tuple[int, bool, str] | None]]


def year_of(dates: frozenset[str], year: int) -> list[Month]:
    """A year, with the days that a calendar names. Weeks begin on Monday."""
    months = []
    for month in range(1, 13):
        weeks = [
            [_day(date(year, month, day), dates) if day else None for day in week]
            for week in calendar.Calendar().monthdayscalendar(year, month)
        ]
        months.append(Month(calendar.month_name[month], weeks))
    return months


def _day(day: date, dates: frozenset[str]) -> tuple[int, bool, str]:
    named = day.isoformat() in dates or f"{day:%m-%d}" in dates
    return day.day, named, f"{day:%a %d %b %Y}{', closed' if named else ''}"


@get("/calendars")
async def calendars_page(visit: Visit) -> Response[Any]:
    """All calendars that the caller sees."""

    async def build() -> dict[str, Any]:
        page = page_of(CalendarView, await visit.operations.calendars.list(cursor=visit.cursor))
        return {"calendars": page.items, "next": page.next}

    return await visit.live_page("calendars.html", build)


@get("/calendars/{name}")
async def calendar_page(visit: Visit, name: str) -> Response[Any]:
    """A calendar: a year at a glance, and the form that changes it."""
    found = view_of(CalendarView, await visit.operations.calendars.get(name))
    return _shown(visit, found.name, found, "\n".join(found.dates), "")


def _shown(
    visit: Visit, name: str, found: CalendarView | None, dates: str, refused: str, status: int = 200
) -> Response[Any]:
    asked = visit.query.get("year", "")
    this = visit.now_in_zone.year
    year = int(asked) if asked.isdecimal() and FIRST_YEAR <= int(asked) <= LAST_YEAR else this
    named = frozenset(dates.split())
    return visit.page(
        "calendar.html", status, name=name, calendar=found, dates=dates, refused=refused, year=year, months=year_of(named, year)
    )  # fmt: skip


@post("/calendars")
async def new_calendar(visit: Visit) -> Response[Any]:
    """A new calendar, without days yet."""
    name = visit.form.get("name", "").strip()
    if not name:
        return visit.back(visit.url("calendars"), "A calendar needs a name.", "problem")
    try:
        await visit.operations.calendars.get(name)
    except HoraeError:
        try:
            await visit.operations.calendars.put(name, SharedCalendar())
        except HoraeError as error:
            return visit.refused(visit.url("calendars"), error)
    return visit.back(visit.url("calendars", name))


@get("/calendars/{name}/delete")
async def delete_page(visit: Visit, name: str) -> Response[Any]:
    """Ask for confirmation before a calendar is deleted."""
    found = view_of(CalendarView, await visit.operations.calendars.get(name))
    return visit.page("delete_calendar.html", calendar=found)


def _saved(changed: int, *, is_other: bool) -> str:
    if not is_other:
        return "Saved. It has the same days as before."
    if not changed:
        return "Saved. No schedule uses it yet."
    return f"Saved: {changed} {'schedule changes' if changed == 1 else 'schedules change'} with it."


@post("/calendars/{name}")
async def change_calendar(visit: Visit, name: str) -> Response[Any]:
    """Change the days of a calendar, or delete it; an error is shown beside what was typed."""
    operations = visit.operations
    found = await operations.calendars.get(name)
    dates = visit.form.get("dates", "\n".join(found.document.dates))
    try:
        match visit.form.get("do"):
            case "save":
                document = msgspec.structs.replace(found.document, dates=tuple(dates.split()))
                _, changed = await operations.calendars.put(name, document)
                return visit.back(
                    visit.url("calendars", name), _saved(changed, is_other=document != found.document)
                )
            case "delete":
                await operations.calendars.delete(name)
                return visit.back(visit.url("calendars"), f"Deleted {name}.")
            case _:
                raise unknown_action(visit)
    except HoraeError as error:
        return _shown(visit, name, view_of(CalendarView, found), dates, error_text(error), 422)


HANDLERS = [calendars_page, calendar_page, delete_page, new_calendar, change_calendar]
