"""``horae next``: when a spec fires, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from horae.clock import SystemClock
from horae.errors import InvalidCronExpressionError, InvalidSpecError
from horae.face.cli.files import contents, decoded
from horae.face.cli.fire_table import fire_table
from horae.face.cli.printing import console
from horae.spec import ClockChange, Dialect, Fold, Gap, Spec
from horae.spec.clock_change import timeline
from horae.spec.compiled import label_of, parse_time, resolve

MAX_SHOWN = 1000


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
    count: Annotated[int, typer.Option("-n", min=1, max=MAX_SHOWN, help="How many times to show.")] = 10,
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
    shared = decoded(contents(calendars, "--calendars"), "--calendars", example) if calendars else {}
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
    console().print(fire_table(asked, since, times, ended))


def _document(expressions: list[str], spec: str | None) -> dict[str, Any]:
    if spec is not None:
        if expressions:
            raise InvalidSpecError("--spec", "goes without expressions", hint="give one or the other")
        return decoded(contents(spec, "--spec"), "--spec", '{"crons": ["0 9 * * 1-5"]}')
    if not expressions:
        raise InvalidSpecError(
            "EXPR", "is missing", hint='give a cron expression, such as "0 9 * * 1-5", or --spec FILE'
        )
    # Five to seven bare words are one expression whose quotes were forgotten.
    if 5 <= len(expressions) <= 7 and not any(set(word) & set(" \t@") for word in expressions):
        expressions = [" ".join(expressions)]
    return {"crons": expressions}


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
