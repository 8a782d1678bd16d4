"""Print what the attempts of a run logged, once or as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import typer
from rich.text import Text

from horae.face.cli.client import path
from horae.face.cli.command_base import Session
from horae.face.cli.printing import console, local, none, print_json
from horae.face.cli.render import Json
from horae.face.cli.run_following import POLL_SECONDS
from horae.face.cli.tables import GAP, printable

COLOURS = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


async def print_logs(session: Session, run_id: str, attempt: int | None, *, follow: bool) -> None:
    """Print the lines of a run; with ``follow`` as they come, until it has ended."""
    run = await session.client.get(path("runs", run_id))
    if session.as_json:
        await _print_json(session, run_id, attempt, follow=follow)
        return
    zone, shown = await session.zone(run["schedule_id"], run["owner"]), 0
    async for line in _lines(session, run_id, attempt, follow=follow):
        if line["attempt"] != shown and run["attempt"] + shown > 1:
            console().print(Text(f"attempt {line['attempt']}", style="bold"))
        shown = line["attempt"]
        print_line(line, zone)
    if not shown:
        console(stderr=True).print(none("No lines: its action has logged nothing that is kept."))


async def _print_json(session: Session, run_id: str, attempt: int | None, *, follow: bool) -> None:
    """One list; or, as lines come, an object a line."""
    lines = _lines(session, run_id, attempt, follow=follow)
    if not follow:
        print_json([line async for line in lines])
        return
    async for line in lines:
        typer.echo(msgspec.json.encode(line))


async def _lines(session: Session, run_id: str, attempt: int | None, *, follow: bool) -> AsyncIterator[Json]:
    cursor = None
    while True:
        page = await session.client.get(path("runs", run_id, "logs"), attempt=attempt, cursor=cursor)
        for line in page["items"]:
            yield line
        cursor = page["next"]
        if cursor is None or not (follow or page["items"]):
            return
        if not page["items"]:
            await asyncio.sleep(POLL_SECONDS)


def print_line(line: Json, zone: str) -> None:
    """A line, at once; what follows in its message, such as a traceback, is indented."""
    if line["dropped"]:
        console().print(none(f"… {line['dropped']} lines were dropped"))
    first, *more = line["message"].split("\n")
    level = Text(printable(line["level"]), style=COLOURS.get(line["level"], ""))
    level.pad_right(max(len("WARNING") - len(level), 0))
    parts = [
        Text(local(line["at"], zone), style="dim"),
        level,
        Text(printable(line["logger"])),
        Text(printable(first)),
    ]
    text = Text(GAP).join(parts)
    for each in more:
        text.append(f"\n{GAP}{printable(each)}")
    console().print(text, soft_wrap=True)
