"""Backfills: run the slots of a range, and watch the progress."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from horae.face.api_client import path
from horae.face.cli.command_base import Session
from horae.face.cli.options import DryRun, Input, Limit, Note, OverlapChoice, ScheduleId, flag, option
from horae.face.cli.printing import both, console
from horae.face.cli.render import Json, backfill_table
from horae.face.cli.schedule_options import given, start_fields

_POLL_SECONDS = 0.5


def progress() -> Progress:
    """A progress bar on standard error; hidden without a terminal."""
    screen = console(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=screen, disable=not screen.is_terminal, transient=True,
    )  # fmt: skip


async def backfill(
    session: Session,
    schedule_id: ScheduleId,
    start: Annotated[str, option("--from", "TIME", "The start of the range, inclusive.")],
    end: Annotated[str, option("--to", "TIME", "The end of the range, inclusive.")],
    overlap: OverlapChoice = None,
    input: Input = None,  # noqa: A002 - as the API calls it
    note: Note = None,
    dry_run: DryRun = False,
    wait: Annotated[bool, flag("--wait", "Wait until all slots have become runs.")] = False,
) -> None:
    """Run all slots of a range, past or future.

    [dim]Count the slots first, then run them and watch the progress:[/dim]

      horae schedules backfill report --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z --dry-run

      horae schedules backfill report --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z --wait
    """
    first, last = [
        await session.moment(text, name, schedule_id) for text, name in ((start, "--from"), (end, "--to"))
    ]
    body: dict[str, Any] = {"start": first, "end": last}
    body |= start_fields(overlap, input, note) | given(dry_run=dry_run or None)
    answer = await session.client.post(path("schedules", schedule_id, "backfills"), body)
    zone = await session.zone(schedule_id)
    if dry_run:
        session.show(answer, partial(_would_be, zone=zone))
        return
    if wait:
        answer = await _watched(session, answer)
    session.show(answer, lambda backfill: backfill_table([backfill], zone))


async def _watched(session: Session, answer: Json) -> Json:
    with progress() as bar:
        task = bar.add_task(
            f"backfill of {answer['schedule_id']}", total=answer["total"], completed=answer["made"]
        )
        while answer["status"] == "open":
            await asyncio.sleep(_POLL_SECONDS)
            answer = await session.client.get(path("backfills", answer["id"]))
            bar.update(task, completed=answer["made"])
    return answer


def _would_be(answer: Json, zone: str) -> RenderableType:
    if not answer["slots"]:
        return Text("There is no slot in this range.")
    return Group(
        Text(f"{answer['slots']} slots would run:"),
        Text.assemble("first: ", both(answer["first"], zone)),
        Text.assemble("last:  ", both(answer["last"], zone)),
    )


async def backfills(session: Session, schedule_id: ScheduleId, limit: Limit = 20) -> None:
    """List the backfills of a schedule.

    horae schedules backfills report
    """
    table = partial(backfill_table, zone=await session.zone(schedule_id))
    await session.show_list(path("schedules", schedule_id, "backfills"), limit, table, order="latest")
