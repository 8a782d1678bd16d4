"""``horae export``: write schedules and calendars as documents that ``horae apply`` reads."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from horae.face.api_client import EVERYTHING, path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import ManagedBy, WithPrefix, WithTag, argument, flag, schedule_ids
from horae.face.cli.printing import print_json
from horae.face.documents.files import yaml_text
from horae.face.documents.schedule_documents import calendar_document, check_unique, schedule_document

cli = group()


@command(cli, "export")
async def export(
    session: Session,
    schedule_id: Annotated[
        str | None, argument("ID", "The schedule. Without it: all schedules.", autocompletion=schedule_ids)
    ] = None,
    tag: WithTag = None,
    prefix: WithPrefix = None,
    managed_by: ManagedBy = None,
    calendars: Annotated[bool, flag("--no-calendars", "Leave out the shared calendars.")] = False,
) -> None:
    """Write schedules and calendars as YAML, or with --json as JSON. horae apply reads them back unchanged.

    [dim]Everything; and one schedule, to create a copy of it:[/dim]

      horae export > schedules.yaml

      horae export report > report.yaml && horae schedules create report-2 --file report.yaml

    Secrets are written as ***. Applying *** keeps the stored secret.
    """
    if schedule_id is not None:
        _write(session, schedule_document(await session.client.get(path("schedules", schedule_id))))
        return
    named = {"tag": tag, "prefix": prefix, "managed_by": managed_by}
    schedules = await session.client.items("/schedules", EVERYTHING, **named)
    check_unique(schedules)
    shared = [] if calendars else await session.client.items("/calendars", EVERYTHING)
    documents = {
        "calendars": [calendar_document(each) for each in shared],
        "schedules": [schedule_document(each) for each in schedules],
    }
    _write(session, {name: items for name, items in documents.items() if items or name == "schedules"})


def _write(session: Session, value: Any) -> None:  # noqa: ANN401 - JSON
    if session.as_json:
        print_json(value)
    else:
        sys.stdout.write(yaml_text(value))
