"""A node asks the database only for the deciders that have something to do, and for all of them once a tick."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config, Run
from horae.engine.decider import Batch, Decider
from horae.flows import Flow, Prepared
from horae.model import AttemptResult
from horae.store.flow_queries import FlowRecords, Probe
from horae.store.port import Transaction
from horae.testing import TimeMachine
from tests.support.flows import Script, publish
from tests.support.nodes import keeping_time, running
from tests.support.wait import wait_until


class Asked(Decider):
    """Counts its steps, and decides nothing."""

    asked = 0
    wake: int | None = None
    error: Exception | None = None

    async def run_batches(self, now: int) -> int | None:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.wake

    async def decide(self, batch: Batch) -> int | None:
        return None

    async def record(self, transaction: Transaction, results: Sequence[AttemptResult], now: int) -> None: ...

    async def claimed(self, transaction: Transaction, epochs: Sequence[int], limit: int) -> list[Run]:
        return []


class First(Asked):
    name = "first"


class Second(Asked):
    name = "second"


def added(app: App, kind: type[Asked]) -> Asked:
    app.add_decider(kind)
    decider = app.engine._deciders[-1]
    assert isinstance(decider, kind)
    return decider


async def test_only_deciders_with_something_to_do_step(machine: TimeMachine):
    app, now = machine.app, machine.app.now()
    first, second = added(app, First), added(app, Second)

    async def asked(*changed: str, at: int = now) -> tuple[int, int]:
        first.asked = second.asked = 0
        await app.engine.step(at, changed)
        return first.asked, second.asked

    assert await asked() == (1, 1)  # they were never asked before
    assert await asked() == (0, 0)
    assert await asked("second") == (0, 1)
    first.wake = now + 10
    assert await asked("first") == (1, 0)
    assert app.engine.wake_at == now + 10
    assert await asked("second") == (0, 1)
    assert app.engine.wake_at == now + 10, "what the other asked for still holds"
    assert await asked(at=now + 9) == (0, 0)
    assert await asked(at=now + 10) == (1, 0)
    first.wake = None
    await app.engine.step(now)
    second._unclaimed = True
    assert await asked() == (0, 1)
    second._unclaimed = False
    second.error = ValueError("it cannot")
    with pytest.raises(ValueError, match="it cannot"):
        await asked("second")
    second.error = None
    assert (await asked())[0] == 0


async def test_a_busy_flow_does_not_keep_a_node_from_asking_for_schedules_once_a_tick(tmp_path: Path):
    app = App(f"sqlite:///{tmp_path / 'horae.db'}", config=Config(tick_ms=10))
    other = added(app, First)
    runs: list[int] = []
    flow = Flow("busy")

    @flow.consumer(subscribes=["in"])
    class Take:
        async def prepare(self, ctx: Any, state: Any) -> Any:
            runs.append(other.asked)
            events = await ctx.peek("in", limit=1)
            return Prepared([{"topic": "in", "ids": [each.id for each in events]}])

    async with app:
        await app.flows.deploy(flow)
        await app.flows.publish_many("busy", [("in", str(number), None) for number in range(100)])
        async with keeping_time(app):
            await wait_until(lambda: len(runs) > 100)
    assert runs[-1] > 2


async def test_a_run_that_waits_for_capacity_begins_when_one_of_another_decider_ends(tmp_path: Path):
    config = Config(concurrency=1, tick_ms=60_000)
    app = App(f"sqlite:///{tmp_path / 'horae.db'}", config=config)
    go_on, begun, script = asyncio.Event(), asyncio.Event(), Script()

    @app.action("wait")
    async def wait() -> None:
        begun.set()
        await go_on.wait()

    async with running(app):
        await app.schedules.create("s", spec={"crons": ["0 0 1 1 *"]}, action="wait")
        await app.schedules.trigger("s")
        await begun.wait()
        await app.flows.deploy(script.flow)
        await publish(app, "1")
        flows = app.engine._deciders[-1]
        await wait_until(lambda: flows.is_unfinished)
        assert app.engine.wake_at is None or app.engine.wake_at > app.now() + 10_000, (
            "nothing is tried again until then"
        )
        assert script.calls == []
        go_on.set()
        await wait_until(lambda: script.effects == [["1"]])


async def test_a_step_that_only_records_results_asks_for_nothing_else_and_forgets_no_wake_time(
    machine: TimeMachine, monkeypatch: pytest.MonkeyPatch
):
    app, probes = machine.app, list[None]()
    probe = FlowRecords.probe

    async def counted(records: FlowRecords, revisions: Sequence[str]) -> Probe:
        probes.append(None)
        return await probe(records, revisions)

    monkeypatch.setattr(FlowRecords, "probe", counted)
    waits, takes = Script(), Script()
    waits.wake_at = machine.now + timedelta(minutes=5)
    waits.flow.name = "waits"
    await app.flows.deploy(waits.flow)
    await app.flows.deploy(takes.flow)

    async def results(number: int) -> None:
        await wait_until(lambda: len(app.worker.results("flows")) == number)
        probes.clear()
        await app.engine.step(app.now(), ())

    await app.engine.step(app.now())
    await results(2)  # both have looked
    at = int(waits.wake_at.timestamp() * 1000)
    assert (app.engine.wake_at, probes) == (at, [])
    await publish(app, "1")
    await app.engine.step(app.now(), ("flows",))
    await results(1)
    assert takes.effects == [["1"]]
    assert (app.engine.wake_at, probes) == (at, []), "the other flow still wants to be woken"
