"""The lock that shows other processes that a node is alive: an operating-system lock on the node's file.

It is a ``flock``, which belongs to the open file: two stores in one process exclude each other, and testing the lock of another node
releases nothing. (A POSIX record lock belongs to the process, and does neither.) Two weaknesses of ``flock`` are handled here. A forked
child inherits it, and would hold it after its parent died: so the child closes its copy at once, and an executed program never gets one.
Only the supervisor of commands is given a copy, with which it holds the lock until they have ended. And it stays on a deleted file, where no other process finds it: so the locked file is compared with the file at its path.

Only POSIX has it. Elsewhere there is a lease instead: :mod:`horae.store.sqlite.leased_store`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

_held: set[int] = set()
"""The descriptors of all locks of this process."""


def _release_copies() -> None:
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if HAS_FLOCK:
    os.register_at_fork(after_in_child=_release_copies)


class NodeLock:
    """A lock that this process holds, until it is released or the process ends."""

    def __init__(self, path: str) -> None:
        """Take the lock; ``BlockingIOError`` if another process has it."""
        self._path = path
        self.descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self.descriptor)
            raise
        _held.add(self.descriptor)

    @property
    def holds(self) -> bool:
        """Whether other processes see it: its file still exists, and this process, not its parent, took the lock."""
        if self.descriptor not in _held:
            return False
        try:
            return os.path.samestat(os.fstat(self.descriptor), Path(self._path).stat())
        except OSError:
            return False

    def release(self) -> None:
        """Release it; the file stays, and shows that the node is dead."""
        if self.descriptor in _held:
            _held.remove(self.descriptor)
            os.close(self.descriptor)


def is_held(path: str) -> bool | None:
    """Whether another process, or another store of this one, holds a lock; ``None`` if its file is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
