"""The base of the queries of each noun: statements whose rows are decoded."""

from __future__ import annotations

from typing import Any

from horae.store.row_mapping import T, Table
from horae.store.statement_execution import Statements


class Queries(Statements):
    """Statements whose rows are values of a table."""

    async def find(self, table: Table[T], name: str, /, **values: Any) -> list[T]:  # noqa: ANN401 - what a database takes
        """The values of all rows that a statement returns."""
        return [table.decode(row) for row in await self.rows(name, **values)]

    async def find_one(self, table: Table[T], name: str, /, **values: Any) -> T | None:  # noqa: ANN401 - what a database takes
        """The value of the first row that a statement returns; ``None`` if it returns none."""
        found = await self.rows(name, **values)
        return table.decode(found[0]) if found else None

    async def tuples(self, name: str, /, **values: Any) -> list[Any]:  # noqa: ANN401 - what a database takes
        """The rows of a statement as tuples."""
        return [tuple(row) for row in await self.rows(name, **values)]
