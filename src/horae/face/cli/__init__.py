"""The command ``horae``."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from horae import __version__
from horae.clock import SystemClock
from horae.errors import HoraeError, InvalidCronExpressionError, InvalidSpecError
from horae.face.table import fire_table
from horae.spec import TZDATA_VERSION, ClockChange, Dialect, Fold, Gap, Spec
from horae.spec.elements import label_of, parse_time, resolve
from horae.spec.timeline import timeline

MOST_SHOWN = 1000
LONGEST_POINTED_AT = 200

cli = typer.Typer(
    name="horae",
    help="Horae keeps time: it says when schedules fire.",
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
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Horae keeps time: it says when schedules fire."""


@cli.command("next")
def next_times(
    expressions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EXPR]...", help="Cron expressions, each quoted; their times are united."),
    ] = None,
    dialect: Annotated[
        Dialect | None,
        typer.Option(help="How the expressions are read.  \\[default: unix]", show_default=False),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="A spec as JSON; - reads it from standard input."),
    ] = None,
    calendars: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Shared calendars as JSON, by name, for the spec to exclude."),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="The time zone, such as Europe/Berlin.  \\[default: UTC]"),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="ISO", help="Show times after this one.  \\[default: now]"),
    ] = None,
    count: Annotated[int, typer.Option("-n", min=1, max=MOST_SHOWN, help="How many times to show.")] = 10,
    gap: Annotated[
        Gap | None,
        typer.Option(
            help="What a clock set forward skips: leave it out, or do it right after.  \\[default: skip]"
        ),
    ] = None,
    fold: Annotated[
        Fold | None,
        typer.Option(help="What a clock set back repeats: do it both times, or once.  \\[default: both]"),
    ] = None,
    clock_change: Annotated[
        ClockChange | None,
        typer.Option(
            help="literal follows --gap and --fold, debian what Debian's cron does.  \\[default: literal]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of UTC times.")] = False,
) -> None:
    """Show when a schedule fires next.

    [dim]Every weekday at nine in New York, and what happens to 02:30 when clocks change:[/dim]

      horae next "0 9 * * 1-5" --tz America/New_York

      horae next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28 -n 3 --gap shift

    [dim]Anything a spec can say, from JSON:[/dim]

      echo '{"intervals": [{"every": "90m"}], "exclude": [{"hour": "0-5", "minute": "*"}]}' | horae next --spec -
    """
    overrides = {
        "dialect": dialect, "timezone": timezone, "gap": gap, "fold": fold, "clock_change": clock_change,
    }  # fmt: skip
    document = _document(expressions or [], spec)
    document |= {key: value for key, value in overrides.items() if value is not None}
    example = '{"us-holidays": {"dates": ["2026-12-25"]}}'
    shared = _decoded(_contents(calendars, "--calendars"), "--calendars", example) if calendars else {}
    try:
        asked = Spec.parse(document, calendars=shared)
    except InvalidSpecError as error:
        # One expression and nothing else: say what is wrong with it, not where in a document it is.
        if isinstance(error.__cause__, InvalidCronExpressionError) and len(document.get("crons", [])) == 1:
            raise error.__cause__ from None
        raise
    since = _since(start, asked)
    times: list[datetime] = []
    moment: datetime | None = since
    while moment is not None and len(times) < count:
        moment = asked.next_after(moment)
        if moment is not None:
            times.append(moment)
    if as_json:
        typer.echo(msgspec.json.encode([time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in times]).decode())
        return
    ended = None if len(times) == count else asked.why_never(times[-1] if times else since)
    _console().print(fire_table(asked, since, times, ended))


def _document(expressions: list[str], spec: str | None) -> dict[str, Any]:
    if spec is not None:
        if expressions:
            raise InvalidSpecError("--spec", "goes without expressions", hint="give one or the other")
        return _decoded(_contents(spec, "--spec"), "--spec", '{"crons": ["0 9 * * 1-5"]}')
    if not expressions:
        raise InvalidSpecError(
            "EXPR", "is missing", hint='give a cron expression, such as "0 9 * * 1-5", or --spec FILE'
        )
    # Five to seven bare words are one expression whose quotes were forgotten.
    if 5 <= len(expressions) <= 7 and not any(set(word) & set(" \t@") for word in expressions):
        expressions = [" ".join(expressions)]
    return {"crons": expressions}


def _contents(name: str, option: str) -> bytes:
    try:
        if name != "-":
            return Path(name).read_bytes()
        return sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        raise InvalidSpecError(option, f"cannot be read: {error}", text=name) from None


def _decoded(text: bytes, option: str, example: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidSpecError(option, f"is no JSON: {error}", hint=f"such as {example}") from None
    if not isinstance(value, dict):
        raise InvalidSpecError(option, "is no JSON object", hint=f"such as {example}")
    return value


def _since(text: str | None, spec: Spec) -> datetime:
    if text is None:
        return SystemClock().now()
    moment = parse_time(text, "--from")
    if moment.tzinfo is None:
        zone, label = spec.elements.timezone, label_of(moment)
        # Twice there, it is the first; skipped, it is the last instant before.
        found = timeline(zone).instants(label) or [resolve(label, zone, last=True)]
        return datetime.fromtimestamp(found[0], UTC)
    return moment.astimezone(UTC)


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 120
    return console


def main() -> None:
    """Run the command; an error that Horae raises on purpose becomes a sentence, not a traceback."""
    try:
        cli()
    except HoraeError as error:
        _report(error)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def _report(error: HoraeError) -> None:
    if "--json" in sys.argv:
        problem = {
            "error": type(error).__name__, "message": error.message, "details": error.details, "hint": error.hint,
        }  # fmt: skip
        typer.echo(json.dumps(problem, default=str), err=True)
        return
    console = _console(stderr=True)
    console.print(Text.assemble(("error: ", "bold red"), _printable(error.message)), soft_wrap=True)
    if isinstance(error, InvalidCronExpressionError) and 0 < error.length <= LONGEST_POINTED_AT:
        console.print(Text(f"  {_printable(str(error.details['expression']))}"), soft_wrap=True)
        console.print("  " + " " * error.position + "^" * error.length, style="red", soft_wrap=True)
    if error.hint:
        console.print(Text.assemble(("hint: ", "bold"), error.hint), soft_wrap=True)


def _printable(text: str) -> str:
    """Text that a terminal can show: what would move the cursor or cannot be encoded becomes a mark."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
