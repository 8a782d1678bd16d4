"""Explain: answers a question about a schedule and a time in a sentence; and the palette that finds anything (Ctrl-K)."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from horae.app import Filter, ScopedOperations
from horae.app.page import cursor_of
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import view_of
from horae.app.views import ExplanationView
from horae.errors import HoraeError, InvalidInputError, RunNotFoundError, ScheduleNotFoundError
from horae.face.console.error_text import error_text, sentence
from horae.face.console.page_request import Visit
from horae.face.console.question_parser import names_in, schedules_in, schedules_like, time_of, wall_clock
from horae.face.console.rendering import called
from horae.face.console.schedule_display_names import ids_called
from horae.face.http.responses import Response
from horae.face.http.routes import get
from horae.face.time_parser import read_time
from horae.model import Schedule, ScheduleKey, instant

FOUND = 8
MAX_NAMES = 1000
"""How many workflows and flows are searched for a name."""
PAGES = [
    ("overview", "Overview", ()), ("schedules", "Schedules", ("schedules",)), ("runs", "Runs", ("runs",)),
    ("new", "New schedule", ("new",)), ("workflows", "Workflows", ("workflows",)), ("flows", "Flows", ("flows",)),
    ("grants", "Grants", ("grants",)), ("alerts", "Alerts", ("alerts",)), ("calendars", "Calendars", ("calendars",)),
    ("nodes", "Nodes", ("nodes",)), ("new", "Deploy a workflow", ("workflows", "new")),
    ("documents", "Apply a file", ("documents",)), ("documents", "Import a crontab", ("import",)),
    ("explain", "Explain a time", ("explain",)),
]  # fmt: skip
"""The pages in the palette: their symbols, labels and paths."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation; or what is missing, and what may have been meant."""

    found: ExplanationView | None = None
    schedule_id: str = ""
    name: str = ""
    """What pages call the schedule."""
    time: str = ""
    problem: str = ""
    meant: list[tuple[str, str]] = []
    """The ids of schedules that may have been meant, each with the address that asks about it."""


async def answer(visit: Visit, question: str) -> Answer:
    """The answer to a question in words."""
    operations = visit.operations
    ids = await schedules_in(question, operations)
    if len(ids) > 1:
        return _several(visit, ids, time_of(question, visit.now_in_zone.replace(tzinfo=None)))
    schedule_id = ids[0] if ids else None
    if schedule_id is None:
        meant = [
            (each, visit.url("explain", q=question.replace(word, each)))
            for word in names_in(question)
            for each in await schedules_like(word, operations)
        ]
        problem = "Name a schedule, such as: why did nightly not run yesterday at 2:30."
        return Answer(problem="No schedule has this name." if meant else problem, meant=meant)
    time = time_of(question, wall_clock(await _zone_of(visit, schedule_id), visit.now))
    if time is None:
        problem = "Name a time too, such as yesterday at 2:30, or 2027-03-14 02:30."
        return Answer(schedule_id=schedule_id, problem=problem)
    return await explanation(visit, schedule_id, time)


async def explanation(visit: Visit, schedule_id: str, time: str) -> Answer:
    """The explanation of a time, in ISO 8601 or in words; one without an offset is in the schedule's zone."""
    ids = await ids_called(visit.operations, schedule_id)
    if len(ids) > 1:
        return _several(visit, ids, time)
    schedule_id = ids[0] if ids else schedule_id
    try:
        at = _read(time, await _zone_of(visit, schedule_id), visit.now)
        found = view_of(ExplanationView, await visit.operations.why.explain(schedule_id, at))
    except ScheduleNotFoundError as error:
        meant = [
            (each, visit.url("explain", schedule=each, time=time))
            for each in await schedules_like(schedule_id, visit.operations)
        ]
        return Answer(schedule_id=schedule_id, time=time, problem=sentence(error.message), meant=meant)
    except HoraeError as error:
        return Answer(schedule_id=schedule_id, time=time, problem=error_text(error))
    return Answer(found=found, schedule_id=schedule_id, name=await _name_of(visit, schedule_id), time=time)


def _several(visit: Visit, ids: list[str], time: str | None) -> Answer:
    """Which of several schedules of one name is meant."""
    meant = [(each, visit.url("explain", schedule=each, time=time)) for each in ids]
    return Answer(problem="Several schedules are called so.", meant=meant)


def _read(text: str, zone: str, now_ms: int) -> str:
    """A time as people write it, in ISO 8601."""
    try:
        return read_time(text, "time", zone, instant(now_ms)).isoformat()
    except InvalidInputError:
        if time := time_of(text, wall_clock(zone, now_ms)):
            return time
        raise


async def _zone_of(visit: Visit, schedule_id: str) -> str:
    """The zone of a schedule; of one that was deleted, the viewer's."""
    try:
        return str(view_of(ScheduleView, await visit.operations.schedules.get(schedule_id)).timezone)
    except ScheduleNotFoundError:
        return visit.zone.key


async def _name_of(visit: Visit, schedule_id: str) -> str:
    """What pages call a schedule; one that was deleted has its id."""
    try:
        return called((await visit.operations.schedules.get(schedule_id)).action, schedule_id)
    except ScheduleNotFoundError:
        return schedule_id


@get("/explain")
async def explain_page(visit: Visit) -> Response[Any]:
    """Why a schedule did or did not run at a time, or will or will not."""
    schedule_id, time = visit.query.get("schedule", "").strip(), visit.query.get("time", "").strip()
    question = visit.query.get("q", "").strip()
    if question:
        found = await answer(visit, question)
    elif schedule_id and time:
        found = await explanation(visit, schedule_id, time)
    else:
        found = Answer(schedule_id=schedule_id, time=time)
    return visit.page("explain.html", answer=found, found=found.found, question=question)


@get("/go")
async def go(visit: Visit) -> Response[Any]:
    """What the palette finds for a text: pages, schedules, a run, or the answer to a question."""
    text = visit.query.get("q", "").strip()
    lowered = text.lower()
    pages = [each for each in PAGES if lowered in each[1].lower()] if text else PAGES
    found: dict[str, Any] = {"pages": pages, "schedules": [], "others": [], "run": None, "found": None}
    found |= {"text": text, "answer": Answer()}
    if text:
        found["schedules"] = await matching(visit.operations, text)
        found["others"] = await _workflows_and_flows(visit, lowered)
        if len(text) >= 16 and " " not in text:
            with contextlib.suppress(RunNotFoundError):
                found["run"] = await visit.operations.runs.get(text)
        if " " in text:
            found["answer"] = await answer(visit, text)
            found["found"] = found["answer"].found
    template = "go_found.html" if "hx-request" in visit.request.headers else "go.html"
    return visit.page(template, **found)


async def matching(operations: ScopedOperations, text: str) -> list[Any]:
    """The schedule with this id, then schedules whose ids begin with it, then those that mention it."""
    found: dict[ScheduleKey, Schedule] = {}
    with contextlib.suppress(HoraeError):  # there is none, or several owners have one
        named = await operations.schedules.get(text)
        found[named.key] = named
    with contextlib.suppress(HoraeError):
        beginning = await operations.schedules.search(
            Filter(prefix=text), cursor=cursor_of("", text), limit=FOUND
        )
        found |= {each.key: each for each in beginning}
        if len(found) < FOUND:
            more = await operations.schedules.search(Filter(text=text.lower()), limit=FOUND)
            found |= {each.key: each for each in more if each.key not in found}
    return list(found.values())[:FOUND]


async def _workflows_and_flows(visit: Visit, lowered: str) -> list[tuple[str, str, str]]:
    """The workflows and flows whose names contain a text: their kinds, names and addresses."""
    operations = visit.operations
    workflows = {(each.owner, each.workflow_id) for each in await operations.workflows.list(limit=MAX_NAMES)}
    flows = [(each.owner, each.name, each.title) for each in await operations.flows.list(limit=MAX_NAMES)]
    found = [
        ("workflow", name, visit.of_owner(owner, "workflows", name))
        for owner, name in sorted(workflows)
        if lowered in name.lower()
    ] + [
        ("flow", title, visit.of_owner(owner, "flows", name))
        for owner, name, title in flows
        if lowered in name.lower() or lowered in title.lower()
    ]
    return found[:FOUND]


HANDLERS = [explain_page, go]
