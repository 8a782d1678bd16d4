"""The command ``horae``.

Each command is a file, loaded when it is used: ``horae next`` needs neither a database nor a server, and loads neither.
"""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from horae import __version__
from horae.errors import HoraeError
from horae.face.cli.light_help import LightCommand, LightGroup
from horae.face.cli.printing import report
from horae.face.cli.target import DatabaseOption, JsonOption, OwnerOption, Target, TokenOption, UrlOption
from horae.face.cli.typer_errors import is_request_for_help, is_usage_error, usage_error
from horae.spec import TZDATA_VERSION

PANELS = {
    "Schedules": {
        "next": "Show when a cron expression or a spec fires next.",
        "schedules": "Create, show and change schedules; pause, trigger and backfill them.",
        "runs": "List, show, follow, stop and rerun runs.",
        "explain": "Explain why a schedule did or did not run at a time, or whether it will. For a day: each of its slots.",
        "once": "Run an action once, at a time or after a delay. Creates a schedule with one time.",
        "forecast": "Show how many runs start in each coming minute, the peaks, and how jitter would flatten them.",
        "calendars": "Shared calendars that schedules exclude, such as holidays.",
        "apply": "Create and change schedules and calendars as documents say; with --prune also delete.",
        "export": "Write schedules and calendars as YAML, or with --json as JSON. horae apply reads them back unchanged.",
        "import": "Import schedules from cron or Temporal.",
    },
    "Service": {
        "serve": "Run the scheduler and its API until interrupted.",
        "nodes": "List the nodes: whether each is alive, its time-zone data, and the actions it can run.",
        "token": "Create tokens that identify callers to a server.",
        "check": "Check the settings, the database, the clock and the migrations. Nothing is changed.",
        "migrate": "Create the tables, or migrate them to this version of Horae. Does nothing if they are up to date.",
    },
    "Workflows, flows and graphs": {
        "workflows": "Deploy, show, draw and run workflows.",
        "flows": "Show, run, pause and repair flows: producers and consumers joined by events.",
        "grants": "Durable permissions to run graphs for an absent user.",
        "accounts": "The accounts that runs of graphs are charged to.",
        "usage": "Sum the usage of graphs by account and time, latest first.",
    },
}
"""The commands, as the help groups and summarizes them. Each is in the file of its name, but for those in ``FILES``."""
FILES = {"next": "next_times", "import": "import_crontab"}


class Commands(LightGroup):
    """The commands of ``horae``; each file is loaded when its command is used. What only lists them shows their summaries."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's own, which differs between versions
        return [name for names in PANELS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        panel = next((panel for panel, names in PANELS.items() if cmd_name in names), None)
        if panel is not None and cmd_name not in self.commands:
            module = importlib.import_module(f"{__name__}.{FILES.get(cmd_name, cmd_name)}")
            command: Any = get_command(module.cli)
            command.rich_help_panel = panel
            self.commands[cmd_name] = command
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        if args and args[0] in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        with self._summaries():  # suggestions need the names of all
            return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        with self._summaries():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:  # noqa: ANN401
        with self._summaries():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _summaries(self) -> Iterator[None]:
        """Let summaries stand for the commands that are not loaded."""
        loaded = self.commands
        summaries = {
            name: LightCommand(name, help=summary, rich_help_panel=panel)
            for panel, names in PANELS.items()
            for name, summary in names.items()
        }
        self.commands = {**summaries, **loaded}
        try:
            yield
        finally:
            self.commands = loaded


cli = typer.Typer(
    name="horae",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the flag's value
    if wanted:
        typer.echo(f"horae {__version__}, tzdata {TZDATA_VERSION}")
        raise typer.Exit


@cli.callback()
def _root(
    context: typer.Context,
    url: UrlOption = None,
    token: TokenOption = None,
    database: DatabaseOption = None,
    owner: OwnerOption = None,
    as_json: JsonOption = False,
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Horae runs your schedules, survives crashes, and explains why a slot did or did not run.

    [dim]When does an expression fire?[/dim]

      horae next "0 9 * * 1-5" --tz America/New_York

    [dim]Start the service, create a schedule, look at it:[/dim]

      horae serve

      horae schedules create report --cron "0 9 * * 1-5" --tz Europe/Berlin --http https://example.org/report

      horae schedules describe report

    Commands work on the database horae.db in this folder, on another with --database, or on a server with --url.
    """
    context.obj = Target(url=url, token=token, database=database, owner=owner, as_json=as_json)


@functools.cache
def _command() -> Any:  # noqa: ANN401 - typer's, whose class differs between versions
    """The typer command, built once."""
    return get_command(cli)


def main() -> None:
    """Run the command. Errors are printed as sentences, not tracebacks; unexpected ones also say where they were raised."""
    try:
        sys.exit(_run())
    except HoraeError as error:
        report(error)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        report(_unexpected(error))
        sys.exit(2)


def _run() -> int:
    """Run the command and return its exit status. Typer's own usage errors are raised as ours."""
    try:
        status = _command()(standalone_mode=False, prog_name="horae")
    except typer.Abort:
        typer.echo("Nothing was done.", err=True)
        return 1
    except Exception as error:
        if is_request_for_help(error) and "--json" not in sys.argv:
            error.show()  # type: ignore[attr-defined]
            return 2
        if is_usage_error(error):
            raise usage_error(error) from None
        raise
    return status if isinstance(status, int) else 0


def _unexpected(error: Exception) -> HoraeError:
    frames = traceback.extract_tb(error.__traceback__)
    source = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return HoraeError(
        f"{type(error).__name__}: {error} (at {source})",
        {"source": source},
        hint="this is a bug in Horae; please report it with the command that you ran",
    )
