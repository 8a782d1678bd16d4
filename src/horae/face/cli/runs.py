"""``horae runs``: list, show and stop runs."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from horae.face.cli.client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Limit, RunId, ScheduleId
from horae.face.cli.printing import none
from horae.face.cli.render import Json, run_panel, run_table, unstarted_table

cli = group("runs", "Look at runs, and stop them.")


@command(cli, "list")
async def list_runs(session: Session, schedule_id: ScheduleId, limit: Limit = 20) -> None:
    """List the runs of a schedule, newest first, and the times that did not run, with why.

    horae runs list report -n 50

    horae runs list report --json
    """
    schedule = path("schedules", schedule_id)
    runs = await session.client.items(f"{schedule}/runs", limit)
    unstarted = [] if session.as_json else await session.client.items(f"{schedule}/unstarted", limit)
    session.show(runs, partial(_ledger, unstarted=unstarted, zone=await session.zone(schedule_id)))


def _ledger(runs: list[Json], unstarted: list[Json], zone: str) -> RenderableType:
    parts: list[RenderableType] = [run_table(runs, zone) if runs else none("No runs.")]
    if unstarted:
        parts += [Text(), unstarted_table(unstarted, zone)]
    return Group(*parts)


@command(cli, "show")
async def show(session: Session, run_id: RunId) -> None:
    """Show a run: its slot, its attempts, what they saved, its result, and why it ended so.

    horae runs show 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await _show_run(session, await session.client.get(path("runs", run_id)))


@command(cli, "cancel")
async def cancel(session: Session, run_id: RunId) -> None:
    """Ask a run to stop; it may take its time, as its schedule allows.

    horae runs cancel 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await _show_run(session, await session.client.post(path("runs", run_id, "cancel")))


@command(cli, "terminate")
async def terminate(session: Session, run_id: RunId) -> None:
    """Make a run stop now.

    horae runs terminate 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await _show_run(session, await session.client.post(path("runs", run_id, "terminate")))


async def _show_run(session: Session, run: Json) -> None:
    session.show(run, partial(run_panel, zone=await session.zone(run["schedule_id"])))
