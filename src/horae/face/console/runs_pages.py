"""Runs: a search of the ledger, and the page of one run with its timeline, attempts and log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from horae.app.page import Page
from horae.app.view_base import view_of
from horae.app.views import (
    BackfillView,
    LogLineView,
    RunView,
    RunWithAttempts,
    history_view,
    ledger_page,
    log_page_view,
    sentence_of,
)
from horae.errors import HoraeError, InvalidInputError, ScheduleNotFoundError
from horae.face.console.backfill_progress import dropped_runs, progress_of
from horae.face.console.error_text import error_text
from horae.face.console.form_fields import moment_of_query, unknown_action
from horae.face.console.page_request import Visit
from horae.face.console.problem_runs import ASKED_FOR, PROBLEMS
from horae.face.console.rendering import span
from horae.face.console.schedule_display_names import ids_called, names_of
from horae.face.console.workflows_pages import nodes_of
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.model import OPEN, OriginKind, Reason, Run, Status, UnstartedRange

PAGE = 50
MAX_LINES = 2000
"""How many lines of a log a page shows: the last ones."""
KINDS: dict[str, tuple[str, list[Status]]] = {
    "": ("All", []),
    "open": ("Open", list(OPEN)),
    "succeeded": ("Succeeded", [Status.SUCCEEDED]),
    "failed": ("Failed", [Status.FAILED, Status.TIMED_OUT]),
    "problems": ("Problems", list(PROBLEMS)),
    "stopped": ("Stopped", [Status.CANCELLED, Status.TERMINATED]),
    "unstarted": ("Did not start", [Status.SKIPPED, Status.MISSED, Status.DROPPED]),
}
"""The filters that one click sets."""


def wrong_times(visit: Visit) -> dict[str, str]:
    """The errors of the search fields that are not times."""
    wrong = {}
    for name in ("since", "until"):
        try:
            moment_of_query(visit, name)
        except HoraeError as error:
            wrong[name] = error_text(error)
    return wrong


@get("/runs")
async def runs_page(visit: Visit) -> Response[Any]:
    """The runs, and the slots that did not run, that the address asks for."""
    kind = visit.query.get("state", "")
    if kind not in KINDS:
        raise InvalidInputError("state", f"is none of {', '.join(filter(None, KINDS))}")
    shown = {
        "kinds": KINDS, "reasons": [(each.value, sentence_of(each)) for each in Reason], "unknown": False, "meant": [],
        "wrong": wrong_times(visit),
    }  # fmt: skip
    if shown["wrong"]:
        return visit.page("runs.html", 422, **shown, shown=[], next=None)

    async def build() -> dict[str, Any]:
        query = visit.query
        try:
            found = await _search(visit, query, KINDS[kind][1])
        except ScheduleNotFoundError:
            ids = await ids_called(visit.operations, query["schedule"])
            if len(ids) != 1:
                return {**shown, "shown": [], "next": None, "unknown": not ids, "meant": ids}
            found = await _search(visit, {**query, "schedule": ids[0]}, KINDS[kind][1])
        page = ledger_page(found)
        names = await names_of(visit.operations, found)
        return {**shown, "shown": page.items, "next": page.next, "names": names}

    return await visit.live_page("runs.html", build)


async def _search(visit: Visit, query: dict[str, str], statuses: list[Status]) -> Page[Run | UnstartedRange]:
    return await visit.operations.runs.search(
        status=statuses or None, reason=query.get("reason") or None,
        without_reasons=ASKED_FOR if query.get("state") == "problems" else (), schedule_id=query.get("schedule") or None,
        tag=query.get("tag") or None, since=moment_of_query(visit, "since"), until=moment_of_query(visit, "until"),
        limit=PAGE, cursor=query.get("cursor") or None,
    )  # fmt: skip


class Step(msgspec.Struct, frozen=True):
    """One step in the life of a run."""

    label: str
    at: datetime | None
    after: str
    tone: str
    is_dated: bool = False
    """Whether the day is shown: for the first step, and after a change of day."""


def life_of(run: RunWithAttempts, zone: ZoneInfo) -> list[Step]:
    """The steps of a run's life in order: its slot, its decision, its attempts, its end."""
    kind = run.origin.kind
    steps = [Step("triggered" if kind == OriginKind.TRIGGER else "slot", run.nominal, "", "coming")]
    fires_when_decided = kind in {OriginKind.TRIGGER, OriginKind.RERUN}
    if run.fire != run.nominal and not fires_when_decided:
        steps.append(Step("fires", run.fire, _after(run.nominal, run.fire), "coming"))
    steps.append(Step("decided", run.decided_at, _after(steps[-1].at, run.decided_at), "pending"))
    for each in run.attempts:
        if each.attempt == run.attempt and run.ended_at is not None:
            continue
        if each.started_at:
            since = _after(steps[-1].at, each.started_at)
            steps.append(Step(f"attempt {each.attempt}", each.started_at, since, "running"))
        took = _after(each.started_at, each.ended_at)
        steps.append(Step(_reason(each.reason), each.ended_at, took, "failed"))
    if run.started_at and not any(step.at == run.started_at for step in steps):
        label = f"attempt {run.attempt}" if run.attempt > 1 else "started"
        steps.append(Step(label, run.started_at, _after(steps[-1].at, run.started_at), "running"))
    steps.append(Step(run.status, run.ended_at, _after(run.started_at, run.ended_at), run.status))
    return list(_dated(steps, zone))


def _dated(steps: list[Step], zone: ZoneInfo) -> Iterator[Step]:
    """The steps, marked where the day changes."""
    day = None
    for each in steps:
        own = each.at.astimezone(zone).date() if each.at else day
        yield msgspec.structs.replace(each, is_dated=own != day)
        day = own


def _reason(reason: str) -> str:
    return reason.replace("_", " ") or "ended"


def _after(start: datetime | None, end: datetime | None) -> str:
    return "" if start is None or end is None else span(end - start)


async def _lines(visit: Visit, run_id: str) -> tuple[list[LogLineView], bool]:
    """The last lines of a run's log, and whether earlier ones are left out."""
    lines: list[LogLineView] = []
    cursor: str | None = None
    while True:
        page = log_page_view(await visit.operations.runs.logs(run_id, cursor=cursor))
        lines += page.items
        if page.next is None or page.next == cursor or not page.items:
            return lines[-MAX_LINES:], len(lines) > MAX_LINES
        cursor = page.next


@get("/runs/{run_id}")
async def run_page(visit: Visit, run_id: str) -> Response[Any]:
    """A run: its life, attempts, input, result and log."""

    async def build() -> dict[str, Any]:
        run = history_view(await visit.operations.runs.history(run_id))
        lines, cut = await _lines(visit, run_id)
        graph = await nodes_of(visit, run)
        visit.restless = run.status in OPEN  # its log grows without a change that the feed notices
        is_open = visit.restless
        return {
            "run": run,
            "steps": life_of(run, visit.zone),
            "lines": lines,
            "cut": cut,
            "is_open": is_open,
            **graph,
        }

    return await visit.live_page("run.html", build)


@post("/runs/{run_id}")
async def act_on_run(visit: Visit, run_id: str) -> Response[Any]:
    """Cancel, terminate or rerun a run, and say what was done."""
    runs, here = visit.operations.runs, visit.url("runs", run_id)
    try:
        match visit.form.get("do"):
            case "cancel":
                run: RunView | Any = await runs.cancel(run_id)
                text = "It was asked to stop." if run.status == Status.RUNNING else "Cancelled."
            case "terminate":
                run = await runs.terminate(run_id)
                text = "It is being terminated." if run.status == Status.RUNNING else "Terminated."
            case "rerun":
                run = await runs.rerun(run_id, author=visit.caller.user, note=visit.form.get("note", ""))
                return visit.back(visit.url("runs", run.id), "This run does its slot again.")
            case _:
                raise unknown_action(visit)
    except HoraeError as error:
        await runs.get(run_id)  # gone: say that instead
        return visit.refused(here, error)
    return visit.back(here, text)


@post("/backfills/{backfill_id}")
async def cancel_backfill(visit: Visit, backfill_id: str) -> Response[Any]:
    """Cancel a backfill."""
    operations = visit.operations
    done = view_of(BackfillView, await operations.backfills.cancel(backfill_id))
    still_open = (await operations.backfills.open_runs(done.schedule_id)).get(backfill_id, Counter())
    progress = progress_of(done, still_open, (), await dropped_runs(operations, done))
    return visit.back(
        f"{visit.url('schedules', done.schedule_id)}#h-backfills",
        f"The backfill is cancelled: {progress.words}. What runs goes on.",
    )


HANDLERS = [runs_page, run_page, act_on_run, cancel_backfill]
