"""The program of the supervisor, which ends commands with their node: :mod:`horae.executor.supervisor` starts it.

It imports little of the standard library and nothing else, so that it starts quickly and stays small.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

MESSAGE = struct.Struct("=cqd")
"""What happened, the group that it concerns, and the end of the lease by the monotonic clock, which all processes share."""
BEGUN, ENDED, EXTENDED = b"+", b"-", b"="
MOST_LOCKS = 16
GONE_WITHIN = 5.0
"""Seconds in which processes that were killed are gone, unless the kernel holds them or nothing waits for them."""
AGAIN = 0.05
"""Seconds after which what is left of a group that was killed is killed again."""


def supervise(channel: socket.socket) -> None:
    """Listen until the node is gone; then kill what it left, and return when nothing is left."""
    groups: dict[int, list[int]] = {}
    until = math.inf
    while True:
        channel.settimeout(_kill_after(groups, until))
        try:
            data, locks, _, _ = socket.recv_fds(channel, MESSAGE.size, MOST_LOCKS, socket.MSG_WAITALL)
        except TimeoutError:
            continue
        except OSError:  # the node is gone, and had not read an answer
            break
        if len(data) < MESSAGE.size:
            break
        what, group, moment = MESSAGE.unpack(data)
        if what == BEGUN:
            groups[group] = locks
            _kill_after(groups, until)
            with contextlib.suppress(OSError):  # the node is gone, which is read next
                channel.send(b"!")
        elif what == ENDED:
            _forget(groups, group)
        else:
            until = moment
    patience = time.monotonic() + GONE_WITHIN  # noqa: TID251 - a program of its own
    while groups and time.monotonic() < patience:  # noqa: TID251
        _kill(groups)
        for group in [each for each in groups if not _runs(each)]:
            _forget(groups, group)
        time.sleep(AGAIN / 10)


def _kill_after(groups: dict[int, list[int]], until: float) -> float | None:
    """Kill all groups if the lease has ended; in how many seconds to look again, ``None`` if there is nothing to kill."""
    left = until - time.monotonic()  # noqa: TID251 - a program of its own
    if left <= 0:
        _kill(groups)
        left = AGAIN
    return left if groups and left < math.inf else None


def _kill(groups: dict[int, list[int]]) -> None:
    """Kill all groups, and forget those of which nothing is left."""
    for group in list(groups):
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:  # nothing is left, or what is left has gained rights that this user lacks
            _forget(groups, group)


def _runs(group: int) -> bool:
    """Whether anything of a group runs that was killed. What has ended may be there for long, until its parent waits for it."""
    if sys.platform != "linux":
        return True
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = process.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in {b"Z", b"X"}:
                return True
    return False


def _forget(groups: dict[int, list[int]], group: int) -> None:
    for lock in groups.pop(group, ()):
        os.close(lock)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # it is to outlast the node, whatever ends that one's group
    supervise(socket.socket(fileno=0))
