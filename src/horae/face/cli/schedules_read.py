"""Read schedules: list, describe, times, preview."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from horae.errors import InvalidInputError
from horae.face.api_client import path
from horae.face.cli.command_base import Session
from horae.face.cli.options import (
    Limit,
    ManagedBy,
    ScheduleId,
    Times,
    WithPrefix,
    WithTag,
    argument,
    flag,
    number,
    option,
)
from horae.face.cli.render import preview_panel, schedule_panel, schedule_table, time_table, upcoming_panel
from horae.face.cli.schedule_options import TIMES, When

State = Literal["running", "paused", "completed"]


async def list_schedules(
    session: Session,
    state: Annotated[State | None, option("--state", None, "Only schedules in this state.")] = None,
    action: Annotated[str | None, option("--action", "NAME", "Only schedules with this action.")] = None,
    tag: WithTag = None,
    prefix: WithPrefix = None,
    search: Annotated[
        str | None, option("--search", "KEY:VALUE", "Only schedules with this search attribute.")
    ] = None,
    attention: Annotated[bool, flag("--attention", "Only schedules that need attention.")] = False,
    managed_by: ManagedBy = None,
    orphaned: Annotated[
        bool, flag("--orphaned", "Only schedules that their program or file no longer defines.")
    ] = False,
    limit: Limit = 100,
) -> None:
    """List schedules, each with its times in words and its next time.

    [dim]Paused schedules, and those that need attention:[/dim]

      horae schedules list --state paused

      horae schedules list --tag billing --attention --json
    """
    await session.show_list(
        "/schedules", limit, schedule_table, state=state, action=action, tag=tag, prefix=prefix, search=search,
        attention=attention or None, managed_by=managed_by, orphaned=orphaned or None,
    )  # fmt: skip


async def describe(session: Session, schedule_id: ScheduleId) -> None:
    """Show a schedule: its times in words, its state, its next times, and its recent runs with their reasons.

    horae schedules describe report
    """
    session.show(await session.client.get(path("schedules", schedule_id)), schedule_panel)


async def times(
    session: Session,
    schedule_id: ScheduleId,
    start: Annotated[
        str | None, option("--from", "TIME", "Show times after this one.  \\[default: now]")
    ] = None,
    end: Annotated[str | None, option("--to", "TIME", "Show times up to this one, inclusive.")] = None,
    limit: Times = 10,
) -> None:
    """Show the times that a schedule matches, from now on or in a range.

    horae schedules times report -n 5

    horae schedules times report --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z
    """
    answer = await session.client.get(
        path("schedules", schedule_id, "times"), limit=limit,
        start=await session.moment(start, "--from", schedule_id), end=await session.moment(end, "--to", schedule_id),
    )  # fmt: skip
    session.show(answer, partial(time_table, zone=await session.zone(schedule_id)))


async def preview(
    session: Session,
    *,
    schedule_id: Annotated[
        str | None, argument("ID", "The schedule to change. Without it: a new schedule.")
    ] = None,
    when: When,
    days: Annotated[int, number("--days", "Compare this many days ahead.", most=366)] = 30,
    limit: Times = 10,
) -> None:
    """Show which times a change would add and remove, or when a new schedule would fire. Nothing is changed.

    [dim]What if the report moves to ten o'clock?[/dim]

      horae schedules preview report --cron "0 10 * * 1-5" --days 7

      horae schedules preview --every 90m --tz Europe/Berlin
    """
    if schedule_id is None:
        if not when.names_times:
            raise InvalidInputError("the times", "are missing", hint="give --cron, --every, --at or --spec")
        answer = await session.client.post("/preview", {"spec": when.document(), "limit": limit})
        session.show(answer, upcoming_panel)
        return
    present = await session.client.get(path("schedules", schedule_id))
    document = changed_spec(present, when)
    answer = await session.client.post(
        path("schedules", schedule_id, "preview"), {"spec": document, "days": days}
    )
    session.show(answer, partial(preview_panel, zone=document.get("timezone") or "UTC"))


def changed_spec(present: dict[str, Any], when: When) -> dict[str, Any]:
    """The spec of a schedule after a change: new times replace the old ones, a zone or a jitter alone keeps them.

    The zone and the exclusions stay unless a whole spec is given.
    """
    base = dict(present["spec"])
    if when.crons or when.every or when.at:
        base = {name: value for name, value in base.items() if name not in TIMES}
    return when.document(base)
