"""The scope of operations: what they share, and the owner whose data they are limited to."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from horae.app.accounts import AccountPort, Accounts
from horae.app.evaluation import Answers, Evaluator
from horae.app.field_checks import check_owner
from horae.app.page import Page, cursor_of, fitting, page_limit
from horae.app.usage_port import UsagePort, UsageTable
from horae.config import Config
from horae.engine.flow_registry import FlowRegistry
from horae.errors import InvalidInputError, RunNotFoundError, ScheduleNotFoundError, ScheduleUnreadableError
from horae.executor.registry import Executors
from horae.executor.sealing import Sealer
from horae.model import Backfill, Run, Schedule, UnstartedRange, Version
from horae.store.port import Filter, Transaction
from horae.store.transaction_limit import StoreAccess

T = TypeVar("T")
L = TypeVar("L", Run, UnstartedRange, Backfill, Version)


class Billing:
    """The ports through which runs are charged; a program may replace them."""

    def __init__(self, accounts: AccountPort, usage: UsagePort) -> None:
        self.accounts = accounts
        self.usage = usage


class OwnerScope:
    """The store, the clock and the limits that operations use; with an ``owner``, they see only what that owner has."""

    def __init__(
        self,
        store: StoreAccess,
        now: Callable[[], int],
        wake: Callable[[], None],
        *,
        executors: Executors,
        config: Config,
        billing: Billing | None = None,
        evaluator: Evaluator | None = None,
        flows: FlowRegistry | None = None,
        owner: str | None = None,
    ) -> None:
        self.store = store
        self.now = now
        self.wake = wake
        self.executors = executors
        self.config = config
        self.billing = billing or Billing(
            Accounts(store, Sealer(config.secret_key), now, required=config.accounts_required),
            UsageTable(store),
        )
        self.evaluator = evaluator or Evaluator()
        self.flows = FlowRegistry() if flows is None else flows
        """The flows that this process hosts."""
        self.owner = owner

    def for_owner(self, owner: str) -> OwnerScope:
        """The same scope limited to one owner."""
        if not owner:
            raise InvalidInputError("owner", "must not be empty")
        check_owner(owner)
        return OwnerScope(
            self.store, self.now, self.wake, executors=self.executors, config=self.config, billing=self.billing,
            evaluator=self.evaluator, flows=self.flows, owner=owner,
        )  # fmt: skip

    async def evaluate(self, work: Callable[[], T]) -> T:
        """Evaluate specs with a function without side effects, in a thread if it takes long."""
        return await self.evaluator.run(self.owner or "", work)

    async def evaluate_in_thread(self, work: Callable[[], T]) -> T:
        """The same, always in a thread: for work that must not be called twice."""
        return await self.evaluator.in_thread(self.owner or "", work)

    def answers(self) -> Answers:
        """A new set of answers about specs, for one transaction."""
        return Answers(self.evaluator, self.owner or "")

    def one(self, found: Iterable[Schedule], schedule_id: str) -> Schedule:
        """The requested schedule; one of another owner counts as not found."""
        for schedule in found:
            if self.owner in {None, schedule.owner}:
                return schedule
        raise ScheduleNotFoundError(schedule_id)

    async def locked(
        self, transaction: Transaction, schedule_id: str, *, unreadable: bool = False
    ) -> Schedule:
        """A schedule, locked until the end of the transaction. One with ``unreadable`` fields only if the caller takes it."""
        schedule = self.one(await transaction.schedules([schedule_id]), schedule_id)
        if schedule.unreadable and not unreadable:
            raise ScheduleUnreadableError(schedule_id, schedule.unreadable)
        return schedule

    async def read(self, transaction: Transaction, schedule_id: str) -> Schedule:
        """The current version of a schedule, without a lock."""
        return self.one(await transaction.read_schedules([schedule_id]), schedule_id)

    async def read_or_deleted(self, transaction: Transaction, schedule_id: str) -> Schedule | None:
        """The current version of a schedule, or ``None`` if it was deleted. Owners of deleted schedules are not recorded,
        so to an owner a deleted schedule is not found.
        """
        found = await transaction.read_schedules([schedule_id])
        return self.one(found, schedule_id) if found or self.owner is not None else None

    async def read_or_left(self, transaction: Transaction, schedule_id: str) -> None:
        """Raise an error unless a schedule exists, or has left a version when it was deleted."""
        if self.owner is not None or not await transaction.versions(schedule_id, 1):
            await self.read(transaction, schedule_id)

    def visible(self, entry: L | None, schedule: Schedule | None) -> L | None:
        """An entry of a schedule's ledger, unless it belongs to an earlier schedule of that id, perhaps of another owner."""
        if entry is None or self.owner is None or schedule is None:
            return entry
        return entry if entry.generation == schedule.generation else None

    async def own(self, transaction: Transaction, schedule_id: str, found: Iterable[L]) -> list[L]:
        """The ledger entries that the scope may see. A ledger outlives its schedule, and another owner may then take the id:
        an owner sees only the entries of their current schedule.
        """
        if self.owner is None:
            return list(found)
        schedule = await self.read(transaction, schedule_id)
        return [each for each in found if self.visible(each, schedule)]

    async def ledger(
        self,
        schedule_id: str,
        limit: int,
        sizes: Callable[[Transaction, int], Awaitable[Sequence[tuple[int, ...]]]],
        entries: Callable[[Transaction, int], Awaitable[Sequence[L]]],
    ) -> Page[L]:
        """A page of a schedule's ledger, newest first. ``sizes`` has the place of each entry in the ledger, and its size in
        bytes: the page ends early if the entries are large.
        """
        limit = page_limit(limit)
        async with self.store.reading() as transaction:
            places = await sizes(transaction, limit)
            number, more = fitting([size for *_, size in places], limit)
            found = await entries(transaction, number)
            own = await self.own(transaction, schedule_id, found)
        # All entries after one of an earlier schedule with the same id belong to earlier schedules too.
        more = more and 0 < len(own) == len(found) == number
        return Page(own, cursor_of(*places[number - 1][:-1]) if more else None)

    async def run(self, transaction: Transaction, run_id: str) -> Run:
        """A run. To an owner, a run of another owner's schedule, or of a deleted one, is not found."""
        found = await transaction.runs_by_id([run_id])
        with contextlib.suppress(ScheduleNotFoundError):
            if found and (own := await self.own(transaction, found[0].schedule_id, found)):
                return own[0]
        raise RunNotFoundError(run_id)

    def only(self, wanted: Filter | None) -> Filter:
        """The filter, restricted to the owner of the scope."""
        wanted = wanted or Filter()
        return wanted if self.owner is None else msgspec.structs.replace(wanted, owner=self.owner)
