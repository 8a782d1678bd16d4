"""Accounts, and the usage that is charged to them: a port for each, and the tables that ship."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from horae.app.field_checks import check_number, check_owner, check_text
from horae.app.operation_arguments import checks_arguments
from horae.errors import InvalidInputError, NoCreditError
from horae.executor.secret_sealing import Sealer
from horae.grant_model import Account, Usage
from horae.json_bounds import MAX_INTEGER
from horae.store.transaction_limit import StoreAccess

KEY_FIELD = "virtual_key"


class AccountPort(Protocol):
    """Answers questions about accounts. Give another implementation to ``App.use_accounts``."""

    async def account_of(self, user_id: str) -> str:
        """The id of the account that a user's runs are charged to; raise ``NoCreditError`` if there is none."""

    async def default_virtual_key(self, account_id: str) -> str:
        """The key that an account's runs use, in the clear; empty if it has none. Called right before each run."""

    async def has_credit(self, account_id: str) -> bool:
        """Whether an account may start another run."""


class UsagePort(Protocol):
    """Where usage is recorded. Give another implementation to ``App.use_usage``."""

    async def record(self, usage: Usage) -> None:
        """Record usage, unless the same ``run_id``, ``attempt`` and ``unit`` was recorded before. It is durable when this returns."""


@dataclass
class Billing:
    """The ports through which runs are charged; a program may replace them."""

    accounts: AccountPort
    usage: UsagePort


class UsageTable:
    """Usage in a table; its cost is added to what the account has spent."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    async def record(self, usage: Usage) -> None:
        async with self._store.transaction() as transaction:
            await transaction.insert_usage(usage)


@checks_arguments
class Accounts:
    """Accounts in a table, with their keys sealed.

    A user without a row has an account of their own name, with neither key nor limit, unless accounts are ``required``.
    """

    def __init__(self, store: StoreAccess, sealer: Sealer, now: Callable[[], int], *, required: bool) -> None:
        self._store = store
        self._sealer = sealer
        self._now = now
        self._required = required

    async def account_of(self, user_id: str) -> str:
        """The id of the account that a user's runs are charged to."""
        return (await self.get(user_id)).id

    async def default_virtual_key(self, account_id: str) -> str:
        """The key that an account's runs use, in the clear; empty if it has none."""
        async with self._store.reading() as transaction:
            account = await transaction.account(account_id)
        sealed = "" if account is None else account.virtual_key
        return self._sealer.open(sealed, KEY_FIELD) if sealed else ""

    async def has_credit(self, account_id: str) -> bool:
        """Whether an account may start another run: it has spent less than its credit."""
        async with self._store.reading() as transaction:
            account = await transaction.account(account_id)
        if account is None:
            return not self._required
        return account.credit is None or account.spent < account.credit

    async def get(self, user_id: str) -> Account:
        """The account of a user."""
        async with self._store.reading() as transaction:
            account = await transaction.account_of(user_id)
        if account is not None:
            return account
        if self._required:
            raise NoCreditError(user_id, "does not exist")
        return Account(id=user_id, user_id=user_id)

    async def put(
        self, user_id: str, *, virtual_key: str | None = None, credit: int | None = None
    ) -> Account:
        """Create or change the account of a user. ``credit`` is the most that it may ever spend; ``None`` is unlimited.

        ``None`` keeps the stored ``virtual_key``; an empty one removes it.
        """
        check_owner(user_id)
        if not user_id:
            raise InvalidInputError("user_id", "must not be empty")
        if credit is not None:
            check_number("credit", credit, 0, MAX_INTEGER)
        if virtual_key:
            check_text(KEY_FIELD, virtual_key)
            virtual_key = self._sealer.seal(virtual_key, KEY_FIELD)
        async with self._store.transaction() as transaction:
            old = await transaction.account_of(user_id) or Account(id=user_id, user_id=user_id)
            key = old.virtual_key if virtual_key is None else virtual_key
            new = msgspec.structs.replace(old, virtual_key=key, credit=credit, updated_at_ms=self._now())
            await transaction.put_account(new)
        return new
