"""The part of a transaction that is about delegated execution: grants and accounts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from horae.grant_model import Account, Grant
from horae.store.mapping import Row, Table
from horae.store.tables import ACCOUNT, GRANT


class GrantQueries(ABC):
    """Statements on grants and accounts."""

    @abstractmethod
    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """Execute a statement, and return its rows."""

    @abstractmethod
    async def write(self, name: str, rows: list[dict[str, Any]]) -> int:
        """Execute a statement for each of many rows of parameters; return how many rows it changed."""

    @abstractmethod
    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        """Insert new rows. A row whose key exists is an error."""

    async def insert_grants(self, grants: Iterable[Grant]) -> None:
        """Insert new grants."""
        await self.insert(GRANT, list(grants))

    async def grants_by_id(self, ids: Collection[str]) -> dict[str, Grant]:
        """Some grants, by their ids; those that do not exist are missing."""
        found = await self.rows("grants_by_id", ids=list(ids)) if ids else ()
        return {each.id: each for each in map(GRANT.decode, found)}

    async def lock_grant(self, grant_id: str) -> Grant | None:
        """A grant; locked."""
        found = await self.rows("lock_grant", id=grant_id)
        return GRANT.decode(found[0]) if found else None

    async def grants(self, user_id: str | None, after: str, limit: int) -> list[Grant]:
        """A page of grants: a user's, or all if it is ``None``."""
        if user_id is None:
            found = await self.rows("grants", after=after, limit=limit)
        else:
            found = await self.rows("owned_grants", user_id=user_id, after=after, limit=limit)
        return [GRANT.decode(row) for row in found]

    async def count_grants(self, user_id: str, limit: int) -> int:
        """How many grants of a user were not revoked, counted up to a limit."""
        ((number,),) = await self.rows("count_grants", user_id=user_id, limit=limit)
        return int(number)

    async def update_grants(self, grants: Iterable[Grant]) -> None:
        """Update renewed and revoked grants."""
        await self.write("update_grant", [GRANT.parameters(each) for each in grants])

    async def account(self, account_id: str) -> Account | None:
        """An account."""
        found = await self.rows("account", id=account_id)
        return ACCOUNT.decode(found[0]) if found else None

    async def account_of(self, user_id: str) -> Account | None:
        """The account of a user."""
        found = await self.rows("account_of", user_id=user_id)
        return ACCOUNT.decode(found[0]) if found else None

    async def put_account(self, account: Account) -> None:
        """Insert or change the account of a user; what it has spent stays."""
        await self.write("put_account", [ACCOUNT.parameters(account)])
