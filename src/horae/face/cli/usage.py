"""``horae usage``: what runs of graphs used."""

from __future__ import annotations

from typing import Annotated, Literal

from rich.console import RenderableType

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Limit, option
from horae.face.cli.printing import none, utc
from horae.face.cli.render import Json
from horae.face.cli.tables import table

cli = group()


@command(cli, "usage")
async def usage(
    session: Session,
    since: Annotated[
        str | None, option("--since", "TIME", "Recorded at or after this; in UTC without an offset.")
    ] = None,
    until: Annotated[str | None, option("--until", "TIME", "Recorded before this.")] = None,
    by: Annotated[
        Literal["all", "hour", "day"],
        option("--by", None, "Also by the hour or the day, in UTC.", show_default=True),
    ] = "all",
    limit: Limit = 100,
) -> None:
    """Sum what runs of graphs used, by account and time, the latest first.

    horae usage --since -30d --by day
    """
    found = await session.client.get(
        "/usage", since=await session.moment(since, "--since", None), until=await session.moment(until, "--until", None),
        by=by, limit=limit,
    )  # fmt: skip
    session.show(found["items"], _table)


def _table(items: list[Json]) -> RenderableType:
    if not items:
        return none("No usage.")
    rows = [
        (
            each["billing_account_id"], utc(each["since"]), each["runs"], each["input_tokens"], each["output_tokens"], each["cost"],
        )
        for each in items
    ]  # fmt: skip
    return table("account!", "since (UTC)?", "runs>", "tokens in>", "tokens out>", "cost>", rows=rows)
