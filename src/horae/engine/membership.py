"""This process as a node: its name, its epoch, and the lease under which it may run anything."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from horae.clock import Clock
from horae.config import Config
from horae.engine.lease import Lease, Term
from horae.engine.lease_keeper import LeaseKeeper
from horae.errors import NodeNameTakenError
from horae.model import Node
from horae.store.port import Store


class Membership:
    """Joins the nodes of a database, renews the lease, and knows when it has ended.

    ``actions`` says what this node can run. ``on_lost`` is called once when a lease is lost, to stop what runs under it, with the seconds
    until another node may attempt it. ``on_extended`` is called when a lease is extended, in any thread, with the monotonic time at which
    what the node started is killed, even if the node stands still.
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
        self.epoch = 0
        """The number under which this node claims; a new one each time it joins."""
        self.superseded = False
        """Whether a newer program has changed the schema: this one then decides and claims nothing."""
        self.outdated = False
        """Whether another node has newer time-zone data: this one then claims only what others have decided."""
        self._name = ""
        self._registered_actions: tuple[str, ...] = ()
        self._lease = Lease(store.lease, on_extended)
        self._stopped = 0  # the renewal of the lease under which everything was stopped
        self._keeper: LeaseKeeper | None = None

    @property
    def generating(self) -> bool:
        """Whether this node may decide what depends on time zones."""
        return not (self.outdated or self.superseded)

    @property
    def holds_lease(self) -> bool:
        """Whether the lease lasts long enough to stop what starts now before other nodes take this one for dead."""
        return self._clock.monotonic() < self._lease.term.until

    async def join(self, now: int) -> None:
        """Become a node: take a name and an epoch, and register the actions it can run."""
        patience = self._clock.monotonic() + (self._store.lease or 0) + 1
        while True:
            async with self._store.transaction() as transaction:
                self.epoch = await transaction.next_number()
            name = self._config.node_name or f"{socket.gethostname()}:{os.getpid()}:{self.epoch}"
            begun = self._clock.monotonic()
            if await self._register(name, now):
                self._lease.begin(self.epoch, begun)
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
        if self._lease.term.epoch == self.epoch:
            self._lease.renew(self.epoch, begun)
        else:  # it joined, and the answer was lost
            self._lease.begin(self.epoch, begun)
        return True

    def keep(self) -> None:
        """Renew the lease also while the running event loop is blocked, where the store can, until :meth:`stop_keeping`."""
        connection = self._store.lease_connection()
        if self._keeper is None and connection is not None and self._store.lease is not None:
            self._keeper = LeaseKeeper(
                self._lease, connection, self._clock.monotonic,
                seconds=self._store.lease, hung_after=self._config.hung_ms / 1000,
                on_over=self.check, on_trouble=self._store.tell_trouble,
            )  # fmt: skip

    async def stop_keeping(self) -> None:
        """Renew the lease only when asked to."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.stop()

    def check(self) -> float | None:
        """In how many seconds the lease ends; ``None`` if it has ended, and what ran under it was stopped."""
        term = self._lease.term
        left = term.until - self._clock.monotonic()
        if left > 0:
            return left
        self._stop(term)
        return None

    def leave(self) -> None:
        """Leave; nothing is running."""
        self._lease.end(self._lease.term.epoch)
        self._stopped = self._lease.term.renewals

    def lose(self) -> None:
        """Start nothing more, and stop what is running: another node may attempt it."""
        self._lease.end(self._lease.term.epoch)
        self._stop(self._lease.term)

    def _stop(self, term: Term) -> None:
        """Stop what is running, once for each time that the lease ended."""
        if term.renewals != self._stopped:
            self._stopped = term.renewals
            self._on_lost(max(term.ends_at - self._clock.monotonic(), 0))
