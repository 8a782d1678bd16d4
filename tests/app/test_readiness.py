"""Ready means able to work, and whatever is wrong is said without the words of a database."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from horae import App, Config, Context, Overlap, Policies
from horae.errors import StoreUnavailableError
from tests.support.wait import wait_until

QUICK = Config(lease_ms=60_000, housekeeping_ms=100, tick_ms=50, terminate_ms=200, drain_ms=500)


@asynccontextmanager
async def working(database: str, begun: list[int]) -> AsyncIterator[App]:
    """An app with a schedule of every second, which has begun to run."""
    app = App(database, config=QUICK)

    @app.action("work")
    async def work(context: Context) -> None:
        begun.append(context.attempt)

    task = None
    try:
        await app.__aenter__()
        await app.schedules.create("s", "* * * * * *", "work", policies=Policies(overlap=Overlap.ALLOW_ALL))
        task = asyncio.create_task(app.serve())
        await wait_until(lambda: bool(begun))
        assert (await app.readiness()).status == "ready"
        yield app
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        with contextlib.suppress(StoreUnavailableError):
            await app.__aexit__(None, None, None)


async def says(app: App, words: str) -> bool:
    status = (await app.readiness()).status
    assert "horae.db" not in status
    return words in status


async def begins_nothing(begun: list[int]) -> bool:
    before = len(begun)
    await asyncio.sleep(1.5)  # more than a slot
    return len(begun) == before


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_a_node_whose_file_was_deleted_or_replaced_decides_nothing_and_says_so(
    tmp_path: Path, suffix: str, replaced: bool
):
    begun: list[int] = []
    path = tmp_path / f"horae.db{suffix}"
    async with working(f"sqlite:///{tmp_path / 'horae.db'}", begun) as app:
        (tmp_path / "other").write_bytes(b"")
        if replaced:
            (tmp_path / "other").replace(path)
        else:
            path.unlink()
        await wait_until(lambda: says(app, "deleted or replaced"))
        assert await begins_nothing(begun)
        await wait_until(lambda: not app.engine.holds_lease)
        assert not (await app.readiness()).store


async def test_a_full_disk_is_said(tmp_path: Path):
    async with App(f"sqlite:///{tmp_path / 'horae.db'}", config=QUICK) as app:  # there is nothing to decide
        assert (await app.readiness()).status == "ready"
        await app._store.work(lambda connection: connection.execute("VACUUM"))  # type: ignore[attr-defined]
        await app._store.work(  # type: ignore[attr-defined]
            lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall()
        )
        await wait_until(lambda: says(app, "cannot be written"))
        await app._store.work(  # type: ignore[attr-defined]
            lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall()
        )
        await wait_until(lambda: says(app, "ready"))
        (node,) = await app.nodes()
        assert node.tzdata == app.engine._membership._tzdata  # nothing is left of what was tried


async def test_a_malformed_file_is_said(tmp_path: Path):
    path = tmp_path / "horae.db"
    async with App(f"sqlite:///{path}", config=QUICK) as app:
        assert (await app.readiness()).status == "ready"
        # Through a connection, since this process holds locks that end when it closes the file itself.
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA writable_schema = ON")
            other.execute("UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'due'")
            other.commit()
        await wait_until(lambda: says(app, "cannot be written"))


def newer_file(path: str) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as connection:
        connection.execute("UPDATE horae SET version = version + 1")
        connection.commit()


async def newer_schema(database: str) -> None:
    if database.startswith("sqlite"):
        # In a thread: while it waits for the lock, the node must be able to end its transaction.
        await asyncio.to_thread(newer_file, database.removeprefix("sqlite:///"))
        return
    other = await asyncpg.connect(database)
    await other.execute("UPDATE horae SET version = version + 1")
    await other.close()


async def test_a_node_that_is_older_than_the_schema_decides_and_claims_nothing(database: str):
    begun: list[int] = []
    async with working(database, begun) as app:
        await newer_schema(database)
        await wait_until(lambda: says(app, "newer schema"))
        assert await begins_nothing(begun)
        readiness = await app.readiness()
        assert (readiness.lease, readiness.generating) == (True, False)
