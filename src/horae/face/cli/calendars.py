"""``horae calendars``: the shared calendars that specs exclude by name."""

from __future__ import annotations

from typing import Annotated, Any

from horae.errors import InvalidInputError
from horae.face.api_client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Limit, Yes, argument, option
from horae.face.cli.render import at, details, joined, listing, short
from horae.face.cli.schedule_options import CALENDAR_EXAMPLE
from horae.face.documents.files import document

cli = group("calendars", "Shared calendars that schedules exclude, such as holidays.")

Name = Annotated[str, argument("NAME", "The calendar's name.")]
_table = listing(
    "No calendars.",
    {
        "name!": "name", "owner": "owner", "dates>": lambda each: len(each["dates"]),
        "calendars>": lambda each: len(each["calendars"]), "updated (UTC)?": at("updated_at"),
    },
)  # fmt: skip
_details = details(
    {
        "name": "name", "owner": "owner", "dates": joined("dates"), "calendars": lambda each: short(each["calendars"]),
        "updated": at("updated_at"), "schedules changed": "schedules",
    }
)  # fmt: skip


@command(cli, "list")
async def list_calendars(session: Session, limit: Limit = 100) -> None:
    """List the shared calendars.

    horae calendars list
    """
    await session.show_list("/calendars", limit, _table)


@command(cli, "show")
async def show(session: Session, name: Name) -> None:
    """Show a shared calendar.

    horae calendars show us-holidays
    """
    session.show(await session.client.get(path("calendars", name)), _details)


@command(cli, "put")
async def put(
    session: Session,
    name: Name,
    file: Annotated[
        str | None, argument("FILE|-", "The calendar as JSON, YAML or TOML; - is standard input.")
    ] = None,
    dates: Annotated[list[str] | None, option("--date", "DATE", "A day of the calendar. Repeatable.")] = None,
) -> None:
    """Create or replace a shared calendar. Schedules that exclude it follow at once.

    horae calendars put us-holidays --date 2026-12-25 --date 2027-01-01

    horae calendars put us-holidays holidays.json
    """
    if (file is None) == (not dates):
        raise InvalidInputError("the calendar", "needs a FILE or --date", hint="give one of them")
    body: dict[str, Any] = {"dates": dates}
    if file is not None:
        body = document(file, "FILE", CALENDAR_EXAMPLE)
    session.show(await session.client.put(path("calendars", name), body), _details)


@command(cli, "delete")
async def delete(session: Session, name: Name, yes: Yes = False) -> None:
    """Delete a shared calendar that no schedule excludes.

    horae calendars delete us-holidays
    """
    await session.delete("calendar", name, yes=yes)
