"""SQLite: a file that several processes may open, or memory. One transaction writes at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from horae.errors import DatabaseNotSetUpError, DatabaseVersionError, StoreUnavailableError
from horae.model import Node, ScheduleKey
from horae.store.dialect import Dialect, mark_parameters, migrations, query
from horae.store.port import HasClaims, Store, Transaction, observed
from horae.store.row_mapping import Row, Table, to_json
from horae.store.sqlite.node_lock import HAS_FLOCK, NodeLock, is_held
from horae.store.tables import NODE

SQLITE = Dialect(
    "sqlite",
    {
        "among": "IN (SELECT value FROM json_each(:{0}))",
        "elements": "json_each(:{0})",
        "bytes": "length(CAST({0} AS BLOB))",
        "position": "instr",
        "json": "CASE WHEN json_valid({0}) THEN {0} END",
        "has": "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid({0}) THEN {0} END) WHERE value = :{1})",
        "index": "INDEXED BY {0}",
        "share_lock": "",  # there is one writer at a time
        "update_lock": "",
        "skip_locked": "",
        "also_new": "",
        "elements_as": "json_each(:{0}) AS {0}",
        "from_new": "",  # a statement for each row is faster than one for all
        "values": "VALUES (",  # half as fast again as a SELECT of one row
        "end_values": ")",
        "delete_each": "DELETE FROM {0} WHERE {1} IN",
        "deleted": "",
        "new_value": ":{0}",
        "number_column": ", number INTEGER NOT NULL DEFAULT 0",
        "number_sequence": "",
        "identity": "INTEGER",
        "clustered": "WITHOUT ROWID",
        "updated_often": "WITHOUT ROWID",
        "lease_column": ",\n    deadline_ms BIGINT",  # none for a node that holds the lock of a file
        "time_ms": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        "json_function": "",
        "publish_function": "",
    },
)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Worker = Callable[[Work[Any]], Awaitable[Any]]

WAL_ATTEMPTS = 100
"""How often to try to switch a new file to write-ahead logging, each time after waiting for another writer."""

MAX_READERS = 4
"""How many transactions read at the same time."""

SCANS = {
    "count_owned_schedules", "count_schedules", "find_owned_schedules", "find_schedules", "owned_schedule_sizes",
    "owned_schedules_with_spec_text", "schedule_sizes", "schedules_with_spec_text", "search_owned_ranges",
    "search_owned_runs", "search_ranges", "search_ranges_of_schedule", "search_runs", "search_runs_of_schedule",
}  # fmt: skip
"""Statements that may scan a table, or a large part of it: they run in a thread, so that the event loop does not wait."""


class SqliteStore(Store):
    """A database in a file, or in memory.

    Opening, beginning and committing may wait for the disk or for another process's lock, and run in a thread of their own. The
    statements in between wait for nothing, and run in the event loop: with a thread, each row would cost a third more. ``inline``
    uses no thread at all, so that a simulation is deterministic.
    """

    dialect = "sqlite"
    schema_steps = migrations(SQLITE)
    """The steps from an empty database to the present schema."""

    def __init__(
        self,
        path: str,
        *,
        inline: bool = False,
        patience: float = 30,
        grace: float = 0,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._path = path
        self._patience = patience
        self._grace = grace  # how long a node is alive after its lock file was removed
        self._monotonic = monotonic
        self._missing: dict[int, float] = {}  # when lock files were found missing, by epoch
        self._files: dict[Path, os.stat_result] = {}  # as they were when the database was opened
        self._connection: sqlite3.Connection | None = None
        self._inline = inline
        self._thread: ThreadPoolExecutor | None = None
        self._readers: list[sqlite3.Connection] = []  # connections that are free
        self._lock = asyncio.Lock()
        self._reading = asyncio.Semaphore(MAX_READERS)
        self._begun = False  # whether a transaction is under way
        self._node_locks: dict[int, NodeLock | None] = {}  # of the nodes of this process, by epoch

    async def open(self, wake: Callable[..., None], *, setup: bool = True) -> None:  # noqa: ARG002 - a file notifies no process
        self._lock, self._reading = asyncio.Lock(), asyncio.Semaphore(MAX_READERS)
        if not self._inline:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="horae-sqlite")
        if not setup and self._path != ":memory:":
            with _as_unavailable(self._path):
                _check_version(self._path, len(self.schema_steps))
        await self.work(lambda _: None)

    async def close(self) -> None:
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):  # it was closed before
                # In the thread, which may still be opening a connection for a caller that gave up.
                await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
            self._thread.shutdown()
        self._disconnect()
        for lock in self._node_locks.values():
            if lock is not None:
                lock.release()
        self._node_locks.clear()

    def _disconnect(self) -> None:
        while self._readers:
            self._readers.pop().close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def work(self, work: Work[T]) -> T:
        """Use the connection: directly within a transaction, otherwise in the store's thread."""
        with _as_unavailable(self._path):
            if self._thread is None or self._begun:
                return work(self._connected())
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, lambda: work(self._connected()))

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            _create_private(self._path)
            connection = sqlite3.connect(
                self._path, timeout=self._patience, isolation_level=None, check_same_thread=False,
                cached_statements=256,
            )  # fmt: skip
            try:
                _write_ahead(connection)
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                # Many schedules that are due at once use the same pages: cache them, and checkpoint less often.
                connection.execute("PRAGMA cache_size = -65536")
                connection.execute("PRAGMA wal_autocheckpoint = 16384")
                _migrate(connection, self._path, self.schema_steps)
            except BaseException:
                connection.close()
                raise
            self._files = {each: each.stat() for each in map(Path, self._names()) if each.exists()}
            self._connection = connection
        return self._connection

    def _names(self) -> list[str]:
        """The files of the database: itself, its log, and the index that its processes share."""
        return [] if self._path == ":memory:" else [self._path + each for each in ("", "-wal", "-shm")]

    @property
    def gone(self) -> bool:
        """Whether a file was removed or replaced: what is written into the open one is lost."""
        try:
            return not all(os.path.samestat(each.stat(), opened) for each, opened in self._files.items())
        except OSError:
            return True

    def _check_files(self) -> None:
        if self.gone:
            raise StoreUnavailableError("its file was deleted or replaced; restart this process")

    @observed
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._lock:
            try:
                await self.work(lambda connection: connection.execute("BEGIN IMMEDIATE"))
                self._check_files()
                self._begun = True
                yield SqliteTransaction(self.work)
                self._begun = False
                await self.work(lambda connection: connection.execute("COMMIT"))
            except BaseException:
                self._begun = False
                with contextlib.suppress(
                    StoreUnavailableError
                ):  # it never began, or the database rolled it back
                    await self.work(lambda connection: connection.execute("ROLLBACK"))
                raise

    @observed
    async def reading(self) -> AsyncIterator[Transaction]:
        """Read a snapshot on a separate connection: in WAL no reader waits for a writer, nor a writer for a reader."""
        if self._thread is None:  # there is one connection, and a simulation has one order of events
            async with self.transaction() as transaction:
                yield transaction
            return
        async with self._reading:
            self._check_files()
            # Opened in the thread, where it may wait, and used in the event loop, which is twice as fast.
            while not self._readers:
                await self.work(lambda _: self._readers.append(self._reader()))
            connection = self._readers.pop()

            async def work(work: Work[T]) -> T:
                with _as_unavailable(self._path):
                    return work(connection)

            async def scan(work: Work[T]) -> T:
                with _as_unavailable(self._path):
                    return await _in_thread(connection, work)

            try:
                await work(lambda connection: connection.execute("BEGIN"))
                yield SqliteTransaction(work, scan)
            finally:
                if connection.in_transaction:
                    connection.rollback()
                if self._connection is None:  # the store was closed meanwhile
                    connection.close()
                else:
                    self._readers.append(connection)

    def _reader(self) -> sqlite3.Connection:
        reader = sqlite3.connect(
            self._path, timeout=self._patience, isolation_level=None, check_same_thread=False,
            cached_statements=256,
        )  # fmt: skip
        reader.execute("PRAGMA query_only = ON")
        return reader

    async def register_node(self, node: Node) -> bool:
        """Lock a file for the node: the operating system releases the lock when the process ends."""
        async with self.transaction() as transaction:
            for other in [NODE.decode(columns) for *columns, _ in await transaction.rows("nodes")]:
                if other.name == node.name and other.epoch != node.epoch and self._is_locked(other.epoch):
                    return False
            if node.epoch not in self._node_locks:
                self._node_locks[node.epoch] = self._take_lock(node.epoch)
            await transaction.rows("insert_node", **NODE.parameters(node), lease_ms=None)
        return True

    def _take_lock(self, epoch: int) -> NodeLock | None:
        if self._path == ":memory:" or not HAS_FLOCK:
            return None
        try:
            return NodeLock(self._lock_file(epoch))
        except BlockingIOError:
            reason = "a process that works on a database which was deleted holds the lock of this node"
            raise StoreUnavailableError(reason) from None

    def locks(self) -> list[int]:
        return [lock.descriptor for lock in self._node_locks.values() if lock is not None]

    async def renew(self, epoch: int) -> bool:
        """Check the node's lock: it needs no renewal, but is void once its file or the database was deleted."""
        if epoch not in self._node_locks or self.gone:
            return False
        lock = self._node_locks[epoch]
        if lock is not None and not lock.holds:
            lock.release()
            del self._node_locks[epoch]
            return False
        return True

    async def nodes(self) -> list[Node]:
        async with self._lock:
            rows = await self.work(lambda c: c.execute(query(SQLITE, "nodes")).fetchall())
        found = [NODE.decode(columns) for *columns, _ in rows]
        return [msgspec.structs.replace(each, alive=self._is_alive(each.epoch)) for each in found]

    async def change_mark(self) -> object:
        async with self._lock:
            return await self.work(lambda c: c.execute(query(SQLITE, "change_mark")).fetchall())

    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        async with self.transaction() as transaction:
            gone = [epoch for epoch in epochs if not await has_claims(transaction, epoch)]
            await transaction.write("delete_node", [{"epoch": epoch} for epoch in gone])
        for epoch in gone:
            if self._path != ":memory:":
                Path(self._lock_file(epoch)).unlink(missing_ok=True)

    def _is_locked(self, epoch: int) -> bool | None:
        if epoch in self._node_locks:
            return True
        return HAS_FLOCK and is_held(self._lock_file(epoch))

    def _is_alive(self, epoch: int) -> bool:
        locked = self._is_locked(epoch)
        if locked is not None:
            self._missing.pop(epoch, None)
            return locked
        # The lock file was deleted. A living node notices when it renews its lease, and stops its runs.
        now = self._monotonic()
        return now - self._missing.setdefault(epoch, now) < self._grace

    async def has_newer_schema(self) -> bool:
        async with self._lock:
            rows = await self.work(lambda c: c.execute(query(SQLITE, "version")).fetchall())
        return bool(rows[0][0] > len(self.schema_steps))

    async def prove(self, epoch: int) -> None:
        await super().prove(epoch)
        if self._thread is not None:
            await self.work(lambda _: self._read_from_file())

    def _read_from_file(self) -> None:
        """Read with a new connection, which has nothing cached."""
        with contextlib.closing(self._reader()) as reader:
            for name in ("version", "nodes", "wake_at"):
                reader.execute(query(SQLITE, name)).fetchall()

    async def time(self) -> int | None:
        return None

    def _lock_file(self, epoch: int) -> str:
        return f"{self._path}.node-{epoch}"


async def _in_thread(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Use a connection in a thread; if the caller is cancelled, interrupt the statement."""
    done = asyncio.get_running_loop().run_in_executor(None, work, connection)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        connection.interrupt()
        await asyncio.wait([done])
        raise


def _create_private(path: str) -> None:
    """Create the file of a new database with mode 600; SQLite gives the files beside it the same mode.

    An existing file is not opened: closing it would release the locks that this process may have on it.
    """
    if path != ":memory:":
        with contextlib.suppress(OSError):  # it exists, or SQLite will say why it cannot be created
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


@contextlib.contextmanager
def _as_unavailable(path: str) -> Iterator[None]:
    """Raise one error for a locked or full or missing database, and for a file that is no database."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
            raise StoreUnavailableError(f"{path}: {_reason(path, error)}") from error
        raise


def _reason(path: str, error: sqlite3.DatabaseError) -> str:
    if Path(path).is_dir():
        return "is a folder, and a database is a file"
    return str(error) if Path(path).parent.is_dir() else "its folder does not exist"


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn write-ahead logging on. While another connection writes, SQLite refuses at once, so wait for its lock first."""
    for _ in range(WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _migrate(connection: sqlite3.Connection, path: str, steps: Sequence[str]) -> None:
    """Take the migrations that are missing, under the write lock: all of them, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        for step in steps[version:]:
            for statement in step.split(";\n"):
                connection.execute(statement)
        if version < len(steps):
            connection.execute(query(SQLITE, "set_version"), {"version": len(steps)})
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    if version > len(steps):
        raise DatabaseVersionError(path, version, len(steps))


def version_of(path: str) -> int:
    """How many migrations a file has taken; 0 if it does not exist, or has none of Horae's tables. Nothing is changed."""
    if not Path(path).exists():
        return 0
    # Made absolute, because two slashes at the beginning would be taken for a host.
    address = f"file:{quote(str(Path(path).resolve()))}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        return _version(connection)


def _version(connection: sqlite3.Connection) -> int:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'horae'").fetchone():
        return 0
    return int(connection.execute(query(SQLITE, "version")).fetchone()[0])


def _check_version(path: str, known: int) -> None:
    """Raise unless a file has taken all migrations; change nothing."""
    version = version_of(path)
    if not version:
        raise DatabaseNotSetUpError(path)
    if version != known:
        raise DatabaseVersionError(path, version, known)


@cache
def _insertion(table: Table[Any]) -> str:
    marks = ", ".join("?" for _ in table.inserted)
    return f"INSERT INTO {table.name} ({', '.join(table.inserted)}) VALUES ({marks})"  # noqa: S608 - names of our own


@cache
def _marked(name: str) -> tuple[str, tuple[str, ...]]:
    """The text of a statement that takes a sequence of parameters, and their names; a mapping for each row would take longer."""
    return mark_parameters(query(SQLITE, name))


class SqliteTransaction(Transaction):
    """A transaction of one connection. ``work`` uses it; ``scan`` does too, for statements that may scan a table."""

    def __init__(self, work: Worker, scan: Worker | None = None) -> None:
        self._work = work
        self._scan = scan or work

    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        prepared = {key: to_json(each) if isinstance(each, list) else each for key, each in values.items()}
        text = query(SQLITE, name)
        work = self._scan if name in SCANS else self._work
        found: Sequence[Row] = await work(lambda connection: connection.execute(text, prepared).fetchall())
        return found

    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        found: Sequence[Row] = await self._work(
            lambda connection: connection.execute(text, values).fetchall()
        )
        return found

    async def write(self, name: str, rows: list[dict[str, Any]], /, **shared: Any) -> int:  # noqa: ANN401 - what a database takes
        if not rows:
            return 0
        text, names = _marked(name)
        given: Iterable[Sequence[Any]]
        if shared or len(names) == 1:
            columns = [
                repeat(shared[each], len(rows)) if each in shared else map(itemgetter(each), rows) for each in names
            ]  # fmt: skip
            given = zip(*columns, strict=True)
        else:
            given = map(itemgetter(*names), rows)
        return int(await self._work(lambda connection: connection.executemany(text, given).rowcount))

    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        text = _insertion(table)
        await self._work(lambda connection: connection.executemany(text, map(table.encode, values)))

    async def lock(self, keys: Collection[ScheduleKey]) -> Collection[ScheduleKey]:
        return keys  # one transaction writes at a time

    async def notify(self, decider: str = "") -> None:
        """Nothing to do: other processes read the file at every tick."""
