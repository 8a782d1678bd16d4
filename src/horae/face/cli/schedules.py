"""``horae schedules``: its commands, in the order of the help."""

from __future__ import annotations

from horae.face.cli import backfills, schedules_read, schedules_write
from horae.face.cli.command_base import Function, command, group

cli = group("schedules", "Create, show and change schedules; pause, trigger and backfill them.")

COMMANDS: dict[str, Function] = {
    "create": schedules_write.create, "list": schedules_read.list_schedules, "describe": schedules_read.describe,
    "update": schedules_write.update, "pause": schedules_write.pause, "resume": schedules_write.resume, "skip": schedules_write.skip,
    "trigger": schedules_write.trigger, "backfill": backfills.backfill, "backfills": backfills.backfills,
    "times": schedules_read.times, "preview": schedules_read.preview, "delete": schedules_write.delete,
}  # fmt: skip

for _name, _function in COMMANDS.items():
    command(cli, _name)(_function)
