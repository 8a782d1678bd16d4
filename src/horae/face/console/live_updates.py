"""The feed of a node: it notices changes, renders each open view once, and sends it to all its viewers.

A change in this process wakes it at once (so does a notification of PostgreSQL); changes of other processes are found by one cheap
question to the database each second, asked only while a page is open. Without a change nothing is read and nothing is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from horae.app import App
from horae.engine.observer import Decision, Observer
from horae.errors import HoraeError
from horae.face.console.security import headers_of
from horae.face.http.responses import Response, Stream
from horae.model import AttemptResult, Outcome, Run, Schedule, UnstartedRange

GATHERED = 0.25
"""Seconds that changes are gathered before the views are rendered."""
PROBED = 1.0
"""Seconds between two questions whether other processes changed something."""
KEPT_ALIVE = 15.0
"""Seconds of silence after which a comment keeps the connection alive."""
MAX_TOPICS = 1000
"""How many different views are rendered; further pages are not updated."""
GONE = b"event: gone\ndata: gone\n\n"
Render = Callable[[], Awaitable[str]]
_log = logging.getLogger("horae")


class _Topic:
    """A view that is open in at least one browser."""

    def __init__(self, render: Render, is_restless: Callable[[], bool]) -> None:
        self.render, self.is_restless = render, is_restless
        self.sent = b""
        self.viewers: set[_Viewer] = set()


class _Viewer:
    """One open page: the latest event that it has not got yet."""

    def __init__(self) -> None:
        self.event: bytes | None = None
        self.woken = asyncio.Event()

    def tell(self, event: bytes | None) -> None:
        self.event = event
        self.woken.set()


class _Listener(Observer):
    """Notices what the engine of this node does."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:  # noqa: ARG002 - what is not of interest
        self._changed()

    def launched(self, run: Run, at: int) -> None:  # noqa: ARG002
        self._changed()

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:  # noqa: ARG002
        self._changed()

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:  # noqa: ARG002
        self._changed()


class Feed:
    """Tells open pages of changes."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._process = secrets.token_hex(4)
        self._number = 0
        self._changed = asyncio.Event()
        self._topics: dict[tuple[str, ...], _Topic] = {}
        self._pump: asyncio.Task[None] | None = None
        self._closed = False
        app.on_wake(self.changed)
        app.watch(_Listener(self.changed))

    @property
    def mark(self) -> str:
        """The state that a page has seen: it needs no update until this changes."""
        return f"{self._process}.{self._number}"

    @property
    def views(self) -> int:
        """How many different views are open."""
        return len(self._topics)

    def changed(self) -> None:
        """Note that pages may look different now."""
        self._number += 1
        self._changed.set()

    def close(self) -> None:
        """End all streams, because the service shuts down."""
        self._closed = True
        for topic in self._topics.values():
            for viewer in topic.viewers:
                viewer.tell(None)

    def stream(
        self,
        key: tuple[str, ...],
        render: Render,
        seen: str | None,
        until: int | None,
        is_restless: Callable[[], bool] = bool,
    ) -> Response[Any]:
        """The changes of a view, as server-sent events; the first comes at once if the page is behind.

        A restless view is rendered each second: it grows without a change that the feed notices.
        """
        headers = headers_of({"X-Accel-Buffering": "no"})
        if len(self._topics) >= MAX_TOPICS and key not in self._topics:
            return Response(b"", status_code=503, headers=headers, media_type="text/plain")
        topic = self._topics.get(key) or _Topic(render, is_restless)
        events = self._events(key, topic, seen, until)
        return Stream(events, "text/event-stream", headers)

    async def _events(
        self, key: tuple[str, ...], topic: _Topic, seen: str | None, until: int | None
    ) -> AsyncGenerator[bytes, None]:
        topic = self._topics.setdefault(key, topic)
        viewer = _Viewer()
        topic.viewers.add(viewer)
        try:
            if self._pump is None or self._pump.done():
                self._pump = asyncio.create_task(self._run(), name="horae:console")
            yield b": horae\n\n"
            if seen != self.mark:  # compared after joining, so no change goes unnoticed in between
                yield await _rendered(topic)
            while not self._closed and (until is None or self._app.now() < until * 1000):
                left = KEPT_ALIVE if until is None else min(until - self._app.now() / 1000, KEPT_ALIVE)
                event = await _next(viewer, max(left, 0.0))
                if event is None and self._closed:
                    break
                yield event or b": alive\n\n"
        finally:
            topic.viewers.discard(viewer)
            if not topic.viewers:
                self._topics.pop(key, None)

    async def _run(self) -> None:
        """Render what changed, while a page is open."""
        mark = await self._probe(None)
        while self._topics and not self._closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), PROBED)
            if not self._changed.is_set():
                found = await self._probe(mark)
                if found == mark:
                    for topic in [each for each in self._topics.values() if each.is_restless()]:
                        await self._render(topic)
                    continue
                mark, self._number = found, self._number + 1
            await asyncio.sleep(GATHERED)
            self._changed.clear()
            mark = await self._probe(mark)
            for topic in list(self._topics.values()):
                await self._render(topic)

    async def _probe(self, mark: object) -> object:
        """The change mark of the database; the previous one if it is unavailable."""
        try:
            return await self._app.change_mark()
        except HoraeError:
            return mark

    async def _render(self, topic: _Topic) -> None:
        try:
            event = await _rendered(topic)
        except Exception:
            _log.exception("a view of the console could not be rendered")
            return
        if event != topic.sent:
            topic.sent = event
            for viewer in topic.viewers:
                viewer.tell(event)


async def _rendered(topic: _Topic) -> bytes:
    """A view as an event, or ``GONE`` if it was deleted or the database is unavailable."""
    try:
        return event_of(await topic.render())
    except HoraeError:
        return GONE


async def _next(viewer: _Viewer, seconds: float) -> bytes | None:
    """The next event of a viewer, or ``None`` after some seconds of silence."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(viewer.woken.wait(), seconds)
    viewer.woken.clear()
    event, viewer.event = viewer.event, None
    return event


def event_of(text: str) -> bytes:
    """A text as a server-sent event."""
    lines = "".join(f"data: {line}\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return f"event: live\n{lines}\n".encode()
