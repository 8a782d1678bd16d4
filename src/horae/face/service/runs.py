"""``/api/v1/runs`` and ``/api/v1/backfills``: search, read, stop, and run again."""

from __future__ import annotations

from typing import Annotated

from horae.app import ScopedOperations
from horae.app.attempt_logs import MAX_ATTEMPT
from horae.app.schedule_fields import TriggerBody, values_of
from horae.app.view_base import view_of
from horae.app.views import (
    BackfillView,
    LedgerPage,
    LogPage,
    RunView,
    RunWithAttempts,
    history_view,
    ledger_page,
    log_page_view,
)
from horae.face.http.arguments import query
from horae.face.http.routes import Router, get, post
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import RunSearch
from horae.face.service.route_helpers import API, Cursor, Limit

AttemptNumber = Annotated[int | None, query("Only of this attempt.", minimum=1, maximum=MAX_ATTEMPT)]


@get("/runs", summary="Search the runs of all schedules")
async def search_runs(
    operations: ScopedOperations, search: RunSearch, limit: Limit = 100, cursor: Cursor = None
) -> LedgerPage:
    """Runs, and slots that did not run, that match all given parameters; latest decided first.

    A page examines at most 10,000 of them, and ends early at 4 MiB.
    """
    entries = await operations.runs.search(
        status=None if search.status is None else search.status.split(","), reason=search.reason,
        schedule_id=search.schedule, tag=search.tag, since=search.since, until=search.until, limit=limit, cursor=cursor,
    )  # fmt: skip
    return ledger_page(entries)


@get("/runs/{run_id}", summary="A run and its attempts")
async def get_run(operations: ScopedOperations, run_id: str) -> RunWithAttempts:
    """The run of a slot or a trigger, its failed attempts, and the keys of its checkpoints."""
    return history_view(await operations.runs.history(run_id))


@get("/runs/{run_id}/logs", summary="What a run logged")
async def get_run_logs(
    operations: ScopedOperations, run_id: str, attempt: AttemptNumber = None, cursor: Cursor = None
) -> LogPage:
    """The lines that its attempts logged, in order, up to 4 MiB a page. While the run is open, `next` is never null: it leads to later
    lines, and a page may be empty.
    """
    return log_page_view(await operations.runs.logs(run_id, attempt, cursor=cursor))


@post("/runs/{run_id}/rerun", summary="Run a run again", status_code=202)
async def rerun(
    operations: ScopedOperations, caller: Caller, run_id: str, data: TriggerBody | None = None
) -> RunView:
    """Starts the slot of an ended run again, as a new run that names it in `rerun_of`, with the same input unless one is given.

    It runs the schedule's current action, even while the schedule is paused.
    """
    wanted = values_of(data or TriggerBody(), TriggerBody)
    return view_of(RunView, await operations.runs.rerun(run_id, **wanted, author=caller.user))


@post("/runs/{run_id}/cancel", summary="Ask a run to stop", status_code=200)
async def cancel_run(operations: ScopedOperations, run_id: str) -> RunView:
    """The run may finish within `timeouts.cancel`; after that it is terminated. A waiting run never starts."""
    return view_of(RunView, await operations.runs.cancel(run_id))


@post("/runs/{run_id}/terminate", summary="Make a run stop", status_code=200)
async def terminate_run(operations: ScopedOperations, run_id: str) -> RunView:
    """Stops the run at once. A waiting run never starts."""
    return view_of(RunView, await operations.runs.terminate(run_id))


@get("/backfills/{backfill_id}", summary="A backfill and how far it has come")
async def get_backfill(operations: ScopedOperations, backfill_id: str) -> BackfillView:
    """`made` of `total` slots have become runs."""
    return view_of(BackfillView, await operations.backfills.get(backfill_id))


@post("/backfills/{backfill_id}/cancel", summary="Cancel a backfill", status_code=200)
async def cancel_backfill(operations: ScopedOperations, backfill_id: str) -> BackfillView:
    """No more of its slots become runs; waiting runs never start, running ones continue."""
    return view_of(BackfillView, await operations.backfills.cancel(backfill_id))


_HANDLERS = [
    search_runs,
    get_run,
    get_run_logs,
    rerun,
    cancel_run,
    terminate_run,
    get_backfill,
    cancel_backfill,
]
runs_router = Router(API, route_handlers=_HANDLERS, tags=("runs",))
