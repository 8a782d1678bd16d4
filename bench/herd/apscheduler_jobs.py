"""APScheduler 3: its asyncio scheduler with its SQLAlchemy job store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
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
        trigger = self._trigger(datetime.fromtimestamp(due, UTC))
        for number in range(count):
            # However late a job is, it must start, and as often as it was due.
            self._scheduler.add_job(
                no_operation,
                trigger,
                id=f"s{number}",
                misfire_grace_time=None,
                coalesce=not self.seconds,
                max_instances=max(self.seconds, 1),
            )

    def _trigger(self, due: datetime) -> CronTrigger:
        if self.seconds:
            last = due + timedelta(seconds=self.seconds - 1)
            return CronTrigger(second="*", start_date=due, end_date=last, timezone=UTC)
        return CronTrigger(hour=due.hour, minute=due.minute, second=due.second, timezone=UTC)

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
