"""Renews the lease of a node in a thread, so that an action that blocks the event loop does not lose it.

A loop that stays silent for very long hangs: the thread then stops renewing, and other nodes take over what the node had claimed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import traceback
from collections.abc import Callable

from horae.engine.lease import RENEWALS, Lease
from horae.errors import StoreUnavailableError
from horae.store.port import LeaseConnection

_BEATS = 5
"""How often the event loop answers, at least, in the time after which it hangs."""
_LEAVING_S = 2.0
"""Seconds that the thread may take to end; it renews nothing meanwhile."""
_log = logging.getLogger("horae")


class LeaseKeeper:
    """The thread. It is started and stopped in the event loop that it watches.

    ``on_over`` is called in that loop when the database said that the lease has expired, ``on_trouble`` in the thread when the
    database cannot be reached.
    """

    def __init__(
        self,
        lease: Lease,
        connection: LeaseConnection,
        monotonic: Callable[[], float],
        *,
        seconds: float,
        hung_after: float,
        on_over: Callable[[], object],
        on_trouble: Callable[[StoreUnavailableError], None],
    ) -> None:
        self._lease = lease
        self._connection = connection
        self._monotonic = monotonic
        self._seconds = seconds
        self._every = seconds / RENEWALS
        self._hung_after = hung_after
        self._on_over = on_over
        self._on_trouble = on_trouble
        self._failures = 0  # in a row
        self._silent = 0.0  # seconds for which the loop has been silent while this thread could run
        self._seen = (0, 0.0)  # the last look at the loop: how often it had answered, and when that was
        self._hung: int | None = None  # the epoch under which the loop hangs
        self._watched, self._watched_thread = asyncio.get_running_loop(), threading.get_ident()
        self._answers = 0
        self._beat()
        self._own = asyncio.new_event_loop()
        self._stopping, self._ended = asyncio.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="horae:lease", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Renew no longer, and wait until the thread and its connection have ended."""
        self._timer.cancel()
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._own.call_soon_threadsafe(self._stopping.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _LEAVING_S)
            self._thread.join()

    def _beat(self) -> None:
        """In the event loop: show that it answers."""
        self._answers += 1
        self._timer = self._watched.call_later(min(self._hung_after / _BEATS, 1.0), self._beat)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._own) as runner:
            runner.run(self._keep())
        with contextlib.suppress(RuntimeError):  # that loop was closed
            self._watched.call_soon_threadsafe(self._ended.set)

    async def _keep(self) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        while not (stopping.done() or self._watched.is_closed()):
            turn = asyncio.create_task(self._turn())
            await asyncio.wait({turn, stopping}, return_when=asyncio.FIRST_COMPLETED)
            turn.cancel()
            await asyncio.wait({turn})
            # After a failure sooner, but less often the longer it lasts.
            pause = self._every if not self._failures else min(self._every, self._every / 4 * self._failures)
            await asyncio.wait({stopping}, timeout=pause)
        stopping.cancel()
        await self._connection.close()

    async def _turn(self) -> None:
        try:
            if self._is_hung():
                return
            await self._renew()
            self._tell_answers()
        except Exception:
            _log.exception("renewing the lease failed, and is tried again")
            self._failures += 1

    async def _renew(self) -> None:
        term, asked_at = self._lease.term, self._monotonic()
        if term.over:
            return  # the loop rejoins
        try:
            renewed = await self._connection.renew(term.epoch)
        except StoreUnavailableError as error:
            self._failures += 1
            if self._failures == 1:
                self._on_trouble(error)
            return
        self._failures = 0
        if renewed:
            self._lease.renew(term.epoch, asked_at)
        else:
            self._lease.end(term.epoch)
            with contextlib.suppress(RuntimeError):  # that loop was closed
                self._watched.call_soon_threadsafe(self._on_over)

    def _is_hung(self) -> bool:
        """Whether the event loop is silent for so long that it will hardly answer again."""
        now, (answers, looked_at) = self._monotonic(), self._seen
        self._seen = self._answers, now
        if answers != self._answers:
            self._silent = 0.0
            return False
        # A process that was stopped could not answer: of a long pause only what was meant to pass counts.
        self._silent += min(now - looked_at, self._seconds)
        if self._silent < self._hung_after:
            return False
        if self._hung is None:
            self._hung = self._lease.term.epoch
            frame = sys._current_frames().get(self._watched_thread)  # noqa: SLF001 - documented
            stack = [] if frame is None else traceback.format_stack(frame)
            _log.error(
                "the event loop has not answered for %.0f s: this node no longer renews its lease, and others take over its runs; "
                "the loop is at\n%s",
                self._silent,
                "".join(stack).rstrip(),
            )
        return True

    def _tell_answers(self) -> None:
        """Log that a loop that hung answers again, and what became of its lease."""
        if self._hung is None:
            return
        term = self._lease.term
        lost = term.over or term.epoch != self._hung
        outcome = "expired: what ran under it counts no more" if lost else "is renewed again"
        _log.warning("the event loop answers again; the lease of this node %s", outcome)
        self._hung = None
