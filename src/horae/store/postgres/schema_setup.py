"""Horae's schema in a database that others use too: its version, and how it is created and migrated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from horae.errors import DatabaseNotSetUpError, DatabaseSetupError, DatabaseVersionError
from horae.store.postgres.dialect import prepared


async def set_session(connection: Any, schema: str, **settings: str) -> None:  # noqa: ANN401 - asyncpg has no types
    """Configure a new connection: it finds tables in one schema only."""
    settings["search_path"] = quoted(schema)
    await connection.execute(prepared("set_session")[0], list(settings), list(settings.values()))


async def version_of(connection: Any, schema: str) -> int:  # noqa: ANN401
    """How many migrations were applied to a schema; 0 if it does not exist, or has none of Horae's tables."""
    if not await connection.fetchval("SELECT to_regclass($1)", f"{quoted(schema)}.horae"):
        return 0
    return int(await connection.fetchval(prepared("version")[0]))


async def migrate(connection: Any, url: str, schema: str, steps: Sequence[str]) -> None:  # noqa: ANN401
    """Create the schema and apply the missing migrations, under a lock: all of them, or none."""
    async with _permitted(connection, schema), connection.transaction():
        await connection.execute(prepared("lock_migrations")[0], schema)
        version = await version_of(connection, schema)
        if not await _exists(connection, schema):
            await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
        for step in steps[version:]:
            await connection.execute(step)
        if version < len(steps):
            await connection.execute(prepared("set_version")[0], len(steps))
    if version > len(steps):
        raise DatabaseVersionError(_place(url, schema), version, len(steps))


async def check_version(connection: Any, url: str, schema: str, steps: Sequence[str]) -> None:  # noqa: ANN401
    """Raise unless all migrations were applied to the schema; change nothing."""
    async with _permitted(connection, schema):
        version = await version_of(connection, schema)
    if not version:
        raise DatabaseNotSetUpError(_place(url, schema))
    if version != len(steps):
        raise DatabaseVersionError(_place(url, schema), version, len(steps))


@asynccontextmanager
async def _permitted(connection: Any, schema: str) -> AsyncIterator[None]:  # noqa: ANN401
    """Say what to run if the role lacks a right."""
    try:
        yield
    except asyncpg.InsufficientPrivilegeError as error:
        role = await connection.fetchval("SELECT current_user")
        exists = await _exists(connection, schema)
        raise DatabaseSetupError(role, schema, str(error), schema_exists=exists) from None


def _place(url: str, schema: str) -> str:
    """The server and the database of a URL, without its user and password, and the schema."""
    return f"{url.partition('://')[2].partition('?')[0].rpartition('@')[2]}, schema {schema}"


async def _exists(connection: Any, schema: str) -> bool:  # noqa: ANN401
    return await connection.fetchval("SELECT to_regnamespace($1)", quoted(schema)) is not None


def quoted(name: str) -> str:
    """A name as an SQL identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'
