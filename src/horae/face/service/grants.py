"""``/api/v1/grants`` and ``/api/v1/account``: what runs for absent users, and what it is charged to."""

from __future__ import annotations

from litestar import Router, get, post, put

from horae.app import App, ScopedOperations
from horae.app.grant_views import AccountView, GrantView
from horae.app.view_base import PageView, page_of, view_of
from horae.errors import PermissionDeniedError
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import CreateGrant, PutAccount, RenewGrant
from horae.face.service.route_helpers import API, Cursor, Limit


@post("/grants", summary="Create a grant")
async def create_grant(own: ScopedOperations, data: CreateGrant) -> GrantView:
    """For the caller, or for the named owner; charged to their account. A schedule of a graph makes its own."""
    return view_of(GrantView, await own.grants.create(data.scopes, expires_at=data.expires_at))


@get("/grants", summary="List grants")
async def list_grants(
    operations: ScopedOperations, limit: Limit = 100, cursor: Cursor = None
) -> PageView[GrantView]:
    """Also those that no longer hold, in the order of their ids."""
    return page_of(GrantView, await operations.grants.list(cursor=cursor, limit=limit))


@get("/grants/{grant_id:str}", summary="A grant")
async def get_grant(operations: ScopedOperations, grant_id: str) -> GrantView:
    """Whether or not it still holds."""
    return view_of(GrantView, await operations.grants.get(grant_id))


@post("/grants/{grant_id:str}/revoke", summary="Revoke a grant", status_code=200)
async def revoke_grant(operations: ScopedOperations, grant_id: str) -> GrantView:
    """For good: nothing that has not begun yet runs by it. Slots of its schedules are skipped until another takes its place."""
    return view_of(GrantView, await operations.grants.revoke(grant_id))


@post("/grants/{grant_id:str}/renew", summary="Renew a grant", status_code=200)
async def renew_grant(
    operations: ScopedOperations, grant_id: str, data: RenewGrant | None = None
) -> GrantView:
    """It holds until another time, or until it is revoked; its schedules go on at once. A revoked one cannot be renewed."""
    return view_of(GrantView, await operations.grants.renew(grant_id, (data or RenewGrant()).expires_at))


@get("/account", summary="An account")
async def get_account(app: App, own: ScopedOperations) -> AccountView:
    """What the runs of the caller, or of the named owner, are charged to."""
    return view_of(AccountView, await app.accounts.get(own.owner or ""))


@put("/account", summary="Create or change an account")
async def put_account(app: App, caller: Caller, own: ScopedOperations, data: PutAccount) -> AccountView:
    """Needs the scope `admin`. The key is stored encrypted, and never shown."""
    if not caller.sees_all:
        raise PermissionDeniedError("Only the scope admin may change accounts")
    stored = await app.accounts.put(own.owner or "", virtual_key=data.virtual_key, credit=data.credit)
    return view_of(AccountView, stored)


def grants_router() -> Router:
    """The routes of grants and accounts."""
    grants = [create_grant, list_grants, get_grant, revoke_grant, renew_grant]
    return Router(API, route_handlers=[*grants, get_account, put_account], tags=["grants"])
