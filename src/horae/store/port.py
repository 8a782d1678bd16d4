"""The port: what the engine asks of a store. All of it happens in transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from horae.model import PassedOver, Run, Schedule, State, Status


class Advance(NamedTuple):
    """Where a schedule's cursor stands after a decision, and when to look at it again."""

    schedule_id: str
    cursor: int
    next_at: int | None
    state: State | None
    """The new state; ``None`` if it did not change."""


class Outcome(NamedTuple):
    """How an attempt ended, under the claim that made it."""

    run_id: str
    epoch: int
    attempt: int
    status: Status
    ended_at: int
    result: str | None = None
    failure: str | None = None
    reason: str = ""
    start_at: int | None = None
    """When the next attempt may start, if one follows (the status is then pending)."""


class Transaction(ABC):
    """One transaction: all of it is written, or nothing."""

    @abstractmethod
    async def due(self, now: int, limit: int) -> list[Schedule]:
        """The schedules that must be looked at, the longest overdue first; locked until the end."""

    @abstractmethod
    async def schedules(self, ids: Sequence[str]) -> list[Schedule]:
        """Some schedules, locked until the end, in the order of their ids."""

    @abstractmethod
    async def all_schedules(self, after: str, limit: int) -> list[Schedule]:
        """Schedules in the order of their ids, those after one."""

    @abstractmethod
    async def put_schedule(self, schedule: Schedule, next_at: int | None) -> None:
        """Create a schedule, or replace it."""

    @abstractmethod
    async def delete_schedule(self, schedule_id: str) -> None:
        """Remove a schedule; its runs stay."""

    @abstractmethod
    async def next_incarnation(self, schedule_id: str) -> int:
        """The number for a schedule of this id that is created now."""

    @abstractmethod
    async def open_runs(self, schedule_ids: Sequence[str]) -> list[Run]:
        """The runs of some schedules that have not ended, oldest first."""

    @abstractmethod
    async def runs(self, schedule_id: str, limit: int) -> list[Run]:
        """The latest runs of a schedule, newest first."""

    @abstractmethod
    async def passed_over(self, schedule_id: str, limit: int) -> list[PassedOver]:
        """The latest ranges of slots of a schedule that did not run, newest first."""

    @abstractmethod
    async def insert_runs(self, runs: Iterable[Run]) -> None:
        """Write runs that did not exist. A slot is unique: the same one twice is an error."""

    @abstractmethod
    async def update_runs(self, runs: Iterable[Run]) -> None:
        """Write runs that wait: released, or ended without a start."""

    @abstractmethod
    async def insert_passed(self, ranges: Iterable[PassedOver]) -> None:
        """Write ranges of slots that did not run; one that continues the last is joined to it."""

    @abstractmethod
    async def advance(self, steps: Iterable[Advance]) -> None:
        """Move cursors, and say when to look again."""

    @abstractmethod
    async def finish(self, outcomes: Iterable[Outcome]) -> list[str]:
        """Write outcomes under their claims. A stale claim writes nothing; the ids that were written are returned."""

    @abstractmethod
    async def look_now(self, schedule_ids: Sequence[str], now: int) -> None:
        """Something happened to these schedules: make them due."""

    @abstractmethod
    async def notify(self) -> None:
        """Wake the other nodes when this transaction commits."""

    @abstractmethod
    async def wake_at(self) -> int | None:
        """The earliest time at which a schedule must be looked at."""

    @abstractmethod
    async def claimed(self) -> list[Run]:
        """All runs that some node has claimed and not finished."""

    @abstractmethod
    async def next_number(self) -> int:
        """A number that was never given before: for nodes and triggers."""


class Store(ABC):
    """A database. It is opened once, and closed."""

    @abstractmethod
    async def open(self, wake: Callable[[], None]) -> None:
        """Connect, and bring the schema up to date; ``wake`` is called when another node changed something."""

    @abstractmethod
    async def close(self) -> None:
        """Release everything."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that writes; it commits at the end, or is undone by an exception."""

    @abstractmethod
    async def announce(self, epoch: int) -> None:
        """Begin to live as the node of an epoch."""

    @abstractmethod
    async def renew(self, epoch: int) -> bool:
        """Go on living; ``False`` if others may think this node dead, and have taken its runs."""

    @abstractmethod
    async def living(self, epochs: Collection[int]) -> set[int]:
        """Which of some nodes live."""

    @abstractmethod
    async def time(self) -> int | None:
        """The store's own time, in milliseconds, which all nodes share; ``None`` if it has none."""
