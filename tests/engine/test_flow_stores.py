"""Flows on both databases, by the real clock: nodes that die, nodes that share the work, and what wakes them."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae import App, Config
from horae.errors import FlowRunNotFoundError
from horae.flow_model import Lane, Phase
from horae.flows import Applied, Flow, Prepared, Reservation, Unknown
from horae.model import LogBatch, LogChunk, LogEntry
from horae.store.flow_queries import FlowRecords, RunMove
from horae.store.postgres import PostgresStore
from tests.support.flows import Script, crash, events_of, never, publish, runs_of, statuses
from tests.support.nodes import end_leases, keeping_time, step
from tests.support.wait import wait_until

CONFIG = Config(lease_ms=60_000, housekeeping_ms=300, terminate_ms=200, drain_ms=200, tick_ms=60_000)


@asynccontextmanager
async def serving(database: str, *flows: Flow, config: Config = CONFIG) -> AsyncIterator[App]:
    async with App(database, config=config) as app:
        for flow in flows:
            await app.flows.deploy(flow)
        async with keeping_time(app):
            yield app


@pytest.mark.contract("FLOW-14", "FLOW-17")
async def test_all_parts_of_a_flow_on_both_databases(database: str):
    flow = Flow("f")
    script = Script()

    @flow.producer(publishes=["in"], every="1h")
    async def poll(ctx, state):
        for number in range(20):
            ctx.register_input("s", "t", str(number), f"Input {number}")
            ctx.publish("in", f"{number:02}", {"number": number})

    flow.handlers.append(script.flow.handlers[0])
    async with serving(database, flow) as app:
        await wait_until(lambda: len(script.effects) == 20)
        assert script.effects == [[f"{number:02}"] for number in range(20)]
        await wait_until(lambda: len(script.outcomes) >= 21)

        async def is_idle() -> bool:
            return (await app.flows.show("f")).status == "Idle"

        await wait_until(is_idle)
        assert await events_of(app, "consumed") == [f"{number:02}" for number in range(20)]
        assert {each.status for each in await app.flows.inputs("f")} == {"done"}
        assert (await app.flows.list())[0].schedule == "Checks every hour"


@pytest.mark.contract("FLOW-18", "FLOW-23")
@pytest.mark.parametrize("part", ["prepare", "mutate", "next"])
async def test_another_node_recovers_what_a_dead_node_ran(database: str, part: str):
    script = Script(reconciles=True)
    script.deeds[part] = [never]
    script.answers = [Applied("found out")]
    dead = App(database, config=CONFIG)
    await dead.open()
    await dead.join()
    await dead.flows.deploy(script.flow)
    await publish(dead, "1")
    await step(dead)
    await wait_until(lambda: part in script.calls)
    await dead.close()  # without a word: its claim stays
    await end_leases(database, dead.engine.epoch)

    async with serving(database, script.flow) as app:

        async def is_done() -> bool:
            return await events_of(app, "consumed") == ["1"]

        await wait_until(is_done)
        found = await statuses(app)
        assert found[0] == (
            {"prepare": "preparing", "mutate": "mutating", "next": "emitting"}[part],
            "crashed",
        )
        assert ("committed", "committed") in found
        assert len(script.effects) == (0 if part == "mutate" else 1)
        expected = "found out" if part == "mutate" else "did 1"
        assert ("applied", expected) in script.outcomes


@pytest.mark.contract("FLOW-24")
async def test_nodes_share_flows_and_each_flow_runs_one_handler_at_a_time(database: str):
    active: dict[str, int] = {}
    overlaps: list[str] = []
    done: dict[str, list[str]] = {}

    def flows() -> list[Flow]:
        made = []
        for number in range(4):
            flow = Flow(f"f{number}", revision="1")

            @flow.consumer(subscribes=["in"], name="take")
            class Take:
                async def prepare(self, ctx, state):
                    active[ctx.flow] = active.get(ctx.flow, 0) + 1
                    if active[ctx.flow] > 1:
                        overlaps.append(ctx.flow)
                    found = await ctx.peek("in", limit=1)
                    await asyncio.sleep(0.002)
                    return Prepared(
                        [Reservation("in", [each.id for each in found])], [each.id for each in found]
                    )

                async def next(self, ctx, prepared, outcome):
                    done.setdefault(ctx.flow, []).extend(prepared.data)
                    active[ctx.flow] -= 1

            made.append(flow)
        return made

    config = Config(lease_ms=5000, housekeeping_ms=1000, tick_ms=200)
    async with (
        serving(database, *flows(), config=config) as one,
        serving(database, *flows(), config=config) as two,
    ):
        for number in range(4):
            ids = [f"{each:02}" for each in range(15)]
            await (one if number % 2 else two).flows.publish_many(
                f"f{number}", [("in", each, None) for each in ids]
            )
        await wait_until(lambda: sum(map(len, done.values())) == 60)
    assert overlaps == []
    assert done == {f"f{number}": [f"{each:02}" for each in range(15)] for number in range(4)}


@pytest.mark.contract("FLOW-28")
async def test_an_event_published_on_another_node_wakes_a_consumer(postgres: str):
    script = Script()
    hourly = Config(lease_ms=60_000, housekeeping_ms=300, tick_ms=3_600_000)
    async with serving(postgres, script.flow, config=hourly) as host, App(postgres, config=CONFIG) as other:
        await wait_until(lambda: script.calls == ["prepare", "next"])
        await publish(other, "1")  # the host looks by itself once an hour: only the notification wakes it
        await wait_until(lambda: script.effects == [["1"]])
        assert host.flow_host.revisions == ["1"]
        assert other.flow_host.is_empty


@pytest.mark.contract("FLOW-28")
async def test_what_changed_before_a_node_listens_is_found_when_it_does(
    postgres: str, monkeypatch: pytest.MonkeyPatch
):
    script, reachable = Script(), asyncio.Event()
    listen = PostgresStore._listen

    async def listen_late(store: PostgresStore, wake: Callable[..., None]) -> None:
        await reachable.wait()
        await listen(store, wake)

    monkeypatch.setattr(PostgresStore, "_listen", listen_late)
    hourly = Config(lease_ms=60_000, housekeeping_ms=20_000, tick_ms=3_600_000)
    async with serving(postgres, script.flow, config=hourly), App(postgres, config=CONFIG) as other:
        try:
            await wait_until(lambda: script.calls == ["prepare", "next"])
            await publish(other, "1")  # no node hears of it
        finally:
            reachable.set()
        await wait_until(lambda: script.effects == [["1"]])


@pytest.mark.contract("FLOW-11", "FLOW-28")
@pytest.mark.parametrize("number", [1, 40])
async def test_idle_flows_cost_the_probe_of_each_tick_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*given: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    looks: list[str] = []
    flows = [waiting_flow(f"f{each}", looks) for each in range(number)]
    config = Config(lease_ms=60_000, housekeeping_ms=20_000, tick_ms=20)

    def about_flows() -> list[str]:
        return [each for each in statements if "flow_" in each]

    async with serving(f"sqlite:///{tmp_path / 'horae.db'}", *flows, config=config) as app:
        for flow in flows:  # events that no consumer takes yet are no reason to look again
            await publish(app, "1", "2", flow=flow.name)
        await wait_until(lambda: {each.name for each in flows} == set(looks))
        await wait_until(lambda: all(map(is_probe, about_flows()[-3:])))
        before = len(looks)
        statements.clear()
        await wait_until(lambda: len(about_flows()) >= 5)
        assert [each for each in about_flows() if not is_probe(each)] == []
        assert len(looks) == before


def is_probe(statement: str) -> bool:
    return "EXISTS (SELECT 1 FROM flow_signal)" in statement


def waiting_flow(name: str, looks: list[str]) -> Flow:
    """A flow whose producer is not due for a day, and whose consumer looks and takes nothing."""
    flow = Flow(name, revision="1")

    @flow.producer(publishes=["in"], every="1d")
    async def poll(ctx: Any, state: Any) -> None:
        pass

    @flow.consumer(subscribes=["in"])
    class Wait:
        async def prepare(self, ctx: Any, state: Any) -> Prepared[None]:
            await ctx.peek("in")
            looks.append(ctx.flow)
            return Prepared()

    return flow


async def test_two_hosts_with_different_versions_the_last_deployed_runs(database: str):
    old, new = Script(), Script()
    old.flow = old.version("old")
    new.flow = new.version("new")
    config = Config(lease_ms=5000, housekeeping_ms=1000, tick_ms=100)
    async with serving(database, old.flow, config=config) as one:
        await wait_until(lambda: old.outcomes)
        async with serving(database, new.flow, config=config) as two:
            await wait_until(lambda: new.outcomes)
            for number in range(5):
                await publish(one, str(number))
            await wait_until(lambda: len(new.effects) == 5)
            assert old.effects == []
            assert not (await one.flows.show("f")).operator.hosted_here  # type: ignore[union-attr]
            assert (await two.flows.show("f")).operator.hosted_here  # type: ignore[union-attr]


@pytest.mark.contract("FLOW-15", "FLOW-24")
@pytest.mark.parametrize("part", ["prepare", "mutate", "next"])
async def test_a_stale_holder_writes_nothing(database: str, part: str):
    script, go_on = Script(reconciles=True), asyncio.Event()
    script.answers = [Applied("found out")]
    slow = _until(go_on)
    script.deeds[part] = [slow] if part == "mutate" else [None, slow]  # after the first look
    async with serving(database, script.flow) as app:
        await wait_until(lambda: script.outcomes)
        await publish(app, "1")
        await wait_until(lambda: slow not in script.deeds[part])
        await crash(app)
        app.wake()

        async def is_done() -> bool:
            return await events_of(app, "consumed") == ["1"]

        await wait_until(is_done)
        before = [run for run in await runs_of(app) if run.status != "active"]  # a look follows
        go_on.set()
        await wait_until(lambda: not app.worker.tasks and not app.worker.ended())
        assert await runs_of(app) == before  # also what it wrote while it ran
        assert [run.status for run in before if run.status != "paused:reconciliation"] == [
            "crashed",
            "committed",
        ]
        assert len(script.effects) == 1
        assert script.calls.count("mutate") == 1


@pytest.mark.contract("FLOW-18", "FLOW-24")
async def test_a_stale_holder_has_no_effect(database: str):
    script, go_on = Script(), asyncio.Event()
    script.deeds["prepare"] = [None, _until(go_on), lambda ctx: Prepared()]  # what follows takes nothing
    async with serving(database, script.flow) as app:
        await wait_until(lambda: script.outcomes)
        await publish(app, "1")
        await wait_until(lambda: len(script.deeds["prepare"]) == 1)
        await crash(app)
        app.wake()
        await wait_until(lambda: len(script.outcomes) == 2)
        go_on.set()
        await wait_until(lambda: not app.worker.tasks and not app.worker.ended())
        assert script.effects == []
        assert await events_of(app, "pending") == ["1"]


@pytest.mark.contract("FLOW-22", "FLOW-24")
async def test_a_stale_reconciliation_decides_nothing(database: str):
    script, go_on = Script(reconciles=True), asyncio.Event()
    script.deeds["mutate"] = [ConnectionError("lost")]
    script.deeds["reconcile"] = [_until(go_on)]
    script.answers = [Unknown(), Applied("too late")]
    async with serving(database, script.flow) as app:
        await publish(app, "1")
        await wait_until(lambda: "reconcile" in script.calls)
        await crash(app)
        await app.flows.resume("f")  # it need not wait for its next try
        await wait_until(lambda: script.calls.count("reconcile") == 2)

        async def is_idle() -> bool:
            return (await app.flows.show("f")).operator.active_run is None  # type: ignore[union-attr]

        await wait_until(is_idle)
        go_on.set()
        await wait_until(lambda: not app.worker.tasks and not app.worker.ended())
        assert await statuses(app) == [("mutating", "paused:reconciliation")]
        assert await events_of(app, "reserved") == ["1"]


@pytest.mark.contract("FLOW-17", "FLOW-24")
async def test_a_phase_is_written_only_under_the_claim(database: str):
    script = Script()
    script.deeds["prepare"] = [never]
    async with serving(database, script.flow) as app:
        await publish(app, "1")
        await wait_until(lambda: "prepare" in script.calls)
        (run,) = await app.flows.runs("f")
        move = RunMove(run_id=run.id, epoch=app.engine.epoch, phase=Phase.MUTATING, updated_at_ms=app.now())
        stale = msgspec.structs.replace(move, epoch=app.engine.epoch + 1)
        assert [await _moves(app, each) for each in (stale, move)] == [False, True]
        await crash(app)  # the same epoch, and the run is over
        assert not await _moves(app, move)
        before = await app.flows.chain("f", run.id)
        assert (before[0].phase, before[0].status) == ("mutating", "crashed")


async def _moves(app: App, move: RunMove) -> bool:
    async with app._store.transaction() as transaction:
        moved, _ = await FlowRecords(transaction).move_runs([move])
    return moved


def _until(event: asyncio.Event) -> Any:
    async def wait(ctx: Any) -> None:
        await event.wait()

    return wait


@pytest.mark.contract("FLOW-15")
async def test_what_handlers_log_is_kept_with_their_runs(database: str):
    script, go_on = Script(reconciles=True), asyncio.Event()
    script.answers = [Applied("found")]

    def say(ctx: Any) -> None:
        ctx.log.debug("looking at %s", ctx.handler)
        logging.getLogger("shop").warning("by the standard library")

    async def lose(ctx: Any) -> None:
        ctx.log.info("sending")
        await go_on.wait()
        raise ConnectionError("lost")

    script.deeds |= {"prepare": [say], "mutate": [lose], "reconcile": [lambda ctx: ctx.log.info("asking")]}
    async with App(database, config=msgspec.structs.replace(CONFIG, attempt_log_flush_ms=10)) as app:
        await app.flows.deploy(script.flow)
        await publish(app, "1")

        async def lines() -> list[tuple[str, str, str]]:
            run = (await runs_of(app))[0]
            return [(each.level, each.logger, each.message) for each in await app.flows.logs("f", run.id)]

        said = [
            ("DEBUG", "take", "looking at take"),
            ("WARNING", "shop", "by the standard library"),
            ("INFO", "take", "sending"),
        ]

        async def are_written() -> bool:
            return bool(await runs_of(app)) and await lines() == said

        async with keeping_time(app):
            await wait_until(are_written)  # while it runs
            go_on.set()
            await wait_until(lambda: ("applied", "found") in script.outcomes)
            kept = await lines()
            assert kept[:3] == said
            assert kept[3][:2] == ("ERROR", "take")
            assert kept[3][2].endswith("ConnectionError: lost")
            assert "in lose" in kept[3][2]
            assert kept[4:] == [
                ("INFO", "take", "asking")
            ]  # the reconciliation is another attempt of the same run
        with pytest.raises(FlowRunNotFoundError):
            await app.flows.logs("f", "0" * 32)


@pytest.mark.contract("FLOW-24")
async def test_a_stale_claim_logs_nothing(database: str):
    script = Script()
    script.deeds["prepare"] = [never]
    async with serving(database, script.flow) as app:
        await wait_until(lambda: "prepare" in script.calls)
        (run,) = await app.flows.runs("f")
        lane = (await _lanes(app))[0]
        chunk = LogChunk(
            run_id=run.id, attempt=lane.attempt, number=1, lines=(LogEntry(1, "INFO", "x", "late"),)
        )
        batch = LogBatch(run_id=run.id, epoch=lane.epoch, attempt=lane.attempt, chunks=(chunk,), flow=True)
        await _log(app, msgspec.structs.replace(batch, epoch=lane.epoch + 1))
        assert list(await app.flows.logs("f", run.id)) == []
        await crash(app)
        await _log(app, batch)
        assert list(await app.flows.logs("f", run.id)) == []


async def _lanes(app: App) -> list[Lane]:
    async with app._store.transaction() as transaction:
        return list((await FlowRecords(transaction).lanes([1])).values())


async def _log(app: App, batch: LogBatch) -> None:
    async with app._store.transaction() as transaction:
        await transaction.write_logs([batch])
