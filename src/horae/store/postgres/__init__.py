"""PostgreSQL: many nodes on one database. Rows are locked for a decision; waiting nodes pass them by."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any

import asyncpg
import msgspec

from horae.errors import ClockOffError, DatabaseVersionError, StoreUnavailableError
from horae.model import Node, Schedule
from horae.store.limited import MOST
from horae.store.mapping import Row, Table
from horae.store.port import HasClaims, Store, Transaction, observed
from horae.store.queries import Dialect, migrations, number_parameters, numbered, query
from horae.store.tables import NODE

POSTGRES = Dialect(
    "postgres",
    {
        "among": "= ANY (:{0}::{1}[])",
        "elements": "unnest(:{0}::{1}[]) AS elements (value)",
        "bytes": "octet_length({0})",
        "position": "strpos",
        "index": "",
        "share_lock": "FOR SHARE",
        "new_rows": "{new}",
        "from_new": "FROM {new}",
        # An array, and no join: of that the server would look through the whole table if it thinks it small.
        "delete_each": "DELETE FROM {0} WHERE {1} = ANY (ARRAY (SELECT old.{1} FROM {new} CROSS JOIN LATERAL",
        "deleted": "AS old))",
        "new_value": "new.{0}",
    },
)

MAX_OFF = 1000
"""Milliseconds that a node's clock may be off the database's, before it acts on nothing it read."""

HELD_UP = 2.0
"""Seconds that a transaction may stand still before the server undoes it: a node that is stopped or cut off in the middle
of a decision holds locks, and what others want to take over waits behind them."""

PLANNING = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""Plans are made while tables are small, and kept: they must not read tables through when they are not. All that is
joined is looked up by a key, a batch at most."""

_MIGRATION_LOCK = 0x686F726165  # "horae", so that other users of the database do not share it
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was ended just as it was given out
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InsufficientResourcesError,  # a full disk, no memory
    asyncpg.DeadlockDetectedError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, in the middle of a failover
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.SerializationError,
    asyncpg.QueryCanceledError,
    OSError,
    TimeoutError,
)


def prepared(name: str) -> tuple[str, tuple[str, ...]]:
    """The text of a query with numbered parameters, and their names in that order."""
    return numbered(POSTGRES, name, "$")


def node_of(row: Row) -> Node:
    """A node, of which the database says whether it is alive."""
    *columns, alive = row
    return msgspec.structs.replace(NODE.decode(columns), alive=alive)


class PostgresStore(Store):
    """A database that many nodes share. Lost connections are made anew when they are needed."""

    parallel_batches = 2  # while the server works at one batch, the next is decided
    batch = 500  # rows are locked meanwhile, and others wait for them or pass them by
    lease: float
    schema_steps = migrations("postgres")
    """The steps from an empty database to the present schema."""

    def __init__(self, url: str, *, lease: float = 10.0) -> None:
        self.lease = lease
        self._patience = min(lease / 2, HELD_UP)
        self._answer_within = max(lease / 4, 0.5)
        self._unanswered = 0  # how often in a row the lease could not be renewed
        self._url = url
        self._pool: asyncpg.Pool | None = None
        self._listening: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()  # the listening connection was lost, or the store is closing
        self._closing = False

    async def open(self, wake: Callable[[], None]) -> None:
        with _as_unavailable():
            self._pool = await self._new_pool()
            async with self._pool.acquire() as connection:
                await _migrate(connection, self._url, self.schema_steps)
        self._closing = False
        self._stirred.clear()
        self._listening = asyncio.create_task(self._listen(wake), name="horae:listen")

    async def _new_pool(self) -> asyncpg.Pool:
        return await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=MOST + 5,  # two looks, a record of ends, renewing and the housekeeping beside the guests
            timeout=10,
            command_timeout=60,
            server_settings={
                "idle_in_transaction_session_timeout": str(int(self._patience * 1000)),
                # The same for one that is cut off while the server sends it what it asked for.
                "tcp_user_timeout": str(int(self.lease * 1000)),
                **PLANNING,
            },
        )

    async def close(self) -> None:
        if self._listening is not None:
            self._closing = True
            self._stirred.set()
            await asyncio.wait([self._listening])
            self._listening = None
        if self._pool is not None:
            with contextlib.suppress(*_LOST):
                await asyncio.wait_for(self._pool.close(), 10)
            self._pool = None

    async def _listen(self, wake: Callable[[], None]) -> None:
        """Hear what other nodes change; while the connection is lost, the engine's tick is the net."""
        while not self._closing:
            self._stirred.clear()
            try:
                connection = await asyncpg.connect(self._url, timeout=5)
            except _LOST:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stirred.wait(), 1)
                continue
            with contextlib.suppress(*_LOST):
                try:
                    connection.add_termination_listener(self._lost)
                    await connection.add_listener("horae", lambda *_: wake())
                    await self._stirred.wait()
                finally:
                    connection.remove_termination_listener(self._lost)  # closing it ourselves is no loss
                    await connection.close(timeout=1)

    def _lost(self, _: object) -> None:
        """The listening connection has ended."""
        self._stirred.set()

    @observed
    async def transaction(self) -> AsyncIterator[Transaction]:
        with _as_unavailable():
            async with self._connection(30) as connection, connection.transaction():
                yield PostgresTransaction(connection)

    @observed
    async def reading(self) -> AsyncIterator[Transaction]:
        """A snapshot: everything is read as it was at one moment."""
        with _as_unavailable():
            async with (
                self._connection(30) as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield PostgresTransaction(connection)

    async def register_node(self, node: Node) -> bool:
        async with self.transaction() as transaction:
            await transaction.rows("lock_names")  # the next statement sees a node that came first
            if await transaction.rows("name_taken", name=node.name, epoch=node.epoch):
                return False
            await transaction.rows("insert_node", **NODE.parameters(node), lease=self.lease)
        return True

    async def renew(self, epoch: int) -> bool:
        try:
            found = await self._fetch("renew", epoch=epoch, lease=self.lease)
        except StoreUnavailableError:
            self._unanswered += 1
            if self._unanswered > 1:
                await self._reconnect()
            raise
        self._unanswered = 0
        return bool(found)

    async def _reconnect(self) -> None:
        """Give up all connections: nothing was heard on them for so long that they may be cut without a word of it."""
        given_up, self._pool = self._opened(), await self._new_pool()
        given_up.terminate()
        self._stirred.set()

    async def nodes(self) -> list[Node]:
        return [node_of(row) for row in await self._fetch("nodes")]

    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        for epoch in epochs:
            async with self.transaction() as transaction:
                # First wait for a claim that is being made; whether there is one is then another question.
                await transaction.rows("lock_node", epoch=epoch)
                if not await has_claims(transaction, epoch):
                    await transaction.rows("delete_node", epoch=epoch)

    async def has_newer_schema(self) -> bool:
        return int((await self._fetch("version"))[0][0]) > len(self.schema_steps)

    async def time(self) -> int | None:
        return int((await self._fetch("time"))[0][0])

    async def _fetch(self, name: str, /, **values: object) -> list[Any]:
        """What a small query answers, soon or never."""
        text, names = prepared(name)
        asked, soon = [values[each] for each in names], self._answer_within
        with _as_unavailable():
            async with self._connection(soon) as connection:
                found: list[Any] = await connection.fetch(text, *asked, timeout=soon)
                return found

    @contextlib.asynccontextmanager
    async def _connection(self, timeout: float) -> AsyncIterator[Any]:
        """Borrow a connection. One whose transaction cannot be ended is closed: the pool would try to reset it, and complain."""
        pool = self._opened()
        connection = await pool.acquire(timeout=timeout)
        try:
            yield connection
        except _LOST:
            if not connection.is_closed() and connection.is_in_transaction():
                connection.terminate()
            raise
        finally:
            await pool.release(connection)

    def _opened(self) -> asyncpg.Pool:
        if self._pool is None:
            raise StoreUnavailableError("the store is not open")
        return self._pool


@contextlib.contextmanager
def _as_unavailable() -> Iterator[None]:
    """Whatever a driver says of a lost connection means one thing to the engine."""
    try:
        yield
    except asyncpg.DeadlockDetectedError as error:
        raise StoreUnavailableError("two changes waited for each other, and this one was given up") from error
    except _LOST as error:
        raise StoreUnavailableError(str(error) or type(error).__name__) from error


async def _migrate(connection: Any, url: str, steps: Sequence[str]) -> None:  # noqa: ANN401 - asyncpg has no types
    """Take the migrations that are missing, under a lock: all of them, or none."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
        known = await connection.fetchval("SELECT to_regclass('horae')")
        version = await connection.fetchval(query(POSTGRES, "version")) if known else 0
        for step in steps[version:]:
            await connection.execute(step)
        if version < len(steps):
            await connection.execute(prepared("set_version")[0], len(steps))
    if version > len(steps):
        raise DatabaseVersionError(url.rpartition("@")[2], version, len(steps))


class PostgresTransaction(Transaction):
    """A transaction of one connection. New rows are copied; parameters of many rows go as one array for each column."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        self._connection = connection

    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        text, names = prepared(name)
        found: Sequence[Row] = await self._connection.fetch(text, *(values[each] for each in names))
        return found

    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        text, names = number_parameters(text, "$")
        found: Sequence[Row] = await self._connection.fetch(text, *(values[each] for each in names))
        return found

    async def write(self, name: str, rows: list[dict[str, Any]]) -> int:
        if not rows:
            return 0
        text, names = prepared(name)
        done = await self._connection.execute(text, *([row[each] for row in rows] for each in names))
        return int(done.rpartition(" ")[2])

    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        if values:
            await self._connection.copy_records_to_table(
                table.name, columns=table.inserted, records=map(table.encode, values)
            )

    # Schedules are locked in one statement and read in the next: the first may have waited for another transaction, and
    # only the next one sees what that changed.

    async def lock(self, schedule_ids: Collection[str]) -> None:
        await self.rows("lock", ids=sorted(schedule_ids))

    async def due(self, now: int, limit: int) -> list[Schedule]:
        locked = await self.rows("due", now=now, limit=limit)
        for _, time in locked[:1]:
            if abs(time - now) > MAX_OFF:
                raise ClockOffError(time - now)
        return await self._read([schedule_id for schedule_id, _ in locked])

    async def unclaimed(self, actions: Sequence[str], limit: int) -> list[Schedule]:
        return await self._read(await self._column("unclaimed", actions=list(actions), limit=limit))

    async def _read(self, locked: Sequence[str]) -> list[Schedule]:
        """The schedules that were locked, in the same order."""
        if not locked:
            return []
        found = {each.id: each for each in await self.read_schedules(locked)}
        return [found[each] for each in locked if each in found]

    async def notify(self) -> None:
        await self.rows("notify")
