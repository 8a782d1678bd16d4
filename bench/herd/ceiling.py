"""The ceiling: the rows that a durable scheduler must write, and nothing that decides about them.

It starts a job only when the row that says so is durable, and records each end, as Horae does; but it
knows no specs, policies, overlaps, failures or other nodes. Starts come first, ends when nothing is due.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import islice
from uuid import UUID

from bench.herd.contestant import BATCH, Contestant, background, batches
from bench.herd.ledger import Count, succeeded
from bench.herd.starts import no_operation, until

DAY = 86_400
SPEC = '{"crons":["0 0 0 * * *"],"dialect":"unix","timezone":"UTC"}'
ACTION = '{"name":"noop","input":null}'

# The tables and indexes that a herd goes through in Horae's own schema, in both dialects.
SCHEMA = """
CREATE TABLE schedule (
    id TEXT PRIMARY KEY, generation BIGINT NOT NULL, spec TEXT NOT NULL, action TEXT NOT NULL,
    policies TEXT NOT NULL, state TEXT NOT NULL, token BIGINT NOT NULL, created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL, owner TEXT NOT NULL, tags TEXT NOT NULL
){schedule};
CREATE TABLE due (
    schedule_id TEXT PRIMARY KEY, cursor BIGINT NOT NULL, next_at BIGINT, started BIGINT NOT NULL DEFAULT 0,
    skipped BIGINT NOT NULL DEFAULT 0, missed BIGINT NOT NULL DEFAULT 0, dropped BIGINT NOT NULL DEFAULT 0
){due};
CREATE INDEX due_next ON due (next_at) WHERE next_at IS NOT NULL;
CREATE TABLE run (
    number {number} PRIMARY KEY, id TEXT NOT NULL UNIQUE, schedule_id TEXT NOT NULL,
    generation BIGINT NOT NULL, nominal BIGINT NOT NULL, origin TEXT NOT NULL, overlap TEXT NOT NULL,
    status TEXT NOT NULL, fire_at BIGINT NOT NULL, start_at BIGINT NOT NULL, action TEXT NOT NULL,
    action_id TEXT NOT NULL, reason TEXT NOT NULL, attempt BIGINT NOT NULL, epoch BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0, refusals BIGINT NOT NULL DEFAULT 0, crashes BIGINT NOT NULL DEFAULT 0,
    stop TEXT NOT NULL DEFAULT '', started_at BIGINT, ended_at BIGINT, author TEXT NOT NULL, note TEXT NOT NULL,
    input TEXT, result TEXT, failure TEXT
);
CREATE INDEX run_latest ON run (schedule_id, number);
CREATE INDEX run_open ON run (schedule_id, number) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX run_unclaimed ON run (number) WHERE status = 'starting';
CREATE INDEX run_stopping ON run (epoch) WHERE status = 'running' AND stop <> '';
"""

Slot = tuple[str, int]
"""A schedule and its nominal time."""
ScheduleRow = tuple[str, int, str, str, str, str, int, int, int, str, str]
DueRow = tuple[str, int, int]
RunRow = tuple[str, str, int, int, str, str, str, int, int, str, str, str, int, int, int, str, str, str]
RUN_COLUMNS = (
    "id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,"
    " attempt, epoch, started_at, author, note, input"
)


class Ceiling(Contestant):
    _count: Count

    def __init__(self, url: str, seconds: int = 0) -> None:
        super().__init__(url, seconds)
        self.due = 0
        self._ended: deque[str] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def register(self, count: int, due: int) -> None:
        self.due = due
        for batch in batches(count):
            await self.insert(*schedule_rows(batch, due))

    @abstractmethod
    async def insert(self, schedules: list[ScheduleRow], places: list[DueRow]) -> None:
        """Write new schedules, and where they stand."""

    @abstractmethod
    async def claim(self) -> Sequence[str]:
        """Write the runs of a batch that is due, and move its cursors. Returns the runs, when durable."""

    @abstractmethod
    async def slots(self) -> list[Slot]:
        """A batch of what is due, or nothing."""

    @abstractmethod
    async def record(self, runs: Sequence[str]) -> None:
        """Write that runs ended."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with succeeded(self.url) as self._count, background(self._keep_time()):
            yield

    async def ended(self) -> int:
        return await self._count()

    async def _keep_time(self) -> None:
        await until(self.due)
        while runs := await self.claim():
            for run in runs:
                task = asyncio.create_task(self._perform(run))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0)  # they start before the next batch is written
        while self._ended:
            await self.record([self._ended.popleft() for _ in range(min(BATCH, len(self._ended)))])

    async def _perform(self, run: str) -> None:
        await no_operation()
        self._ended.append(run)


class Backfill(Ceiling):
    """One schedule, whose slots are counted off and not looked for. To be combined with a kind of database."""

    _left: Iterator[Slot]

    async def register(self, count: int, due: int) -> None:
        await super().register(1, due)
        self._left = (("s0", due - number) for number in range(count, 0, -1))

    async def slots(self) -> list[Slot]:
        return list(islice(self._left, BATCH))


def schedule_rows(numbers: range, due: int) -> tuple[list[ScheduleRow], list[DueRow]]:
    """New schedules, and where they stand: times in seconds for slots, in milliseconds for all else."""
    at = due * 1000
    return (
        [(f"s{number}", 1, SPEC, ACTION, "{}", "{}", 1, at, at, "", "[]") for number in numbers],
        [(f"s{number}", due - 1, at) for number in numbers],
    )


def run_rows(slots: Sequence[Slot]) -> list[RunRow]:
    return [
        (
            _run_id(schedule, due), schedule, 1, due, "automatic", "skip", "running", at, at, "noop", "noop", "",
            1, 1, at, "", "", "null",
        )
        for schedule, due in slots
        for at in (due * 1000,)
    ]  # fmt: skip


def due_rows(slots: Sequence[Slot]) -> list[DueRow]:
    """Where the schedules stand after their last slots: due again a day later."""
    return [(schedule, due, (due + DAY) * 1000) for schedule, due in dict(slots).items()]


def _run_id(schedule: str, due: int) -> str:
    """As Horae's: a hash, because indexes grow slower under keys that come in no order."""
    return str(UUID(bytes=sha256(f"{schedule}:1:{due}:automatic".encode()).digest()[:16], version=5))
