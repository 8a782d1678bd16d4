"""Create a schedule, with a preview of its sentence, its next times and the equivalent code."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import uuid4

import msgspec

from horae.app import NewSchedule, ScopedOperations
from horae.checked import input_error
from horae.errors import HoraeError
from horae.face.console.equivalents import as_curl, as_python, as_yaml
from horae.face.console.error_text import error_text
from horae.face.console.name_list_field import calendars_text
from horae.face.console.page_request import Visit
from horae.face.console.schedule_form import DAYS, KINDS, schedule_of, spec_of, wrong_field
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import CreateSchedule
from horae.face.service.route_helpers import READS, known_actions
from horae.face.service.schedules import new_schedule
from horae.json_bounds import convert_json
from horae.model import instant
from horae.spec import installed_zones
from horae.spec.clock_change import clock_note

TIMES = 8
BLANK = {
    "kind": "plain",
    "days": "workdays",
    "time": "9:00",
    "minutes": "15",
    "attempts": "1",
    "does": "action",
}
OVERLAPS = {
    "skip": "skip the slot", "buffer_one": "let one wait", "buffer_all": "let all wait", "cancel_other": "cancel the running one",
    "terminate_other": "terminate the running one", "allow_all": "run them at once",
}  # fmt: skip
CATCH_UPS = {
    "all": "make up all",
    "latest": "make up the latest",
    "spread": "spread them over a while",
    "none": "make up none",
}
CHOICES: dict[str, Any] = {
    "kinds": KINDS, "days": DAYS, "zones": sorted(installed_zones()), "overlaps": OVERLAPS, "catch_ups": CATCH_UPS,
}  # fmt: skip
"""What the fields of the form offer, on every service."""


async def choices(visit: Visit, scope: ScopedOperations) -> dict[str, Any]:
    """What the fields of the form offer: also the actions of this service, and calendars of the schedule's owner."""
    calendars = [calendars_text([each.name]) for each in await scope.calendars.list()]
    return {**CHOICES, "actions": await known_actions(visit.app), "calendars": calendars}


async def preview(visit: Visit, form: dict[str, str]) -> dict[str, Any]:
    """What the form means so far: a sentence and times, or an error."""
    try:
        spec = spec_of(form, instant(visit.now))
        found = await visit.operations.schedules.meaning(spec, TIMES)
    except HoraeError as error:
        return {"meaning": None, "times": [], "code": None, **refusal(error, form)}
    zone = found.spec.get("timezone", "UTC")
    times = [each.fire for each in found.times]
    notes = [clock_note(zone, *pair) for pair in pairwise([instant(visit.now), *times])]
    examples = {"id": "nightly", "action": "report", "url": "https://example.org/report"}
    usual = {} if form.get("tried") else examples  # after a refusal, missing fields are errors
    filled = {**form, **{name: form.get(name, "").strip() or text for name, text in usual.items()}}
    try:
        document = schedule_of(filled, instant(visit.now))
        host = visit.request.headers.get("host", "127.0.0.1:8420")
        code = {
            "Python": as_python(document), "curl": as_curl(document, f"{visit.request.scheme}://{host}"),
            "YAML": as_yaml(document),
        }  # fmt: skip
        wrong = {"problem": "", "wrong": ""}
    except HoraeError as error:
        code, wrong = None, refusal(error, form)
    return {
        "meaning": found,
        "times": list(zip(times, notes, strict=True)),
        "zone": zone,
        "code": code,
        **wrong,
    }


def refusal(error: HoraeError, form: dict[str, str]) -> dict[str, str]:
    """What is wrong with a form, and the name of the field that has it."""
    kind = form.get("kind", "")
    return {"problem": error_text(error, of_document=kind == "spec"), "wrong": wrong_field(error, kind)}


async def _page(visit: Visit, form: dict[str, str], error: HoraeError | None = None) -> Response[Any]:
    found = await preview(visit, form)
    refused = {"problem": "", "wrong": ""} if error is None else refusal(error, form)
    return visit.page(
        "new.html", 422 if error else 200, form=form, refused=refused["problem"],
        **await choices(visit, visit.own), **{**found, "wrong": refused["wrong"] or found["wrong"]},
    )  # fmt: skip


@get("/new")
async def new_page(visit: Visit) -> Response[Any]:
    """The form of a new schedule; the address may fill it."""
    return await _page(visit, {**BLANK, "timezone": visit.zone.key, **visit.query})


@post("/new")
async def create(visit: Visit) -> Response[Any]:
    """Create the schedule, or show what is wrong beside what was typed."""
    if visit.form.get("do") != "create":
        return await _page(visit, visit.form)
    form = visit.form
    if form.get("kind") == "once" and not form.get("id", "").strip():
        form = {**form, "id": f"once-{uuid4().hex[:12]}"}
    try:
        document = schedule_of(form, instant(visit.now))
        made = await visit.own.schedules.create_many([_new_schedule(document, visit.caller)])
    except HoraeError as error:
        return await _page(visit, {**visit.form, "tried": "1"}, error)
    return visit.back(visit.of_schedule(made[0]), f"Created {made[0].id}.")


def _new_schedule(document: dict[str, Any], caller: Caller) -> NewSchedule:
    """The new schedule of the form's document, read as the API reads it."""
    try:
        return new_schedule(convert_json(document, CreateSchedule), caller)
    except msgspec.ValidationError as error:
        raise input_error(error, CreateSchedule, whole="form") from None


@post("/preview", marks=READS)
async def preview_part(visit: Visit) -> Response[Any]:
    """What the form means, as a part of its page."""
    return visit.page("new_preview.html", **await preview(visit, visit.form))


HANDLERS = [new_page, create, preview_part]
