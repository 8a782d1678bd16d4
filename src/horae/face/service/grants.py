"""``/api/v1/grants``, ``/api/v1/account`` and ``/api/v1/usage``: what may run for absent users, what it is charged to, and what it used."""

from __future__ import annotations

from typing import Annotated

from horae.app import App, ScopedOperations
from horae.app.grant_views import AccountView, GrantView, UsageView
from horae.app.view_base import PageView, page_of, view_of
from horae.errors import PermissionDeniedError
from horae.face.http.arguments import query
from horae.face.http.routes import Router, get, post, put
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import CreateGrant, PutAccount, RenewGrant
from horae.face.service.route_helpers import API, Cursor, Limit

Since = Annotated[str | None, query("Recorded at or after this time.", format="date-time")]
Until = Annotated[str | None, query("Recorded before this time.", format="date-time")]
By = Annotated[str, query("Whether to sum by the hour or the day too, in UTC.", enum=["all", "hour", "day"])]


@post("/grants", summary="Create a grant")
async def create_grant(own: ScopedOperations, data: CreateGrant) -> GrantView:
    """For the caller or the named owner, charged to their account. A schedule of a graph creates its own grant."""
    return view_of(GrantView, await own.grants.create(data.scopes, expires_at=data.expires_at))


@get("/grants", summary="List grants")
async def list_grants(
    operations: ScopedOperations, limit: Limit = 100, cursor: Cursor = None
) -> PageView[GrantView]:
    """Ordered by id, including expired and revoked grants."""
    return page_of(GrantView, await operations.grants.list(cursor=cursor, limit=limit))


@get("/grants/{grant_id}", summary="A grant")
async def get_grant(operations: ScopedOperations, grant_id: str) -> GrantView:
    """Even if it has expired or was revoked."""
    return view_of(GrantView, await operations.grants.get(grant_id))


@post("/grants/{grant_id}/revoke", summary="Revoke a grant", status_code=200)
async def revoke_grant(operations: ScopedOperations, grant_id: str) -> GrantView:
    """For good: nothing starts under the grant any more. Slots of its schedules are skipped until another grant replaces it."""
    return view_of(GrantView, await operations.grants.revoke(grant_id))


@post("/grants/{grant_id}/renew", summary="Renew a grant", status_code=200)
async def renew_grant(
    operations: ScopedOperations, grant_id: str, data: RenewGrant | None = None
) -> GrantView:
    """Changes when the grant expires; its schedules continue at once. A revoked grant cannot be renewed."""
    return view_of(GrantView, await operations.grants.renew(grant_id, (data or RenewGrant()).expires_at))


@get("/account", summary="An account")
async def get_account(app: App, own: ScopedOperations) -> AccountView:
    """The account that runs of the caller, or of the named owner, are charged to."""
    return view_of(AccountView, await app.accounts.get(own.owner or ""))


@put("/account", summary="Create or change an account")
async def put_account(app: App, caller: Caller, own: ScopedOperations, data: PutAccount) -> AccountView:
    """Needs the scope `admin`. The key is stored encrypted, and never shown."""
    if not caller.sees_all:
        raise PermissionDeniedError("Only the scope admin may change accounts")
    stored = await app.accounts.put(own.owner or "", virtual_key=data.virtual_key, credit=data.credit)
    return view_of(AccountView, stored)


@get("/usage", summary="Sum usage")
async def sum_usage(
    operations: ScopedOperations, since: Since = None, until: Until = None, by: By = "all", limit: Limit = 100
) -> PageView[UsageView]:
    """What runs of graphs used, by account and time, latest first. There are no further pages: ask for a shorter span."""
    sums = await operations.usage.sums(since=since, until=until, by=by, limit=limit)
    return PageView(items=[view_of(UsageView, each) for each in sums])


_HANDLERS = [
    create_grant, list_grants, get_grant, revoke_grant, renew_grant, get_account, put_account, sum_usage,
]  # fmt: skip
grants_router = Router(API, route_handlers=_HANDLERS, tags=("grants",))
