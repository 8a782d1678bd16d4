"""The options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from horae.face.cli.completion import schedule_ids
from horae.model import CatchUp, Overlap

WHEN = "When"
WHAT = "What"
HOW = "How"

ScheduleId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The schedule's id.", show_default=False, autocompletion=schedule_ids),
]
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The run's id.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to show at most.")]
Note = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Why, for others to read.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
OverlapChoice = Annotated[
    Overlap | None,
    typer.Option(
        help="What a start does while another run goes on.", rich_help_panel=HOW, show_default=False
    ),
]
CatchUpChoice = Annotated[
    CatchUp | None,
    typer.Option("--catch-up", help="Which late slots are made up.", rich_help_panel=HOW, show_default=False),
]
Crons = Annotated[
    list[str] | None,
    typer.Option("--cron", metavar="EXPR", help="A cron expression; may be repeated.", rich_help_panel=WHEN),
]
Every = Annotated[
    list[str] | None,
    typer.Option("--every", metavar="DURATION", help="An interval, such as 90m, or 90m/15m with a phase.", rich_help_panel=WHEN),
]  # fmt: skip
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="TIME", help="A single time; without an offset it is in the zone.", rich_help_panel=WHEN),
]  # fmt: skip
Timezone = Annotated[
    str | None,
    typer.Option("--tz", metavar="ZONE", help="The time zone, such as Europe/Berlin.", rich_help_panel=WHEN, show_default=False),
]  # fmt: skip
Jitter = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Spread starts over a span, such as 30s.", rich_help_panel=WHEN, show_default=False),
]  # fmt: skip
SpecFile = Annotated[
    str | None,
    typer.Option("--spec", metavar="FILE|-", help="A spec as JSON instead; - is standard input.", rich_help_panel=WHEN, show_default=False),
]  # fmt: skip
ActionName = Annotated[
    str | None,
    typer.Option("--action", metavar="NAME", help="A registered action.", rich_help_panel=WHAT, show_default=False),
]  # fmt: skip
HttpUrl = Annotated[
    str | None,
    typer.Option("--http", metavar="URL", help="Make a request to this address.", rich_help_panel=WHAT, show_default=False),
]  # fmt: skip
Method = Annotated[
    str | None,
    typer.Option(metavar="METHOD", help="Its method.  \\[default: POST]", rich_help_panel=WHAT, show_default=False),
]  # fmt: skip
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar='"NAME: VALUE"', help="Its headers; stored encrypted, never shown.", rich_help_panel=WHAT),
]  # fmt: skip
CommandName = Annotated[
    str | None,
    typer.Option("--command", metavar="NAME", help="Run a command that the operator configured.", rich_help_panel=WHAT, show_default=False),
]  # fmt: skip
Input = Annotated[
    str | None,
    typer.Option("--input", metavar="JSON|@FILE", help="What the action gets.", rich_help_panel=WHAT, show_default=False),
]  # fmt: skip
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="To find it by; may be repeated.")
]
WholeFile = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE|-", help="All of it as JSON, as the API takes it; options go before it.", show_default=False),
]  # fmt: skip
