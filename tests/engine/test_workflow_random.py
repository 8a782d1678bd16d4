"""Random workflows, run through crashes, beside a reference interpreter."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from horae import Context
from horae.clock import SystemClock
from horae.errors import NodeFailedError
from horae.executor.node_context import NodeContext
from horae.workflow.document import NODE_TYPES
from horae.workflow.node_checkpoint import ENDED, NodeState
from tests.engine.workflow_attempts import Attempts
from tests.engine.workflow_reference import Maker, Planted, Reference
from tests.support.dice import Dice

SEEDS = int(os.environ.get("HORAE_SEEDS", "40"))


class TurnClock(SystemClock):
    """A clock on which a wait is over after some turns of the event loop, many more than an action takes that does not hang."""

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        for _ in range(60):
            if event.is_set():
                return
            await asyncio.sleep(0)


class World:
    """A random workflow whose actions do what is planted, in a process that dies now and then."""

    def __init__(self, seed: int, crashes: int) -> None:
        self.maker = Maker(seed)
        self.maker.close_gateways()
        self.planted = Planted(seed)
        self.attempts = Attempts(self.maker.document(), clock=TurnClock())
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
        assert self.is_due(place), f"{place} runs, and it is not durable that one before it has ended"
        if self.planted.hangs(place):
            await asyncio.Event().wait()
        for _ in range(self.planted.turns(place)):
            await asyncio.sleep(0)
        if context.attempt <= failures:
            self.failed[place] += 1
            raise ValueError(f"{place} fails")
        self.succeeded[place] += 1
        return f"{place}#{context.input['index']}"

    def is_due(self, place: str) -> bool:
        """Whether it is saved that a node before this one has ended; the entry of a loop's body needs none."""
        before, slash, name = place.rpartition("/")
        part = next(each for each in self.maker.parts() if name in each.kinds)
        sources = [link.source for link in part.links if link.target == name]
        records = self.attempts.records
        return part.loop in sources or any(
            (found := records.get(before + slash + each)) is not None and found.state in ENDED
            for each in sources
        )

    async def run(self) -> bool:
        """Whether it succeeded."""
        try:
            await self.attempts.through_crashes({"flag": True})
        except NodeFailedError:
            return False
        return True


def covered(world: World) -> Iterator[str]:
    """What a run went through: kinds of nodes with their ends, joins, loops, edges, retries, timeouts, crashes."""
    kinds = {
        name: (kind, part.data[name]) for part in world.maker.parts() for name, kind in part.kinds.items()
    }
    for place, record in world.attempts.records.items():
        kind, data = kinds[place.rpartition("/")[2]]
        yield f"{kind} {record.state.value}"
        if kind == "join":
            yield f"join of {data['mode']}"
        if kind == "action" and record.attempts > 1:
            yield f"retry, then {record.state.value}"
        if (record.failure or "").startswith("TimeoutError"):
            yield "timeout"
        if kind.startswith("loop") and record.output:
            yield f"rounds of {kind}"
        if record.state is NodeState.FAILED and record.followed:
            yield "error edge"
    if world.attempts.attempt > 1:
        yield "resumed"
    if len(kinds) > 50:
        yield "large"


COVERED = {
    *(f"{kind} succeeded" for kind in NODE_TYPES), "action failed", "action cancelled", "loop_foreach failed", "loop_while failed",
    "gateway_if failed", "gateway_switch failed", "join of all", "join of any", "join of quorum", "retry, then succeeded",
    "retry, then failed", "timeout", "rounds of loop_foreach", "rounds of loop_while", "error edge", "large",
}  # fmt: skip


@pytest.mark.contract("CRON-14", "CRON-21", "CRON-22")
@pytest.mark.parametrize("crashes", [0, 12])
def test_a_random_workflow_does_what_the_reference_says(crashes: int):
    seen: Counter[str] = Counter()
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
        seen.update(covered(world))
    assert COVERED | ({"resumed"} if crashes else set()) <= set(seen), seen
