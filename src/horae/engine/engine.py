"""The engine: one step reads what is due and what ended, decides, writes, and then launches.

A step is one transaction. Nothing starts before the claim that says so is durable, and nothing that is decided can be decided
again: the slot is unique, the cursor has moved, and outcomes are written under the claim of the attempt they belong to.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

import msgspec

from horae.executor.function import Finished, FunctionExecutor
from horae.model import Reason, Run, Schedule, State, Status
from horae.policy.decide import Decision, decide
from horae.policy.retry import retry_at
from horae.spec import Spec, slot_key
from horae.store.port import Advance, Outcome, Store, Transaction

BATCH = 500


class Engine:
    """Drives the schedules of one store in one process."""

    def __init__(self, store: Store, executor: FunctionExecutor) -> None:
        self._store = store
        self._executor = executor
        self._epoch = 0

    async def join(self, now: int) -> None:
        """Become a node: take an epoch, and take over what dead nodes left."""
        async with self._store.transaction() as transaction:
            self._epoch = await transaction.next_number()
        await self._store.announce(self._epoch)
        await self.rescue(now)

    async def keep_house(self, now: int) -> None:
        """Go on living, or begin anew if this node was late; and take over what dead nodes left."""
        if await self._store.renew(self._epoch):
            await self.rescue(now)
            return
        # Others may have taken our runs, so what we still do of them must not go on.
        for task in self._executor.tasks:
            task.cancel()
        await self.join(now)

    async def rescue(self, now: int) -> int:
        """Give the runs that nobody works on another attempt, or record that they failed; how many there were.

        These are the runs of dead nodes, and those of our own that were claimed and never launched, because the connection
        was lost in the middle of a commit that went through.
        """
        async with self._store.transaction() as transaction:
            claimed = await transaction.claimed()
            living = await self._store.living({run.epoch for run in claimed})
            ours = self._executor.known
            lost = [
                run
                for run in claimed
                if (run.epoch not in living and run.epoch != self._epoch)
                or (run.epoch == self._epoch and (run.id, run.attempt) not in ours)
            ]
            if lost:
                schedules = {
                    s.id: s for s in await transaction.schedules(sorted({r.schedule_id for r in lost}))
                }
                await transaction.finish(
                    _after_crash(run, schedules.get(run.schedule_id), now) for run in lost
                )
                await transaction.look_now(sorted(schedules), now)
        return len(lost)

    async def step(self, now: int) -> int | None:
        """Decide everything that can be decided now. Returns when to step again, if nothing happens before."""
        finished = self._executor.finished()
        async with self._store.transaction() as transaction:
            if finished:
                await self._record(transaction, finished, now)
            schedules = await transaction.due(now, BATCH)
            decisions = await self._decide(transaction, schedules, now) if schedules else {}
            wake = now if len(schedules) == BATCH else await transaction.wake_at()
        self._executor.forget(finished)
        for schedule in schedules:
            self._carry_out(schedule, decisions[schedule.id])
        return wake

    async def _record(self, transaction: Transaction, finished: list[Finished], now: int) -> None:
        """Write how attempts ended; what waited behind them is decided in the same transaction."""
        ids = sorted({each.run.schedule_id for each in finished})
        schedules = {schedule.id: schedule for schedule in await transaction.schedules(ids)}
        outcomes = [_outcome(each, schedules.get(each.run.schedule_id), now) for each in finished]
        await transaction.finish(outcomes)
        paused = []
        for each, outcome in zip(finished, outcomes, strict=True):
            schedule = schedules.get(each.run.schedule_id)
            if schedule and schedule.policies.pause_on_failure and outcome.status is Status.FAILED:
                note = f"paused because the run {each.run.id} failed: {each.failure}"
                paused.append((schedule, State(paused=True, note=note, remaining=schedule.state.remaining)))
        await transaction.advance(Advance(s.id, s.cursor, now, state) for s, state in paused)
        await transaction.look_now(ids, now)

    async def _decide(
        self, transaction: Transaction, schedules: list[Schedule], now: int
    ) -> dict[str, Decision]:
        runs: dict[str, list[Run]] = defaultdict(list)
        for run in await transaction.open_runs([schedule.id for schedule in schedules]):
            runs[run.schedule_id].append(run)
        decisions = {
            schedule.id: _decision(schedule, runs[schedule.id], now, self._epoch) for schedule in schedules
        }
        made = list(decisions.values())
        await transaction.insert_runs(run for decision in made for run in decision.new)
        await transaction.update_runs(run for decision in made for run in decision.changed)
        await transaction.insert_passed(passed for decision in made for passed in decision.passed)
        await transaction.advance(
            Advance(
                schedule.id, decisions[schedule.id].cursor, decisions[schedule.id].next_at,
                decisions[schedule.id].state if decisions[schedule.id].state != schedule.state else None,
            )
            for schedule in schedules
        )  # fmt: skip
        return decisions

    def _carry_out(self, schedule: Schedule, decision: Decision) -> None:
        """After the commit: start what was released, ask to stop what must make way."""
        for run in decision.new + decision.changed:
            if run.status is Status.RUNNING:
                self._executor.launch(run, schedule.action.name, slot_key(schedule.id, run.nominal))
        for run in decision.stop:
            self._executor.stop(run)

    async def drain(self, now: int) -> None:
        """Wait for what is running, and record how it ended; nothing new is started."""
        while tasks := self._executor.tasks:
            await asyncio.wait(tasks)
        if finished := self._executor.finished():
            async with self._store.transaction() as transaction:
                await self._record(transaction, finished, now)
            self._executor.forget(finished)


def _decision(schedule: Schedule, runs: list[Run], now: int, epoch: int) -> Decision:
    """A schedule's decision. One that cannot be decided is put aside and says so; it stops no other."""
    try:
        return decide(schedule, Spec.parse(schedule.spec), runs, now, epoch)
    except Exception as error:
        note = f"needs attention: {type(error).__name__}: {error}"
        state = msgspec.structs.replace(schedule.state, paused=True, note=note)
        return Decision(state=state, cursor=schedule.cursor, next_at=None)


def _outcome(finished: Finished, schedule: Schedule | None, now: int) -> Outcome:
    """What an attempt's end means for its run: done, failed, or another attempt."""
    run = finished.run
    claim = (run.id, run.epoch, run.attempt)
    if finished.failure is None:
        return Outcome(*claim, Status.SUCCEEDED, now, result=finished.result)
    if finished.stopped:
        return Outcome(*claim, Status.CANCELLED, now, failure=finished.failure, reason=Reason.REPLACED)
    again = retry_at(schedule.policies.retry, run.attempt, now) if schedule is not None else None
    if again is not None:
        return Outcome(*claim, Status.PENDING, now, failure=finished.failure, start_at=again)
    return Outcome(*claim, Status.FAILED, now, failure=finished.failure, reason=Reason.FAILED)


def _after_crash(run: Run, schedule: Schedule | None, now: int) -> Outcome:
    """What becomes of a run whose node died: another attempt, unless once at most was asked for."""
    claim = (run.id, run.epoch, run.attempt)
    if schedule is None or schedule.policies.at_most_once:
        return Outcome(*claim, Status.FAILED, now, failure="the process died", reason=Reason.CRASHED)
    return Outcome(*claim, Status.PENDING, now, reason=Reason.CRASHED, start_at=now)
