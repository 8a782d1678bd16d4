"""``horae import``: import schedules from another scheduler."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
import tzlocal
from rich.console import Group, RenderableType
from rich.text import Text

from horae.clock import SystemClock
from horae.config import Config
from horae.errors import InvalidInputError, ServerError
from horae.face.api_client import Client
from horae.face.cli.backfills import progress
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.connection import connected
from horae.face.cli.import_temporal import temporal
from horae.face.cli.options import DryRun, argument, option
from horae.face.cli.printing import clock
from horae.face.cli.render import Json
from horae.face.cli.tables import table
from horae.face.cli.target import Target
from horae.face.documents.crontab_parser import Crontab, Entry, Remark, is_system, read_crontab
from horae.face.documents.files import contents
from horae.spec import Spec, load_zone

cli = group("import", "Import schedules from cron or Temporal.")


command(cli, "temporal", takes=["as_json"])(temporal)


@command(cli, "crontab")
async def crontab(
    given: Command,
    file: Annotated[str, argument("FILE|-", "The crontab; - is standard input.")],
    commands: Annotated[
        str | None, option("--commands", "FILE", "The file to add the commands to.  \\[HORAE_COMMANDS]")
    ] = None,
    system: Annotated[
        bool | None,
        option("--system/--user", None, "Whether the crontab has a user column.  \\[default: by its path]"),
    ] = None,
    timezone: Annotated[
        str | None, option("--tz", "ZONE", "The time zone of the crontab.  \\[default: this machine's]")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Create schedules from a crontab, and report what could not be imported.

    Each line becomes a schedule and a command of the same name. --commands adds the commands to a file that the service
    reads as HORAE_COMMANDS. They run in a shell, as in cron, so only operators should be able to write that file.
    Importing the same lines again changes nothing.

      crontab -l | horae import crontab - --dry-run

      crontab -l | horae import crontab - --commands commands.json

      horae import crontab /etc/cron.d/backup --commands commands.json --tz Europe/Berlin
    """  # fmt: skip
    text = contents(file, "FILE").decode("utf-8", "surrogateescape")
    read = read_crontab(
        text,
        timezone=_zone(timezone),
        system=is_system(str(Path(file).absolute())) if system is None else system,
        home=_home,
    )
    definitions = commands or Config.from_environment().commands
    if not dry_run and not definitions:
        raise InvalidInputError(
            "--commands", "is missing: schedules run commands by name, and a file defines them",
            hint="add --commands commands.json, or --dry-run to look first",
        )  # fmt: skip
    if not dry_run and read.entries:
        _write_commands(Path(definitions), read.entries)
    outcomes = {} if dry_run else await _create(read, given.target, definitions)
    imported = [_imported(entry, outcomes.get(entry.id, "")) for entry in read.entries]
    done = None if dry_run else definitions
    answer = {
        "schedules": imported, "left_out": read.left_out, "remarks": read.remarks, "commands": done,
        "definitions": {entry.id: entry.command for entry in read.entries},
    }  # fmt: skip
    given.show(answer, lambda _: _report(read, imported, done))


def _zone(named: str | None) -> str:
    """The zone of a crontab's times: the given one, or the machine's."""
    try:
        return load_zone(named or tzlocal.get_localzone_name()).name
    except (LookupError, ValueError, OSError):
        raise InvalidInputError(
            "--tz", "is missing: this machine does not say its zone", hint="such as --tz UTC"
        ) from None


def _home(user: str) -> str | None:
    """The home folder of a user, or of the current one, where cron runs commands."""
    try:
        import pwd  # noqa: PLC0415 - only POSIX has it

        return pwd.getpwnam(user).pw_dir if user else pwd.getpwuid(os.getuid()).pw_dir
    except (ModuleNotFoundError, KeyError):
        return None


def _write_commands(file: Path, entries: tuple[Entry, ...]) -> None:
    """Add commands to the file that defines them; the file is replaced atomically."""
    try:
        present = msgspec.json.decode(file.read_bytes(), type=dict[str, object]) if file.exists() else {}
        present |= {entry.id: msgspec.to_builtins(entry.command) for entry in entries}
        handle, name = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "wb") as writing:
            writing.write(msgspec.json.format(msgspec.json.encode(present), indent=2) + b"\n")
        if file.exists():
            Path(name).chmod(file.stat().st_mode & 0o777)
        Path(name).replace(file)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidInputError("--commands", f"{file} cannot be used: {error}") from None


async def _create(read: Crontab, target: Target, commands: str) -> dict[str, str]:
    """Create the schedules; the outcome of each."""
    async with connected(target, commands) as client:
        with progress() as bar:
            entries = bar.track(read.entries, description="importing")
            return {entry.id: await _create_one(client, entry, commands) for entry in entries}


async def _create_one(client: Client, entry: Entry, commands: str) -> str:
    try:
        await client.post("/schedules", entry.schedule)
    except ServerError as error:
        if error.details.get("code") == "schedule_exists":
            return "there already"
        if error.details.get("code") == "unknown_action":
            raise ServerError(
                f'No node knows the command "{entry.id}" of line {entry.line} yet', error.details,
                hint=f"start the service with HORAE_COMMANDS={commands}, and import again: nothing is imported twice",
            ) from None  # fmt: skip
        raise
    return "new"


def _imported(entry: Entry, outcome: str) -> Json:
    """A line that was imported; the outcome is ``new`` or ``there already``, and empty in a dry run."""
    spec = Spec.parse(entry.spec)
    time = spec.next_after(SystemClock().now())
    return {
        "line": entry.line, "id": entry.id, "sentence": spec.sentence(), "timezone": spec.elements.timezone,
        "next_time": None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ"), "outcome": outcome,
    }  # fmt: skip


def _report(read: Crontab, imported: list[Json], commands: str | None) -> RenderableType:
    parts: list[RenderableType] = []
    if imported:
        rows = [
            (
                each["line"], each["id"], each["sentence"],
                *(clock(each["next_time"], each["timezone"]) if each["next_time"] else ("never", "")), each["outcome"],
            )
            for each in imported
        ]  # fmt: skip
        parts += [table("line>", "schedule!", "when~", "next time", "UTC?", "outcome?", rows=rows), Text()]
    if read.left_out:
        parts += [_remarks("not carried over", read.left_out, "yellow"), Text()]
    if read.remarks:
        parts += [_remarks("different from cron", read.remarks, "dim"), Text()]
    parts.append(Text(_summary(read, imported, commands)))
    return Group(*parts)


def _remarks(title: str, remarks: tuple[Remark, ...], colour: str) -> RenderableType:
    rows = [(each.line, each.text, Text(each.reason, style=colour)) for each in remarks]
    return table("line>", f"{title}~", "why~", rows=rows)


def _summary(read: Crontab, imported: list[Json], commands: str | None) -> str:
    counted = f"Carried over: {len(imported)}. Not carried over: {len(read.left_out)}."
    if commands is None:
        return f"{counted} This was a dry run: nothing was stored."
    new = sum(each["outcome"] == "new" for each in imported)
    return (
        f"{counted} New: {new}. Their commands are in {commands}: the service runs them if it is started with "
        f"HORAE_COMMANDS={commands}."
    )
