"""Random workflows, run through crashes, beside a reference interpreter."""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest

from horae import Context
from horae.errors import NodeFailedError
from horae.executor.node_context import NodeContext
from horae.workflow.record import NodeState
from tests.engine.workflow_attempts import Attempts
from tests.engine.workflow_reference import Maker, Planted, Reference
from tests.support.dice import Dice

SEEDS = int(os.environ.get("HORAE_SEEDS", "40"))


class World:
    """A random workflow whose actions do what is planted, in a process that dies now and then."""

    def __init__(self, seed: int, crashes: int) -> None:
        self.maker = Maker(seed)
        self.maker.close_gateways()
        self.planted = Planted(seed)
        self.attempts = Attempts(self.maker.document())
        self.attempts.functions.register("work", self.work)
        self.succeeded: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        dice = Dice((seed, "crashes"))
        self.attempts.crash = lambda _: (dice.chance(crashes), dice.chance(50))

    async def work(self, context: Context) -> str:
        assert isinstance(context, NodeContext)
        place, failures = context.place, self.planted.failures(context.place)
        record = self.attempts.records.get(place)
        assert record is None or record.state is NodeState.RETRYING, f"{place} had ended, and runs again"
        for _ in range(self.planted.turns(place)):
            await asyncio.sleep(0)
        if context.attempt <= failures:
            self.failed[place] += 1
            raise ValueError(f"{place} fails")
        self.succeeded[place] += 1
        return f"{place}#{context.input['index']}"

    async def run(self) -> bool:
        """Whether it succeeded."""
        try:
            await self.attempts.through_crashes({"flag": True})
        except NodeFailedError:
            return False
        return True


@pytest.mark.contract("CRON-14", "CRON-22")
@pytest.mark.parametrize("crashes", [0, 12])
def test_a_random_workflow_does_what_the_reference_says(crashes: int):
    for seed in range(SEEDS):
        world = World(seed, crashes)
        succeeded = asyncio.run(world.run())
        records = world.attempts.records
        actual = {place: record.state.value for place, record in records.items()}
        reference = Reference(world.maker, world.planted, actual)
        expected = {place: each.state for place, each in reference.states.items() if each.state != "skipped"}
        for within in reference.cancelled:
            actual = {place: state for place, state in actual.items() if not place.startswith(within)}
        assert actual == expected, f"seed {seed}"
        assert succeeded == (not reference.unhandled), f"seed {seed}"
        for place, each in reference.states.items():
            if each.state == "succeeded":
                assert each.output == records[place].output, f"seed {seed}: {place}"
        if not crashes:
            assert max(world.succeeded.values(), default=1) == 1, f"seed {seed}"
