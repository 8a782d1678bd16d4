"""``horae nodes``: the processes that run schedules."""

from __future__ import annotations

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.printing import word
from horae.face.cli.render import at, joined, listing

cli = group()
_table = listing(
    "No nodes, so nothing runs. Start one with horae serve.",
    {
        "node!": "name", "state": lambda each: word("alive" if each["alive"] else "dead"),
        "since (UTC)": at("started_at"), "tzdata?": "tzdata", "actions~": joined("actions"),
    },
)  # fmt: skip


@command(cli, "nodes", takes=["url", "token", "database", "as_json"])
async def nodes(session: Session) -> None:
    """List the nodes: whether each is alive, its time-zone data, and the actions it can run.

    horae nodes
    """
    session.show((await session.client.get("/nodes"))["items"], _table)
