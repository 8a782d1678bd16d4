"""``horae accounts``: the accounts that users' runs are charged to."""

from __future__ import annotations

import sys
from typing import Annotated

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import argument, flag, option
from horae.face.cli.render import Json, details

cli = group("accounts", "The accounts that runs of graphs are charged to.")

User = Annotated[str, argument("USER", "The user who owns the account.")]
_details = details(
    {
        "id": "id", "user": "user_id", "key": lambda account: "yes" if account["has_key"] else "none",
        "credit": lambda account: "unlimited" if account["credit"] is None else account["credit"], "spent": "spent",
    }
)  # fmt: skip


@command(cli, "show")
async def show(session: Session, user: User) -> None:
    """Show the account of a user, without its key.

    horae accounts show ada
    """
    session.show(await session.client.get("/account", owner=user), _details)


@command(cli, "put")
async def put(
    session: Session,
    user: User,
    key: Annotated[
        bool, flag("--key", "Read the account's key from standard input, and store it encrypted.")
    ] = False,
    credit: Annotated[
        int | None, option("--credit", "NUMBER", "The most to spend, ever.  \\[default: unlimited]", min=0)
    ] = None,
) -> None:
    """Create or change the account of a user. The key is read from standard input, so that no process list shows it.

    horae accounts put ada --credit 5000000 --key < ada.key
    """
    body: Json = {"credit": credit}
    if key:
        body["virtual_key"] = sys.stdin.read().strip()
    session.show(await session.client.put("/account", body, owner=user), _details)
