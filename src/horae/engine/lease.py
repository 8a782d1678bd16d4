"""The lease under which this process may run anything: renewed in the event loop or beside it, and read everywhere."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import msgspec

RENEWALS = 5
"""How often a lease is renewed while it lasts."""
STOPPING = 0.2
"""The last part of a lease, in which attempts must stop: at its end another node may attempt them."""
KILLING = 0.02
"""The last part of a lease, in which processes are killed that the node has not stopped itself, because it stands still."""


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A lease as it was last renewed. Times are those of the monotonic clock."""

    epoch: int = 0
    """The node that has it."""
    until: float = 0.0
    """When attempts under it must stop."""
    ends_at: float = 0.0
    """When other nodes may attempt what ran under it."""
    renewals: int = 0
    """How often a lease of this process was renewed."""
    over: bool = True
    """Whether it has ended for good: the database said so, or the node has left."""


class Lease:
    """The lease of a node. Each change assigns a frozen value, so that any thread may read it.

    ``on_extended`` is called with the time at which what the node started is killed, even if the node stands still.
    """

    def __init__(self, seconds: float | None, on_extended: Callable[[float], None] | None = None) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._on_extended = on_extended
        self._changing = threading.Lock()
        self.term = Term()

    def begin(self, epoch: int, asked_at: float) -> None:
        """Begin the lease of a node that joined. It counts from the moment of the request."""
        with self._changing:
            self._extend(epoch, asked_at)

    def renew(self, epoch: int, asked_at: float) -> None:
        """Count the lease from the moment of a request that renewed it, unless it ended meanwhile."""
        with self._changing:
            term = self.term
            if term.epoch == epoch and not term.over and asked_at + self._seconds > term.ends_at:
                self._extend(epoch, asked_at)

    def _extend(self, epoch: int, asked_at: float) -> None:
        self.term = Term(
            epoch=epoch, until=asked_at + self._seconds * (1 - STOPPING), ends_at=asked_at + self._seconds,
            renewals=self.term.renewals + 1, over=False,
        )  # fmt: skip
        if self._on_extended is not None:
            self._on_extended(asked_at + self._seconds * (1 - KILLING))

    def end(self, epoch: int) -> None:
        """End the lease of a node for good, if it is still the last one. Without a lease, no node takes over before this one is gone."""
        with self._changing:
            if self.term.epoch == epoch:
                ends_at = math.inf if self._seconds == math.inf else 0.0
                self.term = Term(epoch=epoch, ends_at=ends_at, renewals=self.term.renewals)
