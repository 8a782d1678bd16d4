"""``horae nodes``: the processes that drive the database."""

from __future__ import annotations

import typer
from rich.console import RenderableType
from rich.text import Text

from horae.face.cli.command import Session, command
from horae.face.cli.output import add, table, utc
from horae.face.cli.render import Json

cli = typer.Typer(rich_markup_mode="rich", add_completion=False)


@command(cli, "nodes")
async def nodes(session: Session) -> None:
    """List the nodes, what each can run, and its time-zone database.

    horae nodes
    """
    found = (await session.client.get("/nodes"))["items"]
    session.show(found, lambda: _table(found))


def _table(found: list[Json]) -> RenderableType:
    if not found:
        return Text("No nodes: nothing keeps time. Start one with horae serve.", style="yellow")
    shown = table("node", "since (UTC)", "", "tzdata", "actions~")
    for each in found:
        alive = Text("lives", style="green") if each["alive"] else Text("is gone", style="red")
        add(shown, each["name"], utc(each["started_at"]), alive, each["tzdata"], ", ".join(each["actions"]))
    return shown
