"""What one can do to a schedule: pause, resume, trigger, skip, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from litestar import Response, post

from horae.errors import HoraeError, InvalidInputError
from horae.face.console.visit import Visit


def moment_of(visit: Visit, name: str) -> datetime | None:
    """The moment of a form's field, in the viewer's zone; ``None`` if it is empty."""
    text = visit.form.get(name, "").strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(name, f"is no time: {text[:40]}", hint="such as 2027-03-14T09:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=visit.zone)


def json_of(visit: Visit, name: str) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of a form's field; unset if it is empty."""
    text = visit.form.get(name, "").strip()
    if not text:
        return msgspec.UNSET
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInputError(
            name,
            f"is not valid JSON: {str(error).removeprefix('JSON is malformed: ')}",
            hint='such as {"pages": 3} or "text"',
        ) from None


async def _act(visit: Visit, schedule_id: str) -> tuple[str, str]:
    """Do what the form asks; what was done, and the page to go to."""
    schedules, note, here = (
        visit.there.schedules,
        visit.form.get("note", ""),
        visit.url("schedules", schedule_id),
    )
    match visit.form.get("do"):
        case "pause":
            until = moment_of(visit, "until")
            await schedules.pause(schedule_id, note, until=until)
            return (
                "Paused." if until is None else f"Paused until {until:%a %d %b %Y, %H:%M} {until.tzname()}.",
                here,
            )
        case "resume":
            way = visit.form.get("on_resume") or None
            done = await schedules.resume(schedule_id, note, on_resume=way)  # type: ignore[arg-type]  # it is checked
            return f"Resumed. {done.resumption.sentence}", here
        case "trigger":
            run_id = await schedules.trigger(
                schedule_id, input=json_of(visit, "input"), note=note, author=visit.caller.user
            )
            return "Triggered: this is its run.", visit.url("runs", run_id)
        case "skip":
            number = visit.form.get("number", "1")
            await schedules.skip_next(schedule_id, int(number) if number.isdecimal() else -1)
            return "The next slot is skipped." if number == "1" else f"Slots to skip: {number}.", here
        case "delete":
            await schedules.delete(schedule_id)
            return f"Deleted {schedule_id}. Its runs stay in the ledger.", visit.url("schedules")
        case other:
            raise InvalidInputError("do", f"is nothing that can be done: {other}")


@post("/schedules/{schedule_id:str}")
async def act_on_schedule(visit: Visit, schedule_id: str) -> Response[Any]:
    """Do something to a schedule, and say what was done; a mistake is told on its page."""
    try:
        text, to = await _act(visit, schedule_id)
    except HoraeError as error:
        await visit.there.schedules.get(schedule_id)  # gone: say that instead
        return visit.refused(visit.url("schedules", schedule_id), error)
    return visit.back(to, text)


HANDLERS = [act_on_schedule]
