"""The interface of contestants, and the list of them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

BATCH = 1000
BACKFILLS_AT_ONCE = 500
"""Slots of a backfill that Horae takes in one step: half of its buffer, which is the most that it takes at all."""
SQLITE = "SQLite"
POSTGRES = "PostgreSQL"


class Contestant(ABC):
    """A scheduler on its own database, in its own process. It is opened, filled, and then runs."""

    records_ends = True
    granularity = 1
    """Seconds: at which instants it can be due."""

    def __init__(self, url: str, seconds: int = 0) -> None:
        self.url = url
        self.seconds = seconds
        """For how many seconds each job is due, once in each; 0 is at one instant only."""

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[None]:
        """Connected, with its tables made: none of this is timed."""

    @abstractmethod
    async def register(self, count: int, due: int) -> None:
        """Make that many jobs durable, all due at one second since the epoch, and maybe at those that follow."""

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[None]:
        """Keeping time."""

    async def ended(self) -> int:
        """How many ends are durable; asked while it runs, and only if it records them."""
        raise NotImplementedError


class Entry(NamedTuple):
    """A contestant as the parent knows it: by name, so that it loads none of their code."""

    name: str
    title: str
    database: str
    place: str
    program: str = "bench.herd.child"
    checkout: str = ""
    """The folder of another version of this project, if it is to run from there."""

    @property
    def is_peer(self) -> bool:
        """Whether it is another project's scheduler."""
        return self.name in {"apscheduler", "procrastinate"}


ENTRIES = (
    Entry("horae", "Horae", SQLITE, "bench.herd.horae_app:Cron"),
    Entry("horae-one-shot", "Horae, one-shot", SQLITE, "bench.herd.horae_app:OneShot"),
    Entry("declarative", "Horae, declarative", SQLITE, "bench.herd.declarative:Declarative"),
    Entry("apscheduler", "APScheduler", SQLITE, "bench.herd.apscheduler_jobs:OnSqlite"),
    Entry("ceiling", "ceiling", SQLITE, "bench.herd.ceiling_sqlite:SqliteCeiling"),
    Entry("horae", "Horae", POSTGRES, "bench.herd.horae_app:Cron"),
    Entry("horae-one-shot", "Horae, one-shot", POSTGRES, "bench.herd.horae_app:OneShot"),
    Entry("apscheduler", "APScheduler", POSTGRES, "bench.herd.apscheduler_jobs:OnPostgres"),
    Entry("procrastinate", "Procrastinate", POSTGRES, "bench.herd.procrastinate_worker:ProcrastinateWorker"),
    Entry("ceiling", "ceiling", POSTGRES, "bench.herd.ceiling_postgres:PostgresCeiling"),
)
CLUSTERS = (
    Entry("horae", "Horae, several nodes", SQLITE, "lead", "bench.herd.cluster"),
    Entry("horae", "Horae, several nodes", POSTGRES, "lead", "bench.herd.cluster"),
)
STEADY = (
    Entry("horae", "Horae", SQLITE, "bench.herd.horae_app:EverySecond"),
    Entry("apscheduler", "APScheduler", SQLITE, "bench.herd.apscheduler_jobs:OnSqlite"),
    Entry("horae", "Horae", POSTGRES, "bench.herd.horae_app:EverySecond"),
    Entry("apscheduler", "APScheduler", POSTGRES, "bench.herd.apscheduler_jobs:OnPostgres"),
)
BACKFILL = (
    Entry("horae", "Horae", SQLITE, "bench.herd.horae_app:MadeUp"),
    Entry("ceiling", "ceiling", SQLITE, "bench.herd.ceiling_sqlite:SqliteBackfill"),
    Entry("horae", "Horae", POSTGRES, "bench.herd.horae_app:MadeUp"),
    Entry("ceiling", "ceiling", POSTGRES, "bench.herd.ceiling_postgres:PostgresBackfill"),
)
OURS = ENTRIES[0].name
BEFORE = "before"
NAMES = tuple(dict.fromkeys(entry.name for entry in ENTRIES))


def before(checkout: str) -> list[Entry]:
    """Horae as it is in the checkout of another version, to be compared in the same run."""
    ours = [each for each in ENTRIES if each.name == OURS]
    return [each._replace(name=BEFORE, title="Horae, before", checkout=checkout) for each in ours]


def batches(count: int, size: int = BATCH) -> Iterator[range]:
    """The numbers of all jobs, a batch at a time."""
    for first in range(0, count, size):
        yield range(first, min(first + size, count))


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Work that runs beside the body and ends with it; if it fails, so does the body."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        yield
        task.cancel()
