"""Inspect a database without changing it: whether it exists, its version, and how durable its commits are."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from horae.errors import DatabaseUrlError, MissingExtraError, StoreUnavailableError
from horae.model import Node
from horae.store.dialect import migrations, query

_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an inspection."""

    exists: bool = True
    version: int = 0
    """How many migrations were applied; 0 is a database without Horae's tables."""
    known: int
    """How many migrations this program knows."""
    durable: bool | None = None
    """Whether a commit survives a power cut; ``None`` if that is not known before a migration."""
    durability: str = ""
    writable: bool = True
    clock_off: int | None = None
    """Milliseconds that the database's clock is ahead of this machine's; ``None`` if it has no clock of its own."""
    nodes: tuple[Node, ...] = ()


async def inspect(database: str, schema: str, now: Callable[[], int]) -> Health:
    """Inspect a database; one that cannot be reached raises :class:`~horae.errors.StoreUnavailableError`."""
    if database.startswith(("postgresql://", "postgres://")):
        return await _inspect_postgres(database, schema, now)
    if database.startswith("sqlite:///") and len(database) > len("sqlite:///"):
        return await _inspect_sqlite(database.removeprefix("sqlite:///"))
    raise DatabaseUrlError(database)


async def _inspect_sqlite(path: str) -> Health:
    from horae.store.sqlite import SQLITE, version_of  # noqa: PLC0415 - a driver loads when it is asked for
    from horae.store.sqlite.leased_store import file_store  # noqa: PLC0415

    known = len(migrations(SQLITE))
    if not Path(path).exists():
        return Health(exists=False, known=known)
    try:
        version = version_of(path)
    except sqlite3.Error as error:
        reason = "is a folder, and a database is a file" if Path(path).is_dir() else str(error)
        raise StoreUnavailableError(f"{path}: {reason}") from None
    if version != known:  # opening it would migrate it
        return Health(version=version, known=known)
    store = file_store(path, lease=0)
    try:
        # As the engine's own connection has them: opening a file sets both.
        journal, synchronous = await store.work(
            lambda connection: (
                connection.execute("PRAGMA journal_mode").fetchone()[0],
                connection.execute("PRAGMA synchronous").fetchone()[0],
            )
        )
        nodes = tuple(await store.nodes())
    finally:
        await store.close()
    return Health(
        version=version,
        known=known,
        durable=journal in {"wal", "delete", "truncate", "persist"} and synchronous >= 2,
        durability=f"journal_mode {journal}, synchronous {_SYNCHRONOUS.get(synchronous, synchronous)}",
        nodes=nodes,
    )


async def _inspect_postgres(url: str, schema: str, now: Callable[[], int]) -> Health:
    try:
        import asyncpg  # noqa: PLC0415 - an optional part
    except ModuleNotFoundError:
        raise MissingExtraError("postgres", "asyncpg") from None
    from horae.store.postgres import node_of  # noqa: PLC0415
    from horae.store.postgres.connection_errors import connection_reason  # noqa: PLC0415
    from horae.store.postgres.dialect import POSTGRES  # noqa: PLC0415
    from horae.store.postgres.pooler_detection import check_sessions  # noqa: PLC0415
    from horae.store.postgres.schema_setup import set_session, version_of  # noqa: PLC0415

    try:
        await check_sessions(url)
        connection = await asyncpg.connect(url, timeout=10)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, ValueError) as error:
        raise StoreUnavailableError(connection_reason(error)) from None
    try:
        before = now()
        time = await connection.fetchval(query(POSTGRES, "time"))
        clock_off = int(time) - (before + now()) // 2  # assuming that the answer took as long as the question
        commit, fsync, pages, standby = await connection.fetchrow(query(POSTGRES, "durability"))
        known = len(migrations(POSTGRES))
        await set_session(connection, schema)
        version = await version_of(connection, schema)
        rows = await connection.fetch(query(POSTGRES, "nodes")) if version == known else []
    finally:
        await connection.close(timeout=5)
    return Health(
        version=version,
        known=known,
        durable=commit in {"on", "remote_apply", "remote_write", "local"} and fsync == pages == "on",
        durability=f"synchronous_commit {commit}, fsync {fsync}, full_page_writes {pages}",
        writable=not standby,
        clock_off=clock_off,
        nodes=tuple(node_of(row) for row in rows),
    )
