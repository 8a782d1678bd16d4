"""The engine: one step records what ended, decides what is due, and then launches what it claimed.

A step is one transaction; in a herd, where transactions can go on side by side, some: one records, the others decide. Nothing
starts before the claim that says so is durable, and nothing that is decided can be decided again: the slot is unique, the
cursor has moved, and outcomes are written under the claim of the attempt they belong to.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

from horae.clock import Clock
from horae.config import Config
from horae.engine.generator import BatchResult, Generator
from horae.engine.invoker import Invoker, launches
from horae.engine.maintenance import Maintenance, MaintenanceReport
from horae.engine.observer import Observer, Observers
from horae.engine.worker import Launch, Worker
from horae.errors import NodeNameTakenError, StoreUnavailableError
from horae.model import AttemptResult, Node, Reason
from horae.spec import TZDATA_VERSION
from horae.store.port import Store

T = TypeVar("T")

COMMIT_GRACE_S = 10.0
"""Seconds after which a commit whose answer was lost has come through, or never will."""

CONTENTION_WAIT_MS = 20
"""Milliseconds to wait when what is due is in the hands of another node."""

STOPPING = 0.2
"""The part of a lease that runs get to stop in: at its end another node may attempt them."""


class Engine:
    """Drives the schedules of one store in one process: a node."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        clock: Clock,
        config: Config,
        *,
        tzdata: str = TZDATA_VERSION,
    ) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._config = config
        self._tzdata = tzdata
        self._epoch = 0
        self._name = ""
        self._registered_actions: tuple[str, ...] = ()
        self._lease_until = 0.0  # by the monotonic clock; what is left of the lease then is for stopping
        self._let_go = True  # what ran under an earlier lease was stopped
        # Commits were lost sight of: up to this moment they may claim runs that are never launched.
        self._doubtful_until = 0.0
        self._generating = True
        self._superseded = False  # a newer program has changed the schema
        self._herd = False  # more was due than the last step could look at
        self._observers: Observers | None = None
        limits = config.limits
        self._invoker = Invoker(worker, limits)
        self._generator = Generator(worker, self._invoker, limits, store.batch)
        self._maintenance = Maintenance(store, self._invoker, config, tzdata)

    @property
    def epoch(self) -> int:
        """The number under which this node claims; another one each time it joins."""
        return self._epoch

    @property
    def generating(self) -> bool:
        """Whether this node decides what is due; one with older time-zone data, or an older schema, than another does not."""
        return self._generating and not self._superseded

    @property
    def superseded(self) -> bool:
        """Whether the schema is newer than this program, which then decides and claims nothing."""
        return self._superseded

    def watch(self, observer: Observer) -> None:
        """Tell somebody what happens, from now on."""
        if self._observers is None:
            self._observers = Observers(self._clock.monotonic)
            self._store.watch = self._observers.transaction
            self._worker.on_launch = self._observers.launched
        self._observers.add(observer)

    async def join(self, now: int) -> None:
        """Become a node, and take over what dead nodes left."""
        await self.enter(now)
        await self.maintain(now)

    async def enter(self, now: int) -> None:
        """Become a node: take a name and an epoch, and say what this one can run."""
        patience = self._clock.monotonic() + (self._store.lease or 0) + 1
        while True:
            async with self._store.transaction() as transaction:
                self._epoch = await transaction.next_number()
            name = self._config.node_name or f"{socket.gethostname()}:{os.getpid()}:{self._epoch}"
            begun = self._clock.monotonic()
            if await self._register_node(name, now):
                self._extend(begun)
                return
            # A name is free when no living node has it; one that was killed lives on for the rest of its lease.
            if self._clock.monotonic() >= patience:
                raise NodeNameTakenError(name)
            await asyncio.sleep(0.2)

    async def _register_node(self, name: str, now: int) -> bool:
        """Say what this node can run; said again when that changes. ``False`` if another living node has the name."""
        self._name, self._registered_actions = name, self._worker.actions
        return await self._store.register_node(
            Node(
                epoch=self._epoch,
                name=name,
                actions=self._registered_actions,
                tzdata=self._tzdata,
                started_at=now,
            )
        )

    def _extend(self, begun: float) -> None:
        """The lease holds for its time from the moment it was asked for, by a clock that nobody sets."""
        lease = self._store.lease
        self._lease_until = float("inf") if lease is None else begun + lease * (1 - STOPPING)
        self._let_go = False

    @property
    def holds_lease(self) -> bool:
        """Whether no other node can take this one for dead before what it starts could be stopped."""
        return self._clock.monotonic() < self._lease_until

    def guard(self) -> float:
        """Stop what is running if the lease ends. Returns in how many seconds to ask again.

        It asks the clock only: a node that cannot reach the database must not go on beside the one that takes over.
        """
        left = self._lease_until - self._clock.monotonic()
        if left > 0:
            return left
        self._lose_lease()
        self._worker.enforce()
        return self._config.tick_ms / 1000

    def _lose_lease(self) -> None:
        """Start nothing more, and stop what is running: another node may attempt it."""
        self._lease_until = 0.0
        if self._let_go:
            return
        self._let_go = True
        self._worker.stop_all(Reason.CRASHED)
        if self._observers is not None:
            self._observers.tell(lambda each: each.lost_lease())

    async def renew_and_maintain(self, now: int) -> MaintenanceReport:
        """Renew the lease, or rejoin if it expired; then run maintenance."""
        await self.renew(now)
        return await self.maintain(now)

    async def renew(self, now: int) -> None:
        """Renew the lease, or rejoin under a new epoch if it expired."""
        begun = self._clock.monotonic()
        if not await self._store.renew(self._epoch):
            self._lose_lease()
            await self.enter(now)
            return
        self._extend(begun)
        self._superseded = await self._store.has_newer_schema()
        if self._worker.actions != self._registered_actions:
            await self._register_node(self._name, now)

    async def maintain(self, now: int) -> MaintenanceReport:
        """A round of housekeeping."""
        if self._superseded:
            return MaintenanceReport()
        report = await self._maintenance.step(now)
        self._generating = not report.outdated
        if self._observers is not None:
            self._observers.tell(lambda each: each.maintained(report))
        return report

    async def step(self, now: int) -> int | None:
        """Decide everything that can be decided now. Returns when to step again, if nothing happens before."""
        self._worker.enforce()
        if self._doubtful_until:
            await self._recover()
        ended = self._worker.ended()
        herd, self._herd = self._herd, False
        if self._superseded:
            moments = [await self._look(now, ended, free_capacity=0)]
        elif herd and self._store.parallel_batches > 1:
            moments = await self._parallel_batches(now, ended)
        else:
            moments = [await self._look(now, ended, free_capacity=self._worker.free_capacity)]
        if (deadline := self._worker.next_deadline()) is not None:
            moments.append(now + deadline)
        return min((at for at in moments if at is not None), default=None)

    async def _parallel_batches(self, now: int, ended: Sequence[AttemptResult]) -> list[int | None]:
        """Record what ended and, at the same time, look at other schedules, a batch here and a batch there."""
        looks = self._store.parallel_batches
        excluded = _schedules_of(ended)
        parts = [
            self._look(now, excluded=excluded, free_capacity=(self._worker.free_capacity + place) // looks)
            for place in range(looks)
        ]
        if ended:
            parts.append(self._record(ended, now))
        return await _all(parts)

    async def _record(self, ended: Sequence[AttemptResult], now: int) -> int | None:
        """Record what ended, while something else is decided. Returns when to look at what waited behind it."""
        async with self._store.transaction() as transaction:
            await self._invoker.record(transaction, ended, now)
            wake = await transaction.wake_at()
        self._worker.forget(len(ended))
        return wake

    async def _look(
        self,
        now: int,
        ended: Sequence[AttemptResult] = (),
        excluded: AbstractSet[str] = frozenset(),
        *,
        free_capacity: int,
    ) -> int | None:
        """Record what ended, decide what is due, and launch what was claimed. Returns when to look again."""
        epoch = self._epoch
        begun = 0.0 if self._observers is None else self._clock.monotonic()
        try:
            async with self._store.transaction() as transaction:
                await self._invoker.record(transaction, ended, now)
                looked = await self._generator.look(
                    transaction, now, epoch, free_capacity, generating=self.generating, excluded=excluded
                )
                stopping = await transaction.stopping(epoch)
                wake = now if looked.more else await transaction.wake_at()
        except StoreUnavailableError:
            self._doubtful_until = self._clock.monotonic() + COMMIT_GRACE_S
            raise
        self._worker.forget(len(ended))
        self._herd = self._herd or looked.more
        # It may have joined anew meanwhile, and then these claims are not its own any more.
        allowed = self.holds_lease and epoch == self._epoch
        self._invoker.launch(looked.starts, allowed=allowed)
        for run in stopping:
            self._worker.stop(run)
        if self._observers is not None:
            self._tell_step(self._observers, looked, begun, launched=allowed)
        if wake is not None and wake <= now and not looked.decided:
            return now + CONTENTION_WAIT_MS if self.generating else None
        return wake

    def _tell_step(self, observers: Observers, looked: BatchResult, begun: float, *, launched: bool) -> None:
        seconds = self._clock.monotonic() - begun
        if looked.schedules:
            decisions = [(schedule, looked.decisions[schedule.id]) for schedule in looked.schedules]
            observers.tell(lambda each: each.decided(decisions))
        _tell_claims(observers, looked.starts, launched=launched)
        observers.tell(lambda each: each.stepped(seconds))

    async def _recover(self) -> None:
        """Launch what a commit claimed whose answer was lost: nobody else will, as long as this node lives."""
        epoch, known = self._epoch, self._worker.known
        over = self._clock.monotonic() >= self._doubtful_until
        async with self._store.transaction() as transaction:
            claimed = await transaction.claimed([epoch], len(known) + self._config.concurrency)
            forgotten = [run for run in claimed if (run.id, run.attempt) not in known]
            found = await transaction.schedules({run.schedule_id for run in forgotten})
            schedules = {each.id: each for each in found}
            starts = await launches(transaction, forgotten, schedules)
        allowed = self.holds_lease and epoch == self._epoch
        self._invoker.launch(starts, allowed=allowed)
        if over:
            self._doubtful_until = 0.0
        if self._observers is not None:
            _tell_claims(self._observers, starts, launched=allowed)

    async def drain(self, now: Callable[[], int]) -> None:
        """Wait for what is running, and record how it ended; nothing new is started.

        What goes on after the time for it is stopped, and attempted elsewhere.
        """
        until = self._clock.monotonic() + self._config.drain_ms / 1000
        house = min(self._config.housekeeping_ms / 1000, 1.0)
        while (tasks := self._worker.tasks) and (left := until - (begun := self._clock.monotonic())) > 0:
            done, _ = await asyncio.wait(tasks, timeout=min(left, house), return_when=asyncio.FIRST_COMPLETED)
            with contextlib.suppress(Exception):  # what cannot be recorded now is tried again at the end
                await self._record_ends(now())
            if not done and self._clock.monotonic() == begun:
                break  # the clock stands still, and so does what waits on it
        self._worker.stop_all(Reason.SHUTDOWN)
        if tasks := self._worker.tasks:
            await asyncio.wait(tasks, timeout=self._config.terminate_ms / 1000)
            self._worker.give_up_all()
        with contextlib.suppress(StoreUnavailableError):  # others take over what could not be recorded
            await self._record_ends(now())
            await self._store.deregister([self._epoch])

    async def _record_ends(self, now: int) -> None:
        """Record what has ended, decide nothing, and go on living."""
        begun = self._clock.monotonic()
        if await self._store.renew(self._epoch):
            self._extend(begun)
        ended = self._worker.ended()
        async with self._store.transaction() as transaction:
            await self._invoker.record(transaction, ended, now)
            await transaction.notify()
        self._worker.forget(len(ended))


def _schedules_of(ended: Iterable[AttemptResult]) -> frozenset[str]:
    """Nothing is decided about these before it is recorded how their runs ended."""
    return frozenset(each.run.schedule_id for each in ended)


async def _all(parts: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do things side by side. Each comes to its end whatever becomes of the others; then the first error is raised."""
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _tell_claims(observers: Observers, starts: Sequence[Launch], *, launched: bool) -> None:
    if starts:
        runs = [start.run for start in starts]
        observers.tell(lambda each: each.claimed(runs, launched=launched))
