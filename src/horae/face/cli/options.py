"""The options and arguments that several commands share, and how they are declared."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import typer

from horae.face.cli.connection import connected
from horae.face.cli.target import Target
from horae.model import Overlap

WHEN, WHAT, HOW = "When", "What", "How"
"""Panels of the help."""
MAX_COMPLETIONS = 50
_COMPLETION_SECONDS = 3


def option(name: str, metavar: str | None, meaning: str, panel: str | None = None, **more: Any) -> Any:  # noqa: ANN401 - typer's own
    """An option. What it is without being given is for its meaning to say, where that is not plain."""
    return typer.Option(
        *name.split(), metavar=metavar, help=meaning, rich_help_panel=panel, **{"show_default": False} | more
    )


def flag(name: str, meaning: str) -> Any:  # noqa: ANN401
    """An option without a value."""
    return option(name, None, meaning)


def argument(metavar: str, meaning: str, **more: Any) -> Any:  # noqa: ANN401
    """An argument."""
    return typer.Argument(metavar=metavar, help=meaning, show_default=False, **more)


def number(name: str, meaning: str, most: int | None = None) -> Any:  # noqa: ANN401
    """An option that is a number from 1 on, and shows its default."""
    return option(name, "N", meaning, min=1, max=most, show_default=True)


def schedule_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids that a shell offers for a prefix; none if neither server nor database answers."""

    async def ids(target: Target) -> list[str]:
        async with connected(target) as client:
            found = await client.items("/schedules", MAX_COMPLETIONS, prefix=incomplete or None)
            return [each["id"] for each in found]

    try:
        before, after = (msgspec.convert(each.params, Target) for each in (context.find_root(), context))
        return asyncio.run(asyncio.wait_for(ids(before.but(after)), _COMPLETION_SECONDS))
    except Exception:  # an error would only disturb the command line
        return []


ScheduleId = Annotated[str, argument("ID", "The schedule's id.", autocompletion=schedule_ids)]
RunId = Annotated[str, argument("RUN_ID", "The run's id.")]
Limit = Annotated[int, number("--limit -n", "How many to show at most.")]
Times = Annotated[int, number("--limit -n", "How many times at most.", most=1000)]
WithTag = Annotated[str | None, option("--tag", "TAG", "Those with this tag.")]
WithPrefix = Annotated[str | None, option("--prefix", "TEXT", "Those whose ids begin so.")]
ManagedBy = Annotated[str | None, option("--managed-by", "NAME", "Those that this program or file defines.")]
Note = Annotated[str | None, option("--note", "TEXT", "Why, for others to read.")]
Yes = Annotated[bool, flag("--yes -y", "Do not ask.")]
DryRun = Annotated[bool, flag("--dry-run", "Only say what would be done.")]
Wait = Annotated[bool, flag("--wait", "Wait until it has ended; the exit status is 1 unless it succeeded.")]
OverlapChoice = Annotated[
    Overlap | None, option("--overlap", None, "What a start does while another run goes on.", HOW)
]
Input = Annotated[str | None, option("--input", "JSON|@FILE", "What the action gets.", WHAT)]
WholeFile = Annotated[
    str | None,
    option("--file", "FILE|-", "All of it as JSON, YAML or TOML, as the API takes it; options go before it."),
]
