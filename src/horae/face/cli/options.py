"""The options and arguments that several commands share, and how they are declared."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from horae.face.cli.target import Target
from horae.model import Overlap

WHEN, WHAT, HOW = "When", "What", "How"
"""Panels of the help."""
MAX_COMPLETIONS = 50
_COMPLETION_SECONDS = 3


def option(name: str, metavar: str | None, meaning: str, panel: str | None = None, **more: Any) -> Any:  # noqa: ANN401 - typer's own
    """An option. Its help names the default where that is not obvious."""
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
    """An option that is a number of at least 1, and shows its default."""
    return option(name, "N", meaning, min=1, max=most, show_default=True)


def schedule_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids that a shell offers for a prefix; none if neither server nor database answers."""
    import asyncio  # noqa: PLC0415 - only completion needs both

    from horae.face.cli.connection import connected  # noqa: PLC0415

    async def ids(target: Target) -> list[str]:
        async with connected(target) as client:
            schedules = await client.items("/schedules", MAX_COMPLETIONS, prefix=incomplete or None)
            return [each["id"] for each in schedules]

    try:
        before, after = (msgspec.convert(each.params, Target) for each in (context.find_root(), context))
        return asyncio.run(asyncio.wait_for(ids(before.but(after)), _COMPLETION_SECONDS))
    except Exception:  # an error would only disturb the command line
        return []


ScheduleId = Annotated[str, argument("ID", "The schedule's id.", autocompletion=schedule_ids)]
RunId = Annotated[str, argument("RUN_ID", "The run's id.")]
Limit = Annotated[int, number("--limit -n", "Show at most this many.")]
Times = Annotated[int, number("--limit -n", "Show at most this many times.", most=1000)]
WithTag = Annotated[str | None, option("--tag", "TAG", "Only schedules with this tag.")]
WithPrefix = Annotated[str | None, option("--prefix", "TEXT", "Only schedules whose id starts with this.")]
ManagedBy = Annotated[
    str | None, option("--managed-by", "NAME", "Only those that this program or file defines.")
]
Note = Annotated[str | None, option("--note", "TEXT", "The reason, shown to others.")]
Yes = Annotated[bool, flag("--yes -y", "Do not ask for confirmation.")]
DryRun = Annotated[bool, flag("--dry-run", "Show what would happen, and change nothing.")]
Wait = Annotated[bool, flag("--wait", "Wait until the run has ended; exit with 1 unless it succeeded.")]
OverlapChoice = Annotated[
    Overlap | None, option("--overlap", None, "What to do if another run is still running.", HOW)
]
Input = Annotated[str | None, option("--input", "JSON|@FILE", "The input of the action.", WHAT)]
WholeFile = Annotated[
    str | None,
    option(
        "--file", "FILE|-", "The schedule as JSON, YAML or TOML; - is standard input. Options override it."
    ),
]
