"""Whether a connection has a session of its own, which prepared statements, settings and LISTEN need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from horae.errors import ConnectionPoolerError

_SECONDS = 10


async def check_sessions(url: str) -> None:
    """Raise if clients share sessions, as with PgBouncer in transaction mode.

    A pooler reports an invented process id to its clients, which reveals it. Whether it shares sessions is then
    seen from two connections: while one is idle, another may get its session, and while that is in use, the first gets another.
    """
    async with _connection(url) as one:
        async with one.transaction():
            before = await _session(one)
        if before == one.get_server_pid():
            return
        async with _connection(url) as other, other.transaction():
            shared = await _session(other) == before
            if not shared:
                async with one.transaction():
                    shared = await _session(one) != before
    if shared:
        raise ConnectionPoolerError


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[Any]:
    # Without named statements, which sessions that are shared do not keep.
    connection = await asyncpg.connect(
        url, timeout=_SECONDS, command_timeout=_SECONDS, statement_cache_size=0
    )
    try:
        yield connection
    finally:
        await connection.close(timeout=_SECONDS)


async def _session(connection: Any) -> int:  # noqa: ANN401 - asyncpg has no types
    return int(await connection.fetchval("SELECT pg_backend_pid()"))
