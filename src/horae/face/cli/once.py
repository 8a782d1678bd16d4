"""``horae once``: run an action once, at a time or after a span."""

from __future__ import annotations

from typing import Annotated

from horae.clock import SystemClock
from horae.errors import InvalidInputError
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Input, argument, option
from horae.face.cli.schedule_options import given, read_json
from horae.face.cli.schedules_write import summary
from horae.face.time_parser import instant_of
from horae.spec.duration import milliseconds

cli = group()


@command(cli, "once")
async def once(
    session: Session,
    action: Annotated[str, argument("ACTION", "A registered action, or command:NAME.")],
    in_: Annotated[str | None, option("--in", "DURATION", "After this much time, such as 10m.")] = None,
    at: Annotated[str | None, option("--at", "TIME", 'At this time, such as "tomorrow 9:00".')] = None,
    timezone: Annotated[str | None, option("--tz", "ZONE", "The zone of a time without an offset.")] = None,
    input: Input = None,  # noqa: A002 - as the API calls it
    key: Annotated[
        str | None, option("--key", "TEXT", "Its id: the same key again schedules nothing more.")
    ] = None,
) -> None:
    """Run an action once: a schedule with one time.

    [dim]In ten minutes, with an input:[/dim]

      horae once report --in 10m --input '{"rows": 10}'

    [dim]Tomorrow morning, however often it is asked:[/dim]

      horae once report --at "tomorrow 9:00" --tz Europe/Berlin --key report-of-ada
    """
    if (in_ is None) == (at is None):
        raise InvalidInputError("the time", "must be given in one way", hint="--in 10m or --at TIME")
    when: dict[str, str] = {}
    if in_ is not None:
        # A mistake names the option. The service counts the span, from when it creates the schedule.
        milliseconds(in_, "--in")
        when["in"] = in_
    else:
        now = SystemClock().now()
        time = instant_of(str(at), "--at", timezone or "UTC", now)
        if time <= now:
            raise InvalidInputError("--at", f"is over: {at}", hint="give a time ahead, or --in 10m")
        when["at"] = time.isoformat()
    body = {"action": {"name": action} | ({} if input is None else {"input": read_json(input, "--input")})}
    body |= when | given(timezone=timezone, key=key)
    session.show(await session.client.post("/once", body), lambda made: summary("Scheduled", made))
