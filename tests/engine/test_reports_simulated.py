"""External work in the simulator: whatever happens to nodes, each accepted end stands, and silence times out."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec
import pytest

from horae.errors import ReportRefusedError
from horae.executor.attempt_context import Accepted, Context
from horae.model import Status
from tests.engine.ledger import Ledger, check
from tests.engine.simulator import Crash, Machine, World
from tests.support.dice import Dice

SEEDS = int(os.environ.get("HORAE_SEEDS", "8"))
CHUNK = 25
SILENCE = "90s"


class OutsideWorld(World):
    """A world in which external workers do most of the work, and outlive the nodes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, 1 + seed % 2)
        self.fate = Dice(f"outside {seed}")
        timeouts = msgspec.structs.replace(self.policies.timeouts, heartbeat=SILENCE)
        self.policies = msgspec.structs.replace(self.policies, timeouts=timeouts)
        self.workers: list[asyncio.Task[None]] = []
        self.taken: dict[tuple[str, int], str] = {}
        self.refused = 0
        self.alone = False

    async def tell(self) -> None:
        """The same story; at its end there are no external workers, and nodes do all the work."""
        await super().tell()
        self.alone = True
        for worker in self.workers:
            worker.cancel()
        await self.pass_time(1500)

    async def work(self, machine: Machine, context: Context) -> Any:
        if self.alone or self.fate.chance(30):
            return await super().work(machine, context)
        if self.store.deadlines.get(machine.engine.epoch, 0) <= self.seconds():
            self.started_without_lease.append(context.run_id)
        self.calls[context.run_id, context.attempt] += 1
        try:
            token = await context.report_token()
        except Crash:  # it was the whole node that died
            machine.line.fate, machine.line.calls_left = Crash, 0
            raise
        self.workers.append(asyncio.create_task(self.elsewhere(context.run_id, context.attempt, token)))
        if self.fate.chance(30):  # the end may be known before it is known that it was accepted
            await self.clock.sleep(seconds=self.fate.choice([0.2, 5, 50]))
        return Accepted()

    async def elsewhere(self, run_id: str, attempt: int, token: str) -> None:
        """An external worker: it sends heartbeats, or not, and reports the end, or not, or twice."""
        try:
            for _ in range(self.fate.below(4)):
                await self.clock.sleep(seconds=self.fate.choice([1, 20, 80]))
                heard = await self.runs.report(run_id, token, self.fate.choice(["started", "heartbeat"]))
                if heard.stop:
                    break
            await self.clock.sleep(seconds=self.fate.choice([0, 0.1, 10]))
            what = self.fate.choice(["succeeded", "succeeded", "failed", ""])
            for _ in range(self.fate.choice([1, 1, 2]) if what else 0):
                ended = await self.runs.report(run_id, token, what, result=attempt)
                assert ended.attempt == attempt
                known = self.taken.setdefault((run_id, attempt), ended.status)
                assert known == ended.status
        except ReportRefusedError:
            self.refused += 1

    async def end(self) -> None:
        for worker in self.workers:
            worker.cancel()
        await super().end()
        for outcome in await asyncio.gather(*self.workers, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


def check_reports(world: OutsideWorld, ledger: Ledger) -> None:
    runs = {run.id: run for run in ledger.runs}
    for (run_id, attempt), status in world.taken.items():
        run = runs[run_id]
        if status == Status.SUCCEEDED:  # what was reported as succeeded was not attempted again
            assert (run.status, run.attempt, run.result) == (Status.SUCCEEDED, attempt, attempt)
        elif status == Status.RETRYING:
            assert run.attempt > attempt or run.status is not Status.SUCCEEDED
        else:
            assert (run.status, run.attempt) == (status, attempt)
    # No run waits for ever for a silent worker.
    assert [run for run in ledger.runs if run.status is Status.RUNNING and run.epoch == 0] == []


def play(seed: int) -> tuple[int, int]:
    async def story() -> tuple[int, int]:
        world = OutsideWorld(seed)
        try:
            await world.tell()
            ledger = Ledger(world)
            await ledger.read()
            check(world, ledger)
            check_reports(world, ledger)
        finally:
            await world.end()
        return len(world.taken), world.refused

    try:
        return asyncio.run(story())
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.contract("CRON-13", "SCHD-17")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.long
def test_what_was_reported_stands_and_silence_ends(first: int):
    told = [play(seed) for seed in range(first, min(first + CHUNK, SEEDS))]
    assert sum(taken for taken, _ in told)  # it was put to the test
    assert sum(refused for _, refused in told)
