"""``horae accounts``: what users' runs are charged to."""

from __future__ import annotations

import sys
from typing import Annotated

from rich.console import RenderableType

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import argument, flag, option
from horae.face.cli.render import Json
from horae.face.cli.tables import facts

cli = group("accounts", "The accounts that runs of graphs are charged to.")

User = Annotated[str, argument("USER", "The user.")]


@command(cli, "show")
async def show(session: Session, user: User) -> None:
    """Show the account of a user; its key is never shown.

    horae accounts show ada
    """
    session.show(await session.client.get("/account", owner=user), _facts)


@command(cli, "put")
async def put(
    session: Session,
    user: User,
    key: Annotated[
        bool, flag("--key", "Read the account's key from standard input; it is stored encrypted.")
    ] = False,
    credit: Annotated[
        int | None, option("--credit", "NUMBER", "All that it may ever spend. Without it: unlimited.", min=0)
    ] = None,
) -> None:
    """Create or change the account of a user. The key comes from standard input, so that no list of processes shows it.

    horae accounts put ada --credit 5000000 --key < ada.key
    """
    body: Json = {"credit": credit}
    if key:
        body["virtual_key"] = sys.stdin.read().strip()
    session.show(await session.client.put("/account", body, owner=user), _facts)


def _facts(found: Json) -> RenderableType:
    return facts(
        ("id", found["id"]),
        ("user", found["user_id"]),
        ("key", "yes" if found["has_key"] else "none"),
        ("credit", "unlimited" if found["credit"] is None else found["credit"]),
        ("spent", found["spent"]),
    )
