"""Deciders: each reads what is due under lock, asks a policy, and writes the decision. This is their common base.

A new decider is one class: derive from :class:`Decider`, implement how lanes are decided, how results are recorded and which
attempts a node has claimed, and give the class to ``App.add_decider``. The base class handles transactions, claims, leases,
lost commits and dead nodes. Every node of a database must have the same deciders.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeVar

import msgspec

from horae.clock import Clock
from horae.config import Config
from horae.engine.membership import Membership
from horae.engine.observer import Observers
from horae.engine.worker import Launch, Worker
from horae.errors import StoreUnavailableError
from horae.model import AttemptEnd, AttemptResult, Run, Status
from horae.store.port import Store, Transaction

T = TypeVar("T")

COMMIT_GRACE_S = 10.0
"""Seconds after which a commit whose answer was lost has either succeeded or never will."""

CONTENTION_WAIT_MS = 20
"""Milliseconds to wait when another node has locked all that is due."""

PAGE = 500
"""How many attempts of dead nodes are taken over in one transaction."""


class NodeServices(NamedTuple):
    """The parts of a node that its deciders use."""

    store: Store
    worker: Worker
    membership: Membership
    observers: Observers
    clock: Clock
    config: Config


class Batch(msgspec.Struct):
    """One transaction of a decider, with the attempts that it claims: they are launched after the commit."""

    transaction: Transaction
    now: int
    epoch: int
    worker: Worker
    free_capacity: int
    """How many more attempts may be claimed."""
    excluded: AbstractSet[str]
    """Lanes that this batch must not decide: results of their runs are being recorded at the same time."""
    claimed: list[Run] = []
    unclaimed: int = 0
    """How many released runs were left to other nodes."""
    decided: int = 0
    """How many lanes were decided. If some are due but none was decided or claimed, another node has locked them."""
    more: bool = False
    """Whether more is due than this batch has decided: another follows at once."""
    launches: Sequence[Launch] | None = None
    """The launches of the claimed attempts; ``None`` leaves them to :meth:`Decider.prepare`."""

    def claim(self, run: Run) -> Run | None:
        """Claim the next attempt of a released run; ``None`` if this node cannot run it, or has no capacity left."""
        if self.free_capacity <= 0 or not self.worker.can_run(run):
            self.unclaimed += 1
            return None
        return self.take(run)

    def take(self, run: Run) -> Run:
        """Claim the next attempt of a run that this node can run and has capacity for."""
        self.free_capacity -= 1
        claimed = msgspec.structs.replace(
            run, status=Status.RUNNING, attempt=run.attempt + 1, epoch=self.epoch, started_at_ms=self.now
        )
        self.claimed.append(claimed)
        return claimed


class Decider(ABC):
    """Decides one kind of lane (a schedule, a flow). Any node may decide a lane, under the lock of its row.

    An attempt starts only after its claim is durable, and its result is recorded under that claim.
    """

    name: str
    """Unique in a node: the worker keeps the results of its attempts under it."""
    changed: bool = True
    """Whether this step must ask what is due; ``False`` if all that happened is that attempts of its own ended."""

    def __init__(self, node: NodeServices) -> None:
        self.node = node
        self._doubtful_until = 0.0  # until then, commits whose answers were lost may have claimed attempts
        self._more = False  # more was due than the last batch could decide
        self._unclaimed = False  # the last batch left runs to others, or to itself once there is capacity

    @property
    def is_unfinished(self) -> bool:
        """Whether it must step again when anything happens: a claim is in doubt, or a run waits for capacity."""
        return bool(self._doubtful_until) or self._unclaimed

    @abstractmethod
    async def decide(self, batch: Batch) -> int | None:
        """Lock and decide what is due, and claim what this node can run. Returns when the next lane is due, if any is."""

    @abstractmethod
    async def record(self, transaction: Transaction, results: Sequence[AttemptResult], now: int) -> object:
        """Lock the lanes of results and write the results under their claims; a stale claim writes nothing."""

    @abstractmethod
    async def claimed(self, transaction: Transaction, epochs: Sequence[int], limit: int) -> Sequence[Run]:
        """The attempts that the given nodes have claimed and that have no result yet, oldest first."""

    async def prepare(self, transaction: Transaction, runs: Sequence[Run]) -> Sequence[Launch]:  # noqa: ARG002
        """The launches of claimed runs."""
        return [Launch(run=run) for run in runs]

    async def stopping(self, transaction: Transaction, epoch: int) -> Sequence[Run]:  # noqa: ARG002
        """The attempts of a node that were asked to stop."""
        return ()

    async def prune(self, now: int) -> int:  # noqa: ARG002
        """Delete a part of what is past its retention; return how many rows were deleted."""
        return 0

    async def step(self, now: int) -> int | None:
        """Record results, decide what is due, and launch what was claimed. Returns when to step again, if it is known."""
        if self._doubtful_until:
            await self._recover()
        return await self.run_batches(now)

    async def run_batches(self, now: int) -> int | None:
        """Decide one batch; a decider of many lanes may decide several at the same time."""
        self._more = self._unclaimed = False
        worker = self.node.worker
        return await self.run_batch(now, worker.results(self.name), free_capacity=worker.free_capacity)

    async def run_batch(
        self,
        now: int,
        results: Sequence[AttemptResult] = (),
        excluded: AbstractSet[str] = frozenset(),
        *,
        free_capacity: int,
    ) -> int | None:
        """Record results and decide, in one transaction; then launch what was claimed. Returns when to step again."""
        store, worker, membership, observers, clock, _ = self.node
        epoch = membership.epoch
        begun = clock.monotonic()
        try:
            async with store.transaction() as transaction:
                batch = Batch(transaction, now, epoch, worker, free_capacity, excluded)
                wake = await self.record_and_decide(batch, results)
                stopping = await self.stopping(transaction, epoch)
                launches = await self._checked_launches(batch, now + int((clock.monotonic() - begun) * 1000))
        except StoreUnavailableError:
            self._doubtful_until = clock.monotonic() + COMMIT_GRACE_S
            raise
        worker.forget(self.name, len(results))
        self._more = self._more or batch.more
        self._unclaimed = self._unclaimed or batch.unclaimed > 0
        self._launch(launches, epoch)
        for run in stopping:
            worker.stop(self.name, run)
        if observers:
            seconds = clock.monotonic() - begun
            observers.tell(lambda each: each.stepped(seconds))
        if batch.more:
            return now
        waits = wake is not None and wake <= now and not (batch.decided or batch.claimed)
        return now + CONTENTION_WAIT_MS if waits else wake

    async def record_and_decide(self, batch: Batch, results: Sequence[AttemptResult]) -> int | None:
        """Record results, then decide what is due. A decider that locks the same rows for both may do it in one go."""
        if results:
            await self.record(batch.transaction, results, batch.now)
        return None if self.node.membership.superseded else await self.decide(batch)

    async def _checked_launches(self, batch: Batch, now: int) -> Sequence[Launch]:
        """The attempts to launch after the commit, which may be long after the batch began. Raises, so that nothing is claimed, if
        others have taken this node for dead or its clock is off.
        """
        if not batch.claimed:
            return ()
        launches = batch.launches
        if launches is None:
            launches = await self.prepare(batch.transaction, batch.claimed)
        launches = await self.node.worker.prepare(batch.transaction, launches, batch.now)
        if not await batch.transaction.is_node(batch.epoch, now):
            raise StoreUnavailableError("the lease of this node expired, and others have taken it for dead")
        return launches

    def _launch(self, launches: Sequence[Launch], epoch: int) -> None:
        """Launch the attempts claimed under an epoch; give them back if the lease may have ended."""
        if not launches:
            return
        _, worker, membership, observers, *_ = self.node
        allowed = membership.holds_lease and epoch == membership.epoch
        for each in launches:
            if allowed:
                worker.launch(self.name, each)
            else:
                worker.refuse(self.name, each.run)
        if observers and (runs := [each.run for each in launches if each.call is None]):
            observers.tell(lambda each: each.claimed(runs, launched=allowed))

    async def _recover(self) -> None:
        """Launch attempts claimed by a commit whose answer was lost: no other node will while this one lives."""
        store, worker, membership, _, clock, config = self.node
        epoch, known = membership.epoch, worker.known(self.name)
        over = clock.monotonic() >= self._doubtful_until
        async with store.transaction() as transaction:
            claimed = await self.claimed(transaction, [epoch], len(known) + config.concurrency)
            forgotten = [run for run in claimed if (run.id, run.attempt) not in known]
            launches = await self.prepare(transaction, forgotten) if forgotten else ()
        self._launch(launches, epoch)
        if over:
            self._doubtful_until = 0.0

    async def record_results(self, now: int) -> None:
        """Record results, and decide nothing."""
        results = self.node.worker.results(self.name)
        if not results:
            return
        async with self.node.store.transaction() as transaction:
            await self.record(transaction, results, now)
            await transaction.notify()
        self.node.worker.forget(self.name, len(results))

    async def rescue(self, dead: Sequence[int], now: int) -> int:
        """Record the attempts that dead nodes had claimed as crashed; returns how many."""
        rescued = 0
        while True:
            async with self.node.store.transaction() as transaction:
                lost = await self.claimed(transaction, dead, PAGE)
                if lost:
                    await self.record(transaction, [_crashed(run) for run in lost], now)
                    await transaction.notify()
            rescued += len(lost)
            if len(lost) < PAGE:
                return rescued


def _crashed(run: Run) -> AttemptResult:
    return AttemptResult(run=run, ending=AttemptEnd.CRASHED, failure="the process died")


async def all_of(parts: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently until all have ended, even if some raise; then raise the first error."""
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
