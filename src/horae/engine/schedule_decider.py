"""The decider of schedules: reads what is due, decides by its policies, and claims what this node can run."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import msgspec

from horae.engine.attempt_results import record
from horae.engine.decider import Batch, Decider, NodeServices, all_of
from horae.engine.removed_schedule_grants import revoke_grants
from horae.engine.worker import Launch
from horae.errors import SpecError, SpecTooCostlyError
from horae.grant_model import Grant
from horae.model import (
    GRAPH,
    NOT_READ,
    UNREADABLE,
    AttemptResult,
    Backfill,
    Checkpoint,
    Denial,
    Limits,
    Run,
    Schedule,
    ScheduleKey,
    Status,
)
from horae.policy.decide import decide
from horae.policy.grants import denial_of, fault_of
from horae.policy.ledger_changes import Decision, version_of
from horae.spec import Spec
from horae.spec.budget import QUESTION_STEPS, shared_budget
from horae.store.port import Advance, Transaction

BATCH_STEPS = QUESTION_STEPS
"""After so many steps of evaluating specs, a transaction leaves the remaining schedules to the next one."""

BATCH_RUNS = 500
"""How many open runs one transaction reads, as far as their number is remembered (see ``CROWD``)."""

CROWD = 20
"""The decider remembers the number of open runs of schedules that have at least so many."""

MAX_CROWDED = 10_000
"""For how many schedules it remembers that number."""
_log = logging.getLogger("horae")


class ScheduleDecider(Decider):
    """Decides due schedules in batches; when many are due, several batches at the same time, if the store can."""

    name = "schedules"

    def __init__(self, node: NodeServices) -> None:
        super().__init__(node)
        self._limits = node.config.limits
        self._batch = node.store.batch
        self._crowded: dict[ScheduleKey, int] = {}
        """The number of open runs of schedules with many, as of their last decision."""
        self._crowd_is_next = False
        """Whether such schedules were left to the next transaction."""

    async def record(self, transaction: Transaction, results: Sequence[AttemptResult], now: int) -> object:
        return await record(transaction, results, now, self._limits)

    async def claimed(self, transaction: Transaction, epochs: Sequence[int], limit: int) -> Sequence[Run]:
        return await transaction.claimed(epochs, limit)

    async def stopping(self, transaction: Transaction, epoch: int) -> Sequence[Run]:
        return await transaction.stopping(epoch)

    async def prepare(self, transaction: Transaction, runs: Sequence[Run]) -> Sequence[Launch]:
        found = await transaction.schedules({run.schedule_key for run in runs})
        now = int(self.node.clock.now().timestamp() * 1000)
        schedules = {each.key: each for each in found}
        return await _launches(transaction, runs, schedules, now, claimed_before=True)

    async def run_batches(self, now: int) -> int | None:
        worker, parallel = self.node.worker, self.node.store.parallel_batches
        if not self._more or parallel == 1:
            return await super().run_batches(now)
        self._more = self._unclaimed = False
        results = worker.results(self.name)
        # Nothing is decided for these before the results of their runs are recorded.
        excluded = frozenset(each.run.schedule_key for each in results)
        parts = [
            self.run_batch(now, excluded=excluded, free_capacity=(worker.free_capacity + place) // parallel)
            for place in range(parallel)
        ]
        if results:
            parts.append(self._record_aside(results, now))
        return min((wake for wake in await all_of(parts) if wake is not None), default=None)

    async def _record_aside(self, results: Sequence[AttemptResult], now: int) -> int | None:
        """Record results while other schedules are decided. Returns when the next schedule is due."""
        async with self.node.store.transaction() as transaction:
            await self.record(transaction, results, now)
            wake = await transaction.wake_at()
        self.node.worker.forget(self.name, len(results))
        return wake

    async def decide(self, batch: Batch) -> int | None:
        """Decide what is due, and claim what this node can run, including runs that other nodes released."""
        if not self.node.membership.generating:
            await self._claim_released(batch)
        else:
            await self._decide_due(batch)
        if batch.more:
            return batch.now
        wake = await batch.transaction.wake_at()
        is_left_to_others = not (self.node.membership.generating or batch.decided)
        return None if wake is not None and wake <= batch.now and is_left_to_others else wake

    async def _decide_due(self, batch: Batch) -> None:
        transaction = batch.transaction
        due = await transaction.due(batch.now, self._batch)
        schedules = {each.key: each for each in due}
        for each in await self._with_released_runs(batch):
            schedules.setdefault(each.key, each)
        for key in schedules.keys() & batch.excluded:
            del schedules[key]
        if not schedules:
            return
        taken = self._within_bounds(schedules)
        runs = await _open_runs(transaction, taken)
        backfills: dict[ScheduleKey, list[Backfill]] = defaultdict(list)
        for backfill in await transaction.open_backfills(list(taken)):
            backfills[backfill.schedule_key].append(backfill)
        decisions = self._decide(taken, runs, backfills, batch.now)
        await _write(batch, taken, runs, decisions)
        batch.launches = await _launches(transaction, batch.claimed, schedules, batch.now)
        batch.decided = len(decisions)
        batch.more = len(due) == self._batch or len(decisions) < len(schedules)
        decided = [(taken[key], decision) for key, decision in decisions.items()]
        transaction.on_commit += (lambda: _log_attention(decided),)
        if observers := self.node.observers:
            transaction.on_commit += (lambda: observers.tell(lambda each: each.decided(decided)),)

    async def _claim_released(self, batch: Batch) -> None:
        """Claim runs that other nodes released, and decide nothing: this node's time-zone data is older than theirs."""
        found = await self._with_released_runs(batch)
        schedules = {
            each.key: each for each in found if not each.state.paused and each.key not in batch.excluded
        }
        if not schedules:
            return
        runs = await _open_runs(batch.transaction, schedules)
        released = (run for each in runs.values() for run in each if run.status is Status.STARTING)
        await batch.transaction.update_runs(_claim_all(batch, released))
        batch.launches = await _launches(batch.transaction, batch.claimed, schedules, batch.now)
        batch.decided = len(schedules)

    async def _with_released_runs(self, batch: Batch) -> list[Schedule]:
        """The schedules of released runs that no node has claimed and that this node could run."""
        number = min(batch.free_capacity, self._batch)
        return await batch.transaction.unclaimed(self.node.worker.actions, number) if number else []

    def _within_bounds(self, schedules: dict[ScheduleKey, Schedule]) -> dict[ScheduleKey, Schedule]:
        """The schedules that one transaction decides; the others stay due for the next one.

        Those with many open runs take long, so they wait for a transaction after that of the others: for one, and no longer.
        That takes as many of them as have up to ``BATCH_RUNS`` open runs together, and at least one.
        """
        runs = self._crowded
        if not runs:
            return schedules
        crowded = sorted(schedules.keys() & runs, key=lambda key: (runs[key], key))
        if not crowded:
            return schedules
        others = [key for key in schedules if key not in runs]
        self._crowd_is_next = bool(others) and not self._crowd_is_next
        number = sum(total <= BATCH_RUNS for total in accumulate(runs[key] for key in crowded))
        taken = others if self._crowd_is_next else [*others, *crowded[: max(number, 1)]]
        return {key: schedules[key] for key in taken}

    def _remember(self, key: ScheduleKey, runs: int) -> None:
        if runs >= CROWD:
            if len(self._crowded) == MAX_CROWDED:
                self._crowded.clear()
            self._crowded[key] = runs
        else:
            self._crowded.pop(key, None)

    def _decide(
        self,
        schedules: Mapping[ScheduleKey, Schedule],
        runs: Mapping[ScheduleKey, list[Run]],
        backfills: Mapping[ScheduleKey, list[Backfill]],
        now: int,
    ) -> dict[ScheduleKey, Decision]:
        """Decide as many schedules as one transaction's budget allows; the others stay due for the next one."""
        decisions: dict[ScheduleKey, Decision] = {}
        steps = 0
        for key, each in schedules.items():
            if steps > BATCH_STEPS:
                break
            open_runs = runs.get(key, ())
            with shared_budget(QUESTION_STEPS) as spent:
                decisions[key] = _decision(each, open_runs, backfills.get(key, ()), now, self._limits)
            if len(open_runs) >= CROWD or self._crowded:
                self._remember(key, len(open_runs))
            steps += spent.steps
        return decisions


async def _open_runs(
    transaction: Transaction, schedules: Mapping[ScheduleKey, Schedule]
) -> dict[ScheduleKey, list[Run]]:
    """The open runs of each schedule, without those of an earlier schedule of the same id."""
    runs: dict[ScheduleKey, list[Run]] = defaultdict(list)
    for run in await transaction.open_runs(schedules.keys()):
        if run.generation == schedules[run.schedule_key].generation:
            runs[run.schedule_key].append(run)
    return runs


async def _write(
    batch: Batch,
    schedules: Mapping[ScheduleKey, Schedule],
    runs: Mapping[ScheduleKey, list[Run]],
    decisions: Mapping[ScheduleKey, Decision],
) -> None:
    """Claim released runs of decided schedules, and write all decisions, with a statement for each kind of row."""
    transaction = batch.transaction
    all_decisions = list(decisions.values())
    new = [_claim(batch, run) for decision in all_decisions for run in decision.new]
    changed = [_claim(batch, run) for decision in all_decisions for run in decision.changed]
    touched = {run.id for run in changed}
    changed += _claim_all(
        batch,
        (
            run
            for key in decisions
            for run in (() if schedules[key].unreadable else runs.get(key, ()))
            if run.status is Status.STARTING and run.id not in touched
        ),
    )
    await transaction.insert_runs(new)
    await transaction.update_runs(changed)
    await transaction.ask_to_stop(run for decision in all_decisions for run in decision.stop)
    await transaction.insert_unstarted_ranges(
        unstarted for decision in all_decisions for unstarted in decision.unstarted
    )
    await transaction.update_backfills(each for decision in all_decisions for each in decision.backfills)
    await transaction.advance(_advances(schedules, decisions, batch))
    if gone := [schedules[key] for key, decision in decisions.items() if decision.remove]:
        await transaction.insert_versions(version_of(each, batch.now) for each in gone)
        await revoke_grants(transaction, gone, batch.now)
        await transaction.delete_schedules(each.key for each in gone)
    if batch.unclaimed or any(decision.stop for decision in all_decisions):
        await transaction.notify()


def _claim(batch: Batch, run: Run) -> Run:
    """The run, claimed if it was released and this node can run it."""
    return run if run.status is not Status.STARTING else batch.claim(run) or run


def _claim_all(batch: Batch, runs: Iterator[Run]) -> list[Run]:
    """Claim the released runs that this node can run; return those that it claimed."""
    return [claimed for run in runs if (claimed := batch.claim(run)) is not None]


def _advances(
    schedules: Mapping[ScheduleKey, Schedule], decisions: Mapping[ScheduleKey, Decision], batch: Batch
) -> Iterator[Advance]:
    claimed = {run.schedule_key for run in batch.claimed}
    for key, decision in decisions.items():
        state = decision.state
        if state.attention and not state.attention_reason and key in claimed:  # it runs again
            state = msgspec.structs.replace(state, attention="")
        changed = state if state != schedules[key].state else None
        attempted_at_ms = batch.now if key in claimed else None
        yield Advance(key, decision.cursor_ms, decision.next_at_ms, changed, decision.counts, attempted_at_ms)


async def _launches(
    transaction: Transaction,
    runs: Sequence[Run],
    schedules: Mapping[ScheduleKey, Schedule],
    now: int,
    *,
    claimed_before: bool = False,
) -> list[Launch]:
    """The launches of claimed runs. Grants are read only for schedules that run graphs.

    ``claimed_before`` says that another transaction claimed the runs: it may have saved checkpoints for first attempts too.
    """
    if not runs:
        return []
    runs, unreadable = await _with_inputs(transaction, runs)
    lasts = await transaction.last_outcomes({run.schedule_key for run in runs})
    checkpoints = await _checkpoints(
        transaction, [run.id for run in runs if run.attempt > 1 or claimed_before]
    )
    granted = [each for each in schedules.values() if each.action.kind == GRAPH]
    grants = await transaction.grants_by_id({each.execution_grant_id for each in granted}) if granted else {}
    return [
        Launch(
            run=run,
            timeouts=schedule.policies.timeouts,
            last=lasts.get(run.schedule_key),
            action=schedule.action,
            permitted_by=schedule.permitted_by,
            grant_id=schedule.execution_grant_id,
            denial=_denial(schedule, grants, now) if granted else None,
            unreadable=unreadable.get(run.id, ""),
            checkpoints=checkpoints.get(run.id, ()),
        )
        if (schedule := schedules.get(run.schedule_key)) and schedule.generation == run.generation
        else Launch(run=run, deleted=True)
        for run in runs
    ]


def _denial(schedule: Schedule, grants: Mapping[str, Grant], now: int) -> Denial | None:
    """Why the grant of a schedule does not allow its graph to run now; ``None`` if it does, or if it runs no graph."""
    if schedule.action.kind != GRAPH:
        return None
    grant_id = schedule.execution_grant_id
    return denial_of(fault_of(grants.get(grant_id), schedule.owner, schedule.action.name, now), grant_id)


async def _with_inputs(
    transaction: Transaction, runs: Sequence[Run]
) -> tuple[Sequence[Run], Mapping[str, str]]:
    """Claimed runs with their inputs; and why an input cannot be read, by the id of its run."""
    left_out = [run.id for run in runs if run.input is NOT_READ]
    if not left_out:
        return runs, {}
    stored = {run.id: run for run in await transaction.runs_by_id(left_out)}
    read = [
        run if run.input is not NOT_READ else msgspec.structs.replace(run, input=stored[run.id].input)
        for run in runs
    ]
    return read, {run.id: run.failure or "" for run in stored.values() if run.reason == UNREADABLE}


async def _checkpoints(transaction: Transaction, run_ids: Sequence[str]) -> Mapping[str, list[Checkpoint]]:
    """The checkpoints of the given runs, by run."""
    checkpoints: dict[str, list[Checkpoint]] = defaultdict(list)
    for each in await transaction.checkpoints(run_ids) if run_ids else ():
        checkpoints[each.run_id].append(each)
    return checkpoints


def _decision(
    schedule: Schedule, runs: Sequence[Run], backfills: Sequence[Backfill], now: int, limits: Limits
) -> Decision:
    """Decide one schedule. One that cannot be decided is paused with a note that says why; the others are still decided."""
    if schedule.unreadable:
        return _set_aside(schedule, "; ".join(schedule.unreadable.values()))
    spoiled = next((run for run in runs if run.reason == UNREADABLE), None)
    if spoiled is not None:
        return _set_aside(schedule, f"the run {spoiled.id} cannot be read: {spoiled.failure}")
    try:
        return decide(schedule, Spec.parse(schedule.spec), runs, now, backfills=backfills, limits=limits)
    except SpecTooCostlyError:
        return _set_aside(
            schedule, "finding its times takes more work than a spec may cause; simplify its spec"
        )
    except SpecError as error:
        return _set_aside(schedule, f"its spec cannot be read: {error}")
    except Exception as error:
        return _set_aside(schedule, f"{type(error).__name__}: {error}")


def _set_aside(schedule: Schedule, why: str) -> Decision:
    """Pause a schedule that cannot be decided, until its owner resumes it."""
    note = f"needs attention: {why}"
    state = msgspec.structs.replace(
        schedule.state, paused=True, paused_until_ms=None, note=note, attention=note
    )
    return Decision(state=state, cursor_ms=schedule.cursor_ms, next_at_ms=None)


def _log_attention(decisions: Sequence[tuple[Schedule, Decision]]) -> None:
    """Log the schedules that need attention because of these decisions, and why."""
    for schedule, decision in decisions:
        sentence = decision.state.attention
        if sentence and sentence != schedule.state.attention:
            extra = {"schedule": schedule.id, "attention": sentence}
            _log.warning('schedule "%s" %s', schedule.id, sentence, extra=extra)
