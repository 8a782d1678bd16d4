"""Ends a process in order: the first signal waits for running attempts, the second for nothing, and the process always ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from horae.app.start_line import tell_start
from horae.errors import InvalidInputError
from horae.spec.duration import duration_text

if TYPE_CHECKING:
    from horae.app import App

SIGNALS = (signal.SIGTERM, signal.SIGINT)
MAX_NAMED = 5
"""How many actions the last words of a process name."""
LEAVING = 3
"""Seconds that tasks and threads of actions may take to end after the app was closed."""
LEFT_BEHIND = 3
"""The exit status of a process that ended although some attempts had not stopped."""
_imported = ContextVar("imported", default=False)
_log = logging.getLogger("horae")


def run_until_signal(app: App) -> None:
    """Keep time until SIGTERM or SIGINT, then wait for running attempts; a second signal waits for nothing."""
    if _imported.get():
        hint = 'call it below: if __name__ == "__main__":'
        raise InvalidInputError("app.run()", "is called when its module is imported", hint=hint)
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise TypeError("app.run() would block the event loop: use `await app.serve()`")
    runner = asyncio.Runner()
    with _handlers_restored():
        try:
            # A second signal cancels the closing too, which is no error: other nodes take over its runs.
            with contextlib.suppress(asyncio.CancelledError):
                runner.run(_serve(app))
        finally:
            leaving = exit_within(LEAVING)
            runner.close()  # it waits for all tasks, and for the threads of its pool
            leaving.cancel()
    if app.left_behind:
        sys.exit(LEFT_BEHIND)


@contextlib.contextmanager
def only_imported() -> Iterator[None]:
    """Import a module for its app without running it: ``app.run()`` at import is refused."""
    token = _imported.set(True)
    try:
        yield
    finally:
        _imported.reset(token)


async def _open_and_serve(app: App) -> None:
    async with app:
        await tell_start(app)
        await app.serve()


async def _serve(app: App) -> None:
    serving = asyncio.create_task(_open_and_serve(app), name="horae:serve")
    limits: list[threading.Timer] = []

    def ask() -> None:
        app.hurried = bool(serving.cancelling())
        if not app.hurried and (waits := awaited_attempts(app)):
            _log.warning("%s", waits)
        serving.cancel()

    if threading.current_thread() is threading.main_thread():
        grace = (app.config.drain_ms + app.config.terminate_ms) / 1000 + LEAVING
        handle_signals(ask, lambda: limits.append(exit_within(grace)))
    try:
        await serving
    finally:
        for each in limits:
            each.cancel()


def awaited_attempts(app: App) -> str:
    """What the end of the process waits for, as a sentence; empty if nothing runs."""
    running = app.worker.running
    if not running:
        return ""
    named = [name if number == 1 else f"{name} {number}" for name, number in running.most_common(MAX_NAMED)]
    names = ", ".join(named if len(running) <= MAX_NAMED else [*named, "…"])
    attempts = "1 attempt has" if running.total() == 1 else f"{running.total()} attempts have"
    latest = duration_text(app.config.drain_ms)
    return f"Horae ends when {attempts} ended ({names}), or after {latest}; interrupt it again to end now"


def handle_signals(ask: Callable[[], None], limit: Callable[[], object]) -> None:
    """At each signal, call ``limit`` at once and ``ask`` in the event loop, which an action may block."""
    loop = asyncio.get_running_loop()

    def hear(*_: object) -> None:
        limit()
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the process ends anyway
            loop.call_soon_threadsafe(ask)

    for each in SIGNALS:
        signal.signal(each, hear)


@contextlib.contextmanager
def _handlers_restored() -> Iterator[None]:
    """Restore the program's own signal handlers."""
    if threading.current_thread() is not threading.main_thread():  # it has none
        yield
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def exit_within(seconds: float) -> threading.Timer:
    """End the process after at most ``seconds``, whatever blocks it, unless the timer is cancelled."""

    def exit_now() -> None:
        kept = sorted(each.name for each in threading.enumerate() if not each.daemon)
        _log.error(
            "Horae exits without waiting any longer; what keeps it is in the event loop or in: %s",
            ", ".join(kept),
        )
        logging.shutdown()
        os._exit(LEFT_BEHIND)

    timer = threading.Timer(seconds, exit_now)
    timer.daemon = True
    timer.start()
    return timer
