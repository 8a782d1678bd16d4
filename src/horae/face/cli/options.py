"""The options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from horae.face.cli.completion import schedule_ids
from horae.model import Overlap

WHEN, WHAT, HOW = "When", "What", "How"
"""Panels of the help."""

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
Input = Annotated[
    str | None,
    typer.Option("--input", metavar="JSON|@FILE", help="What the action gets.", rich_help_panel=WHAT, show_default=False),
]  # fmt: skip
WholeFile = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE|-", help="All of it as JSON, as the API takes it; options go before it.", show_default=False),
]  # fmt: skip
