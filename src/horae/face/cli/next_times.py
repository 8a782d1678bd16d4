"""``horae next``: when a spec fires; needs no database."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Annotated

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from horae.clock import SystemClock
from horae.errors import InvalidSpecError
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.options import argument, number, option
from horae.face.cli.printing import gap_text, local, utc, with_end
from horae.face.cli.schedule_options import Texts, Times
from horae.face.cli.tables import table
from horae.face.documents.files import document
from horae.face.time_parser import instant_of
from horae.spec import TZDATA_VERSION, Spec
from horae.spec.clock_change import clock_note

MAX_SHOWN = 1000
cli = group()


@command(cli, "next", takes=["as_json"])
def next_times(
    given: Command,
    *,
    expressions: Annotated[
        Texts, argument("EXPR...", "Cron expressions, each quoted. A time matches if any of them does.")
    ] = None,
    when: Times,
    calendars: Annotated[
        str | None,
        option("--calendars", "FILE", "A JSON file of shared calendars, by name, that the spec may exclude."),
    ] = None,
    start: Annotated[
        str | None, option("--from", "TIME", "Show times after this one.  \\[default: now]")
    ] = None,
    count: Annotated[int, number("-n", "Show this many times.", most=MAX_SHOWN)] = 10,
) -> None:
    """Show when a cron expression or a spec fires next.

    [dim]Every weekday at nine in New York; and 02:30 in Berlin when the clocks change:[/dim]

      horae next "0 9 * * 1-5" --tz America/New_York

      horae next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28 -n 3 --gap shift

    [dim]Any spec, from JSON:[/dim]

      echo '{"intervals": [{"every": "90m"}], "exclude": [{"hour": "0-5", "minute": "*"}]}' | horae next --spec -
    """
    when = msgspec.structs.replace(when, crons=[*_unquoted(expressions or []), *(when.crons or [])])
    if not when.names_times:
        raise InvalidSpecError(
            "EXPR", "is missing", hint='give a cron expression, such as "0 9 * * 1-5", --every or --spec FILE'
        )
    spec = when.document()
    example = '{"us-holidays": {"dates": ["2026-12-25"]}}'
    shared = document(calendars, "--calendars", example) if calendars else {}
    asked = Spec.parse(spec, calendars=shared)
    now = SystemClock().now()
    since = now if start is None else instant_of(start, "--from", asked.elements.timezone, now)
    times: list[datetime] = []
    moment: datetime | None = since
    while moment is not None and len(times) < count:
        moment = asked.next_after(moment)
        if moment is not None:
            times.append(moment)
    ended = None if len(times) == count else asked.why_never(times[-1] if times else since)
    instants = [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in times]
    given.show(instants, lambda _: _fire_table(asked, since, times, ended))


def _unquoted(expressions: list[str]) -> list[str]:
    """Join five to seven bare words: one expression whose quotes were forgotten."""
    if 5 <= len(expressions) <= 7 and not any(set(word) & set(" \t@") for word in expressions):
        return [" ".join(expressions)]
    return expressions


def _fire_table(spec: Spec, since: datetime, times: list[datetime], ended: str | None) -> RenderableType:
    """The spec as a sentence, the table of its times, and why there are no more."""
    zone = spec.elements.timezone
    rows = [
        (number, local(time, zone), utc(time), gap_text(time - previous), Text(clock_note(zone, previous, time), style="yellow"))
        for number, (previous, time) in enumerate(pairwise([since, *times]), start=1)
    ]  # fmt: skip
    shown = table("#>", f"local time ({zone})", "UTC?", "after>?", "clock change~?", rows=rows)
    return Group(
        Text(f"{spec.sentence()}.", style="bold"), with_end(shown, ended),
        Text(f"after {since:%Y-%m-%d %H:%M:%S}Z, tzdata {TZDATA_VERSION}", style="dim"),
    )  # fmt: skip
