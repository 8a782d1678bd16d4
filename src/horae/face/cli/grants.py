"""``horae grants``: permissions to run graphs for absent users."""

from __future__ import annotations

from typing import Annotated

from horae.face.api_client import path
from horae.face.cli.command_base import Session, command, confirm, group
from horae.face.cli.options import Limit, Yes, argument, option
from horae.face.cli.render import at, details, joined, listing

cli = group("grants", "Durable permissions to run graphs for an absent user.")

GrantId = Annotated[str, argument("GRANT_ID", "The grant's id.")]
Expires = Annotated[
    str | None,
    option("--expires", "TIME", "When it expires; UTC unless it has an offset.  \\[default: never]"),
]
_table = listing(
    "No grants.",
    {
        "id!": "id", "user": "user_id", "account": "billing_account_id", "scopes": joined("scopes"),
        "expires (UTC)?": at("expires_at"), "revoked (UTC)?": at("revoked_at"),
    },
)  # fmt: skip
_details = details(
    {
        "id": "id", "user": "user_id", "account": "billing_account_id", "scopes": joined("scopes"),
        "expires": at("expires_at"), "revoked": at("revoked_at"), "created": at("created_at"),
    }
)  # fmt: skip


@command(cli, "create")
async def create(
    session: Session,
    scopes: Annotated[
        list[str],
        option("--scope", "SCOPE", "graph:execute:GRAPH_ID, or graph:execute:* for all graphs. Repeatable."),
    ],
    expires: Expires = None,
) -> None:
    """Create a grant for yourself, or with --owner for another user.

    horae grants create --scope graph:execute:langgraph:poet --expires "in 90d"
    """
    body = {"scopes": scopes, "expires_at": await session.moment(expires, "--expires", None)}
    session.show(await session.client.post("/grants", body), _details)


@command(cli, "list")
async def list_grants(session: Session, limit: Limit = 100) -> None:
    """List the grants, including expired and revoked ones.

    horae grants list
    """
    await session.show_list("/grants", limit, _table)


@command(cli, "show")
async def show(session: Session, grant_id: GrantId) -> None:
    """Show a grant.

    horae grants show 3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1
    """
    session.show(await session.client.get(path("grants", grant_id)), _details)


@command(cli, "revoke")
async def revoke(session: Session, grant_id: GrantId, yes: Yes = False) -> None:
    """Revoke a grant for good. Runs that have not begun are not started.

    horae grants revoke 3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1
    """
    confirm(f"Revoke the grant {grant_id}?", yes=yes)
    session.show(await session.client.post(path("grants", grant_id, "revoke")), f"Revoked {grant_id}.")


@command(cli, "renew")
async def renew(session: Session, grant_id: GrantId, expires: Expires = None) -> None:
    """Extend a grant, or let it never expire. Schedules that waited for it continue at once.

    horae grants renew 3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1 --expires "in 90d"
    """
    body = {"expires_at": await session.moment(expires, "--expires", None)}
    session.show(await session.client.post(path("grants", grant_id, "renew"), body), _details)
