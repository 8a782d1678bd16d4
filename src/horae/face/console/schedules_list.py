"""The list of schedules, filtered by its address, page by page; with changes of many at once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from horae.app import Filter
from horae.app.fire_times import times_ahead
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import page_of
from horae.errors import HoraeError, InvalidInputError
from horae.face.console.error_text import error_text
from horae.face.console.name_list_field import tags_of
from horae.face.console.page_request import Visit
from horae.face.console.rendering import called
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.model import Schedule

PAGE = 50
MAX_CHOSEN = 200
STATES: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("All", {}),
    "active": ("Active", {"paused": False, "completed": False}),
    "paused": ("Paused", {"paused": True}),
    "completed": ("Completed", {"completed": True}),
    "attention": ("Needs attention", {"attention": True}),
}
"""The filters that one click sets: their labels, and what they mean."""


def filter_of(query: dict[str, str]) -> Filter:
    """The filter that an address names."""
    state = query.get("state", "")
    if state not in STATES:
        raise InvalidInputError("state", f"is none of {', '.join(filter(None, STATES))}")
    given: dict[str, Any] = {
        "text": query.get("q", "").strip().lower(), "tag": query.get("tag"), "action": query.get("action"),
        "managed_by": query.get("managed_by"),
    }  # fmt: skip
    return Filter(**{name: value for name, value in given.items() if value}, **STATES[state][1])


def next_if_resumed(schedule: Schedule, now: int) -> datetime | None:
    """When a paused schedule would fire next: after the end of its pause if that is known, or else from now on."""
    if not schedule.state.paused or schedule.unreadable:
        return None
    return next(iter(times_ahead(schedule, max(now, schedule.state.paused_until_ms or 0), 1)), None)


@get("/schedules")
async def schedules_page(visit: Visit) -> Response[Any]:
    """The schedules that the address asks for."""
    if "hx-request" in visit.request.headers:
        return visit.page("schedules_further.html", **await _found(visit))
    return await visit.live_page("schedules.html", lambda: _found(visit))


async def _found(visit: Visit) -> dict[str, Any]:
    """A page of schedules, as far as one search gets, and the cursor with which the browser continues until the page is full."""
    operations, before = visit.operations, visit.query.get("before", "")
    wanted = max(PAGE - int(before), 1) if before.isdecimal() and int(before) < PAGE else PAGE
    found = await operations.schedules.search(filter_of(visit.query), cursor=visit.cursor, limit=wanted)
    view = await operations.evaluate(lambda: page_of(ScheduleView, found))
    latest = await operations.runs.latest(found)
    would = await operations.evaluate(lambda: [next_if_resumed(each, visit.now) for each in found])
    rows = [
        (each, latest.get(schedule.key), then)
        for each, schedule, then in zip(view.items, found, would, strict=True)
    ]
    # Pages follow each other by id; the rows of one are in the order of the names that they show.
    shown = sorted(rows, key=lambda row: called(row[0].action, row[0].id).casefold())
    further = view.next if len(found) < wanted else None
    return {
        "schedules": shown, "next": view.next, "states": STATES, "further": further, "before": PAGE - wanted + len(found),
        "filtered": any(visit.query.get(name) for name in ("q", "tag", "state", "action", "managed_by")),
    }  # fmt: skip


@post("/schedules")
async def change_schedules(visit: Visit) -> Response[Any]:
    """Pause, resume, trigger or tag the chosen schedules, one after another. A failure is shown, and does not stop the others."""
    todo = visit.form.get("do", "")
    if todo not in DONE:
        raise InvalidInputError("do", f"is none of {', '.join(DONE)}")
    if len(visit.chosen) > MAX_CHOSEN:
        raise InvalidInputError("chosen", f"must be at most {MAX_CHOSEN}, and are {len(visit.chosen)}")
    if not visit.chosen or (todo == "tag" and not tags_of(visit.form.get("tag", ""))):
        visit.problem = "Enter a tag first." if visit.chosen else "Choose schedules first."
        again: Response[Any] = await schedules_page.fn(visit)
        return again
    done, failed = 0, ""
    for schedule_id in visit.chosen:
        try:
            await _change(visit, schedule_id, todo)
            done += 1
        except HoraeError as error:
            failed = f" {schedule_id}: {error_text(error)}"
    noun = "schedule" if done == 1 else "schedules"
    return visit.back(visit.same(), f"{DONE[todo]} {done} {noun}.{failed}", "problem" if failed else "done")


DONE = {"pause": "Paused", "resume": "Resumed", "trigger": "Triggered", "tag": "Tagged"}


async def _change(visit: Visit, schedule_id: str, todo: str) -> None:
    schedules, note = visit.operations.schedules, visit.form.get("note", "")
    match todo:
        case "pause":
            await schedules.pause(schedule_id, note)
        case "resume":
            await schedules.resume(schedule_id, note)
        case "trigger":
            await schedules.trigger(schedule_id, note=note, author=visit.caller.user)
        case _:
            schedule = await schedules.get(schedule_id)
            tags = dict.fromkeys([*schedule.tags, *tags_of(visit.form["tag"])])
            await schedules.update(schedule_id, tags=tuple(tags))


HANDLERS = [schedules_page, change_schedules]
