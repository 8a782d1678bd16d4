"""The port: everything that the engine and the operations need from a database, in transactions.

A store implements the few abstract methods of :class:`Statements` and :class:`Store`. All other methods of a transaction are written
once, in a file for each noun (``schedule_queries.py``, ``run_queries.py``, …), over statements that :mod:`horae.store.dialect` finds by
name, and tables that :mod:`horae.store.tables` declares.

Instants are milliseconds since the epoch. "Locked" means until the transaction ends. A *page* is in the order of its keys, begins
after the one that is given, and has at most ``limit`` items.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import wraps
from typing import Protocol, TypeVar

from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import AttemptResult, Node, Outcome, Run, UnstartedRange
from horae.store.backfill_queries import BackfillQueries
from horae.store.calendar_queries import CalendarQueries
from horae.store.grant_queries import GrantQueries
from horae.store.ledger_queries import LatestOutcome, LedgerQueries, RetentionBounds
from horae.store.run_queries import LedgerFilter, ReportableRun
from horae.store.schedule_queries import Advance, Filter, ScheduleQueries
from horae.store.statement_execution import BEGINNING, LAST, NEWEST, Statements, Write
from horae.store.workflow_queries import WorkflowQueries

__all__ = [
    "BEGINNING",
    "LAST",
    "NEWEST",
    "Advance",
    "Filter",
    "HasClaims",
    "LatestOutcome",
    "LeaseConnection",
    "LedgerFilter",
    "ReportableRun",
    "RetentionBounds",
    "Statements",
    "Store",
    "Transaction",
    "Write",
    "observed",
]

_FILLER = "-" * 32 * 1024
"""More than the free space of any page."""
_log = logging.getLogger("horae")


class Transaction(
    ScheduleQueries, LedgerQueries, BackfillQueries, CalendarQueries, WorkflowQueries, GrantQueries
):
    """One transaction: all of it is written, or nothing is."""


HasClaims = Callable[[Transaction, int], Awaitable[bool]]
"""Whether a node has claimed attempts that have no result yet, by its epoch."""
S = TypeVar("S", bound="Store")
Observe = Callable[
    [], AbstractContextManager[tuple[list[tuple[AttemptResult, Outcome]], list[Run | UnstartedRange]]]
]


def observed(
    begin: Callable[[S], AsyncIterator[Transaction]],
) -> Callable[[S], AbstractAsyncContextManager[Transaction]]:
    """Decorate the method that begins transactions: observers see each transaction, ``on_commit`` callbacks run after the commit, and
    the log says when the database goes away and when it answers again.
    """
    begun = asynccontextmanager(begin)

    @asynccontextmanager
    @wraps(begin)
    async def transaction(store: S) -> AsyncIterator[Transaction]:
        try:
            if store.observe is None:
                async with begun(store) as made:
                    yield made
            else:
                with store.observe() as gathered:
                    async with begun(store) as made:
                        made.recorded, made.unstarted = gathered
                        yield made
        except (StoreUnavailableError, ClockOffError) as error:
            store.tell_trouble(error)
            raise
        if store.is_away:
            store.tell_recovery()
        for tell in made.on_commit:
            tell()

    return transaction


class LoopStalls(Protocol):
    """Knows when the event loop was blocked."""

    def mark(self) -> int:
        """A mark to ask :meth:`since` with."""

    def since(self, mark: int) -> str:
        """How the loop was blocked since a mark; empty if it was not."""


class LeaseConnection(Protocol):
    """What renews the lease of a node in another event loop than that of the store."""

    async def renew(self, epoch: int) -> bool:
        """Renew the lease of a node; ``False`` if it has expired, so that other nodes may have taken its runs."""

    async def close(self) -> None:
        """Release the connection."""


class Store(ABC):
    """A database. It is opened once, and closed."""

    dialect: str
    """The kind of database: ``postgresql`` or ``sqlite``."""
    is_away: bool = False
    """Whether the database did not answer, or this machine's clock was off, when it was last used."""
    observe: Observe | None = None
    """A context around every transaction, for observers of how long each takes and of what it commits."""
    lease: float | None = None
    """How many seconds a node is alive without renewing its lease; ``None`` if it needs no lease."""
    loop_stalls: LoopStalls | None = None
    """Tells whether the event loop was blocked while an operation failed."""
    parallel_batches: int = 1
    """How many batches a node decides at the same time; with 1, transactions wait for each other."""
    _told_blocked: str = ""
    batch: int = 1000
    """How many schedules are decided in one transaction."""

    @abstractmethod
    async def open(self, wake: Callable[..., None], *, setup: bool = True) -> None:
        """Connect, and migrate the schema. ``wake`` is called when another node changed something.

        Without ``setup`` nothing is created or migrated: a database that has no Horae or one of another version is an error.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release all connections and locks."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that writes. It commits at the end; an exception rolls it back."""

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that only reads: it waits for no writer, and no writer waits for it."""
        return self.transaction()

    @abstractmethod
    async def register_node(self, node: Node) -> bool:
        """Register a node, or update it; ``False``, without a change, if another living node has its name."""

    @abstractmethod
    async def renew(self, epoch: int) -> bool:
        """Renew the lease of a node; ``False`` if it has expired, so that other nodes may have taken its runs."""

    def lease_connection(self) -> LeaseConnection | None:
        """A connection for renewing a lease in a thread; ``None`` if it is only renewed in the event loop of the store."""
        return None

    @abstractmethod
    async def nodes(self) -> list[Node]:
        """All registered nodes, and whether each is alive."""

    @abstractmethod
    async def change_mark(self) -> object:
        """A value that changes when another process changes what readers see. It is cheap enough to be read every second."""

    @abstractmethod
    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        """Remove nodes that are dead or shutting down, except those that have claims."""

    def tell_trouble(self, error: StoreUnavailableError | ClockOffError) -> None:
        """Log that the database cannot be used: once, and not on every retry. Connections lost in a blocked loop are made again."""
        if isinstance(error, StoreUnavailableError) and error.blocked:
            if error.blocked != self._told_blocked:
                self._told_blocked = error.blocked
                _log.warning("%s", error.for_operator)
        elif not self.is_away:
            self.is_away = True
            _log.error("%s", error.for_operator)

    def tell_recovery(self) -> None:
        """Log that the database can be used again."""
        self.is_away = False
        _log.info("the database answers again")

    def locks(self) -> Collection[int]:
        """The descriptors of the locks that show that the nodes of this process are alive; copies show it as well."""
        return ()

    @property
    def gone(self) -> bool:
        """Whether the database that was opened was deleted or replaced, so that nothing can be decided on it."""
        return False

    async def has_newer_schema(self) -> bool:
        """Whether a newer program has migrated the schema since this one opened it."""
        return False

    async def prove(self, epoch: int) -> None:
        """Prove that the database can be written: take space in the row of a node, and release it."""
        async with self.transaction() as transaction:
            await transaction.rows("widen_node", epoch=epoch, filler=_FILLER)
            await transaction.rows("narrow_node", epoch=epoch, filler=len(_FILLER))

    @abstractmethod
    async def time(self) -> int | None:
        """The database's own time, which all nodes share; ``None`` if it has none."""
