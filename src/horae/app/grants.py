"""The grants of an app: durable authorizations to run graphs for an absent user."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

import msgspec

from horae.app.field_checks import check_owner, future_ms
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import Page, cursor_of, page_limit, place_of
from horae.errors import (
    GrantNotFoundError,
    GrantRevokedError,
    InvalidInputError,
    LimitExceededError,
    PermissionDeniedError,
)
from horae.grant_model import GRANT_ERRORS, Grant
from horae.model import Reason
from horae.policy.grants import MAX_SCOPES, check_scopes, error_of, fault_of, without_attention
from horae.store.port import Advance, Transaction

SCOPES_PER_GRANT = MAX_SCOPES
_replace = msgspec.structs.replace


@checks_arguments
class Grants:
    """Grants: of all users, or of one user, who sees no others."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def create(
        self,
        scopes: Sequence[str],
        *,
        user_id: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> Grant:
        """Create a grant for the user of this scope, charged to the user's account.

        ``scopes`` are ``graph:execute:GRAPH_ID`` or ``graph:execute:*``. Without ``expires_at`` the grant holds until it is revoked.
        """
        grant = await new_grant(self._scope, self._user(user_id), scopes, expires_at)
        async with self._scope.store.transaction() as transaction:
            await insert_grant(self._scope, transaction, grant)
        return grant

    def _user(self, named: str | None) -> str:
        if self._scope.owner is None:
            if not named:
                raise InvalidInputError("user_id", "must name the user of the grant")
            return named
        if named not in {None, self._scope.owner}:
            raise PermissionDeniedError("A grant can only be made for oneself")
        return self._scope.owner

    async def get(self, grant_id: str) -> Grant:
        """A grant, whether or not it still holds; another user's is not found."""
        async with self._scope.store.reading() as transaction:
            return self._own((await transaction.grants_by_id([grant_id])).get(grant_id), grant_id)

    def _own(self, grant: Grant | None, grant_id: str) -> Grant:
        if grant is None or self._scope.owner not in {None, grant.user_id}:
            raise GrantNotFoundError(grant_id)
        return grant

    async def validate(self, grant_id: str, graph_id: str | None = None) -> Grant:
        """A grant that holds now, and for a graph if one is named.

        Otherwise the first that applies is raised: ``GrantNotFoundError``, ``GrantRevokedError``, ``GrantExpiredError``,
        ``GrantScopeError``.
        """
        grant = await self.get(grant_id)
        fault = fault_of(grant, grant.user_id, graph_id, self._scope.now())
        if fault is not None:
            raise error_of(fault, grant_id)
        return grant

    async def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[Grant]:
        """Grants in the order of their ids, including those that no longer hold."""
        limit = page_limit(limit)
        (after,) = ("",) if cursor is None else place_of(cursor, tuple[str])
        async with self._scope.store.reading() as transaction:
            found = await transaction.grants(self._scope.owner, after, limit)
        return Page(found, cursor_of(found[-1].id) if len(found) == limit else None)

    async def revoke(self, grant_id: str) -> Grant:
        """End a grant for good: no run begins under it any more. Revoking it again changes nothing."""
        async with self._scope.store.transaction() as transaction:
            grant = self._own(await transaction.lock_grant(grant_id), grant_id)
            if grant.revoked_at_ms is None:
                grant = _replace(grant, revoked_at_ms=self._scope.now())
                await transaction.update_grants([grant])
        return grant

    async def renew(self, grant_id: str, expires_at: datetime | str | None = None) -> Grant:
        """Extend a grant until another time, or without ``expires_at`` until it is revoked. A revoked grant cannot be renewed."""
        expires_at_ms = None if expires_at is None else future_ms("expires_at", expires_at, self._scope.now())
        await self.get(grant_id)

        async def renew(work: UnitOfWork) -> Grant:
            transaction = work.transaction
            # Schedules are locked before grants, as a change of a schedule does: otherwise the two would deadlock.
            most = self._scope.config.schedules_per_user
            schedules = await transaction.schedules(await transaction.schedules_with_grant(grant_id, most))
            grant = self._own(await transaction.lock_grant(grant_id), grant_id)
            if grant.revoked_at_ms is not None:
                raise GrantRevokedError(grant_id)
            grant = _replace(grant, expires_at_ms=expires_at_ms)
            await transaction.update_grants([grant])
            await transaction.advance(
                Advance(each.key, each.cursor_ms, work.now, without_attention(each.state))
                for each in schedules
                if each.state.attention_reason in GRANT_ERRORS
            )
            await transaction.notify()
            return grant

        return await self._scope.change(renew)


async def new_grant(
    scope: OwnerScope, user_id: str, scopes: Sequence[str], expires_at: datetime | str | None = None
) -> Grant:
    """A checked grant, charged to the user's account, that is not stored yet."""
    check_owner(user_id)
    if isinstance(scopes, str):
        raise InvalidInputError("scopes", "must be a list of texts")
    now = scope.now()
    expires_at_ms = None if expires_at is None else future_ms("expires_at", expires_at, now)
    checked = check_scopes(scopes)
    account = await scope.billing.accounts.account_of(user_id)
    return Grant(
        id=str(uuid4()), user_id=user_id, billing_account_id=account, scopes=checked, expires_at_ms=expires_at_ms,
        created_at_ms=now,
    )  # fmt: skip


async def valid_grant(
    transaction: Transaction, grant_id: str, user_id: str, graph_id: str, now: int
) -> Grant:
    """A stored grant that allows a user's run of a graph now; otherwise the error that says why it does not."""
    grant = (await transaction.grants_by_id([grant_id])).get(grant_id)
    fault = fault_of(grant, user_id, graph_id, now)
    if fault is not None or grant is None:
        raise error_of(fault or Reason.GRANT_NOT_FOUND, grant_id)
    return grant


async def insert_grant(scope: OwnerScope, transaction: Transaction, grant: Grant) -> None:
    """Store a new grant, unless its user has too many."""
    most = scope.config.grants_per_user
    if await transaction.count_grants(grant.user_id, most) >= most:
        raise LimitExceededError("grants_per_user", most, f'the user "{grant.user_id}" has too many grants')
    await transaction.insert_grants([grant])
