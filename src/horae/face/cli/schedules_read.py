"""Looking at schedules: list, describe, times, preview."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from horae.errors import InvalidInputError, ServerError
from horae.face.cli.client import path
from horae.face.cli.command import Session
from horae.face.cli.options import At, Crons, Every, Jitter, Limit, ScheduleId, SpecFile, Timezone
from horae.face.cli.payload import When, moment, when_said
from horae.face.cli.render import preview_panel, schedule_panel, schedule_table, time_table, upcoming_panel


class StateChoice(StrEnum):
    """The states that a schedule can be in."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"


def _filter(text: str, name: str, meaning: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(f"--{name}", metavar=text, help=meaning, show_default=False)


async def list_schedules(
    session: Session,
    state: Annotated[
        StateChoice | None, typer.Option(help="Those in this state.", show_default=False)
    ] = None,
    action: Annotated[str | None, _filter("NAME", "action", "Those with this action.")] = None,
    tag: Annotated[str | None, _filter("TAG", "tag", "Those with this tag.")] = None,
    prefix: Annotated[str | None, _filter("TEXT", "prefix", "Those whose ids begin so.")] = None,
    owner: Annotated[str | None, _filter("NAME", "owner", "Those of this owner.")] = None,
    search: Annotated[str | None, _filter("KEY:VALUE", "search", "Those with this search attribute.")] = None,
    attention: Annotated[bool, typer.Option("--attention", help="Those that need attention.")] = False,
    limit: Limit = 100,
) -> None:
    """List schedules, each with its sentence and its next time.

    [dim]What is paused, and what somebody should look at:[/dim]

      horae schedules list --state paused

      horae schedules list --tag billing --attention --json
    """
    query = {
        "state": state, "action": action, "tag": tag, "prefix": prefix, "owner": owner, "search": search,
        "attention": attention or None,
    }  # fmt: skip
    # One more than asked for says whether there are more.
    found = [each async for each in session.client.items("/schedules", limit + 1, **query)]
    shown = found[:limit]
    session.show(shown, lambda: schedule_table(shown, more=len(found) > limit))


async def describe(session: Session, schedule_id: ScheduleId) -> None:
    """Show a schedule: its sentence, state, next times, and its recent runs with their reasons.

    horae schedules describe report
    """
    found = await session.client.get(path("schedules", schedule_id))
    session.show(found, lambda: schedule_panel(found))


async def times(
    session: Session,
    schedule_id: ScheduleId,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Later than this.  \\[default: now]", show_default=False),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to this, included.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many at most.")] = 10,
) -> None:
    """Show the times that a schedule matches, in a range or from now on.

    horae schedules times report -n 5

    horae schedules times report --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z
    """
    query = {
        "start": None if start is None else moment(start, "--from"),
        "end": None if end is None else moment(end, "--to"),
        "limit": limit,
    }
    found = await session.client.get(path("schedules", schedule_id, "times"), **query)
    if session.as_json:
        session.show(found, str)
        return
    zone = await zone_of(session, schedule_id)
    session.show(found, lambda: time_table(found["items"], zone, found.get("ended")))


async def preview(
    session: Session,
    schedule_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="The schedule that would be changed; none: a new one.", show_default=False
        ),
    ] = None,
    crons: Crons = None,
    every: Every = None,
    at: At = None,
    timezone: Timezone = None,
    jitter: Jitter = None,
    spec: SpecFile = None,
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days ahead to compare.")] = 30,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, help="How many times of a new one.")
    ] = 10,
) -> None:
    """Show what a change would add and remove, or when a new schedule would fire; nothing is changed.

    [dim]What happens to the report if it moves to ten o'clock?[/dim]

      horae schedules preview report --cron "0 10 * * 1-5" --days 7

      horae schedules preview --every 90m --tz Europe/Berlin
    """
    when = when_said(crons, every, at, timezone, jitter, spec)
    if schedule_id is None:
        if not when.names_times:
            raise InvalidInputError("the times", "are missing", hint="give --cron, --every, --at or --spec")
        found = await session.client.post("/preview", {"spec": when.document(), "limit": limit})
        session.show(found, lambda: upcoming_panel(found, found["spec"].get("timezone") or "UTC"))
        return
    present = await session.client.get(path("schedules", schedule_id))
    document = changed_spec(present, when)
    found = await session.client.post(
        path("schedules", schedule_id, "preview"), {"spec": document, "days": days}
    )
    session.show(found, lambda: preview_panel(found, document.get("timezone") or "UTC"))


def changed_spec(present: dict[str, Any], when: When) -> dict[str, Any]:
    """The spec that options make of the present one: a zone or a jitter alone leaves its times as they are.

    New times stay in the zone, and keep what is excluded, unless a whole spec is given.
    """
    base = dict(present["spec"])
    if when.crons or when.every or when.at:
        for name in ("crons", "dialect", "calendars", "intervals", "rrules", "times"):
            base.pop(name, None)
    return when.document(base)


async def zone_of(session: Session, schedule_id: str) -> str:
    """The time zone of a schedule; of one that was deleted nobody knows it any more."""
    try:
        found = await session.client.get(path("schedules", schedule_id))
    except ServerError as error:
        if error.details.get("code") != "schedule_not_found":
            raise
        return "UTC"
    return str(found["timezone"])
