"""What the tests of the declarative scheduler share: a database file, a clock that stands still, tasks that note each call."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from horae import Scheduler
from horae.face.declarative import Event
from horae.testing import VirtualClock

NOON = datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC)
DELAY = timedelta(minutes=5)
TASK_EVENTS = {
    "TaskRunStarted": "start", "TaskRunCompleted": "end", "TaskRunFailed": "fail",
    "TaskRetryStarted": "retry", "TaskRetryPreempted": "preempt",
}  # fmt: skip
Registered = tuple[str, str, Callable[[], Awaitable[object]], timedelta]


class Story:
    """A file, a clock, and everything that happened to the tasks on it, over all restarts."""

    def __init__(self, folder: Path, start: datetime = NOON, timezone: str = "UTC") -> None:
        self.clock = VirtualClock(start)
        self.file = folder / "horae.db"
        self.timezone = timezone
        self.events: list[Event] = []
        self.starts: dict[str, list[datetime]] = defaultdict(list)
        self.ends: dict[str, list[datetime]] = defaultdict(list)
        self.running: Counter[str] = Counter()
        self.overlapped: set[str] = set()
        self.takes: dict[str, float] = {}
        """Seconds that the callback of a task takes."""
        self.raises: dict[str, Callable[[], BaseException]] = {}
        """What the callback of a task raises at its end."""

    @property
    def database(self) -> str:
        return f"sqlite:///{self.file}"

    def scheduler(self, name: str = "default", **more: Any) -> Scheduler:
        given: dict[str, Any] = {
            "database": self.database,
            "timezone": self.timezone,
            "listener": self.events.append,
        } | more
        return Scheduler(clock=self.clock, name=name, **given)

    def task(self, name: str, cron: str = "* * * * *", delay: timedelta = DELAY) -> Registered:
        async def callback() -> None:
            self.starts[name].append(self.clock.now())
            self.running[name] += 1
            if self.running[name] > 1:
                self.overlapped.add(name)
            try:
                if takes := self.takes.get(name):
                    await self.clock.sleep(seconds=takes)
                if name in self.raises:
                    error = self.raises[name]()
                    raise error
            finally:
                self.running[name] -= 1
                self.ends[name].append(self.clock.now())

        return (name, cron, callback, delay)

    async def begin(self, *tasks: Any, name: str = "default", **more: Any) -> Scheduler:
        """A scheduler with some tasks, that has done what there is to do at once."""
        scheduler = self.scheduler(name, **more)
        await scheduler.initialize(tasks)
        await self.clock.settle()
        return scheduler

    async def crash(self, scheduler: Scheduler) -> None:
        """Gone, with everything it was doing, and nothing of that recorded."""
        scheduler._listener = None
        app, driving = scheduler._app, scheduler._driving
        assert app is not None
        if driving is not None:
            driving.cancel()
            await asyncio.wait([driving])
        for each in (tasks := app.worker.tasks):
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await app.close()

    def told(self) -> list[str]:
        """What happened to tasks, in order: a word for each event, with the second of the day."""
        return [
            f"{word} {event.task} {event.time:%H:%M:%S}"
            for event in self.events
            if (word := TASK_EVENTS.get(event.name))
        ]

    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def counts(self) -> dict[str, int]:
        """What the latest initialization said of the tasks; what there was none of is left out."""
        latest = next(e for e in reversed(self.events) if e.name == "SchedulerInitializationCompleted")
        return {key: number for key, number in latest.details.items() if number}

    def sql(self, statement: str, *values: object) -> list[Any]:
        connection = sqlite3.connect(self.file)
        try:
            with connection:
                return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def dump(self) -> dict[str, list[Any]]:
        """All that the database holds of tasks."""
        return {
            table: self.sql(f"SELECT * FROM {table} ORDER BY 1")  # noqa: S608 - names of our own
            for table in (
                "schedule",
                "due",
                "run",
                "unstarted_range",
                "attempt",
                "generation",
                "version",
                "last_outcome",
            )
        }


def at(*clock_times: str, day: str = "2026-03-02") -> list[datetime]:
    """Instants of a day in UTC."""
    return [datetime.fromisoformat(f"{day}T{each}+00:00") for each in clock_times]
