"""Output of commands: tables and colours for people, JSON for programs, errors with hints."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from horae.errors import HoraeError, InvalidCronExpressionError, StoreUnavailableError, UnknownTimezoneError
from horae.face.cli.tables import Table, printable
from horae.spec import load_zone

MAX_POINTED_AT_LENGTH = 200
UNBOUNDED = 1_000_000
"""The width of output that a program reads."""

COLOURS = {
    "succeeded": "green", "running": "cyan", "starting": "cyan", "pending": "cyan", "retrying": "cyan", "failed": "red",
    "timed_out": "red", "cancelled": "yellow", "terminated": "yellow", "skipped": "yellow", "missed": "yellow",
    "dropped": "yellow", "paused": "yellow", "completed": "dim", "open": "cyan", "done": "green",
    "alive": "green", "dead": "red", "ok": "green", "warn": "yellow", "fail": "bold red",
}  # fmt: skip


def console(*, stderr: bool = False) -> Console:
    """A console. Colours need a terminal; without one, lines are as wide as COLUMNS, or unbounded."""
    screen = Console(
        stderr=stderr, highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto"
    )
    if not screen.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        screen.width = UNBOUNDED
    return screen


def show(shown: RenderableType) -> None:
    """Print for people; ids are never broken, so lines may be wider than the terminal."""
    console().print(Group(shown), crop=False)


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON
    """Print one JSON value for programs."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def none(sentence: str) -> Text:
    """A dim sentence, instead of an empty table or below one."""
    return Text(sentence, style="dim")


def word(status: str) -> Text:
    """A status in its colour."""
    return Text(status, style=COLOURS.get(status, ""))


def instant(moment: str | datetime | None) -> datetime | None:
    """A time of an answer, in UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return None if moment is None else moment.astimezone(UTC)


def local(moment: str | datetime | None, zone: str) -> str:
    """A time in a zone: ``Mon 2026-03-09 09:00:00 +01:00``."""
    time = instant(moment)
    if time is None:
        return ""
    try:
        offset = load_zone(zone).offset_at(int(time.timestamp()))
    except UnknownTimezoneError:  # a server may know zones that this machine does not
        offset = 0
    there = time.astimezone(timezone(timedelta(seconds=offset)))
    return f"{there:%a %Y-%m-%d %H:%M:%S} {offset_text(offset)}"


def offset_text(offset: int) -> str:
    """``+05:30``; with seconds if the offset has them, as old ones do."""
    sign, rest = ("-" if offset < 0 else "+"), abs(offset)
    text = f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}"
    return text + (f":{rest % 60:02}" if rest % 60 else "")


def gap_text(gap: timedelta) -> str:
    """A gap in its two largest units: ``3d 2h``, ``45m``, ``5m 7s``."""
    seconds = max(int(gap.total_seconds()), 0)
    parts = []
    for unit, name in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts[:2]) or "0s"


def utc(moment: str | datetime | None) -> Text:
    """A time in UTC: ``2026-03-09 08:00:00Z``."""
    time = instant(moment)
    return Text("" if time is None else f"{time:%Y-%m-%d %H:%M:%S}Z", style="dim")


def both(text: str | None, zone: str) -> Text:
    """A time in a zone and in UTC."""
    return Text("") if text is None else Text.assemble(local(text, zone), "  ", utc(text))


def with_end(times: Table, ended: str | None) -> RenderableType:
    """A table of times, and why there are no more."""
    if ended is None:
        return times
    end = Text(f"{'No more times' if times else 'Never'}: {printable(ended)}.", style="yellow")
    return Group(times, end) if times else end


def clock(text: str | None, zone: str) -> tuple[str, Text]:
    """A time for two columns: in its zone, and in UTC unless that is the zone."""
    return local(text, zone), utc(None if zone == "UTC" else text)


def warn(sentence: str) -> None:
    """Print a warning to standard error; with ``--json`` the answer has it."""
    if "--json" not in sys.argv:
        text = Text.assemble(("warning: ", "bold yellow"), printable(sentence))
        console(stderr=True).print(text, soft_wrap=True)


def report(error: HoraeError) -> None:
    """Print an error: a sentence, the wrong characters of an expression, and a hint."""
    if "--json" in sys.argv:
        import json  # noqa: PLC0415 - details may be of any type, and few commands fail

        problem = {
            "error": type(error).__name__, "message": error.for_operator, "details": error.details, "hint": _hint(error),
        }  # fmt: skip
        typer.echo(json.dumps(problem, default=str), err=True)
        return
    screen = console(stderr=True)
    screen.print(Text.assemble(("error: ", "bold red"), printable(error.for_operator)), soft_wrap=True)
    if isinstance(error, InvalidCronExpressionError) and 0 < error.length <= MAX_POINTED_AT_LENGTH:
        screen.print(Text(f"  {printable(str(error.details['expression']))}"), soft_wrap=True)
        screen.print("  " + " " * error.position + "^" * error.length, style="red", soft_wrap=True)
    for fault in _faults(error):
        screen.print(Text(f"  {printable(fault)}"), soft_wrap=True)
    if hint := _hint(error):
        screen.print(Text.assemble(("hint: ", "bold"), printable(hint)), soft_wrap=True)


def _hint(error: HoraeError) -> str | None:
    if isinstance(error, StoreUnavailableError):  # its own hint is for programs that keep running
        source = error.details.get("source", "--database, or HORAE_DATABASE_URL")
        return f"look at {source}; horae check says more"
    return error.hint


def _faults(error: HoraeError) -> list[str]:
    """The faults of single fields that the message does not contain."""
    faults = error.details.get("errors")
    if not isinstance(faults, list):
        return []
    more = [
        each for each in faults if isinstance(each, dict) and str(each.get("message")) not in error.message
    ]
    return [": ".join(str(each[key]) for key in ("path", "message") if each.get(key)) for each in more]
