"""What ends commands with their node: a small process beside it, which is told of every group of processes before its command begins.

The supervisor reads from a socket that only the node writes to. At its end the node is gone, however it ended: then the supervisor kills
the groups that it was told of, and ends when nothing of them is left. Until then it holds copies of the node's locks, by which other
nodes see that the node is alive. Where a lease shows that instead, it kills them shortly before the lease ends, even if the node stands
still. A node starts it for its first command, and a command begins only after the supervisor has answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import socket
import sys
import weakref
from collections.abc import Callable, Collection

from horae.executor import supervisor_program
from horae.executor.supervisor_program import BEGUN, ENDED, EXTENDED, GONE_WITHIN, MESSAGE, MOST_LOCKS

ANSWERS_WITHIN = 10.0
"""Seconds that a supervisor has to start, and to answer."""
_log = logging.getLogger("horae")


class Supervisor:
    """A node's side: starts the process, tells it of groups, and starts it again if it was killed."""

    def __init__(self, locks: Callable[[], Collection[int]] = tuple) -> None:
        self._locks = locks
        self._groups: set[int] = set()
        self._until = math.inf
        self._turn = asyncio.Lock()
        self._channel: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        _supervisors.add(self)

    async def begin(self, group: int) -> None:
        """Let a group end with this node; ``OSError`` if the supervisor does not answer."""
        async with self._turn:
            self._groups.add(group)
            if self._channel is not None:
                with contextlib.suppress(OSError):
                    await self._begin(group)
                    return
            await self._start()

    def end(self, group: int) -> None:
        """Forget a group: nothing is left of it."""
        self._groups.discard(group)
        self._tell(ENDED, group)

    def extend(self, until: float) -> None:
        """Let groups run until a moment of the monotonic clock, unless a later one follows."""
        self._until = until
        self._tell(EXTENDED)

    async def close(self) -> None:
        """End the process, and wait for it."""
        async with self._turn:
            await self._stop()
        self._groups.clear()
        self._turn = asyncio.Lock()  # the next opening may have another event loop

    async def _start(self) -> None:
        if (
            self._process is not None
        ):  # it does not answer: killed, because it would kill the groups at the end of the socket
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._stop()
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(0)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-IS", supervisor_program.__file__, stdin=theirs.fileno(), stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL, cwd="/", start_new_session=True,
            )  # fmt: skip
        self._tell(EXTENDED)
        for group in list(self._groups):
            await self._begin(group)
        self._watching = asyncio.create_task(self._watch(self._process), name="horae:supervisor")

    async def _begin(self, group: int) -> None:
        assert self._channel is not None  # noqa: S101 - it was started
        data, locks = MESSAGE.pack(BEGUN, group, 0), list(self._locks())[:MOST_LOCKS]
        if socket.send_fds(self._channel, [data], locks) < len(data):
            raise BlockingIOError
        answer = asyncio.get_running_loop().sock_recv(self._channel, 1)
        if not await asyncio.wait_for(answer, ANSWERS_WITHIN):
            raise ConnectionResetError

    def _tell(self, what: bytes, group: int = 0) -> None:
        channel = self._channel  # a lease may be extended in another thread than that which closes this
        if channel is not None:
            with contextlib.suppress(OSError):  # it was killed: the next one is told
                channel.send(MESSAGE.pack(what, group, self._until))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Start another one if it was killed while commands run."""
        await process.wait()
        async with self._turn:
            if process is self._process and self._groups:
                try:
                    await self._start()
                except OSError:
                    _log.exception("the supervisor of commands was killed, and cannot be started again")

    async def _stop(self) -> None:
        process, self._process = self._process, None
        self.disconnect()
        if process is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GONE_WITHIN + 1)

    def disconnect(self) -> None:
        """Close this process's end of the socket."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


_supervisors: weakref.WeakSet[Supervisor] = weakref.WeakSet()


def _disconnect_copies() -> None:
    """A forked child would keep the socket open after its parent died."""
    for each in _supervisors:
        each.disconnect()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disconnect_copies)
