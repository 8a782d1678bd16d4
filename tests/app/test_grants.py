"""Grants and accounts through an app: whose they are, until when, and what they never show."""

from __future__ import annotations

from datetime import timedelta

import pytest

from horae import App, Config
from horae.errors import (
    GrantExpiredError,
    GrantNotFoundError,
    GrantRevokedError,
    GrantScopeError,
    InvalidInputError,
    LimitExceededError,
    NoCreditError,
    NotStartedError,
    PermissionDeniedError,
)
from horae.testing import TimeMachine

POET = "graph:execute:langgraph:poet"
CONFIG = Config(secret_key="seal " * 10, grants_per_user=3)


@pytest.mark.contract("GRNT-03")
async def test_a_grant_is_created_validated_revoked_and_listed(database: str):
    async with App(database) as app:
        ada, eve = app.owned_by("ada"), app.owned_by("eve")
        made = await ada.grants.create([POET])
        assert (made.user_id, made.billing_account_id, made.scopes) == ("ada", "ada", (POET,))
        assert (made.expires_at, made.revoked_at) == (None, None)
        other = await app.grants.create([POET], user_id="eve")
        assert await ada.grants.validate(made.id, "langgraph:poet") == made
        with pytest.raises(GrantScopeError):
            await ada.grants.validate(made.id, "langgraph:painter")
        assert await ada.grants.list() == [made]
        assert await eve.grants.list() == [other]
        assert {each.id for each in await app.grants.list()} == {made.id, other.id}
        assert (await app.grants.list(limit=1)).next is not None
        revoked = await ada.grants.revoke(made.id)
        assert revoked.revoked_at is not None
        assert await ada.grants.revoke(made.id) == revoked
        with pytest.raises(GrantRevokedError):
            await ada.grants.validate(made.id, "langgraph:poet")
        with pytest.raises(GrantRevokedError):
            await ada.grants.renew(made.id)


@pytest.mark.contract("GRNT-03", "GRNT-16")
async def test_another_users_grant_is_not_found(machine: TimeMachine):
    hers = await machine.app.owned_by("ada").grants.create([POET])
    eve = machine.app.owned_by("eve").grants
    for work in (eve.get, eve.validate, eve.revoke, eve.renew):
        with pytest.raises(GrantNotFoundError) as found:
            await work(hers.id)
        with pytest.raises(GrantNotFoundError) as missing:
            await work("none")
        assert found.value.message.replace(hers.id, "none") == missing.value.message
    with pytest.raises(PermissionDeniedError):
        await eve.create([POET], user_id="ada")
    with pytest.raises(InvalidInputError, match="user_id"):
        await machine.app.grants.create([POET])


@pytest.mark.contract("GRNT-03")
async def test_a_grant_expires_at_its_time_and_is_renewed(machine: TimeMachine):
    grants = machine.app.owned_by("ada").grants
    end = machine.now + timedelta(hours=1)
    made = await grants.create([POET], expires_at=end)
    await machine.advance(minutes=59, seconds=59)
    await grants.validate(made.id)
    await machine.advance(seconds=1)
    with pytest.raises(GrantExpiredError):
        await grants.validate(made.id, "langgraph:poet")
    with pytest.raises(GrantExpiredError):  # before the scope is asked
        await grants.validate(made.id, "langgraph:painter")
    await grants.renew(made.id, machine.now + timedelta(hours=1))
    assert (await grants.validate(made.id)).expires_at == end + timedelta(hours=1)
    assert (await grants.renew(made.id)).expires_at is None
    for wrong in (machine.now, machine.now - timedelta(days=1), "2026-01-01T00:00:00Z", "soon"):
        with pytest.raises(InvalidInputError, match="expires_at"):
            await grants.create([POET], expires_at=wrong)
        with pytest.raises(InvalidInputError, match="expires_at"):
            await grants.renew(made.id, wrong)


async def test_grants_have_a_limit_and_revoked_ones_do_not_count(machine: TimeMachine):
    grants = machine.app.owned_by("ada").grants
    made = [await grants.create([POET]) for _ in range(3)]
    with pytest.raises(LimitExceededError, match="grants"):
        await grants.create([POET])
    await grants.revoke(made[0].id)
    await grants.create([POET])


@pytest.mark.contract("GRNT-06")
async def test_a_user_has_an_account_with_a_sealed_key(database: str):
    async with App(database, config=CONFIG) as app:
        assert (await app.accounts.account_of("ada"), await app.accounts.default_virtual_key("ada")) == (
            "ada",
            "",
        )
        assert await app.accounts.has_credit("ada")
        await app.accounts.put("ada", virtual_key="sk-planted-secret", credit=5)
        assert await app.accounts.default_virtual_key("ada") == "sk-planted-secret"
        stored = await app.accounts.get("ada")
        assert "planted" not in stored.virtual_key + repr(stored)
        await app.accounts.put("ada", credit=0)
        assert not await app.accounts.has_credit("ada")
        assert await app.accounts.default_virtual_key("ada") == "sk-planted-secret"
        await app.accounts.put("ada", virtual_key="")
        assert await app.accounts.default_virtual_key("ada") == ""
        await app.accounts.put("ada", virtual_key="sk-planted-secret")
    async with App(database, config=Config(secret_key="another " * 5)) as app:
        with pytest.raises(NotStartedError, match="HORAE_SECRET_KEY"):
            await app.accounts.default_virtual_key("ada")
    async with App(database) as app:
        with pytest.raises(InvalidInputError, match="kept encrypted"):
            await app.accounts.put("eve", virtual_key="sk-planted-secret")


async def test_accounts_may_be_required():
    async with App(":memory:", config=Config(accounts_required=True)) as app:
        with pytest.raises(NoCreditError, match="does not exist"):
            await app.owned_by("ada").grants.create([POET])
        assert not await app.accounts.has_credit("ada")
        await app.accounts.put("ada")
        assert (await app.owned_by("ada").grants.create([POET])).billing_account_id == "ada"


@pytest.mark.contract("GRNT-06")
async def test_a_program_may_have_accounts_of_its_own():
    class Ledger:
        async def account_of(self, user_id: str) -> str:
            return f"team of {user_id}"

        async def default_virtual_key(self, account_id: str) -> str:
            return ""

        async def has_credit(self, account_id: str) -> bool:
            return True

    async with App(":memory:") as app:
        app.use_accounts(Ledger())
        assert (await app.grants.create([POET], user_id="ada")).billing_account_id == "team of ada"
