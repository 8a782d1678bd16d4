"""``horae nodes``: the processes that drive the database."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.printing import utc
from horae.face.cli.render import Json
from horae.face.cli.tables import table

cli = group()


@command(cli, "nodes", takes=["url", "token", "database", "as_json"])
async def nodes(session: Session) -> None:
    """List the nodes, what each can run, and its time-zone database.

    horae nodes
    """
    session.show((await session.client.get("/nodes"))["items"], _table)


def _table(items: list[Json]) -> RenderableType:
    if not items:
        return Text("No nodes: nothing keeps time. Start one with horae serve.", style="yellow")
    rows = [
        (
            each["name"], Text("alive", style="green") if each["alive"] else Text("dead", style="red"),
            utc(each["started_at"]), each["tzdata"], ", ".join(each["actions"]),
        )
        for each in items
    ]  # fmt: skip
    return table("node!", "state", "since (UTC)", "tzdata?", "actions~", rows=rows)
