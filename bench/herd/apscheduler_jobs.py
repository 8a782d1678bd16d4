"""APScheduler 3: its asyncio scheduler with its SQLAlchemy job store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy import Engine, create_engine, event

from bench.herd.contestant import Contestant
from bench.herd.starts import no_operation


class APSchedulerJobs(Contestant):
    records_ends = False  # its job store knows when a job is next due, and nothing of runs

    _scheduler: AsyncIOScheduler

    @abstractmethod
    def engine(self) -> Engine:
        """How it reaches the database."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self._scheduler = AsyncIOScheduler(
            jobstores={"default": SQLAlchemyJobStore(engine=self.engine())}, timezone=UTC
        )
        # Paused until all are there, or each new job would make it look for due ones.
        self._scheduler.start(paused=True)
        yield
        self._scheduler.shutdown()

    async def register(self, count: int, due: int) -> None:
        at = datetime.fromtimestamp(due, UTC)
        trigger = CronTrigger(hour=at.hour, minute=at.minute, second=at.second, timezone=UTC)
        for number in range(count):
            # However late a job is, it must start; each of them runs once, so one instance is enough.
            self._scheduler.add_job(
                no_operation,
                trigger,
                id=f"s{number}",
                misfire_grace_time=None,
                coalesce=True,
                max_instances=1,
            )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._scheduler.resume()
        yield


class OnSqlite(APSchedulerJobs):
    """With the journal that the others use; SQLite's own default would cost it more."""

    def engine(self) -> Engine:
        engine = create_engine(self.url)
        event.listen(engine, "connect", _write_ahead)
        return engine


def _write_ahead(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


class OnPostgres(APSchedulerJobs):
    def engine(self) -> Engine:
        return create_engine(self.url.replace("postgresql:", "postgresql+psycopg:", 1))
