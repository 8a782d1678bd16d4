"""Statements by name: what the queries of each noun execute, and what a store implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from horae.model import AttemptResult, Outcome, Run, ScheduleKey, UnstartedRange
from horae.store.row_mapping import Row, T, Table

NEWEST = (2**62, 2**62)
"""Greater than every version and every number of the ledger."""
LAST = 10**18 - 1
"""Greater than every instant in milliseconds, and than every number of a ledger that is searched."""
BEGINNING = ScheduleKey("")
"""Before every key: for the first page."""


class Write(NamedTuple):
    """A statement for many rows of parameters, and what they have in common."""

    name: str
    rows: list[dict[str, Any]]
    shared: Mapping[str, Any] = {}


class Statements(ABC):
    """The statements of one transaction."""

    recorded: list[tuple[AttemptResult, Outcome]] | None = None
    """The ends of attempts that it writes, for observers; ``None`` without observers."""
    unstarted: list[Run | UnstartedRange] | None = None
    """The slots that it does not start, and the runs that it ends without a start, for observers."""
    on_commit: tuple[Callable[[], None], ...] = ()
    """Callbacks for after the commit, in order; none may raise."""

    @abstractmethod
    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """Execute a statement, and return its rows."""

    async def find(self, table: Table[T], name: str, /, **values: Any) -> list[T]:  # noqa: ANN401 - what a database takes
        """The values of all rows that a statement returns."""
        return [table.decode(row) for row in await self.rows(name, **values)]

    async def find_one(self, table: Table[T], name: str, /, **values: Any) -> T | None:  # noqa: ANN401 - what a database takes
        """The value of the first row that a statement returns; ``None`` if it returns none."""
        rows = await self.rows(name, **values)
        return table.decode(rows[0]) if rows else None

    async def tuples(self, name: str, /, **values: Any) -> list[Any]:  # noqa: ANN401 - what a database takes
        """The rows of a statement as tuples."""
        return [tuple(row) for row in await self.rows(name, **values)]

    @abstractmethod
    async def write(self, name: str, rows: list[dict[str, Any]], /, **shared: Any) -> int:  # noqa: ANN401 - what a database takes
        """Execute a statement for each of many rows of parameters; return how many rows it changed.

        What all rows have in common may be given once, as ``shared``: it costs as much as in one row.
        """

    async def write_together(self, *writes: Write) -> list[int]:
        """Execute several statements for many rows each, in one round trip if the database can; return how many rows each changed.

        They see the database as it was before, in no particular order: none may depend on what another one writes.
        """
        return [await self.write(name, rows, **shared) for name, rows, shared in writes]

    @abstractmethod
    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        """Insert new rows. A row whose key exists is an error."""

    @abstractmethod
    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """Execute a statement on tables that are not Horae's own, and return its rows; parameters are named ``:name``."""

    @abstractmethod
    async def notify(self, decider: str = "") -> None:
        """Wake the other nodes when this transaction commits; only the named decider, if one is named. The caller must then wake this
        node's own decider.
        """

    @abstractmethod
    async def lock(self, keys: Collection[ScheduleKey]) -> Collection[ScheduleKey]:
        """Lock schedules, so that no other node decides for them. Returns those that are locked."""

    async def value(self, name: str, /, **values: Any) -> Any:  # noqa: ANN401 - what a database has
        """The only value that a statement returns."""
        ((value,),) = await self.rows(name, **values)
        return value

    async def column(self, name: str, /, **values: Any) -> list[Any]:  # noqa: ANN401 - what a database takes
        """The values of a statement that returns one column."""
        return [value for (value,) in await self.rows(name, **values)]
