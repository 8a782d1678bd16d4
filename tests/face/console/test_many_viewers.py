"""A thousand open pages on one node: real connections, one feed, and nothing is read while nothing happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from horae.app import App
from horae.config import Config
from horae.face.console import live_updates
from horae.store.sqlite import SqliteStore
from tests.support.service import served
from tests.support.wait import wait_until

VIEWERS = 1000


@asynccontextmanager
async def viewed(app: App) -> AsyncIterator[tuple[int, Any]]:
    """The console of an app that allows for many viewers; its port and its feed."""
    async with served(app, Config(requests_per_second=10 * VIEWERS)) as (port, service):
        async with httpx.AsyncClient() as first:
            await first.get(f"http://127.0.0.1:{port}/console")
        assert service.console is not None
        yield port, service.console.feed


class Page:
    """A connection as a browser's: it asks for the events of the list of schedules, and keeps what comes."""

    def __init__(self) -> None:
        self.got = b""

    async def look(self, port: int, seen: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = f"GET /console/schedules?seen={seen} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
        writer.write(request.encode())
        try:
            while part := await reader.read(65536):
                self.got += part
        finally:
            writer.close()


async def test_a_thousand_pages_are_one_view_and_read_nothing_while_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: Counter[str] = Counter()
    reading, mark = SqliteStore.reading, SqliteStore.change_mark

    def counted(self: SqliteStore) -> Any:
        asked["reads"] += 1
        return reading(self)

    async def counted_mark(self: SqliteStore) -> object:
        asked["marks"] += 1
        return await mark(self)

    monkeypatch.setattr(SqliteStore, "reading", counted)
    monkeypatch.setattr(SqliteStore, "change_mark", counted_mark)
    monkeypatch.setattr(live_updates, "PROBED", 0.2)
    async with App(f"sqlite:///{tmp_path}/horae.db") as app:
        app.action("ping")(lambda: None)
        async with viewed(app) as (port, node_feed):
            pages = [Page() for _ in range(VIEWERS)]
            looking = [asyncio.create_task(each.look(port, node_feed.mark)) for each in pages]
            await wait_until(lambda: all(b": horae" in each.got for each in pages), seconds=60)
            assert node_feed.views == 1
            asked.clear()
            await asyncio.sleep(1)  # five probes
            assert asked["reads"] == 0, "an idle page costs no query"
            assert 1 <= asked["marks"] <= 6, "one feed asks for all of them"
            await app.owned_by("local").schedules.create("seen-by-all", "0 9 * * *", "ping")
            await wait_until(lambda: all(b"seen-by-all" in each.got for each in pages), seconds=60)
            assert asked["reads"] <= 20, "a change is read and rendered once, not a thousand times"
            for each in looking:
                each.cancel()
            await asyncio.gather(*looking, return_exceptions=True)
