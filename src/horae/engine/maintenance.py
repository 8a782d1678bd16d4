"""Maintenance: rescues runs of dead nodes, repairs schedules, prunes ledgers, and marks schedules that need attention."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from horae.config import Config
from horae.engine.attempt_results import Recorded
from horae.engine.decider import Decider, all_of
from horae.engine.external_worker_reports import end_overdue, stop_reported
from horae.model import WAITING, Node, Policies, Retention, Schedule, ScheduleKey, Status
from horae.policy.slot_times import next_slot_ms
from horae.spec import Spec
from horae.spec.duration import milliseconds
from horae.store.port import BEGINNING, Advance, RetentionBounds, Store, Transaction

PAGE = 500
STALE_MS = 60_000
EVALUATED_TOGETHER = 50
"""How many specs are evaluated in one turn of the event loop."""
PRUNED_TOGETHER = 20
PRUNED_ROWS = 25
PRUNING_PASSES = 20
"""A transaction deletes up to ``PRUNED_ROWS`` rows of each kind from each of ``PRUNED_TOGETHER`` ledgers, and a round repeats
that up to ``PRUNING_PASSES`` times: other transactions run in between."""
_NEVER = Retention()


class MaintenanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a round of maintenance."""

    rescued: int = 0
    """Runs of dead nodes that were given another attempt, or have failed."""
    overdue: int = 0
    """Runs of external workers that did not report in time."""
    repaired: int = 0
    """Schedules that should have had a next time and had none."""
    stale: int = 0
    """Schedules whose next time was more than a minute past and undecided, counted up to ``PAGE``: nodes are told of them."""
    pruned: int = 0
    """Rows of the ledger that were past their retention."""
    waiting: int = 0
    """Schedules with runs that no node can run."""
    outdated: bool = False
    """Whether another node has newer time-zone data, so that this one decides nothing."""


class Maintenance:
    """Runs maintenance, a round at a time; none of it is urgent."""

    def __init__(self, store: Store, deciders: Sequence[Decider], config: Config, tzdata: str) -> None:
        self._store = store
        self._deciders = deciders
        self._config = config
        self._tzdata = tzdata
        self._begun_at: dict[str, int] = {}
        """When each periodic task last began."""
        self._prune_after = BEGINNING
        self.unreadable: set[ScheduleKey] = set()
        """The schedules that cannot be read, as far as pruning, which reads all of them in turn, has seen."""

    async def step(self, now: int) -> MaintenanceReport:
        """Run one round."""
        nodes = await self._store.nodes()
        rescued = await self.rescue([node.epoch for node in nodes if not node.alive], now)
        overdue = await end_overdue(self._store, now) + await self._stop_reported(now)
        repaired = stale = pruned = waiting = 0
        if self._begins("reconcile", self._config.reconcile_ms, now):
            stale = await self._notify_stale(now)
            repaired = await self.reconcile(now)
        if self._begins("prune", self._config.prune_ms, now):
            pruned = await self.prune(now) + sum([await each.prune(now) for each in self._deciders])
        if self._begins("attend", self._config.attention_ms, now):
            waiting = await self._mark_waiting(nodes, now)
        newest = max((node.tzdata for node in nodes if node.alive), default=self._tzdata)
        return MaintenanceReport(
            rescued=rescued, overdue=len(overdue), repaired=repaired, stale=stale, pruned=pruned, waiting=waiting,
            outdated=newest > self._tzdata,
        )  # fmt: skip

    def _begins(self, task: str, every_ms: int, now: int) -> bool:
        """Whether a periodic task is due, which then begins; a clock that was set back does not delay it."""
        if 0 <= now - self._begun_at.get(task, now + 1) < every_ms:
            return False
        self._begun_at[task] = now
        return True

    async def _stop_reported(self, now: int) -> Recorded:
        """Stop runs of external workers that were asked to stop: no node has claimed them, so none sees the request."""
        async with self._store.transaction() as transaction:
            stopping = await transaction.stopping(0)
            return await stop_reported(transaction, stopping, now) if stopping else []

    async def rescue(self, dead: Sequence[int], now: int) -> int:
        """Give the runs of dead nodes another attempt, or record that they failed; then deregister the nodes."""
        if not dead:
            return 0
        rescued = await all_of(decider.rescue(dead, now) for decider in self._deciders)
        await self.deregister(dead)
        return sum(rescued)

    async def deregister(self, epochs: Sequence[int]) -> None:
        """Remove nodes that are dead or shutting down; one with claims stays until its runs are rescued."""

        async def has_claims(transaction: Transaction, epoch: int) -> bool:
            return any([await decider.claimed(transaction, [epoch], 1) for decider in self._deciders])

        await self._store.deregister(epochs, has_claims)

    async def reconcile(self, now: int) -> int:
        """Find schedules that should have a next time and have none, and make them due.

        Specs are evaluated outside of transactions; deciding a schedule that needs nothing does no harm.
        """
        repaired, after = 0, BEGINNING
        while True:
            async with self._store.reading() as transaction:
                keys = await transaction.without_next_time(after, PAGE)
                schedules = await transaction.read_schedules(keys) if keys else []
                stuck, going_on = await _stuck(transaction, schedules) if schedules else (set(), set())
            broken = []
            for number, each in enumerate(schedules):
                if each.key in stuck or _has_times_ahead(each, going_on=each.key in going_on):
                    broken.append(each.key)
                if number % EVALUATED_TOGETHER == 0:
                    await asyncio.sleep(0)  # let other tasks run
            await self._mark_due(broken, now)
            repaired += len(broken)
            if len(keys) < PAGE:
                return repaired
            after = keys[-1]

    async def _notify_stale(self, now: int) -> int:
        """Count the schedules whose next time has been past for long, and tell nodes that they are due."""
        async with self._store.reading() as transaction:
            stale = await transaction.count_due(now - STALE_MS - 1, PAGE)
        if stale:
            async with self._store.transaction() as transaction:
                await transaction.notify()
        return stale

    async def prune(self, now: int) -> int:
        """Remove what is past retention from the ledgers of one page of schedules; each round takes the next page."""
        async with self._store.reading() as transaction:
            keys = await transaction.known_keys(self._prune_after, PAGE)
            schedules = await transaction.read_schedules(keys) if keys else []
        await self._note_unreadable(keys, schedules, now)
        policies = {each.key: each.policies for each in schedules}
        known = [each for each in keys if each not in self.unreadable]  # of others the retention is unknown
        removed = 0
        for start in range(0, len(known), PRUNED_TOGETHER):
            bounds = [
                self._retention_of(each, policies.get(each), now)
                for each in known[start : start + PRUNED_TOGETHER]
            ]
            for _ in range(PRUNING_PASSES):
                async with self._store.transaction() as transaction:
                    deleted = await transaction.prune(bounds)
                removed += deleted
                if deleted < PRUNED_ROWS:  # no ledger reached its limit, so none has more to delete
                    break
        self._prune_after = keys[-1] if len(keys) == PAGE else BEGINNING
        return removed + await self._prune_requests(now)

    async def _prune_requests(self, now: int) -> int:
        """Forget execution requests, states of graphs and ids of patches that are past the retention of runs."""
        before_ms = now - self._config.retention_age_ms
        async with self._store.transaction() as transaction:
            requests = await transaction.prune_executions(before_ms, PAGE)
            requests += await transaction.prune_patch_requests(before_ms, PAGE)
            return requests + await transaction.prune_graph_state(before_ms, PAGE)

    async def _note_unreadable(
        self, keys: Sequence[ScheduleKey], schedules: Sequence[Schedule], now: int
    ) -> None:
        """Make schedules that cannot be read due, so that the next decision sets them aside and says why."""
        unreadable = {each.key for each in schedules if each.unreadable}
        self.unreadable = self.unreadable - set(keys) | unreadable
        new = [each.key for each in schedules if each.key in unreadable and not each.state.attention]
        await self._mark_due(new, now)

    async def _mark_due(self, keys: Sequence[ScheduleKey], now: int) -> None:
        if keys:
            async with self._store.transaction() as transaction:
                await transaction.mark_due(keys, now)
                await transaction.notify()

    def _retention_of(self, key: ScheduleKey, policies: Policies | None, now: int) -> RetentionBounds:
        retention = _NEVER if policies is None else policies.retention
        age_ms = milliseconds(retention.age)
        age_ms = self._config.retention_age_ms if age_ms is None else age_ms
        number = self._config.retention_count if retention.count is None else retention.count
        return RetentionBounds(key, now - age_ms, number, PRUNED_ROWS)

    async def _mark_waiting(self, nodes: Sequence[Node], now: int) -> int:
        """Mark schedules as needing attention if no living node can run the action that their runs wait for."""
        able = {action for node in nodes if node.alive for action in node.actions}
        async with self._store.transaction() as transaction:
            waiting = dict(await transaction.waiting_for_node(now - self._config.attention_ms, PAGE))
            needy = {each: action for each, action in waiting.items() if action not in able}
            schedules = await transaction.schedules(needy) if needy else []
            await transaction.advance(
                Advance(
                    each.key, each.cursor_ms, now, msgspec.structs.replace(each.state, attention=sentence)
                )
                for each in schedules
                for sentence in [f'no living node can run the action "{needy[each.key]}"']
                if each.state.attention != sentence and not each.unreadable
            )
        return len(schedules)


async def _stuck(
    transaction: Transaction, schedules: list[Schedule]
) -> tuple[set[ScheduleKey], set[ScheduleKey]]:
    """The schedules with waiting runs or backfills and no run under way, and those with runs under way."""
    keys = [each.key for each in schedules]
    paused = {each.key for each in schedules if each.state.paused}
    waiting, going_on = set[ScheduleKey](), set[ScheduleKey]()
    for run in await transaction.open_runs(keys):
        if run.status not in WAITING:
            going_on.add(run.schedule_key)
        elif run.schedule_key not in paused or run.status is Status.RETRYING or not run.is_automatic:
            waiting.add(run.schedule_key)  # the others are held by a pause
    waiting |= {each.schedule_key for each in await transaction.open_backfills(keys)}
    return waiting - going_on, going_on


def _has_times_ahead(schedule: Schedule, *, going_on: bool) -> bool:
    """Whether a schedule without a next time should have one."""
    if schedule.state.paused:
        return schedule.state.paused_until_ms is not None
    if schedule.state.buffer_full or (going_on and schedule.state.remaining_actions == 0):
        return False
    try:
        return next_slot_ms(Spec.parse(schedule.spec), schedule.cursor_ms) is not None
    except Exception:
        return True
