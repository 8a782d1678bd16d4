"""Read schedules: list, describe, times, preview."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from horae.errors import InvalidInputError
from horae.face.cli.client import path
from horae.face.cli.command_base import Session
from horae.face.cli.options import Limit, ScheduleId
from horae.face.cli.payload import When, moment
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

    [dim]What is paused, and what needs attention:[/dim]

      horae schedules list --state paused

      horae schedules list --tag billing --attention --json
    """
    # One more than asked for says whether there are more.
    found = await session.client.items(
        "/schedules", limit + 1, state=state, action=action, tag=tag, prefix=prefix, owner=owner, search=search,
        attention=attention or None,
    )  # fmt: skip
    session.show(found[:limit], partial(schedule_table, more=len(found) > limit))


async def describe(session: Session, schedule_id: ScheduleId) -> None:
    """Show a schedule: its sentence, state, next times, and its recent runs with their reasons.

    horae schedules describe report
    """
    session.show(await session.client.get(path("schedules", schedule_id)), schedule_panel)


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
    span = {"start": start and moment(start, "--from"), "end": end and moment(end, "--to")}
    found = await session.client.get(path("schedules", schedule_id, "times"), limit=limit, **span)
    session.show(found, partial(time_table, zone=await session.zone(schedule_id)))


async def preview(
    session: Session,
    *,
    schedule_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="The schedule that would be changed; none: a new one.", show_default=False
        ),
    ] = None,
    when: When,
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
    if schedule_id is None:
        if not when.names_times:
            raise InvalidInputError("the times", "are missing", hint="give --cron, --every, --at or --spec")
        found = await session.client.post("/preview", {"spec": when.document(), "limit": limit})
        session.show(found, upcoming_panel)
        return
    present = await session.client.get(path("schedules", schedule_id))
    document = changed_spec(present, when)
    found = await session.client.post(
        path("schedules", schedule_id, "preview"), {"spec": document, "days": days}
    )
    session.show(found, partial(preview_panel, zone=document.get("timezone") or "UTC"))


def changed_spec(present: dict[str, Any], when: When) -> dict[str, Any]:
    """The spec that options make of the present one: a zone or a jitter alone leaves its times as they are.

    New times stay in the zone, and keep what is excluded, unless a whole spec is given.
    """
    base = dict(present["spec"])
    if when.crons or when.every or when.at:
        for name in ("crons", "dialect", "calendars", "intervals", "rrules", "times"):
            base.pop(name, None)
    return when.document(base)
