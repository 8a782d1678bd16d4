"""The engine: makes this process a node, and drives its deciders.

In a step every decider decides what is due; an attempt starts only after its claim is durable. Beside the steps, the
engine renews the node's lease, runs maintenance, and stops running attempts when the lease ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Collection
from typing import NoReturn

from horae.clock import Clock
from horae.config import Config
from horae.engine.attempt_failure_log import log_unrecorded
from horae.engine.decider import Decider, NodeServices, all_of
from horae.engine.maintenance import Maintenance, MaintenanceReport
from horae.engine.membership import Membership
from horae.engine.observer import Observer, Observers
from horae.engine.schedule_decider import ScheduleDecider
from horae.engine.worker import Worker
from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import Reason
from horae.policy.loop_stall import Stall
from horae.spec import TZDATA_VERSION
from horae.store.port import Store

STORE_ERRORS = (StoreUnavailableError, ClockOffError)
_log = logging.getLogger("horae")


class Engine:
    """Drives the deciders of one store in one process: a node."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        clock: Clock,
        config: Config,
        *,
        tzdata: str = TZDATA_VERSION,
        on_extended: Callable[[float], None] | None = None,
    ) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._config = config
        self._observers = Observers(clock.monotonic)
        self._membership = Membership(
            store,
            clock,
            config,
            tzdata=tzdata,
            actions=lambda: worker.actions,
            on_lost=self._stop_all,
            on_extended=on_extended,
        )
        self._services = NodeServices(store, worker, self._membership, self._observers, clock, config)
        self._deciders: list[Decider] = [ScheduleDecider(self._services)]
        self._retry_at: dict[Decider, float] = {}  # when deciders that raised may step again, monotonic
        self._wakes: dict[Decider, int | None] = {}  # when the others asked to step again
        self._maintenance = Maintenance(store, self._deciders, config, tzdata)
        self.wake_at: int | None = None
        """When the deciders asked to step again, as of their last steps."""

    @property
    def epoch(self) -> int:
        """The number under which this node claims; a new one each time it joins."""
        return self._membership.epoch

    @property
    def generating(self) -> bool:
        """Whether this node decides what is due: not if another has newer time-zone data, or the schema is newer."""
        return self._membership.generating

    @property
    def superseded(self) -> bool:
        """Whether the schema is newer than this program, which then decides and claims nothing."""
        return self._membership.superseded

    @property
    def holds_lease(self) -> bool:
        """Whether the lease lasts long enough to stop what starts now before other nodes take this one for dead."""
        return self._membership.holds_lease

    @property
    def unreadable(self) -> int:
        """How many schedules cannot be read, as far as maintenance has seen."""
        return len(self._maintenance.unreadable)

    @property
    def failing(self) -> bool:
        """Whether the last step of a decider failed."""
        return bool(self._retry_at)

    def add_decider(self, make: Callable[[NodeServices], Decider]) -> None:
        """Drive one more decider, from the next step on."""
        decider = make(self._services)
        if any(each.name == decider.name for each in self._deciders):
            raise ValueError(f'this node has a decider "{decider.name}" already')
        self._deciders.append(decider)

    def watch(self, observer: Observer) -> None:
        """Add an observer; it is told what happens from now on."""
        if not self._observers:
            self._store.observe = self._observers.transaction
            self._worker.on_launch = self._observers.launched
        self._observers.add(observer)

    async def enter(self, now: int) -> None:
        """Join as a node: take a name and an epoch, and register the actions that it can run."""
        await self._membership.join(now)

    async def withdraw(self) -> None:
        """Remove this node, unless it has claims: then another node does, once it has taken them over."""
        await self._maintenance.deregister([self.epoch])

    def leave(self) -> None:
        """Leave: the store is closed, and other nodes take over what this node had claimed."""
        self._membership.leave()

    def keep_lease(self) -> None:
        """Renew the lease also while the running event loop is blocked, where the store can."""
        self._membership.keep()

    async def stop_keeping_lease(self) -> None:
        """Renew the lease only in the event loop."""
        await self._membership.stop_keeping()

    def guard(self) -> float:
        """Stop running attempts if the lease ended. Returns in how many seconds to check again.

        It reads only the clock: a node that cannot reach the database must not run beside the one that takes over.
        """
        left = self._membership.check()
        if left is not None:
            return left
        self._worker.enforce()
        return self._config.tick_ms / 1000

    def _stop_all(self, seconds: float) -> None:
        self._worker.stop_all(Reason.CRASHED, seconds * 1000)
        if self._observers:
            self._observers.tell(lambda each: each.lost_lease())

    def tell_blocked(self, stall: Stall) -> None:
        """Tell observers that the event loop was blocked."""
        if self._observers:
            self._observers.tell(lambda each: each.loop_blocked(stall))

    async def renew_and_maintain(self, now: int) -> MaintenanceReport:
        """Renew the lease, or rejoin if it expired; then run maintenance."""
        await self.renew(now)
        return await self.maintain(now)

    async def renew(self, now: int) -> None:
        """Renew the lease, or rejoin under a new epoch if it expired."""
        await self._membership.renew(now)

    async def maintain(self, now: int) -> MaintenanceReport:
        """Run a round of maintenance, which takes over the runs of dead nodes."""
        if self.superseded:
            return MaintenanceReport()
        report = await self._maintenance.step(now)
        self._membership.outdated = report.outdated
        if self._observers:
            self._observers.tell(lambda each: each.maintained(report))
        return report

    async def step(self, now: int, changed: Collection[str] | None = None) -> int | None:
        """Let every decider take a step. Returns when to step again, if nothing happens before.

        If it is known whose data ``changed`` since the last step, deciders that are not named step only if one of their attempts
        ended, or if they asked for it. A decider that raises does not stop the others: the error is raised after all steps.
        """
        self._worker.enforce()
        wakes: list[int | None] = []
        errors: list[Exception] = []
        begun_at, begun = now, self._clock.monotonic()
        for decider in self._deciders:
            # The decider before may have taken long.
            now = begun_at + int((self._clock.monotonic() - begun) * 1000)
            decider.changed = changed is None or decider.name in changed or self._is_due(decider, now)
            if not decider.changed and not self._worker.has_results(decider.name):
                wakes.append(self._wakes[decider])
                continue
            self._wakes.pop(decider, None)
            try:
                wakes.append(await self._step(decider, now))
                self._wakes[decider] = wakes[-1]
            except Exception as error:
                errors.append(error)
        if (deadline := self._worker.next_deadline()) is not None:
            wakes.append(now + deadline)
        self.wake_at = min((wake for wake in wakes if wake is not None), default=None)
        if errors:
            _raise_foremost(errors)
        return self.wake_at

    def _is_due(self, decider: Decider, now: int) -> bool:
        """Whether a decider may have something to do besides recording results, as far as this node knows."""
        if decider not in self._wakes or decider.is_unfinished:
            return True
        wake = self._wakes[decider]
        return wake is not None and wake <= now

    async def _step(self, decider: Decider, now: int) -> int | None:
        """Run one decider's step. After its own error it pauses for a tick, so that it does not slow the others."""
        left = self._retry_at.get(decider, 0.0) - self._clock.monotonic()
        if left > 0:
            return now + math.ceil(left * 1000)
        try:
            wake = await decider.step(now)
        except STORE_ERRORS:  # they concern all deciders, and are temporary
            raise
        except Exception:
            self._retry_at[decider] = self._clock.monotonic() + self._config.tick_ms / 1000
            raise
        self._retry_at.pop(decider, None)
        return wake

    async def drain(self, now: Callable[[], int]) -> None:
        """Wait for running attempts, and record their results; nothing new is started.

        Attempts that still run after ``drain_ms`` are stopped, and another node attempts them again.
        """
        until = self._clock.monotonic() + self._config.drain_ms / 1000
        pause = min(self._config.housekeeping_ms / 1000, 1.0)
        while (tasks := self._worker.tasks) and (left := until - (begun := self._clock.monotonic())) > 0:
            done, _ = await asyncio.wait(tasks, timeout=min(left, pause), return_when=asyncio.FIRST_COMPLETED)
            with contextlib.suppress(Exception):  # what cannot be recorded now is tried again at the end
                await self._record_results(now())
            if not done and self._clock.monotonic() == begun:
                break  # a virtual clock stands still, and attempts that wait on it never end
        self._worker.stop_all(Reason.SHUTDOWN)
        if tasks := self._worker.tasks:
            await asyncio.wait(tasks, timeout=self._config.terminate_ms / 1000)
            self._worker.give_up_all()
        await self.stop_keeping_lease()
        with contextlib.suppress(StoreUnavailableError):  # other nodes take over what was not recorded
            await self._record_results(now())
            await self.withdraw()
        log_unrecorded(self._worker.ended())

    async def _record_results(self, now: int) -> None:
        """Record results, decide nothing, and renew the lease."""
        await self._membership.extend()
        await all_of(decider.record_results(now) for decider in self._deciders)


def _raise_foremost(errors: list[Exception]) -> NoReturn:
    """Raise a store error if there is one, else the first error; the other deciders' own errors are logged."""
    foremost = next((each for each in errors if isinstance(each, STORE_ERRORS)), errors[0])
    for each in errors:
        if each is not foremost and not isinstance(each, STORE_ERRORS):
            _log.error("a step failed, and is tried again", exc_info=each)
    raise foremost
