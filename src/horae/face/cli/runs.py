"""``horae runs``: what became of slots and triggers."""

from __future__ import annotations

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from horae.errors import ServerError
from horae.face.cli.client import path
from horae.face.cli.command import Session, command
from horae.face.cli.options import Limit, RunId, ScheduleId
from horae.face.cli.render import Json, run_panel, run_table, unstarted_table
from horae.face.cli.schedules_read import zone_of

cli = typer.Typer(
    name="runs",
    help="Look at runs, and stop them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)


@command(cli, "list")
async def list_runs(session: Session, schedule_id: ScheduleId, limit: Limit = 20) -> None:
    """List the runs of a schedule, newest first, and the times that did not run, with why.

    horae runs list report -n 50

    horae runs list report --json
    """
    where = path("schedules", schedule_id)
    runs = [each async for each in session.client.items(f"{where}/runs", limit)]
    if session.as_json:
        session.show(runs, str)
        return
    unstarted = [each async for each in session.client.items(f"{where}/unstarted", limit)]
    zone = await zone_of(session, schedule_id)
    session.show(runs, lambda: _ledger(runs, unstarted, zone))


def _ledger(runs: list[Json], unstarted: list[Json], zone: str) -> RenderableType:
    parts: list[RenderableType] = [run_table(runs, zone) if runs else Text("No runs.", style="dim")]
    if unstarted:
        parts += [Text(), unstarted_table(unstarted, zone)]
    return Group(*parts)


@command(cli, "show")
async def show(session: Session, run_id: RunId) -> None:
    """Show a run: its slot, its attempts, its result, and why it ended so.

    horae runs show 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    found = await session.client.get(path("runs", run_id))
    await _show_run(session, found)


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
    zone = "UTC"
    if not session.as_json:
        try:
            zone = await zone_of(session, run["schedule_id"])
        except ServerError as error:  # a run outlives its schedule
            if error.details.get("code") != "schedule_not_found":
                raise
    session.show(run, lambda: run_panel(run, zone))
