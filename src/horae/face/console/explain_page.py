"""Explain: a schedule and a time, or a question in words, answered in a sentence; and the way to anything (Ctrl-K)."""

from __future__ import annotations

import contextlib
from typing import Any

from litestar import Response, get

from horae.app import Filter, ScopedOperations
from horae.app.page import cursor_of
from horae.app.schedule_views import ScheduleView
from horae.app.view_base import view_of
from horae.app.views import ExplanationView
from horae.errors import HoraeError, RunNotFoundError
from horae.face.console.error_text import error_text
from horae.face.console.question_parser import schedule_in, time_of, wall_clock
from horae.face.console.visit import Visit
from horae.model import Schedule, ScheduleKey

FOUND = 8
MAX_NAMES = 1000
"""How many workflows and flows are looked through for a name."""
PAGES = [
    ("overview", "Overview", ()), ("schedules", "Schedules", ("schedules",)), ("runs", "Runs", ("runs",)),
    ("new", "New schedule", ("new",)), ("workflows", "Workflows", ("workflows",)), ("flows", "Flows", ("flows",)),
    ("grants", "Grants", ("grants",)), ("alerts", "Alerts", ("alerts",)), ("calendars", "Calendars", ("calendars",)),
    ("nodes", "Nodes", ("nodes",)), ("new", "Deploy a workflow", ("workflows", "new")),
    ("documents", "Apply a file", ("documents",)), ("documents", "Import a crontab", ("import",)),
    ("explain", "Explain a time", ("explain",)),
]  # fmt: skip
"""The pages that the palette leads to: their symbols, labels and places."""


async def answer(visit: Visit, question: str) -> tuple[ExplanationView | None, str, str, str]:
    """The explanation that a question asks for, the schedule and the time that it names, and what is missing."""
    there = visit.there
    schedule_id = await schedule_in(question, there)
    if schedule_id is None:
        return None, "", "", "Name a schedule, such as: why did nightly not run yesterday at 2:30"
    zone = view_of(ScheduleView, await there.schedules.get(schedule_id)).timezone
    time = time_of(question, wall_clock(zone, visit.now))
    if time is None:
        return None, schedule_id, "", "Name a time too, such as yesterday at 2:30, or 2027-03-14 02:30"
    try:
        return view_of(ExplanationView, await there.why.explain(schedule_id, time)), schedule_id, time, ""
    except HoraeError as error:
        return None, schedule_id, time, error_text(error)


@get("/explain")
async def explain_page(visit: Visit) -> Response[Any]:
    """Why a schedule did or did not run at a time, or will or will not."""
    schedule_id, time = visit.query.get("schedule", "").strip(), visit.query.get("time", "").strip()
    question, problem, found = visit.query.get("q", "").strip(), "", None
    if question:
        found, schedule_id, time, problem = await answer(visit, question)
    elif schedule_id and time:
        try:
            found = view_of(ExplanationView, await visit.there.why.explain(schedule_id, time))
        except HoraeError as error:
            problem = error_text(error)
    return visit.page(
        "explain.html",
        200,
        found=found,
        schedule_id=schedule_id,
        time=time,
        question=question,
        problem=problem,
    )


@get("/go")
async def go(visit: Visit) -> Response[Any]:
    """Whatever a few letters may mean: pages, schedules, a run, or the answer to a question."""
    text = visit.query.get("q", "").strip()
    lowered = text.lower()
    pages = [each for each in PAGES if lowered in each[1].lower()] if text else PAGES
    found: dict[str, Any] = {
        "pages": pages,
        "schedules": [],
        "others": [],
        "run": None,
        "found": None,
        "text": text,
        "problem": "",
    }
    if text:
        found["schedules"] = await matching(visit.there, text)
        found["others"] = await _workflows_and_flows(visit, lowered)
        if len(text) >= 16 and " " not in text:
            with contextlib.suppress(RunNotFoundError):
                found["run"] = await visit.there.runs.get(text)
        if " " in text:
            found["found"], _, _, found["problem"] = await answer(visit, text)
    template = "go_found.html" if "hx-request" in visit.request.headers else "go.html"
    return visit.page(template, **found)


async def matching(there: ScopedOperations, text: str) -> list[Any]:
    """The schedule that is called so, the first ones whose ids begin so, and then those that mention it."""
    found: dict[ScheduleKey, Schedule] = {}
    with contextlib.suppress(HoraeError):  # there is none, or several owners have one
        named = await there.schedules.get(text)
        found[named.key] = named
    with contextlib.suppress(HoraeError):
        beginning = await there.schedules.search(Filter(prefix=text), cursor=cursor_of("", text), limit=FOUND)
        found |= {each.key: each for each in beginning}
        if len(found) < FOUND:
            more = await there.schedules.search(Filter(text=text.lower()), limit=FOUND)
            found |= {each.key: each for each in more if each.key not in found}
    return list(found.values())[:FOUND]


async def _workflows_and_flows(visit: Visit, lowered: str) -> list[tuple[str, str, str]]:
    """The workflows and flows that are called so: their kinds, names and addresses."""
    there = visit.there
    workflows = {(each.owner, each.workflow_id) for each in await there.workflows.list(limit=MAX_NAMES)}
    flows = [(each.owner, each.name, each.title) for each in await there.flows.list(limit=MAX_NAMES)]
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
