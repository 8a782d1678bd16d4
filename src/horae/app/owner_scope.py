"""The scope of operations: what they share, and the owner whose data they are limited to."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from copy import copy
from typing import NamedTuple, TypeVar

import msgspec

from horae.app.accounts import Accounts, Billing, UsageTable
from horae.app.field_checks import check_owner
from horae.app.page import Page, cursor_of, fitting, page_limit
from horae.app.spec_evaluation import Answers, Evaluator
from horae.config import Config
from horae.engine.flow_host import FlowHost
from horae.errors import (
    MAX_OWNERS_SHOWN,
    RunNotFoundError,
    ScheduleAmbiguousError,
    ScheduleNotFoundError,
    ScheduleUnreadableError,
    UnknownActionError,
    did_you_mean,
)
from horae.executor.action_registry import Executors
from horae.executor.secret_sealing import Sealer
from horae.model import (
    OPERATOR,
    Action,
    Backfill,
    Run,
    Schedule,
    ScheduleKey,
    UnstartedRange,
    Version,
    owner_and_id,
    schedule_key,
)
from horae.store.port import Filter, Transaction
from horae.store.transaction_limit import StoreAccess

T = TypeVar("T")
MAX_COMPARED = 100
"""How many ids are compared with a misspelt one, from each of two places on."""
L = TypeVar("L", Run, UnstartedRange, Backfill, Version)


class _DryRunEnded(Exception):  # noqa: N818 - it undoes a transaction, and is no error
    """A dry run has come to its end."""


class UnitOfWork(NamedTuple):
    """The parts of a change: its scope, its transaction, the answers about specs that it needs, and its time."""

    scope: OwnerScope
    transaction: Transaction
    answers: Answers
    now: int

    async def locked(self, schedule_id: str, *, unreadable: bool = False) -> Schedule:
        """A schedule, locked until the end of the change. A schedule with unreadable fields is an error unless ``unreadable`` allows it."""
        found = await self.transaction.schedules([await self.scope.key(self.transaction, schedule_id)])
        if not found:
            raise await self.scope.not_found(self.transaction, schedule_id)
        if found[0].unreadable and not unreadable:
            raise ScheduleUnreadableError(schedule_id, found[0].unreadable)
        return found[0]


class OwnerScope:
    """The store, the clock and the limits that operations use; with an ``owner``, they see only what that owner has."""

    def __init__(
        self,
        store: StoreAccess,
        now: Callable[[], int],
        wake: Callable[..., None],
        *,
        executors: Executors,
        config: Config,
        billing: Billing | None = None,
        evaluator: Evaluator | None = None,
        flows: FlowHost | None = None,
    ) -> None:
        self.store = store
        self.now = now
        self.wake = wake
        """Wakes the engine: every decider, or only the named ones."""
        self.executors = executors
        self.config = config
        self.billing = billing or Billing(
            Accounts(store, Sealer(config.secret_key), now, required=config.accounts_required),
            UsageTable(store),
        )
        self.evaluator = evaluator or Evaluator()
        self.flows = FlowHost() if flows is None else flows
        """The flows that this process hosts."""
        self.owner: str | None = None
        self.scopes = frozenset({OPERATOR})
        """What else the caller may do. A program that names no owner is an operator."""

    def for_owner(self, owner: str, scopes: Collection[str] = ()) -> OwnerScope:
        """The same scope limited to one owner; with an empty name, to what has no owner."""
        check_owner(owner)
        limited = copy(self)
        limited.owner = owner
        limited.scopes = frozenset(scopes if owner else {OPERATOR, *scopes})
        return limited

    async def evaluate(self, work: Callable[[], T]) -> T:
        """Evaluate specs with a function without side effects, in a thread if it takes long."""
        return await self.evaluator.run(self.owner or "", work)

    async def evaluate_in_thread(self, work: Callable[[], T]) -> T:
        """Like :meth:`evaluate`, but always in a thread: for work that must not be called twice."""
        return await self.evaluator.in_thread(self.owner or "", work)

    def answers(self) -> Answers:
        """A new set of answers about specs, for one transaction."""
        return Answers(self.evaluator, self.owner or "")

    def permitted_by(self, action: Action, owner: str) -> str:
        """The scope by which an owner's schedule may use an action, or empty; raise an error if the operator does not allow it."""
        return self.executors.permissions.check(action.address, owner, self.scopes)

    async def change(
        self,
        act: Callable[[UnitOfWork], Awaitable[T]],
        *,
        answers: Answers | None = None,
        now: int | None = None,
        dry_run: bool = False,
    ) -> T:
        """Make a change in one transaction, and wake the engine; the transaction of a dry run is rolled back.

        The transaction is repeated whenever an answer about a spec had to be computed outside it.
        """
        answers = answers or self.answers()
        now = self.now() if now is None else now

        async def attempt() -> T:
            with contextlib.suppress(_DryRunEnded):
                async with self.store.transaction() as transaction:
                    result = await act(UnitOfWork(self, transaction, answers, now))
                    if dry_run:
                        raise _DryRunEnded
            return result

        result = await answers.carry_out(attempt)
        self.wake()
        return result

    async def check_actions(self, actions: Iterable[Action], had: str | None = None) -> None:
        """Require each action, except the one that the schedule ``had``, to be registered by this program or announced by a live node."""
        executors = self.executors
        addresses = {each.address for each in actions} - {had}
        unknown = {each for each in addresses if not executors.knows(each)}
        if unknown:
            announced = {action for node in await self.store.nodes() if node.alive for action in node.actions}
            if missing := sorted(unknown - announced):
                raise UnknownActionError(missing[0], sorted({*announced, *executors.actions}))

    def check_start(self, schedule: Schedule, *, other_input: bool) -> None:
        """Refuse to start an action that the operator does not allow; with other input, the scope that stored it does not count."""
        stored = set[str]() if other_input else {schedule.permitted_by}
        self.executors.permissions.check(schedule.action.address, schedule.owner, {*self.scopes, *stored})

    async def key(self, transaction: Transaction, schedule_id: str) -> ScheduleKey:
        """The store's key of a schedule, whether or not the schedule exists.

        In the scope of an owner this does not read the database, so nothing can depend on what other owners have. In the scope of all
        owners it is the schedule with the id, or else the deleted one that had it; if there are several, an owner must be named.
        """
        if self.owner is not None:
            return schedule_key(self.owner, schedule_id)
        found = await transaction.keys_of_id(schedule_id, MAX_OWNERS_SHOWN + 1)
        if len(found) > 1:
            raise ScheduleAmbiguousError(schedule_id, [owner_and_id(each)[0] for each in found])
        return found[0] if found else schedule_key("", schedule_id)

    async def read(self, transaction: Transaction, schedule_id: str) -> Schedule:
        """The current version of a schedule, without a lock."""
        found = await transaction.read_schedules([await self.key(transaction, schedule_id)])
        if not found:
            raise await self.not_found(transaction, schedule_id)
        return found[0]

    async def not_found(self, transaction: Transaction, schedule_id: str) -> ScheduleNotFoundError:
        """The error for an id that no schedule has. Its hint is the most similar id that the caller may see, of the first few
        and of those next to where it would be.
        """
        ids: set[str] = set()
        for beginning in ("", schedule_id[: len(schedule_id) // 2]):
            after = schedule_key(self.owner or "", beginning)
            found = await transaction.schedule_sizes(self.only(None), after, MAX_COMPARED)
            ids.update(owner_and_id(key)[1] for key, _ in found)
            if len(found) < MAX_COMPARED:  # these are all that come after
                break
        return ScheduleNotFoundError(schedule_id, hint=did_you_mean(schedule_id, sorted(ids)))

    async def known(self, transaction: Transaction, schedule_id: str) -> ScheduleKey:
        """The key of a schedule that exists, or has left a version or a run when it was deleted."""
        key = await self.key(transaction, schedule_id)
        if await transaction.versions(key, 1) or await transaction.read_schedules([key]):
            return key
        if await transaction.run_sizes(key, 1):  # a declarative task that is forgotten leaves no version
            return key
        raise await self.not_found(transaction, schedule_id)

    async def ledger(
        self,
        schedule_id: str,
        limit: int,
        sizes: Callable[[Transaction, ScheduleKey, int], Awaitable[Sequence[tuple[int, ...]]]],
        entries: Callable[[Transaction, ScheduleKey, int], Awaitable[Sequence[L]]],
    ) -> Page[L]:
        """A page of a schedule's ledger, newest first. ``sizes`` reads the place of each entry in the ledger, and its size in
        bytes: the page ends early if the entries are large. A ledger outlives its schedule.
        """
        limit = page_limit(limit)
        async with self.store.reading() as transaction:
            key = await self.key(transaction, schedule_id)
            places = await sizes(transaction, key, limit)
            number, more = fitting([size for *_, size in places], limit)
            found = await entries(transaction, key, number)
            if not found:
                await self.known(transaction, schedule_id)
        return Page(found, cursor_of(*places[number - 1][:-1]) if more else None)

    async def run(self, transaction: Transaction, run_id: str) -> Run:
        """A run. To an owner, a run of another owner's schedule is not found."""
        found = await transaction.runs_by_id([run_id])
        if not found or not self.sees(found[0]):
            raise RunNotFoundError(run_id)
        return found[0]

    def sees(self, entry: Run | Backfill) -> bool:
        """Whether an entry of a ledger belongs to the scope."""
        return self.owner in {None, owner_and_id(entry.schedule_key)[0]}

    def only(self, wanted: Filter | None) -> Filter:
        """The filter, restricted to the owner of the scope."""
        wanted = wanted or Filter()
        return wanted if self.owner is None else msgspec.structs.replace(wanted, owner=self.owner)
