"""Who may read the files of a database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from horae.app import App
from horae.errors import StoreUnavailableError
from horae.store.sqlite import SqliteStore


@pytest.fixture
def open_umask() -> Iterator[None]:
    """As permissive as a system can be."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}


@pytest.mark.usefixtures("open_umask")
async def test_only_the_owner_can_read_what_sqlite_keeps(tmp_path: Path):
    async with App(f"sqlite:///{tmp_path}/horae.db") as app:
        await app.engine.step(app.now())
        found = modes(tmp_path)
        assert {"horae.db", "horae.db-wal", "horae.db-shm"} < set(found)
        assert len(found) > 3  # the lock of the node
        assert set(found.values()) == {"0o600"}


async def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "horae.db"
    path.touch()
    path.chmod(0o640)
    async with App(f"sqlite:///{path}"):
        assert modes(tmp_path)["horae.db"] == "0o640"


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    opened = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.exists()]
    return [each for each in opened if each.startswith(str(folder))]


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_is_being_opened_for_a_caller_who_gives_up_is_closed(
    tmp_path: Path, turns: int
):
    store = SqliteStore(str(tmp_path / "horae.db"))
    await store.open(lambda: None)

    async def read() -> None:
        async with store.reading():
            await asyncio.Event().wait()

    reading = asyncio.create_task(read())
    for _ in range(turns):
        await asyncio.sleep(0)
    reading.cancel()
    await store.close()
    await asyncio.wait([reading])
    assert open_files(tmp_path) == []


async def test_a_connection_that_is_in_use_when_the_store_is_closed_is_closed_after_it(tmp_path: Path):
    store = SqliteStore(str(tmp_path / "horae.db"))
    await store.open(lambda: None)
    async with store.reading():
        await store.close()
    assert open_files(tmp_path) == []


async def test_a_folder_that_is_missing_is_a_store_that_cannot_be_reached(tmp_path: Path):
    with pytest.raises(StoreUnavailableError) as raised:
        async with App(f"sqlite:///{tmp_path}/missing/horae.db"):
            pass
    assert "missing" in raised.value.reason
