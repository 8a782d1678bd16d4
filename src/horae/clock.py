"""The only module that reads clocks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """The current instant, aware and in UTC."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; setting the system clock does not change them."""

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until an event is set, or until ``seconds`` have passed on this clock."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - commands that only read the time need no event loop

        # `asyncio.wait_for` would lose a cancellation that comes together with the event, before Python 3.12.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


process_seconds = time.process_time
"""The processor time that this process has used."""


def thread_seconds() -> Callable[[], float]:
    """What reads, from any thread, the processor time that the present one has used; where none can, that of the process."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    return (
        process_seconds if clock_of is None else partial(time.clock_gettime, clock_of(threading.get_ident()))
    )
