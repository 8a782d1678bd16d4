"""DBOS: workflows of the same shape in one process, all of them started at the instant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dbos import DBOS, DBOSConfig

from bench.herd.contestant import Contestant, background
from bench.herd.starts import until
from bench.workflows.shape import LAYERS, first, nothing


@DBOS.step(name="first")
async def _first() -> str:
    return await first()


@DBOS.step(name="nothing")
async def _nothing() -> str:
    return await nothing()


@DBOS.workflow(name="layers")
async def _layers() -> None:
    await _first()
    for layer in LAYERS[1:]:
        if len(layer) == 1:
            await _nothing()
        else:
            await asyncio.gather(*(_nothing() for _ in layer))


class DbosWorkflows(Contestant):
    def __init__(self, url: str, seconds: int = 0) -> None:
        super().__init__(url, seconds)
        self._count = self._due = self._ended = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        url = self.url.replace("postgresql://", "postgresql+psycopg://")
        DBOS(config=DBOSConfig(name="bench", system_database_url=url, log_level="ERROR"))
        DBOS.launch()
        try:
            yield
        finally:
            DBOS.destroy()

    async def register(self, count: int, due: int) -> None:
        self._count, self._due = count, due

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background(self._start()):
            yield

    async def _start(self) -> None:
        await until(self._due)
        handles = [await DBOS.start_workflow_async(_layers) for _ in range(self._count)]
        for each in handles:
            await each.get_result()
            self._ended += 1

    async def ended(self) -> int:
        return self._ended
