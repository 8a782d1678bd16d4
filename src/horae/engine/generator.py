"""The generator: reads the schedules that must be looked at, asks the policies, and writes what they decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate

import msgspec

from horae.engine.invoker import Invoker, launches
from horae.engine.worker import Launch, Worker
from horae.errors import SpecTooCostlyError, StoreUnavailableError
from horae.model import UNREADABLE, Backfill, Limits, Run, Schedule, Status
from horae.policy.decide import decide
from horae.policy.ledger import Decision, version_of
from horae.spec import Spec
from horae.spec.budget import QUESTION_STEPS, shared_budget
from horae.store.port import Advance, Transaction

BATCH_STEPS = QUESTION_STEPS
"""What the evaluation of specs may cost in one transaction, before what is left waits for the next one."""

BATCH_RUNS = 2000
"""How many open runs are read in one transaction, as far as it is known how many the schedules have."""

CROWD = 20
"""From so many open runs on it is remembered how many a schedule has."""

MAX_CROWDED = 10_000
"""How many schedules that is remembered of."""


class BatchResult(msgspec.Struct, frozen=True):
    """What a look at the schedules brought: what to start after the commit, and whether there is more to do."""

    starts: tuple[Launch, ...] = ()
    decided: int = 0
    more: bool = False
    schedules: Sequence[Schedule] = ()
    """Those that something was decided for, as they were before."""
    decisions: Mapping[str, Decision] = {}


class Generator:
    """Decides for the schedules that are due, a batch at a time."""

    def __init__(self, worker: Worker, invoker: Invoker, limits: Limits, batch: int) -> None:
        self._worker = worker
        self._invoker = invoker
        self._limits = limits
        self._batch = batch
        self._crowded: dict[str, int] = {}
        """How many open runs the schedules had that had many, when they were last decided."""

    async def look(
        self,
        transaction: Transaction,
        now: int,
        epoch: int,
        free_capacity: int,
        *,
        generating: bool,
        excluded: AbstractSet[str] = frozenset(),
    ) -> BatchResult:
        """Decide for what is due, and claim what this node can run, as far as there is room; also what others released.

        What is put ``aside`` has to wait for another look.
        """
        if not generating:
            return await self._take_only(transaction, now, epoch, free_capacity, excluded)
        due = await transaction.due(now, self._batch)
        schedules = {each.id: each for each in due}
        if free_capacity:
            for each in await transaction.unclaimed(self._worker.actions, min(free_capacity, self._batch)):
                schedules.setdefault(each.id, each)
        for schedule_id in schedules.keys() & excluded:
            del schedules[schedule_id]
        if not schedules:
            return BatchResult()
        found = self._within_bounds(list(schedules.values()))
        runs = await self._open_runs(transaction, found)
        backfills: dict[str, list[Backfill]] = defaultdict(list)
        for backfill in await transaction.open_backfills([each.id for each in found]):
            backfills[backfill.schedule_id].append(backfill)
        decisions = self._decide(found, runs, backfills, now)
        decided = found[: len(decisions)]
        claims = _Claims(self._worker, self._invoker, epoch, now, free_capacity)
        await self._write(transaction, decided, runs, decisions, claims)
        starts = await _prepare(transaction, claims, schedules)
        more = len(due) == self._batch or len(decided) < len(schedules)
        return BatchResult(starts, len(decided), more, decided, decisions)

    def _within_bounds(self, schedules: list[Schedule]) -> list[Schedule]:
        """Those that are decided in one transaction: the ones with few open runs first, and as many others as it may read.

        One at least; the rest stay due, and are next.
        """
        crowded = self._crowded
        if not crowded or all(each.id not in crowded for each in schedules):
            return schedules
        schedules = sorted(schedules, key=lambda each: crowded.get(each.id, 0))
        sums = accumulate(crowded.get(each.id, 0) for each in schedules)
        number = sum(total <= BATCH_RUNS for total in sums)
        return schedules[: max(number, 1)]

    def _remember(self, schedule_id: str, runs: int) -> None:
        if runs >= CROWD:
            if len(self._crowded) == MAX_CROWDED:
                self._crowded.clear()
            self._crowded[schedule_id] = runs
        else:
            self._crowded.pop(schedule_id, None)

    def _decide(
        self,
        schedules: Sequence[Schedule],
        runs: Mapping[str, list[Run]],
        backfills: Mapping[str, list[Backfill]],
        now: int,
    ) -> dict[str, Decision]:
        """Decide for as many schedules as fit into one transaction's budget; the others stay due, and are next."""
        decisions: dict[str, Decision] = {}
        steps = 0
        for each in schedules:
            if steps > BATCH_STEPS:
                break
            with shared_budget(QUESTION_STEPS) as spent:
                decisions[each.id] = _decision(each, runs[each.id], backfills[each.id], now, self._limits)
            self._remember(each.id, len(runs[each.id]))
            steps += spent.steps
        return decisions

    async def _take_only(
        self, transaction: Transaction, now: int, epoch: int, free_capacity: int, excluded: AbstractSet[str]
    ) -> BatchResult:
        """Claim what others released, and decide nothing: this node's time-zone data is not what theirs is."""
        most = min(free_capacity, self._batch)
        found = await transaction.unclaimed(self._worker.actions, most) if most else []
        schedules = {each.id: each for each in found if not each.state.paused and each.id not in excluded}
        if not schedules:
            return BatchResult()
        runs = await self._open_runs(transaction, list(schedules.values()))
        claims = _Claims(self._worker, self._invoker, epoch, now, free_capacity)
        released = (run for each in runs.values() for run in each if run.status is Status.STARTING)
        await transaction.update_runs(claims.take_all(released))
        return BatchResult(await _prepare(transaction, claims, schedules), len(schedules))

    async def _open_runs(
        self, transaction: Transaction, schedules: Sequence[Schedule]
    ) -> dict[str, list[Run]]:
        """What is open of each schedule; what an earlier one of the same id left is its own affair."""
        generations = {schedule.id: schedule.generation for schedule in schedules}
        runs: dict[str, list[Run]] = defaultdict(list)
        for run in await transaction.open_runs(generations):
            if run.generation == generations[run.schedule_id]:
                runs[run.schedule_id].append(run)
        return runs

    async def _write(
        self,
        transaction: Transaction,
        schedules: list[Schedule],
        runs: dict[str, list[Run]],
        decisions: dict[str, Decision],
        claims: _Claims,
    ) -> None:
        """Claim what was released, and write all decisions: a statement for each kind of thing."""
        made = list(decisions.values())
        new = [claims.take(run) for decision in made for run in decision.new]
        changed = [claims.take(run) for decision in made for run in decision.changed]
        touched = {run.id for run in changed}
        changed += claims.take_all(
            run
            for schedule in schedules
            for run in runs[schedule.id]
            if run.status is Status.STARTING and run.id not in touched
        )
        await transaction.insert_runs(new)
        await transaction.update_runs(changed)
        await transaction.ask_to_stop(run for decision in made for run in decision.stop)
        await transaction.insert_unstarted(unstarted for decision in made for unstarted in decision.unstarted)
        await transaction.update_backfills(each for decision in made for each in decision.backfills)
        await transaction.advance(_advances(schedules, decisions, claims))
        if gone := [schedule for schedule in schedules if decisions[schedule.id].remove]:
            await transaction.insert_versions(version_of(each, claims.now) for each in gone)
            await transaction.delete_schedules(each.id for each in gone)
        if claims.left or any(decision.stop for decision in made):
            await transaction.notify()


class _Claims:
    """Takes released runs for this node, as long as it can run them and has room."""

    def __init__(self, worker: Worker, invoker: Invoker, epoch: int, now: int, free_capacity: int) -> None:
        self._worker, self._invoker = worker, invoker
        self.epoch, self.now = epoch, now
        self._free_capacity = free_capacity
        self.taken: list[Run] = []
        self.left = 0

    def take(self, run: Run) -> Run:
        """The run, claimed if it was released and this node can run it."""
        if run.status is not Status.STARTING:
            return run
        if self._free_capacity <= 0 or not self._worker.can_run(run):
            self.left += 1
            return run
        self._free_capacity -= 1
        claimed = self._invoker.claim(run, self.epoch, self.now)
        self.taken.append(claimed)
        return claimed

    def take_all(self, runs: Iterator[Run]) -> list[Run]:
        """Those of some released runs that this node takes."""
        return [taken for run in runs if (taken := self.take(run)) is not run]


def _advances(
    schedules: list[Schedule], decisions: dict[str, Decision], claims: _Claims
) -> Iterator[Advance]:
    claimed = {run.schedule_id for run in claims.taken}
    for schedule in schedules:
        decision = decisions[schedule.id]
        state = decision.state
        if state.attention and schedule.id in claimed:  # what kept it from running is over
            state = msgspec.structs.replace(state, attention="")
        changed = state if state != schedule.state else None
        attempted_at = claims.now if schedule.id in claimed else None
        yield Advance(schedule.id, decision.cursor, decision.next_at, changed, decision.counts, attempted_at)


async def _prepare(
    transaction: Transaction, claims: _Claims, schedules: dict[str, Schedule]
) -> tuple[Launch, ...]:
    """What the attempts of claimed runs need. A node that others have buried claims nothing."""
    if not claims.taken:
        return ()
    if not await transaction.is_node(claims.epoch):
        raise StoreUnavailableError(
            "this node was late with its sign of life, and others have taken it for dead"
        )
    return tuple(await launches(transaction, claims.taken, schedules))


def _decision(
    schedule: Schedule, runs: list[Run], backfills: list[Backfill], now: int, limits: Limits
) -> Decision:
    """A schedule's decision. One that cannot be decided is put aside and says so; it stops no other."""
    spoiled = next((run for run in runs if run.reason == UNREADABLE), None)
    if spoiled is not None:
        return _put_aside(schedule, f"the run {spoiled.id} cannot be read: {spoiled.failure}")
    try:
        return decide(schedule, Spec.parse(schedule.spec), runs, now, backfills=backfills, limits=limits)
    except SpecTooCostlyError:
        return _put_aside(
            schedule, "finding its times takes more work than a spec may cause; simplify its spec"
        )
    except Exception as error:
        return _put_aside(schedule, f"{type(error).__name__}: {error}")


def _put_aside(schedule: Schedule, why: str) -> Decision:
    """Paused, so that nobody looks at it again before somebody has."""
    note = f"needs attention: {why}"
    state = msgspec.structs.replace(schedule.state, paused=True, note=note, attention=note)
    return Decision(state=state, cursor=schedule.cursor, next_at=None)
