"""The actions on a schedule: pause, resume, trigger, skip, delete."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from horae.app.fire_times import skipped_times
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import view_of
from horae.errors import HoraeError
from horae.face.console.form_fields import json_of, moment_of, unknown_action
from horae.face.console.page_request import Visit
from horae.face.console.rendering import exact_text
from horae.face.console.schedule_page import any_due, schedule_page, ways_to_resume
from horae.face.http.responses import Response
from horae.face.http.routes import post
from horae.model import Schedule, instant

IN_PANELS = {"trigger", "pause"}
"""The actions with a panel on the schedule's page: it stays open when the form is refused."""


async def _act(visit: Visit, schedule_id: str) -> tuple[str, str]:
    """Do what the form asks; return what was done, and the page to go to."""
    schedules, note = visit.operations.schedules, visit.form.get("note", "")
    here = visit.url("schedules", schedule_id)
    match visit.form.get("do"):
        case "pause":
            until = moment_of(visit, "until")
            await schedules.pause(schedule_id, note, until=until)
            end = "" if until is None else f" until {until:%a %d %b %Y, %H:%M} {until.tzname()}"
            return f"Paused{end}.", here
        case "resume":
            way = visit.form.get("on_resume") or None
            if way is None and any_due(await ways_to_resume(visit, schedule_id)):
                return "", visit.url("schedules", schedule_id, "resume")
            done = await schedules.resume(schedule_id, note, on_resume=way)  # type: ignore[arg-type]  # it is checked
            return f"Resumed. {done.resumption.sentence}", here
        case "trigger":
            run_id = await schedules.trigger(
                schedule_id, input=json_of(visit, "input", msgspec.UNSET), note=note, author=visit.caller.user
            )
            return "Triggered: this is its run.", visit.url("runs", run_id)
        case "skip":
            number = visit.form.get("number", "1")
            schedule = await schedules.skip_next(schedule_id, int(number) if number.isdecimal() else -1)
            return await skip_words(visit, schedule), here
        case "delete":
            await schedules.delete(schedule_id)
            return f"Deleted {schedule_id}. Its runs stay in the ledger.", visit.url("schedules")
        case _:
            raise unknown_action(visit)


async def skip_words(visit: Visit, schedule: Schedule) -> str:
    """Which slots of a schedule will be skipped."""
    number = schedule.state.skip_next
    if not number:
        return "No slot will be skipped."
    skipped = await visit.operations.evaluate(lambda: skipped_times(schedule, visit.now, 1))
    if not skipped:
        return "No slot is left to skip."
    zone = ZoneInfo(view_of(ScheduleView, schedule).timezone)
    first = exact_text(skipped[0], zone, visit.zone, instant(visit.now))
    return f"{first} will be skipped." if number == 1 else f"{number:,} slots will be skipped, from {first}."


@post("/schedules/{schedule_id}")
async def act_on_schedule(visit: Visit, schedule_id: str) -> Response[Any]:
    """Do something to a schedule, and say what was done; an error is shown on its page."""
    try:
        text, to = await _act(visit, schedule_id)
    except HoraeError as error:
        if visit.form.get("do") in IN_PANELS:
            return await visit.show_again(error, schedule_page.fn(visit, schedule_id))
        await visit.operations.schedules.get(schedule_id)  # gone: say that instead
        return visit.refused(visit.url("schedules", schedule_id), error)
    return visit.back(to, text)


HANDLERS = [act_on_schedule]
