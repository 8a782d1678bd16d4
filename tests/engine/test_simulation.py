"""Whatever happens, the ledger adds up: many seeds of the simulator, each checked for what DESIGN promises."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.engine.ledger import Ledger, check
from tests.engine.simulator import World

SEEDS = int(os.environ.get("HORAE_SEEDS", "30"))
CHUNK = 25

# Seeds that found something once.
KEPT = [23, 193, 228, 293]


def play(seed: int, parallel_batches: int) -> None:
    async def story() -> None:
        world = World(seed, parallel_batches)
        try:
            await world.tell()
            ledger = Ledger(world)
            await ledger.read()
            check(world, ledger)
        finally:
            await world.end()

    try:
        asyncio.run(story())
    except BaseException as error:
        error.add_note(f"seed {seed}, {parallel_batches} batches in parallel")
        raise


@pytest.mark.contract("CRON-06", "CRON-10", "GRNT-07", "GRNT-10", "SCHD-26")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.long
def test_the_ledger_adds_up_whatever_happens(first: int):
    for seed in range(first, min(first + CHUNK, SEEDS)):
        play(seed, 1 + seed % 2)


@pytest.mark.parametrize("seed", KEPT)
@pytest.mark.parametrize("parallel_batches", [1, 2])
def test_what_was_found_once_stays_found(seed: int, parallel_batches: int):
    play(seed, parallel_batches)
