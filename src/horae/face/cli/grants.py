"""``horae grants``: what may run for users who are not there."""

from __future__ import annotations

from typing import Annotated

from rich.console import RenderableType
from rich.text import Text

from horae.face.cli.client import path
from horae.face.cli.command_base import Session, command, confirm, group
from horae.face.cli.options import Limit, Yes, argument, option
from horae.face.cli.printing import none, utc
from horae.face.cli.render import Json
from horae.face.cli.tables import facts, table

cli = group("grants", "Durable permissions to run graphs for a user who is not there.")

GrantId = Annotated[str, argument("GRANT_ID", "The grant's id.")]
Expires = Annotated[
    str | None, option("--expires", "TIME", "When it ends; in UTC without an offset. Without it: never.")
]


@command(cli, "create")
async def create(
    session: Session,
    scopes: Annotated[
        list[str],
        option("--scope", "SCOPE", "graph:execute:GRAPH_ID, or graph:execute:* for all; may be repeated."),
    ],
    expires: Expires = None,
) -> None:
    """Create a grant for yourself, or for the user that --owner names.

    horae grants create --scope graph:execute:langgraph:poet --expires "in 90d"
    """
    body = {"scopes": scopes, "expires_at": await session.moment(expires, "--expires", None)}
    session.show(await session.client.post("/grants", body), _facts)


@command(cli, "list")
async def list_grants(session: Session, limit: Limit = 100) -> None:
    """List the grants, also those that no longer hold.

    horae grants list
    """
    session.show(await session.client.items("/grants", limit), _table)


def _table(items: list[Json]) -> RenderableType:
    if not items:
        return none("No grants.")
    rows = [
        (
            each["id"], each["user_id"], each["billing_account_id"], ", ".join(each["scopes"]), utc(each["expires_at"]),
            utc(each["revoked_at"]),
        )
        for each in items
    ]  # fmt: skip
    return table("id!", "user", "account", "scopes", "expires (UTC)?", "revoked (UTC)?", rows=rows)


@command(cli, "show")
async def show(session: Session, grant_id: GrantId) -> None:
    """Show a grant.

    horae grants show 3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1
    """
    session.show(await session.client.get(path("grants", grant_id)), _facts)


@command(cli, "revoke")
async def revoke(session: Session, grant_id: GrantId, yes: Yes = False) -> None:
    """Revoke a grant for good: nothing that has not begun yet runs by it.

    horae grants revoke 3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1
    """
    confirm(f"Revoke the grant {grant_id}?", yes=yes)
    session.show(
        await session.client.post(path("grants", grant_id, "revoke")), lambda _: Text(f"Revoked {grant_id}.")
    )


@command(cli, "renew")
async def renew(session: Session, grant_id: GrantId, expires: Expires = None) -> None:
    """Let a grant hold until another time, or for ever; schedules that waited for that go on at once.

    horae grants renew 3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1 --expires "in 90d"
    """
    body = {"expires_at": await session.moment(expires, "--expires", None)}
    session.show(await session.client.post(path("grants", grant_id, "renew"), body), _facts)


def _facts(found: Json) -> RenderableType:
    return facts(
        ("id", found["id"]),
        ("user", found["user_id"]),
        ("account", found["billing_account_id"]),
        ("scopes", ", ".join(found["scopes"])),
        ("expires", utc(found["expires_at"])),
        ("revoked", utc(found["revoked_at"])),
        ("created", utc(found["created_at"])),
    )
