"""``horae usage``: the usage of graphs."""

from __future__ import annotations

from typing import Annotated, Literal

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Limit, option
from horae.face.cli.render import at, listing

cli = group()
_table = listing(
    "No usage.",
    {
        "account!": "billing_account_id", "since (UTC)?": at("since"), "runs>": "runs", "tokens in>": "input_tokens",
        "tokens out>": "output_tokens", "cost>": "cost",
    },
)  # fmt: skip


@command(cli, "usage")
async def usage(
    session: Session,
    since: Annotated[
        str | None,
        option("--since", "TIME", "Recorded at or after this time, in UTC unless it has an offset."),
    ] = None,
    until: Annotated[str | None, option("--until", "TIME", "Recorded before this time.")] = None,
    by: Annotated[
        Literal["all", "hour", "day"],
        option("--by", None, "Split the sums by hour or day, in UTC.", show_default=True),
    ] = "all",
    limit: Limit = 100,
) -> None:
    """Sum the usage of graphs by account and time, latest first.

    horae usage --since -30d --by day
    """
    answer = await session.client.get(
        "/usage", since=await session.moment(since, "--since", None), until=await session.moment(until, "--until", None),
        by=by, limit=limit,
    )  # fmt: skip
    session.show(answer["items"], _table)
