"""The page of one schedule: when it fires, what became of its slots, and its runs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

from horae.app import ScopedOperations
from horae.app.fire_times import skipped_times
from horae.app.schedule_views import (
    DescribedSchedule,
    Description,
    ResumedSchedule,
    description_view,
    resumed_view,
)
from horae.app.view_base import page_of
from horae.app.views import BackfillView, RunView, UnstartedView
from horae.errors import HoraeError
from horae.face.console.backfill_progress import MAX_DROPPED, dropped_runs, progress_of
from horae.face.console.error_text import error_text
from horae.face.console.form_fields import moment_of_query
from horae.face.console.history_strip import durations_of, marks_of
from horae.face.console.page_request import Visit
from horae.face.console.policy_words import policy_lines
from horae.face.http.responses import Response
from horae.face.http.routes import get
from horae.model import BackfillStatus, instant
from horae.spec.clock_change import clock_note

RUNS = 60
TIMES = 120
SKIPPED = 5
"""How many slots to list that will be skipped."""


class Coming(msgspec.Struct, frozen=True):
    """A slot ahead."""

    at: datetime
    note: str
    """A change of the clocks before it."""
    is_skipped: bool


async def coming(visit: Visit, found: Description, schedule: DescribedSchedule) -> list[Coming]:
    """The next slots, and before them those that will be skipped."""
    skipped = await visit.operations.evaluate(lambda: skipped_times(found.schedule, visit.now, SKIPPED))
    times = [*skipped, *schedule.info.next_times]
    notes = [clock_note(schedule.timezone, *pair) for pair in pairwise([instant(visit.now), *times])]
    return [
        Coming(at, note, place < len(skipped))
        for place, (at, note) in enumerate(zip(times, notes, strict=True))
    ]


async def described(operations: ScopedOperations, schedule_id: str) -> DescribedSchedule:
    """A schedule with its counts, its latest runs and its next times."""
    found = await operations.schedules.describe(schedule_id)
    return await operations.evaluate(lambda: description_view(found))


async def _history(operations: ScopedOperations, schedule_id: str, cursor: str | None) -> dict[str, Any]:
    runs = page_of(RunView, await operations.runs.list(schedule_id, RUNS, cursor=cursor))
    unstarted = page_of(UnstartedView, await operations.runs.unstarted_ranges(schedule_id, RUNS))
    backfills = page_of(BackfillView, await operations.backfills.list(schedule_id, 5)).items
    still_open = await operations.backfills.open_runs(schedule_id) if backfills else {}
    progress = [
        progress_of(
            each, still_open.get(each.id, Counter()), runs.items, await _dropped(operations, each, runs.items)
        )
        for each in backfills
    ]
    return {"runs": runs.items, "next": runs.next, "unstarted": unstarted.items, "backfills": progress}


async def _dropped(operations: ScopedOperations, backfill: BackfillView, latest: list[RunView]) -> int | None:
    """How many runs of a backfill were dropped, if it may have been cancelled and the latest runs do not tell.

    One that had queued all its slots counts as done, also if these were dropped: then it had few.
    """
    if backfill.made == sum(each.origin.id == backfill.id for each in latest):
        return None
    is_few = backfill.status == BackfillStatus.DONE and backfill.made <= MAX_DROPPED
    if backfill.status == BackfillStatus.CANCELLED or is_few:
        return await dropped_runs(operations, backfill)
    return None


@get("/schedules/{schedule_id}")
async def schedule_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """A schedule."""

    async def build() -> dict[str, Any]:
        operations = visit.operations
        found = await operations.schedules.describe(schedule_id)
        schedule = await operations.evaluate(lambda: description_view(found))
        history = await _history(operations, schedule_id, visit.cursor)
        runs, unstarted = history["runs"], history["unstarted"]
        return {
            "schedule": schedule, "times": await coming(visit, found, schedule), **history,
            "marks": marks_of(visit, runs, unstarted), "durations": durations_of(visit, runs),
            "policies": policy_lines(schedule.policies),
        }  # fmt: skip

    return await visit.live_page("schedule.html", build)


@get("/schedules/{schedule_id}/resume")
async def resume_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """Ask what to do with the slots that fell due, before a pause is ended."""
    found = await ways_to_resume(visit, schedule_id)
    usual = found[0].policies["on_resume"]
    ways = [each.resumption for each in found]
    return visit.page("resume.html", schedule=found[0], ways=ways, usual=usual, any_due=any_due(found))


async def ways_to_resume(visit: Visit, schedule_id: str) -> list[ResumedSchedule]:
    """What ending a pause would start if the slots that fell due are caught up, and if they are skipped."""
    resume = visit.operations.schedules.resume
    return [
        resumed_view(await resume(schedule_id, on_resume="catch_up", dry_run=True)),
        resumed_view(await resume(schedule_id, on_resume="skip", dry_run=True)),
    ]


def any_due(ways: list[ResumedSchedule]) -> bool:
    """Whether slots fell due during a pause, so that there is a choice."""
    found = [each.resumption for each in ways]
    return any(each.starts or each.waits or each.unstarted for each in found)


@get("/schedules/{schedule_id}/delete")
async def delete_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """Ask for confirmation before a schedule is deleted."""
    return visit.page("delete.html", schedule=await described(visit.operations, schedule_id))


@get("/schedules/{schedule_id}/times")
async def times_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """The times that a schedule names in a range, with clock changes marked; and how many slots to skip."""
    operations, found, problem = visit.operations, None, ""
    schedule = await described(operations, schedule_id)
    try:
        start, end = moment_of_query(visit, "start"), moment_of_query(visit, "end")
        found = await operations.schedules.times(schedule_id, start, end, TIMES)
    except HoraeError as error:
        problem = error_text(error)
    times = [] if found is None else [each.nominal for each in found.items]
    notes = [clock_note(schedule.timezone, *pair) for pair in pairwise(times)]
    return visit.page(
        "times.html", 422 if problem else 200, schedule=schedule, times=list(zip(times, ["", *notes], strict=False)),
        problem=problem, most=TIMES,
    )  # fmt: skip


HANDLERS = [schedule_page, resume_page, delete_page, times_page]
