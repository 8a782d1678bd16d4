"""``horae explain``: why a schedule did, or did not, run at a time."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from horae.face.cli.client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import ScheduleId
from horae.face.cli.printing import both, facts, printable, word
from horae.face.cli.render import Json

cli = group()


@command(cli, "explain")
async def explain(
    session: Session,
    schedule_id: ScheduleId,
    time: Annotated[
        str,
        typer.Argument(
            metavar="TIME", help="A time; without an offset it is in the schedule's zone.", show_default=False
        ),
    ],
) -> None:
    """Say why a schedule did or did not run at a time, or whether it will.

    horae explain report 2026-03-08T09:00

    horae explain report 2026-03-08T08:00:00Z --json
    """
    found = await session.client.get(path("schedules", schedule_id, "explain"), time=time)
    session.show(found, _answer)


def _answer(found: Json) -> RenderableType:
    zone = found.get("timezone") or "UTC"
    times = {
        "time": "nominal", "fire time": "fire", "happens instead": "moved_to", "decided": "decided_at",
        "the one before": "before", "the one after": "after",
    }  # fmt: skip
    moments = [(name, both(found.get(key), zone)) for name, key in times.items() if found.get(key)]
    return Group(
        Text(printable(str(found["sentence"])), style="bold"),
        facts(
            *moments,
            ("clock there", found["local"] if found.get("nominal") is None else None),
            ("together with", _range(found.get("range"), zone)),
            ("status", word(found["status"]) if found.get("status") else None),
            ("run id", found.get("run_id")),
            ("by", found.get("by")),
        ),
    )


def _range(span: Json | None, zone: str) -> Text | None:
    """The slots that did not start for the same reason."""
    if span is None or span["count"] == 1:
        return None
    return Text.assemble(
        f"{span['count']} slots from ", both(span["start"], zone), " to ", both(span["end"], zone)
    )
