"""This process as a node: its name, its epoch, and the lease under which it may run anything."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Callable

from horae.clock import Clock
from horae.config import Config
from horae.errors import NodeNameTakenError
from horae.model import Node
from horae.store.port import Store

STOPPING = 0.2
"""The last part of a lease, in which attempts must stop: at its end another node may attempt them."""
KILLING = 0.02
"""The last part of a lease, in which processes are killed that the node has not stopped itself, because it stands still."""


class Membership:
    """Joins the nodes of a database, renews the lease, and knows when it has ended.

    ``actions`` says what this node can run. ``on_lost`` is called once when a lease is lost, to stop what runs under it, with the seconds
    until another node may attempt it. ``on_extended`` is called when a lease is extended, with the monotonic time at which what the node
    started is killed, even if the node stands still.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: Config,
        *,
        tzdata: str,
        actions: Callable[[], tuple[str, ...]],
        on_lost: Callable[[float], None],
        on_extended: Callable[[float], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._tzdata = tzdata
        self._actions = actions
        self._on_lost = on_lost
        self._on_extended = on_extended
        self.epoch = 0
        """The number under which this node claims; a new one each time it joins."""
        self.superseded = False
        """Whether a newer program has changed the schema: this one then decides and claims nothing."""
        self.outdated = False
        """Whether another node has newer time-zone data: this one then claims only what others have decided."""
        self._name = ""
        self._registered_actions: tuple[str, ...] = ()
        self._lease_until = 0.0  # by the monotonic clock; the rest of the lease is for stopping
        self._ends_at = 0.0  # the end of the whole lease
        self._lost = True  # what ran under an earlier lease was stopped

    @property
    def generating(self) -> bool:
        """Whether this node may decide what depends on time zones."""
        return not (self.outdated or self.superseded)

    @property
    def holds_lease(self) -> bool:
        """Whether the lease lasts long enough to stop what starts now before other nodes take this one for dead."""
        return self._clock.monotonic() < self._lease_until

    async def join(self, now: int) -> None:
        """Become a node: take a name and an epoch, and register the actions it can run."""
        patience = self._clock.monotonic() + (self._store.lease or 0) + 1
        while True:
            async with self._store.transaction() as transaction:
                self.epoch = await transaction.next_number()
            name = self._config.node_name or f"{socket.gethostname()}:{os.getpid()}:{self.epoch}"
            begun = self._clock.monotonic()
            if await self._register(name, now):
                self._extend(begun)
                return
            # A name is free when no living node has it; one that was killed keeps it for the rest of its lease.
            if self._clock.monotonic() >= patience:
                raise NodeNameTakenError(name)
            await asyncio.sleep(0.2)

    async def _register(self, name: str, now: int) -> bool:
        """Register what this node can run, again when that changes. ``False`` if another living node has the name."""
        self._name, self._registered_actions = name, self._actions()
        return await self._store.register_node(
            Node(
                epoch=self.epoch,
                name=name,
                actions=self._registered_actions,
                tzdata=self._tzdata,
                started_at_ms=now,
            )
        )

    async def renew(self, now: int) -> None:
        """Renew the lease, or rejoin under a new epoch if it expired."""
        if not await self.extend():
            if self._store.lease is not None:
                self._ends_at = 0.0  # another node may have taken over
            self.lose()
            await self.join(now)
            return
        self.superseded = await self._store.has_newer_schema()
        if self._actions() != self._registered_actions:
            await self._register(self._name, now)

    async def extend(self) -> bool:
        """Renew the lease; ``False`` if it expired."""
        begun = self._clock.monotonic()
        if not await self._store.renew(self.epoch):
            return False
        self._extend(begun)
        return True

    def _extend(self, begun: float) -> None:
        """Count the lease from the moment of the request, by the monotonic clock."""
        lease = math.inf if self._store.lease is None else self._store.lease
        self._lease_until, self._ends_at = begun + lease * (1 - STOPPING), begun + lease
        self._lost = False
        if self._on_extended is not None:
            self._on_extended(begun + lease * (1 - KILLING))

    def check(self) -> float | None:
        """In how many seconds the lease ends; ``None`` if it has ended, and what ran under it was stopped."""
        left = self._lease_until - self._clock.monotonic()
        if left > 0:
            return left
        self.lose()
        return None

    def leave(self) -> None:
        """Leave; nothing is running."""
        self._lease_until, self._lost = 0.0, True

    def lose(self) -> None:
        """Start nothing more, and stop what is running: another node may attempt it."""
        self._lease_until = 0.0
        if not self._lost:
            self._lost = True
            self._on_lost(max(self._ends_at - self._clock.monotonic(), 0))
