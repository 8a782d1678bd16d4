"""Writes the logs of running attempts periodically, under their claims; the remaining lines are written with the result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from contextvars import Context

from horae.clock import Clock
from horae.config import Config
from horae.errors import StoreUnavailableError
from horae.executor.attempt_log import AttemptLog, LogBounds
from horae.model import Run
from horae.store.transaction_limit import StoreAccess

BATCH_LOGS = 100
"""How many attempts' logs one transaction writes."""
_log = logging.getLogger("horae")


class AttemptLogWriter:
    """Writes the lines of running attempts every ``attempt_log_flush_ms``, if there are any."""

    def __init__(self, store: StoreAccess, clock: Clock, now: Callable[[], int], config: Config) -> None:
        self._store = store
        self._clock = clock
        self._now = now
        self._bounds = LogBounds(config.attempt_log_lines, config.attempt_log_bytes)
        self._every = config.attempt_log_flush_ms / 1000
        self._waiting: dict[AttemptLog, None] = {}
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None] | None = None

    def new_log(self, run: Run, *, flow: bool = False) -> AttemptLog | None:
        """The log of an attempt of a schedule's run, or of a flow's; ``None`` if none is kept."""
        if self._bounds.lines == 0:
            return None
        self._loop = asyncio.get_running_loop()
        return AttemptLog(run, self._bounds, self._now, self._notice_from_thread, flow=flow)

    def _notice_from_thread(self, log: AttemptLog) -> None:
        with contextlib.suppress(RuntimeError):  # a thread that was left behind outlives the loop
            # In a context of its own: what is written for an attempt is no line of it.
            self._loop.call_soon_threadsafe(self._notice, log, context=Context())

    def _notice(self, log: AttemptLog) -> None:
        self._waiting[log] = None
        if self._task is None:
            self._task = asyncio.create_task(self._write_later(), name="horae:logs")

    async def _write_later(self) -> None:
        never = asyncio.Event()
        while self._waiting:
            await self._clock.wait(never, self._every)
            try:
                await self.write()
            except StoreUnavailableError:
                continue  # the engine says so; the lines wait
            except Exception:
                _log.exception("the logs of running attempts could not be written; they are tried again")
        self._task = None

    async def write(self) -> None:
        """Write the lines of running attempts that are not written yet."""
        waiting = list(self._waiting)
        for start in range(0, len(waiting), BATCH_LOGS):
            await self._write(waiting[start : start + BATCH_LOGS])

    async def _write(self, logs: Sequence[AttemptLog]) -> None:
        for log in logs:
            self._waiting.pop(log, None)  # its next line brings it back
        taken = {log: batch for log in logs if (batch := log.take()) is not None}
        if not taken:  # the attempts have ended, and their results have the rest
            return
        try:
            async with self._store.transaction() as transaction:
                await transaction.write_logs(taken.values())
        except BaseException:
            self._waiting.update(dict.fromkeys(taken))
            raise
        for log, batch in taken.items():
            log.written(batch)

    def close(self) -> None:
        """Stop: all attempts have ended or were given up."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None
