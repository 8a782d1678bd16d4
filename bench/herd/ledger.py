"""A second pair of eyes: what another connection, which cannot write, sees in the database."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

SUCCEEDED = "SELECT count(*) FROM run WHERE status = 'succeeded'"

Count = Callable[[], Awaitable[int]]


@asynccontextmanager
async def succeeded(url: str) -> AsyncIterator[Count]:
    """A way to count the runs that succeeded."""
    if url.startswith("sqlite:"):
        yield _in_sqlite(sqlite_path(url))
        return
    import asyncpg  # noqa: PLC0415 - who is on SQLite need not hold it in memory

    # Kept open, because a new connection costs the server a process.
    connection = await asyncpg.connect(
        url, server_settings={"default_transaction_read_only": "on", "search_path": "horae, public"}
    )
    try:
        yield lambda: connection.fetchval(SUCCEEDED)
    finally:
        await connection.close()


def _in_sqlite(path: Path) -> Count:
    def count() -> int:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute(SUCCEEDED).fetchone()[0])

    # In a thread: the event loop belongs to the contestant.
    return lambda: asyncio.to_thread(count)


def sqlite_path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))
