"""Whatever happens, a flow keeps its promises: many seeds of the simulator, each judged by what was recorded."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter

import pytest

from tests.engine.flow_history import History
from tests.engine.flow_simulator import FlowWorld

SEEDS = int(os.environ.get("HORAE_SEEDS", "120")) // 10
CHUNK = 25
EVERY_MS = (25_000, 70_000)


def play(seed: int) -> Counter[str]:
    """Play a seed; how often what it is about happened."""

    async def story() -> History:
        world = FlowWorld(seed)
        try:
            await world.tell()
            return History(await world.history(), EVERY_MS)
        finally:
            await world.end()

    try:
        history = asyncio.run(story())
        broken = history.judge()
        assert not broken, "\n".join(broken)
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    return history.counted


@pytest.mark.contract("FLOW-08", "FLOW-10", "FLOW-11", "FLOW-12", "FLOW-18", "FLOW-23", "FLOW-24")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.long
def test_flows_keep_their_promises_whatever_happens(first: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.CRITICAL)
    told: Counter[str] = Counter()
    for seed in range(first, min(first + CHUNK, SEEDS)):
        told += play(seed)
    wanted = {
        "retries",
        "emits",
        "crashes",
        "deaths",
        "produced",
        "woken",
        "versions",
        "run_now",
        "effects",
        "applied",
        "not_applied",
    }
    assert wanted <= set(told)  # it was put to the test
