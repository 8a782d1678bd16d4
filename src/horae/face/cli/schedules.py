"""``horae schedules``: its commands, and what each is in."""

from __future__ import annotations

import typer

from horae.face.cli import backfilling, changing, looking
from horae.face.cli.command import Function, command

cli = typer.Typer(
    name="schedules",
    help="Create, look at and change schedules, and act on them by hand.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)

COMMANDS: dict[str, Function] = {
    "create": changing.create, "list": looking.list_schedules, "describe": looking.describe,
    "update": changing.update, "pause": changing.pause, "resume": changing.resume, "skip": changing.skip,
    "trigger": changing.trigger, "backfill": backfilling.backfill, "backfills": backfilling.backfills,
    "times": looking.times, "preview": looking.preview, "delete": changing.delete,
}  # fmt: skip

for _name, _function in COMMANDS.items():
    command(cli, _name)(_function)
