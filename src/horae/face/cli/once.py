"""``horae once``: run an action once, at a time or after a span."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from horae.clock import SystemClock
from horae.errors import InvalidInputError
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Input, argument, option
from horae.face.cli.schedule_options import given, read_json
from horae.face.cli.schedules_write import summary, warn_of
from horae.face.time_parser import instant_of
from horae.spec.duration import milliseconds

cli = group()


@command(cli, "once")
async def once(
    session: Session,
    action: Annotated[str, argument("ACTION", "A registered action, or command:NAME.")],
    in_: Annotated[str | None, option("--in", "DURATION", "Run after this long, such as 10m.")] = None,
    at: Annotated[str | None, option("--at", "TIME", 'Run at this time, such as "tomorrow 9:00".')] = None,
    timezone: Annotated[str | None, option("--tz", "ZONE", "The zone of --at without an offset.")] = None,
    input: Input = None,  # noqa: A002 - as the API calls it
    key: Annotated[
        str | None, option("--key", "TEXT", "The schedule's id; the same key schedules only once.")
    ] = None,
) -> None:
    """Run an action once, at a time or after a delay. Creates a schedule with one time.

    [dim]In ten minutes, with an input:[/dim]

      horae once report --in 10m --input '{"rows": 10}'

    [dim]Tomorrow morning, once, even if the command is repeated:[/dim]

      horae once report --at "tomorrow 9:00" --tz Europe/Berlin --key report-of-ada
    """
    if (in_ is None) == (at is None):
        raise InvalidInputError("the time", "must be given with --in or --at", hint="--in 10m or --at TIME")
    when: dict[str, str] = {}
    if in_ is not None:
        # Check it here, so that an error names the option. The service counts the delay from when it creates the schedule.
        milliseconds(in_, "--in")
        when["in"] = in_
    else:
        now = SystemClock().now()
        time = instant_of(str(at), "--at", timezone or "UTC", now)
        if time <= now:
            raise InvalidInputError("--at", f"is in the past: {at}", hint="give a future time, or --in 10m")
        when["at"] = time.isoformat()
    body = {"action": {"name": action} | ({} if input is None else {"input": read_json(input, "--input")})}
    body |= when | given(timezone=timezone, key=key)
    scheduled = await session.client.post("/once", body)
    warn_of(scheduled)
    session.show(scheduled, partial(summary, "Scheduled"))
