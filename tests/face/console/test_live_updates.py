"""The feed of a node: one rendering for all who look, none while nothing changes, and none after the last has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from horae.app import App
from horae.errors import ScheduleNotFoundError
from horae.face.console import live_updates as module
from horae.face.console.live_updates import GONE, Feed, event_of
from tests.support.wait import wait_until


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    monkeypatch.setattr(module, "GATHERED", 0.01)
    monkeypatch.setattr(module, "PROBED", 0.05)
    app = App(f"sqlite:///{tmp_path}/horae.db")
    app.action("ping")(lambda: None)
    await app.open()
    yield app
    await app.close()


class Viewers:
    """Pages that look at one view, and how often it was rendered."""

    def __init__(self, app: App) -> None:
        self.app, self.feed = app, Feed(app)
        self.rendered = 0
        self.got: list[list[bytes]] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def render(self) -> str:
        self.rendered += 1
        return " ".join(each.id for each in await self.app.schedules.list()) or "none"

    def look(self, seen: str | None = None) -> None:
        stream: Any = self.feed.stream(("view",), self.render, seen or self.feed.mark, None)
        events: list[bytes] = []
        self.got.append(events)

        async def read() -> None:
            async for event in stream.parts:
                events.append(event)  # noqa: PERF401 - as they come

        self.tasks.append(asyncio.create_task(read()))

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_a_change_is_rendered_once_for_all_and_idle_pages_cost_nothing(app: App):
    viewers = Viewers(app)
    for _ in range(100):
        viewers.look()
    await wait_until(lambda: all(len(each) == 1 for each in viewers.got))
    await asyncio.sleep(0.3)  # several questions whether something changed, and no answer that it did
    assert viewers.rendered == 0
    await app.schedules.create("one", "0 9 * * *", "ping")
    await wait_until(lambda: all(each[-1] == event_of("one") for each in viewers.got))
    assert viewers.rendered <= 2
    assert viewers.feed.views == 1
    viewers.look("an older page")
    await wait_until(lambda: viewers.got[-1][-1:] == [event_of("one")])
    await viewers.leave()
    await wait_until(lambda: viewers.feed.views == 0)
    before = viewers.rendered
    await app.schedules.create("two", "0 9 * * *", "ping")
    await asyncio.sleep(0.2)
    assert viewers.rendered == before


async def test_a_change_between_the_request_and_its_stream_is_sent(app: App):
    viewers = Viewers(app)
    viewers.look()
    await wait_until(lambda: len(viewers.got[0]) == 1)
    late: Any = viewers.feed.stream(("another",), viewers.render, viewers.feed.mark, None)
    await app.schedules.create("one", "0 9 * * *", "ping")
    await wait_until(lambda: viewers.got[0][-1] == event_of("one"))  # all views are rendered
    events = aiter(late.parts)
    assert await anext(events) == b": horae\n\n"
    assert await asyncio.wait_for(anext(events), 5) == event_of("one")
    await events.aclose()
    await viewers.leave()


async def test_what_another_process_changes_is_noticed(app: App, tmp_path: Path):
    viewers = Viewers(app)
    viewers.look()
    other = App(f"sqlite:///{tmp_path}/horae.db")
    other.action("ping")(lambda: None)
    await other.open()
    await wait_until(lambda: len(viewers.got[0]) == 1)
    await asyncio.sleep(0.1)
    await other.schedules.create("theirs", "0 9 * * *", "ping")
    await wait_until(lambda: viewers.got[0][-1] == event_of("theirs"))
    await other.close()
    await viewers.leave()


async def test_on_postgresql_the_mark_tells_changes_and_not_leases(postgres: str):
    async with App(postgres) as app, App(postgres) as other:
        app.action("ping")(lambda: None)
        await app.schedules.create("one", "0 9 * * *", "ping")
        mark = await app.change_mark()
        await other.schedules.trigger("one")
        assert await app.change_mark() != mark


async def test_a_view_that_is_gone_says_so_and_streams_end_with_the_service(app: App):
    feed = Feed(app)

    async def render() -> str:
        raise ScheduleNotFoundError("gone")

    stream: Any = feed.stream(("view",), render, "behind", None)
    events = aiter(stream.parts)
    assert await anext(events) == b": horae\n\n"
    assert await anext(events) == GONE
    feed.close()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(events), 5)


def test_an_event_keeps_its_lines():
    assert (
        event_of("a\n\nb\r\nc\rd\u2028e")
        == "event: live\ndata: a\ndata: \ndata: b\ndata: c\ndata: d\u2028e\n\n".encode()
    )
