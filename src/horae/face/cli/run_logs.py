"""Print the log of a run, once or live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import typer
from rich.text import Text

from horae.face.cli.command_base import Session
from horae.face.cli.printing import console, local, none, print_json
from horae.face.cli.render import Json
from horae.face.cli.run_following import POLL_SECONDS
from horae.face.cli.tables import GAP, printable

COLOURS = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


async def print_logs(
    session: Session, place: str, zone: str, *, attempts: int = 1, follow: bool = False, **query: object
) -> None:
    """Print the lines of a log; with ``follow``, new ones too until the run has ended."""
    lines = _lines(session, place, query, follow=follow)
    if session.as_json and not follow:
        print_json([line async for line in lines])
        return
    attempt = 0
    async for line in lines:
        if session.as_json:
            typer.echo(msgspec.json.encode(line))
            continue
        if line["attempt"] != attempt and attempts + attempt > 1:
            console().print(Text(f"attempt {line['attempt']}", style="bold"))
        attempt = line["attempt"]
        print_line(line, zone)
    if not attempt and not session.as_json:
        console(stderr=True).print(none("No lines: nothing was logged, or the log is no longer kept."))


async def _lines(
    session: Session, place: str, query: dict[str, object], *, follow: bool
) -> AsyncIterator[Json]:
    cursor = None
    while True:
        page = await session.client.get(place, cursor=cursor, **query)
        for line in page["items"]:
            yield line
        cursor = page["next"]
        if cursor is None or not (follow or page["items"]):
            return
        if not page["items"]:
            await asyncio.sleep(POLL_SECONDS)


def print_line(line: Json, zone: str) -> None:
    """Print a line at once; further lines of its message, such as a traceback, are indented."""
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
