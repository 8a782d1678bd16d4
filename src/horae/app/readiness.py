"""Whether an app can do its work, and how much work waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import msgspec

from horae.app.engine_driver import Driver, SharedClock
from horae.app.loop_watchdog import LoopBlocked
from horae.app.schedule_fields import about
from horae.config import Config
from horae.engine.engine import Engine
from horae.errors import StoreUnavailableError
from horae.model import Span, Status
from horae.store.port import Store

MAX_OFF = 1000
"""Milliseconds by which the clock may differ from the database's, after correction by the offset last measured."""
_AWAY = "the database does not answer, or cannot be written: the log says why"
_GONE = "the database file was deleted or replaced: restart this process"


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an app can do its work, and what prevents it."""

    status: Annotated[str, about("``ready``, or what is wrong in a sentence.")]
    store: Annotated[bool, about("Whether the database answers.")]
    clock_off_ms: Annotated[
        int | None,
        about(
            "The last measured offset of this machine's clock from the database's, which is corrected for; null if the database has no clock."
        ),
    ] = None
    lease: Annotated[bool, about("Whether this is a node, and no other node can consider it dead.")] = False
    generating: Annotated[
        bool,
        about(
            "Whether the node decides what is due; a node with older time-zone data than another does not."
        ),
    ] = False
    unreadable: Annotated[
        int,
        about("How many schedules are known to be unreadable; these do not run. `horae check` names them."),
    ] = 0

    loop_blocked: Annotated[
        LoopBlocked | None,
        about(
            "When the event loop of the process last did not answer, since it started; null if it always did."
        ),
    ] = None

    clock_off = Span[timedelta | None]()


class Backlog(msgspec.Struct, frozen=True):
    """Work that waits for a node: the number of due schedules, of open runs in each status, and of flows that need attention."""

    due: float
    open_runs: Mapping[Status, float]
    flows_attention: float


class ReadinessCheck:
    """Judges the readiness of an open app."""

    def __init__(
        self, engine: Engine, store: Store, driver: Driver, clock: SharedClock, config: Config
    ) -> None:
        self._engine = engine
        self._store = store
        self._driver = driver
        self._clock = clock
        self._every = config.housekeeping_ms / 1000
        self._proving = asyncio.Lock()
        self._proven_at: float | None = None
        self.leaving = False
        """Whether the process was asked to end: it still answers, but should get no more requests."""

    async def check(self) -> Readiness:
        """Whether the app can do its work now. Messages of the database or its driver go to the log only."""
        engine = self._engine
        try:
            shared = await self._store.time()
            await self._prove()
        except StoreUnavailableError:
            status = _GONE if self._store.gone else _AWAY
            return Readiness(status=status, store=False, loop_blocked=self._driver.watchdog.last)
        lease = engine.epoch > 0 and engine.holds_lease
        off = None if shared is None else shared - self._clock.now()
        status = "ready"
        if self.leaving:
            status = "this node was asked to end"
        elif not lease:
            status = "this node has no lease, and starts nothing"
        elif engine.superseded:
            status = "the database has a newer schema than this program, which decides nothing: update it"
        elif off is not None and abs(off) > MAX_OFF:
            status = f"the clock is {off} ms off the database's"
        elif self._driver.failing or engine.failing:
            status = "the last step failed, and is tried again: the log says why"
        return Readiness(
            status=status, store=True, clock_off_ms=off, lease=lease, generating=engine.generating,
            unreadable=engine.unreadable, loop_blocked=self._driver.watchdog.last,
        )  # fmt: skip

    async def _prove(self) -> None:
        """Check that the database can be written, at most once per maintenance interval, however many callers ask."""
        async with self._proving:
            if self._store.gone:
                raise StoreUnavailableError(_GONE)
            now = self._clock.monotonic()
            if self._proven_at is None or now - self._proven_at >= self._every:
                self._proven_at = None
                await self._store.prove(self._engine.epoch)
                self._proven_at = now
