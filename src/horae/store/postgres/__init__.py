"""PostgreSQL: many nodes on one database. A node locks the schedules it decides, and skips those that another has locked."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any

import asyncpg
import msgspec

from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import Node, Schedule, ScheduleKey
from horae.store.dialect import migrations, number_parameters
from horae.store.port import HasClaims, LeaseConnection, Store, Transaction, Write, observed
from horae.store.postgres.connection_errors import LOST, connection_reason
from horae.store.postgres.dialect import POSTGRES, array_of, as_parameter, prepared, prepared_together
from horae.store.postgres.lease_connection import PostgresLeaseConnection
from horae.store.postgres.pooler_detection import check_sessions
from horae.store.postgres.schema_setup import check_version, migrate, set_session
from horae.store.row_mapping import Row, Table
from horae.store.tables import NODE
from horae.store.transaction_limit import MAX_TRANSACTIONS

MAX_CLOCK_OFFSET_MS = 1000
"""How far a node's clock may be off the database's; beyond it, the node does not act on what it reads."""

MAX_IDLE_SECONDS = 2.0
"""How long a transaction may be idle before the server rolls it back: a node that is stopped or cut off in the middle of a
decision holds locks, and other nodes wait for them."""

PLANNING = {
    "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "seq_page_cost": "0.1", "random_page_cost": "0.1",
}  # fmt: skip
"""Plans are made while tables are small, and cached: they must not scan tables when these are large. Every join looks up
keys, those of a batch at most. What is asked all the time is in memory: looking it up costs less than another plan for it."""


def node_of(row: Row) -> Node:
    """A node, with ``alive`` as the database says."""
    *columns, alive = row
    return msgspec.structs.replace(NODE.decode(columns), alive=alive)


class PostgresStore(Store):
    """A database that many nodes share. Lost connections are replaced when they are needed."""

    dialect = "postgresql"
    parallel_batches = 2  # the next batch is decided while the server writes one
    batch = 500  # its schedules are locked until it commits: other nodes wait or skip them
    lease: float
    schema_steps = migrations(POSTGRES)
    """The steps from an empty database to the present schema."""

    def __init__(self, url: str, *, schema: str = "horae", lease: float = 10.0) -> None:
        self.lease = lease
        self._schema = schema
        self._name = uuid.uuid4().hex  # in notifications
        self._idle_timeout = min(lease / 2, MAX_IDLE_SECONDS)
        self._answer_within = max(lease / 4, 0.5)
        self._unanswered = 0  # how often in a row the lease could not be renewed
        self._url = url
        self._pool: asyncpg.Pool | None = None
        self._listening: asyncio.Task[None] | None = None
        self._reconnect_listener = asyncio.Event()  # its connection was lost, or the store is closing
        self._closing = False

    async def open(self, wake: Callable[..., None], *, setup: bool = True) -> None:
        with self._as_unavailable():
            await check_sessions(self._url)
            self._pool = await self._new_pool()
            async with self._pool.acquire() as connection:
                prepare = migrate if setup else check_version
                await prepare(connection, self._url, self._schema, self.schema_steps)
        self._closing = False
        self._reconnect_listener = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(wake), name="horae:listen")

    async def _new_pool(self) -> asyncpg.Pool:
        return await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=MAX_TRANSACTIONS
            + 5,  # two batches, results, the lease and maintenance, beside operations
            timeout=10,
            command_timeout=60,
            init=self._set_session,
            reset=_leave_session,
        )

    async def _set_session(self, connection: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        await set_session(
            connection,
            self._schema,
            idle_in_transaction_session_timeout=str(int(self._idle_timeout * 1000)),
            # The same for a node that is cut off while the server sends it an answer.
            tcp_user_timeout=str(int(self.lease * 1000)),
            **PLANNING,
        )

    async def close(self) -> None:
        if self._listening is not None:
            self._closing = True
            self._reconnect_listener.set()
            await asyncio.wait([self._listening])
            self._listening = None
        if self._pool is not None:
            with contextlib.suppress(*LOST):
                await asyncio.wait_for(self._pool.close(), 10)
            self._pool = None

    async def _listen(self, wake: Callable[..., None]) -> None:
        """Listen for changes of other nodes; while the connection is lost, the engine's tick finds them."""
        while not self._closing:
            self._reconnect_listener.clear()
            try:
                connection = await asyncpg.connect(self._url, timeout=5)
            except LOST:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._reconnect_listener.wait(), 1)
                continue
            with contextlib.suppress(*LOST):
                try:
                    connection.add_termination_listener(self._lost)
                    await connection.add_listener(
                        self._schema, lambda *about: self._hear(str(about[-1]), wake)
                    )
                    wake()  # what changed before was not heard
                    await self._reconnect_listener.wait()
                finally:
                    connection.remove_termination_listener(self._lost)  # it is closed on purpose
                    await connection.close(timeout=1)

    def _hear(self, about: str, wake: Callable[..., None]) -> None:
        """Wake what a notification is about: one decider, unless this store has sent it, or all of them."""
        decider, _, sender = about.partition(":")
        if not decider:
            wake()
        elif sender != self._name:
            wake(decider)

    def _lost(self, _: object) -> None:
        """The listening connection has ended."""
        self._reconnect_listener.set()

    @observed
    async def transaction(self) -> AsyncIterator[Transaction]:
        with self._as_unavailable():
            async with self._connection(30) as connection, connection.transaction():
                yield PostgresTransaction(connection, self._name)

    @observed
    async def reading(self) -> AsyncIterator[Transaction]:
        """Read a snapshot: everything as it was at one moment."""
        with self._as_unavailable():
            async with (
                self._connection(30) as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield PostgresTransaction(connection, self._name)

    async def register_node(self, node: Node) -> bool:
        async with self.transaction() as transaction:
            await transaction.rows("lock_names")  # the next statement sees a node that registered first
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

    def lease_connection(self) -> LeaseConnection:
        return PostgresLeaseConnection(self._url, self._schema, self.lease)

    async def _reconnect(self) -> None:
        """Replace all connections: they did not answer for so long that the network may have dropped them silently."""
        old, self._pool = self._opened(), await self._new_pool()
        old.terminate()
        self._reconnect_listener.set()

    async def nodes(self) -> list[Node]:
        return [node_of(row) for row in await self._fetch("nodes")]

    async def change_mark(self) -> object:
        return tuple((await self._fetch("change_mark"))[0])

    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        for epoch in epochs:
            async with self.transaction() as transaction:
                # Wait for a transaction that claims as this node; the next statement sees what it claimed.
                await transaction.rows("lock_node", epoch=epoch)
                if not await has_claims(transaction, epoch):
                    await transaction.rows("delete_node", epoch=epoch)

    async def has_newer_schema(self) -> bool:
        return int((await self._fetch("version"))[0][0]) > len(self.schema_steps)

    async def time(self) -> int | None:
        return int((await self._fetch("time"))[0][0])

    async def _fetch(self, name: str, /, **values: object) -> list[Any]:
        """The rows of a small query, with a short timeout."""
        text, names = prepared(name)
        asked, soon = [values[each] for each in names], self._answer_within
        with self._as_unavailable():
            async with self._connection(soon) as connection:
                found: list[Any] = await connection.fetch(text, *asked, timeout=soon)
                return found

    @contextlib.asynccontextmanager
    async def _connection(self, timeout: float) -> AsyncIterator[Any]:
        """Borrow a connection. One whose transaction cannot be ended is closed, because the pool could not reset it."""
        pool = self._opened()
        connection = await pool.acquire(timeout=timeout)
        try:
            yield connection
        except LOST:
            with contextlib.suppress(asyncpg.InterfaceError):  # the pool may have taken it back: it was lost
                if not connection.is_closed() and connection.is_in_transaction():
                    connection.terminate()
            raise
        finally:
            await pool.release(connection)

    @contextlib.contextmanager
    def _as_unavailable(self) -> Iterator[None]:
        """Raise one error for everything that a driver raises when the database cannot be reached."""
        stalls = self.loop_stalls
        mark = 0 if stalls is None else stalls.mark()
        try:
            yield
        except asyncpg.DeadlockDetectedError as error:
            raise StoreUnavailableError(
                "two changes waited for each other, and this one was given up"
            ) from error
        except LOST as error:
            blocked = "" if stalls is None else stalls.since(mark)
            raise StoreUnavailableError(connection_reason(error), blocked) from error

    def _opened(self) -> asyncpg.Pool:
        if self._pool is None:
            raise StoreUnavailableError("the store is not open")
        return self._pool


async def _leave_session(_: object) -> None:
    """Leave a connection that is returned to the pool as it is: no statement of ours changes its session."""


def _check_clock(times: list[int], least: int, most: int | None = None) -> None:
    """Raise if the database's times are not within some times of a node's clock, give or take the offset that is allowed."""
    for time in times:
        if least - time > MAX_CLOCK_OFFSET_MS:
            raise ClockOffError(time - least)
        if most is not None and time - most > MAX_CLOCK_OFFSET_MS:
            raise ClockOffError(time - most)


class PostgresTransaction(Transaction):
    """A transaction of one connection. New rows are copied; parameters of many rows go as one array for each column."""

    def __init__(self, connection: Any, sender: str) -> None:  # noqa: ANN401 - asyncpg has no types
        self._connection = connection
        self._sender = sender  # the store that it belongs to

    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        text, names = prepared(name)
        found: Sequence[Row] = await self._connection.fetch(
            text, *(as_parameter(values[each]) for each in names)
        )
        return found

    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        text, names = number_parameters(text)
        found: Sequence[Row] = await self._connection.fetch(text, *(values[each] for each in names))
        return found

    async def write(self, name: str, rows: list[dict[str, Any]], /, **shared: Any) -> int:  # noqa: ANN401 - what a database takes
        if not rows:
            return 0
        text, names = prepared(name)
        given = (as_parameter(shared[each]) if each in shared else array_of(each, rows) for each in names)
        done = await self._connection.execute(text, *given)
        return int(done.rpartition(" ")[2])

    async def write_together(self, *writes: Write) -> list[int]:
        wanted = [each for each in writes if each.rows]
        if len(wanted) < 2:
            return await super().write_together(*writes)
        text, names = prepared_together(tuple(each.name for each in wanted))
        given = (
            as_parameter(each.shared[name]) if name in each.shared else array_of(name, each.rows)
            for each, mine in zip(wanted, names, strict=True)
            for name in mine
        )  # fmt: skip
        changed = iter(await self._connection.fetchrow(text, *given))
        return [next(changed) if each.rows else 0 for each in writes]

    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        if values:
            await self._connection.copy_records_to_table(
                table.name, columns=table.inserted, records=map(table.encode, values)
            )

    # Schedules are locked in one statement and read in the next: the first may have waited for another transaction, and
    # only the next one sees what that changed.

    async def lock(self, keys: Collection[ScheduleKey]) -> Collection[ScheduleKey]:
        return await self.column("lock", keys=sorted(keys))

    async def due(self, now: int, limit: int) -> list[Schedule]:
        locked = await self.rows("due", now=now, limit=limit)
        # A batch that takes long is late, and no harm: what was due then is due now. Only a clock that is ahead decides too much.
        _check_clock([time for _, time in locked[:1]], now)
        return await self._read([key for key, _ in locked])

    async def is_node(self, epoch: int, now: int) -> bool:
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        times = await self.column("is_node", epoch=epoch)
        _check_clock(times, now, now + int((loop.time() - asked_at) * 1000))
        return bool(times)

    async def unclaimed(self, actions: Sequence[str], limit: int) -> list[Schedule]:
        return await self._read(await self.column("unclaimed", actions=list(actions), limit=limit))

    async def _read(self, locked: Sequence[ScheduleKey]) -> list[Schedule]:
        """The schedules that were locked, in the same order."""
        if not locked:
            return []
        found = {each.key: each for each in await self.read_schedules(locked)}
        return [found[each] for each in locked if each in found]

    async def notify(self, decider: str = "") -> None:
        await self.rows("notify", about=f"{decider}:{self._sender}" if decider else "")
