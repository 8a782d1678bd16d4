"""Output of commands: tables and colours for people, JSON for programs, errors with hints."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from horae.errors import HoraeError, InvalidCronExpressionError, StoreUnavailableError, UnknownTimezoneError
from horae.face.cli.fire_table import offset_text
from horae.spec import load_zone

MAX_POINTED_AT_LENGTH = 200
WIDTH = 160
"""The width of tables without a terminal."""
NARROW = 130

COLOURS = {
    "succeeded": "green", "running": "cyan", "starting": "cyan", "pending": "cyan", "retrying": "cyan", "failed": "red",
    "timed_out": "red", "cancelled": "yellow", "terminated": "yellow", "skipped": "yellow", "missed": "yellow",
    "dropped": "yellow", "paused": "yellow", "completed": "dim", "open": "cyan", "done": "green",
    "ok": "green", "warn": "yellow", "fail": "bold red",
}  # fmt: skip


def console(*, stderr: bool = False) -> Console:
    """A console; colours only on a terminal."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = WIDTH
    return made


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON
    """For programs: one JSON value on standard output."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def table(*columns: str, rows: Iterable[Sequence[object]]) -> Table:
    """A table without lines. ``name>`` is aligned to the right; ``name~`` wraps. Texts of others are no markup, and move no cursor."""
    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(
            column.rstrip(">~"), justify="right" if column.endswith(">") else "left",
            no_wrap=not column.endswith("~"), overflow="fold",
        )  # fmt: skip
    for row in rows:
        made.add_row(*(each if isinstance(each, Text) else _plain(each) for each in row))
    return made


def _plain(value: object) -> Text:
    return Text("" if value is None else printable(str(value)))


def none(sentence: str) -> Text:
    """A sentence instead of an empty table, or beside one."""
    return Text(sentence, style="dim")


def facts(*rows: tuple[str, Any]) -> Table:
    """Names and values, one below the other; what has no value is left out."""
    made = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        if value not in (None, "", [], {}):
            made.add_row(name, value if isinstance(value, Text | Table) else _plain(value))
    return made


def word(status: str) -> Text:
    """A status in its colour."""
    return Text(status, style=COLOURS.get(status, ""))


def instant(text: str | None) -> datetime | None:
    """Read a time of an answer."""
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def local(text: str | None, zone: str) -> str:
    """A time of an answer as a clock in a zone shows it: ``Mon 2026-03-09 09:00:00 +01:00``."""
    moment = instant(text)
    if moment is None:
        return ""
    try:
        offset = load_zone(zone).offset_at(int(moment.timestamp()))
    except UnknownTimezoneError:  # a server may know zones that this machine does not
        offset = 0
    there = moment.astimezone(timezone(timedelta(seconds=offset)))
    return f"{there:%a %Y-%m-%d %H:%M:%S} {offset_text(offset)}"


def utc(text: str | None) -> Text:
    """The same in UTC: ``2026-03-09 08:00:00Z``."""
    moment = instant(text)
    return Text("" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}Z", style="dim")


def both(text: str | None, zone: str) -> Text:
    """A time in a zone, and in UTC beside it."""
    return Text("") if text is None else Text.assemble(local(text, zone), "  ", utc(text))


def is_narrow() -> bool:
    """Whether the terminal is too narrow for a time in its zone and in UTC."""
    return console().width < NARROW


def beside(text: str | None, zone: str) -> Text:
    """A time in its zone, with UTC beside it, or below it on a narrow terminal; once if the zone is UTC."""
    there = Text(local(text, zone))
    if text is None or zone == "UTC":
        return there
    return Text("\n" if is_narrow() else "  ").join([there, utc(text)])


def heading(name: str, zone: str) -> str:
    """The heading of a column of such times."""
    return f"{name} ({zone})" if zone == "UTC" else f"{name} ({zone}), and in UTC"


def report(error: HoraeError) -> None:
    """An error as a sentence, with the characters that are wrong and what would have been right."""
    if "--json" in sys.argv:
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
    if isinstance(error, StoreUnavailableError):  # its own is for programs that go on
        return "look at --database, or HORAE_DATABASE_URL; horae check says more"
    return error.hint


def _faults(error: HoraeError) -> list[str]:
    """The faults of single fields that the message does not have already."""
    found = error.details.get("errors")
    if not isinstance(found, list):
        return []
    more = [
        each for each in found if isinstance(each, dict) and str(each.get("message")) not in error.message
    ]
    return [f"{each.get('path')}: {each.get('message')}" for each in more]


def printable(text: str) -> str:
    """Text that a terminal can show: what would move the cursor or cannot be encoded becomes a mark."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
