"""Nodes that host a flow are killed at every step: its effect happens once for each event, and is never forgotten."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from horae import App
from tests.engine.flow_world import CONFIG, World, flow_of
from tests.support.dice import Dice
from tests.support.process import ROOT
from tests.support.wait import wait_until

STEPS = ["in prepare", "before the effect", "after the effect", "in next"]
SEEDS = int(os.environ.get("HORAE_SEEDS", "0")) // 100


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'horae.db'}"


def start(database: str, world: World) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.engine.flow_world", database, world.address]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


async def finish(database: str, events: int) -> None:
    async with App(database, config=CONFIG) as app:

        async def is_done() -> bool:
            found = await app.flows.events("killed", status="consumed", limit=1000)
            return len(found) == events

        await wait_until(is_done, 60)


async def set_up(database: str, world: World, events: int) -> None:
    async with App(database, config=CONFIG) as app:
        await app.flows.deploy(flow_of(world.address))
        await app.flows.publish_many("killed", [("in", f"e{number}", None) for number in range(events)])


@pytest.mark.contract("FLOW-18", "FLOW-23")
@pytest.mark.parametrize("step", STEPS)
async def test_a_node_that_is_killed_repeats_and_forgets_nothing(database: str, world: World, step: str):
    if not SEEDS and "postgres" in database and "effect" not in step:
        pytest.skip("make soak does it on PostgreSQL too")
    await set_up(database, world, 1)
    world.hold[step] = threading.Event()
    first = start(database, world)
    try:
        await wait_until(lambda: step in world.reached, 60)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    world.hold[step].set()
    del world.hold[step]
    # What the world had been asked for before the kill may still be done: only then it can be asked whether it was.
    await wait_until(lambda: step != "before the effect" or world.done, 10)
    second = start(database, world)
    try:
        await finish(database, 1)
    finally:
        second.kill()
        second.wait()
    assert world.events == {"e0": 1}
    assert list(world.done.values()) == [1]


@pytest.mark.skipif(not SEEDS, reason="make soak kills at random moments, with three nodes")
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_three_nodes_that_are_killed_at_any_moment(database: str, world: World, seed: int):
    dice, events = Dice(seed), 40
    await set_up(database, world, events)
    nodes = [start(database, world) for _ in range(3)]
    try:
        for _ in range(6):
            await asyncio.sleep((100 + dice.below(1400)) / 1000)
            place = dice.below(3)
            nodes[place].kill()
            nodes[place].wait()
            nodes[place] = start(database, world)
        await finish(database, events)
    finally:
        for node in nodes:
            node.kill()
            node.wait()
    assert world.events == {f"e{number}": 1 for number in range(events)}
