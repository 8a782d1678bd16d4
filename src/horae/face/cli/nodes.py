"""``horae nodes``: the processes that drive the database."""

from __future__ import annotations

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.printing import word
from horae.face.cli.render import at, joined, listing

cli = group()
_table = listing(
    "No nodes: nothing keeps time. Start one with horae serve.",
    {
        "node!": "name", "state": lambda each: word("alive" if each["alive"] else "dead"),
        "since (UTC)": at("started_at"), "tzdata?": "tzdata", "actions~": joined("actions"),
    },
)  # fmt: skip


@command(cli, "nodes", takes=["url", "token", "database", "as_json"])
async def nodes(session: Session) -> None:
    """List the nodes, what each can run, and its time-zone database.

    horae nodes
    """
    session.show((await session.client.get("/nodes"))["items"], _table)
