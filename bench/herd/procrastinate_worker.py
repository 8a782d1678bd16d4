"""Procrastinate: jobs deferred to an instant in batches, and one worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from procrastinate import App, PsycopgConnector

from bench.herd.contestant import Contestant, background, batches
from bench.herd.starts import no_operation

CONCURRENCY = 100
CONNECTIONS = 10
POLL = 0.05
"""Seconds. Nothing notifies a worker of a job whose time has come; by default it looks every five."""


class ProcrastinateWorker(Contestant):
    _app: App

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        connector = PsycopgConnector(conninfo=self.url, min_size=CONNECTIONS, max_size=CONNECTIONS)
        self._app = App(connector=connector)
        self._task = self._app.task(name="noop")(no_operation)
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()
            yield

    async def register(self, count: int, due: int) -> None:
        deferrer = self._task.configure(schedule_at=datetime.fromtimestamp(due, UTC))
        for batch in batches(count):
            await deferrer.batch_defer_async(*({} for _ in batch))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        worker = self._app.run_worker_async(
            concurrency=CONCURRENCY, fetch_job_polling_interval=POLL, install_signal_handlers=False
        )
        async with background(worker):
            yield

    async def ended(self) -> int:
        row = await self._app.connector.execute_query_one_async(
            "SELECT count(*) AS ended FROM procrastinate_jobs WHERE status = 'succeeded'"
        )
        return int(row["ended"])
