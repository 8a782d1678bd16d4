"""Claimed runs in the simulator's world: some are not admitted, and attempts save what the next one must not repeat."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

import pytest

from horae.errors import StaleClaimError
from horae.executor.attempt_context import Context
from horae.model import Action, Denial, Reason, Status
from tests.engine.ledger import Ledger, check
from tests.engine.simulator import Crash, Machine, World
from tests.support.dice import Dice

SEEDS = int(os.environ.get("HORAE_SEEDS", "12"))
CHUNK = 25
DENIAL = Denial(Reason.NOT_ALLOWED, "the dice do not allow it")
STEPS = ("fetch", "charge", "send")


class ClaimedWorld(World):
    """A world in which runs are denied at random, and what they do has steps that are saved."""

    def __init__(self, seed: int) -> None:
        self.fate = Dice(f"claims {seed}")
        self.denied = 0
        super().__init__(seed, 1 + seed % 2)
        self.denying = self.fate.choice([0, 20, 60])
        self.remaining_actions = self.fate.choice([None, 3, 15])
        self.seen: dict[tuple[str, int], dict[str, Any]] = {}
        self.saved: Counter[tuple[str, str]] = Counter()
        self.stale = 0

    def admit(self, action: Action) -> Denial | None:
        assert action.name == "work"
        if not self.fate.chance(self.denying):
            return None
        self.denied += 1
        return DENIAL

    async def happen(self) -> None:
        """The same events; and now and then a node neither renews its lease nor stops what it runs, until others took that over."""
        if self.fate.chance(50):
            self.stalled = True
            self.fate.choice(self.machines).stalled_until = self.seconds() + 150 + self.fate.below(150)
            await self.pass_time(150)
        await super().happen()

    async def do_steps(self, machine: Machine, context: Context) -> None:
        self.seen[context.run_id, context.attempt] = dict(context.checkpoints)
        for step in [each for each in STEPS if each not in context.checkpoints]:
            await self.clock.sleep(seconds=self.fate.choice([0, 0.3, 20, 120]))
            try:
                await context.checkpoint(step, context.attempt)
            except Crash:  # it was the whole node that died
                machine.line.fate, machine.line.calls_left = Crash, 0
                raise
            except StaleClaimError:
                self.stale += 1
                raise
            self.saved[context.run_id, step] += 1


def check_denied(world: ClaimedWorld, ledger: Ledger) -> int:
    """Runs that were denied: skipped with their reason, never called under that claim, and consumed nothing."""
    denied = [run for run in ledger.runs if run.reason == Reason.NOT_ALLOWED]
    for run in denied:
        assert (run.status, run.failure, run.started_at_ms) == (Status.SKIPPED, DENIAL.sentence, None)
        assert (run.id, run.attempt) not in world.seen
        if run.id in ledger.never_began:
            assert run.failures == 0
            assert not any(run_id == run.id for run_id, _ in world.seen)
    assert len(denied) <= world.denied  # some nodes died over it, and it was asked again
    if world.remaining_actions is not None:
        automatic = [run for run in ledger.runs if run.is_automatic and run.id not in ledger.never_began]
        charged = sum(run.attempt > 0 or run.status is Status.STARTING for run in automatic)
        # What was released and ended before a node claimed it stays charged.
        perhaps = sum(not run.attempt and run.ended_at_ms is not None for run in automatic)
        left = ledger.schedule.state.remaining_actions
        assert left is not None
        assert charged <= world.remaining_actions - left <= charged + perhaps
    return len(denied)


def check_saved(world: ClaimedWorld, ledger: Ledger) -> None:
    """What was saved is given to every later attempt, once and for all; what an attempt tried to save after it was taken over is not."""
    kept = {(each.run_id, each.key): each for each in ledger.checkpoints}
    assert all(times == 1 and key in kept for key, times in world.saved.items())
    for (run_id, attempt), seen in world.seen.items():
        saved = {key: each for (owner, key), each in kept.items() if owner == run_id}
        assert seen == {key: each.attempt for key, each in saved.items() if each.attempt < attempt}


def play(seed: int) -> tuple[int, int, int]:
    async def story() -> tuple[int, int, int]:
        world = ClaimedWorld(seed)
        try:
            await world.tell()
            ledger = Ledger(world)
            await ledger.read()
            check(world, ledger)
            denied = check_denied(world, ledger)
            check_saved(world, ledger)
        finally:
            await world.end()
        return denied, sum(map(bool, world.seen.values())), world.stale

    try:
        return asyncio.run(story())
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.contract("GRNT-07", "SCHD-26")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.long
def test_denied_runs_consume_nothing_and_checkpoints_are_never_lost(first: int):
    told = [play(seed) for seed in range(first, min(first + CHUNK, SEEDS))]
    denied, given, stale = (sum(each) for each in zip(*told, strict=True))
    assert denied  # it was put to the test
    assert given
    assert stale
