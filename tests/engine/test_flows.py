"""Flows on the virtual clock: when handlers run, what a commit writes, and what every failure leads to."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from horae import App
from horae.errors import FlowRefusedError, InvalidInputError, StoreUnavailableError
from horae.flow_model import FailureKind, FlowStatus, Phase, Recovery
from horae.flows import (
    Applied,
    Flow,
    HandlerStopped,
    Internal,
    LogicError,
    NeedsApproval,
    NotApplied,
    Prepared,
    Reservation,
    Transient,
    Unknown,
)
from horae.policy.flow_phase_transitions import judge
from horae.store.port import Transaction
from horae.testing import TimeMachine, VirtualClock
from tests.support.flows import Script, crash, events_of, flow_decider, never, publish, runs_of, statuses

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def poller(**schedule: Any) -> tuple[Flow, list[datetime]]:
    flow, times = Flow("f"), list[datetime]()

    @flow.producer(publishes=["in"], **(schedule or {"every": "5m"}))
    async def poll(ctx, state):
        times.append(ctx.now)
        return state

    @flow.consumer(subscribes=["in"])
    class Take:
        async def prepare(self, ctx, state):
            return Prepared()

    return flow, times


@pytest.mark.contract("FLOW-01", "FLOW-06", "FLOW-17")
async def test_a_flow_runs_end_to_end(machine: TimeMachine):
    flow = Flow("mail")
    rows: list[Any] = []

    @flow.producer(publishes=["mail"], every="5m")
    async def poll(ctx, state: int | None) -> int:
        number = (state or 0) + 1
        await ctx.publish("mail", f"m{number}", {"number": number})
        await machine.sleep(seconds=10)
        return number

    @flow.consumer(subscribes=["mail"], publishes=["rows"])
    class Sheet:
        async def prepare(self, ctx, state):
            found = await ctx.peek("mail")
            return Prepared(
                [Reservation("mail", [each.id for each in found])], [each.payload for each in found]
            )

        async def mutate(self, ctx, prepared):
            rows.extend(prepared.data)
            return {"rows": len(rows)}

        async def next(self, ctx, prepared, outcome):
            if outcome.status == "applied":
                ctx.publish("rows", ctx.run_id, outcome.result)
            return {"last": outcome.result}

    @flow.consumer(subscribes=["rows"])
    class Count:
        async def prepare(self, ctx, state):
            found = await ctx.peek("rows")
            return Prepared([{"topic": "rows", "ids": [each.id for each in found]}])

    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=9)
    assert list(await machine.app.flows.events("mail")) == []  # not visible before the commit
    await machine.advance(minutes=12)
    assert rows == [{"number": 1}, {"number": 2}, {"number": 3}]
    assert {event.status for event in await machine.app.flows.events("mail")} == {"consumed"}
    last = next(run for run in await machine.app.flows.runs("mail") if run.handler == "Sheet" and run.events)
    assert last.prepared["data"] == [{"number": 3}]
    assert last.mutation == {"status": "applied", "result": {"rows": 3}}
    assert (last.phase, last.status) == ("committed", "committed")


async def test_a_run_gets_the_state_that_the_run_before_it_returned(machine: TimeMachine):
    """Also if the end of the one and the claim of the other are one transaction."""
    script = Script()
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "a", "b", "c", "d")
    await machine.advance(minutes=1)
    assert script.states[:4] == [None, 1, 2, 3]


@pytest.mark.parametrize("fails_at", range(1, 6))
async def test_a_state_whose_commit_failed_is_not_given_to_a_run(
    machine: TimeMachine, monkeypatch: pytest.MonkeyPatch, fails_at: int
):
    script, app = Script(mutates=False), machine.app
    await app.flows.deploy(script.flow)
    await publish(app, "a", "b", "c", "d")
    plain, begun = app._store.transaction, itertools.count(1)

    @asynccontextmanager
    async def failing() -> AsyncIterator[Transaction]:
        async with plain() as transaction:
            yield transaction
            if next(begun) == fails_at:
                raise StoreUnavailableError("cut before the commit")

    monkeypatch.setattr(app._store, "transaction", failing)
    with pytest.raises(StoreUnavailableError):
        await machine.advance(minutes=1)
    await machine.advance(minutes=1)
    assert script.states[:4] == [None, 1, 2, 3]


@pytest.mark.contract("FLOW-07")
@pytest.mark.parametrize("schedule", [{"every": "5m"}, {"cron": "*/5 * * * *"}])
async def test_producers_run_at_once_and_then_by_their_schedule(machine: TimeMachine, schedule):
    await machine.advance(minutes=2)
    flow, times = poller(**schedule)
    await machine.app.flows.deploy(flow)
    await machine.advance(minutes=11)
    first = START + timedelta(minutes=2)
    step = [0, 5, 10] if "every" in schedule else [0, 3, 8]
    assert times == [first + timedelta(minutes=minutes) for minutes in step]
    await machine.app.flows.deploy(flow)  # the same schedule keeps its time
    await machine.advance(minutes=1)
    assert len(times) == 3
    changed, others = poller(every="1h")
    await machine.app.flows.deploy(changed)
    await machine.advance(minutes=1)
    assert len(others) == 1


@pytest.mark.contract("FLOW-08", "FLOW-24")
async def test_a_producer_that_is_due_during_a_run_waits_and_runs_once(machine: TimeMachine):
    flow, times = Flow("f"), list[datetime]()
    active = most = 0

    @flow.producer(publishes=["in"], every="5m")
    async def poll(ctx, state):
        times.append(ctx.now)

    @flow.consumer(subscribes=["in"])
    class Slow:
        async def prepare(self, ctx, state):
            nonlocal active, most
            active += 1
            most = max(most, active)
            found = await ctx.peek("in")
            if found:
                await machine.sleep(minutes=23)
            active -= 1
            return Prepared([Reservation("in", [each.id for each in found])])

    await machine.app.flows.deploy(flow)
    await machine.app.flows.publish("f", "in", "1")
    config_timeout = machine.app.config.flow_timeout_ms
    assert config_timeout == 600_000
    await machine.advance(minutes=9)
    assert times == []  # the consumer is before it
    assert most == 1


@pytest.mark.contract("FLOW-08")
async def test_due_while_down_is_one_run(tmp_path):
    clock = VirtualClock(START)
    flow, times = poller()
    address = f"sqlite:///{tmp_path / 'f.db'}"
    for hours in (0, 5):
        await clock.advance(hours=hours)
        async with App(address, clock=clock) as app:
            await app.flows.deploy(flow)
            for _ in range(6):
                await app.engine.step(app.now())
                await asyncio.sleep(0.01)
    assert times == [START, START + timedelta(hours=5)]


@pytest.mark.contract("FLOW-09", "FLOW-26")
async def test_run_now_queues_all_producers_unless_the_flow_is_busy_or_stopped(machine: TimeMachine):
    flow, order = Flow("f"), list[str]()
    for name in ("one", "two"):

        async def poll(ctx, state, name=name):
            order.append(name)

        flow.producer(publishes=["in"], every="1h", name=name)(poll)
    script = Script()
    flow.handlers.append(script.flow.handlers[0])
    await machine.app.flows.deploy(flow)
    await machine.advance(minutes=10)
    assert order == ["one", "two"]
    await machine.app.flows.run_now("f")
    await machine.advance(minutes=1)
    assert order == ["one", "two"] * 2
    await machine.advance(minutes=58)
    assert len(order) == 4  # computed anew: an hour after the last commit
    await machine.advance(minutes=2)
    assert len(order) == 6
    await machine.app.flows.pause("f", note="holiday")
    with pytest.raises(FlowRefusedError, match="it is paused"):
        await machine.app.flows.run_now("f")
    await machine.app.flows.resume("f")
    script.deeds["prepare"] = [never]
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    with pytest.raises(FlowRefusedError, match="one of its handlers is running"):
        await machine.app.flows.run_now("f")


@pytest.mark.contract("FLOW-10", "FLOW-11")
async def test_a_consumer_looks_on_deploy_and_for_new_events_and_does_not_busy_loop(machine: TimeMachine):
    script = Script()
    script.take = 1000
    await machine.app.flows.deploy(script.flow)
    await machine.advance(hours=1)
    assert script.calls == ["prepare", "next"]  # one look, outcome none
    assert script.outcomes == [("none", None)]
    script.deeds["prepare"] = [lambda ctx: Prepared()] * 3
    await publish(machine.app, "1", "2")
    await machine.advance(hours=1)
    assert script.calls.count("prepare") == 2  # events are pending, and it waits
    await publish(machine.app, "3")
    await machine.advance(hours=1)
    assert script.calls.count("prepare") == 3
    script.deeds["prepare"] = []
    await publish(machine.app, "4")
    await machine.advance(seconds=1)
    assert script.effects == [["1", "2", "3", "4"]]
    assert script.calls.count("prepare") == 5  # after it reserved, it looked again


@pytest.mark.contract("FLOW-10", "FLOW-11")
async def test_what_is_published_during_a_look_counts(machine: TimeMachine):
    script = Script()

    async def race(ctx):
        found = await ctx.peek("in")
        await publish(machine.app, "late")
        return Prepared([Reservation("in", [each.id for each in found])] if found else [], data=[])

    script.deeds["prepare"] = [race]
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    assert script.effects == [["late"]]


@pytest.mark.contract("FLOW-12")
async def test_wake_times_are_taken_from_every_prepare_and_clamped(machine: TimeMachine):
    script = Script(emits=False)
    script.wake_at = START + timedelta(minutes=10)
    await machine.app.flows.deploy(script.flow)
    await machine.advance(minutes=9)
    assert script.calls == ["prepare"]
    await machine.advance(minutes=1, seconds=10)
    assert script.calls == ["prepare"] * 2  # the wake time is past now: clamped to 30 s after the commit
    await machine.advance(seconds=30)
    assert len(script.calls) > 2
    script.wake_at = "2030-01-01T00:00:00Z"
    await machine.advance(minutes=1)
    number = len(script.calls)
    await machine.advance(hours=23)
    assert len(script.calls) == number
    script.wake_at = None
    await machine.advance(hours=2)
    assert len(script.calls) == number + 1  # after a day at most; then it was omitted, and so cleared
    await machine.advance(days=3)
    assert len(script.calls) == number + 1
    script.wake_at = START + timedelta(days=20)
    await publish(machine.app, "1")  # a new event wakes earlier, and what reserved may set a wake time too
    await machine.advance(seconds=1)
    script.wake_at = None
    assert script.effects == [["1"]]
    await machine.advance(days=1, minutes=1)
    assert len(script.calls) == number + 1 + 3 + 1


@pytest.mark.contract("FLOW-12")
async def test_a_wake_time_that_is_no_time_is_as_if_omitted_and_logged(machine: TimeMachine, caplog):
    script = Script(emits=False)
    script.wake_at = "next tuesday"
    await machine.app.flows.deploy(script.flow)
    await machine.advance(days=2)
    assert script.calls == ["prepare"]
    assert "'next tuesday' is no ISO 8601 time" in caplog.text


@pytest.mark.contract("FLOW-12")
async def test_a_wake_time_that_passed_during_a_pause_is_served_once(machine: TimeMachine):
    script = Script(emits=False)
    script.wake_at = START + timedelta(hours=1)
    await machine.app.flows.deploy(script.flow)
    await machine.advance(minutes=1)
    script.wake_at = None
    await machine.app.flows.pause("f")
    await machine.advance(hours=5)
    assert script.calls == ["prepare"]
    await machine.app.flows.resume("f")
    await machine.advance(hours=5)
    assert script.calls == ["prepare"] * 2


@pytest.mark.contract("FLOW-04")
async def test_a_message_id_is_one_event_and_only_a_pending_one_takes_a_new_payload(machine: TimeMachine):
    script = Script()
    await machine.app.flows.deploy(script.flow)
    await machine.app.flows.pause("f")
    for payload in (1, 2):
        await machine.app.flows.publish("f", "in", "a", payload)
    (event,) = await machine.app.flows.events("f")
    assert (event.payload, event.status) == (2, "pending")
    await machine.app.flows.resume("f")
    await machine.advance(seconds=1)
    await machine.app.flows.publish("f", "in", "a", 3)
    await machine.advance(seconds=1)
    (event,) = await machine.app.flows.events("f")
    assert (event.payload, event.status) == (2, "consumed")
    assert script.effects == [["a"]]


@pytest.mark.contract("FLOW-04")
async def test_the_same_id_in_another_topic_is_another_event(machine: TimeMachine):
    flow = Flow("f")

    @flow.consumer(subscribes=["a", "b"])
    class Take:
        async def prepare(self, ctx, state):
            return Prepared()

    await machine.app.flows.deploy(flow)
    await machine.app.flows.publish_many("f", [("a", "1", "A"), ("b", "1", "B"), ("a", "1", "C")])
    found = {event.topic: event.payload for event in await machine.app.flows.events("f")}
    assert found == {"a": "C", "b": "B"}


@pytest.mark.contract("FLOW-05")
async def test_inputs_cause_events_and_skipping_one_skips_them(machine: TimeMachine):
    flow = Flow("f")
    done: list[str] = []

    @flow.producer(publishes=["in"], every="1h")
    async def poll(ctx, state):
        for number in ("1", "2"):
            ctx.register_input("mail", "message", number, f"Mail {number}")
            ctx.register_input("mail", "message", number, f"Mail {number}")
            ctx.publish("in", f"e{number}")

    @flow.consumer(subscribes=["in"], publishes=["out"])
    class Split:
        async def prepare(self, ctx, state):
            found = await ctx.peek("in", limit=2)
            return Prepared(
                [Reservation("in", [each.id for each in found])], data=[each.id for each in found]
            )

        async def next(self, ctx, prepared, outcome):
            if prepared.data:
                ctx.publish("out", "+".join(prepared.data))

    @flow.consumer(subscribes=["out"])
    class Wait:
        async def prepare(self, ctx, state):
            found = await ctx.peek("out")
            done.extend(each.id for each in found)
            return Prepared()

    await machine.app.flows.deploy(flow)
    await machine.advance(minutes=1)
    assert done == ["e1+e2"]
    found = await machine.app.flows.inputs("f")
    # The event of ``next`` was caused by both inputs, and is pending.
    assert [(each.id, each.title, each.status, each.open_events) for each in found] == [
        ("2", "Mail 2", "pending", 1), ("1", "Mail 1", "pending", 1),
    ]  # fmt: skip
    assert await machine.app.flows.skip("f", "mail", "message", "1") == 1
    assert [each.status for each in await machine.app.flows.inputs("f")] == ["done", "skipped"]
    assert await events_of(machine.app, "skipped") == ["e1+e2"]
    with pytest.raises(Exception, match="no input"):
        await machine.app.flows.skip("f", "mail", "message", "9")


async def test_skipping_reads_the_outcome_of_a_run_once_however_many_events_it_reserved(machine: TimeMachine):
    flow = Flow("f")
    large = "x" * 100_000

    @flow.producer(publishes=["in"], every="100d")
    async def poll(ctx, state):
        ctx.register_input("s", "t", "1", "One")
        for number in range(50):
            ctx.publish("in", f"{number:02}")

    @flow.consumer(subscribes=["in"])
    class Take:
        async def prepare(self, ctx, state):
            events = await ctx.peek("in")
            return Prepared([Reservation("in", [each.id for each in events])])

        async def mutate(self, ctx, prepared):
            return large

        async def next(self, ctx, prepared, outcome):
            if outcome.status == "applied":
                raise LogicError("as planned")

    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    assert len(await events_of(machine.app, "reserved")) == 50
    async with machine.app.reading() as transaction:
        rows = await transaction.rows("events_of_input", number=1)
    assert (len(rows), len(str([tuple(row) for row in rows])) < len(large)) == (50, True)
    assert await machine.app.flows.skip("f", "s", "t", "1") == 0


@pytest.mark.contract("FLOW-05")
@pytest.mark.parametrize("mutates", [True, False])
async def test_skipping_gives_up_a_reservation_unless_it_was_mutated(machine: TimeMachine, mutates):
    flow = Flow("f")
    script = Script(mutates=mutates)

    @flow.producer(publishes=["in"], every="100d")
    async def poll(ctx, state):
        ctx.register_input("s", "t", "1", "One")
        ctx.publish("in", "1")

    flow.handlers.append(script.flow.handlers[0])
    go_on = asyncio.Event()
    script.deeds["mutate" if mutates else "next"] = [] if not mutates else [lambda ctx: go_on.wait()]
    if not mutates:
        script.deeds["next"] = [None, lambda ctx: go_on.wait()]
    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    assert await events_of(machine.app, "reserved") == ["1"]
    assert await machine.app.flows.skip("f", "s", "t", "1") == (0 if mutates else 1)
    go_on.set()
    await machine.advance(minutes=1)
    assert await events_of(machine.app, "consumed" if mutates else "skipped") == ["1"]
    if not mutates:
        assert ("emitting", "paused:transient") in await statuses(machine.app)
    assert (await machine.app.flows.show("f")).status == "Idle"


@pytest.mark.contract("FLOW-14")
@pytest.mark.parametrize(
    ("reservations", "reason"),
    [
        ([Reservation("in", ["absent"])], "which is absent"),
        ([Reservation("in", ["old"])], "which is consumed"),
        ([Reservation("in", ["new", "new"])], "twice"),
        ([Reservation("in", ["new"]), {"topic": "in", "ids": ["new"]}], "twice"),
        ([Reservation("out", ["new"])], "does not subscribe"),
        ([{"topic": "in"}], "must be a list of Reservation"),
        ("in", "must be a list of Reservation"),
        (7, "must be a list of Reservation"),
    ],
)
async def test_reserving_what_is_not_there_is_a_logic_error(machine: TimeMachine, reservations, reason):
    script = Script()
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "old")
    await machine.advance(seconds=1)
    script.deeds["prepare"] = [lambda ctx: Prepared(reservations)]
    await publish(machine.app, "new")
    await machine.advance(seconds=1)
    last = (await runs_of(machine.app))[-1]
    assert (last.phase, last.status) == ("preparing", "failed:logic")
    assert reason in (last.error or "")
    assert await events_of(machine.app, "pending") == ["new"]


FAULTS: dict[FailureKind, Any] = {
    FailureKind.TRANSIENT: Transient("rate limit"),
    FailureKind.NOT_APPLIED: Transient("busy", applied=False),
    FailureKind.LOGIC: LogicError("wrong"),
    FailureKind.VIOLATION: lambda ctx: ctx.effect(print) if ctx.part != "mutate" else ctx.publish("in", "x"),
    FailureKind.APPROVAL: NeedsApproval("reconnect Gmail"),
    FailureKind.UNCLASSIFIED: KeyError("x"),
    FailureKind.TIMEOUT: never,
    FailureKind.INTERNAL: Internal("bug"),
    FailureKind.CRASH: never,
}
PARTS = {"prepare": Phase.PREPARING, "mutate": Phase.MUTATING, "next": Phase.EMITTING}


@pytest.mark.contract("FLOW-15", "FLOW-16", "FLOW-18", "FLOW-19", "FLOW-23")
@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize("part", PARTS)
async def test_what_every_failure_leads_to(machine: TimeMachine, part: str, kind: FailureKind):
    script = Script(reconciles=True, timeout="20s")
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    script.deeds[part] = [FAULTS[kind]]
    script.answers = [NotApplied()]
    script.calls.clear()
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    if kind is FailureKind.CRASH:
        assert await crash(machine.app) == 1
    elif kind is FailureKind.TIMEOUT:
        await machine.advance(seconds=19)
    phase = PARTS[part]
    verdict = judge(phase, kind, None if part != "next" else "applied")  # type: ignore[arg-type]
    failed = (await runs_of(machine.app))[0]
    assert (failed.phase, failed.status, failed.failure_kind) == (phase, verdict.status, kind)
    assert failed.retry_of is None
    before = list(script.calls)
    await machine.advance(seconds=1)
    view = await machine.app.flows.show("f")
    if verdict.status in {FlowStatus.APPROVAL, FlowStatus.LOGIC, FlowStatus.INTERNAL}:
        assert view.status == "Needs attention"
        assert script.calls == before
        await machine.app.flows.resume("f")
    elif verdict.status is FlowStatus.TRANSIENT:
        assert view.status == "Idle"
        assert view.issue
        await machine.advance(seconds=9)
    await machine.advance(seconds=11)
    assert (await machine.app.flows.show("f")).issue is None
    assert script.effects == [
        ["1"]
    ]  # the one that did not commit had none: it was told so, or it raised before
    assert await events_of(machine.app, "consumed") == ["1"]
    assert script.calls.count("reconcile") == (1 if verdict.recovery is Recovery.RECONCILE else 0)
    assert script.calls.count("mutate") == (2 if part == "mutate" else 1)
    runs = await runs_of(machine.app)
    chain = await machine.app.flows.chain("f", runs[-1].id)
    assert [run.id for run in chain] == [run.id for run in runs]  # each links to the one before
    assert chain[0] == failed  # and is never rewritten


@pytest.mark.contract("FLOW-19")
@pytest.mark.parametrize("kind", FailureKind)
async def test_what_every_failure_of_a_producer_leads_to(machine: TimeMachine, kind: FailureKind):
    flow, deeds, times = Flow("f"), [FAULTS[kind]], list[datetime]()

    @flow.producer(publishes=["in"], every="1h", timeout="20s")
    async def poll(ctx, state):
        times.append(ctx.now)
        if deeds:
            deed = deeds.pop()
            if isinstance(deed, BaseException):
                raise deed
            await deed(ctx)
        ctx.publish("in", "1")

    flow.handlers.append(Script().flow.handlers[0])
    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    if kind is FailureKind.CRASH:
        await crash(machine.app)
    await machine.advance(seconds=30)
    verdict = judge(Phase.EXECUTING, kind, None)
    failed = (await runs_of(machine.app))[0]
    assert (failed.phase, failed.status) == ("executing", verdict.status)
    if (await machine.app.flows.show("f")).status == "Needs attention":
        await machine.app.flows.resume("f")
    await machine.advance(minutes=1)
    assert await events_of(machine.app, "consumed") == ["1"]
    assert len(times) == 2


@pytest.mark.contract("FLOW-20", "FLOW-26", "FLOW-27")
async def test_backoff_waits_for_the_whole_flow_and_any_commit_resets_it(machine: TimeMachine):
    flow, times = poller()
    script = Script()
    flow.handlers.append(script.flow.handlers[0])
    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    script.deeds["prepare"] = [Transient("down") for _ in range(6)]
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    with pytest.raises(FlowRefusedError, match="a failure is not resolved"):
        await machine.app.flows.run_now("f")
    await machine.advance(seconds=312)
    assert times == [START]  # the producer was due after five minutes, and waits
    runs = [run for run in await runs_of(machine.app) if run.handler == "take"]
    waits = [(b.created_at - a.created_at).total_seconds() for a, b in pairwise(runs)]
    assert waits == [10, 20, 40, 80, 160]
    await machine.advance(days=1)
    view = await machine.app.flows.show("f")
    assert (view.status, view.issue) == ("Needs attention", "Still failing after 5 retries: down")
    script.deeds["prepare"] = [Transient("again")]
    await machine.app.flows.resume("f")
    await machine.advance(seconds=12)
    assert script.effects == [["1"]]
    assert len(times) == 2  # coalesced to one
    script.deeds["prepare"] = [Transient("later")]
    await publish(machine.app, "2")
    await machine.advance(seconds=12)
    assert script.effects == [["1"], ["2"]]  # ten seconds again


@pytest.mark.contract("FLOW-21")
async def test_without_a_fixer_a_flow_waits_for_a_new_version(machine: TimeMachine):
    script = Script()
    await machine.app.flows.deploy(script.flow)
    script.deeds["prepare"] = [LogicError("no"), LogicError("still")]
    await machine.advance(days=1)
    assert (await machine.app.flows.show("f")).status == "Needs attention"
    await machine.app.flows.deploy(script.flow)  # the same version is no new one
    await machine.advance(days=1)
    assert script.calls == ["prepare"]
    for revision in ("2", "3"):
        await machine.app.flows.deploy(script.version(revision))
        await machine.advance(seconds=1)
    assert script.calls == ["prepare", "prepare", "prepare", "next"]
    assert [run.revision for run in await machine.app.flows.runs("f")] == ["3", "2", "1"]


@pytest.mark.contract("FLOW-21")
async def test_a_fixer_gets_two_tries_and_then_a_person(machine: TimeMachine):
    script = Script()
    asked: list[tuple[str, str]] = []

    class Fixer:
        async def fix(self, flow, run):
            asked.append((flow.revision, run.error))
            return script.version(str(int(flow.revision) + 1))

    machine.app.flow_host.fixer = Fixer()
    await machine.app.flows.deploy(script.flow)
    script.deeds["prepare"] = [LogicError("a")]
    await machine.advance(seconds=1)
    assert asked == [("1", "a")]
    assert (await machine.app.flows.show("f")).status == "Idle"
    script.deeds["prepare"] = [LogicError("b"), ValueError("c"), LogicError("d")]
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    assert asked[1:] == [("2", "b"), ("3", "ValueError: c")]
    assert (await machine.app.flows.show("f")).status == "Needs attention"
    assert [run.revision for run in await runs_of(machine.app)] == ["1", "2", "3", "4"]


@pytest.mark.contract("FLOW-21")
@pytest.mark.parametrize("answer", [None, RuntimeError("the fixer is broken"), Flow("f")])
async def test_a_fixer_that_has_no_version_leaves_the_flow_to_a_person(machine: TimeMachine, answer):
    script = Script()

    class Fixer:
        async def fix(self, flow, run):
            if isinstance(answer, Exception):
                raise answer
            return answer

    machine.app.flow_host.fixer = Fixer()
    await machine.app.flows.deploy(script.flow)
    script.deeds["prepare"] = [LogicError("a")]
    await machine.advance(days=1)
    assert script.calls == ["prepare"]
    assert (await machine.app.flows.show("f")).status == "Needs attention"


@pytest.mark.contract("FLOW-18", "FLOW-22")
@pytest.mark.parametrize(
    ("answer", "effects", "outcome"),
    [(Applied({"row": 7}), [], ("applied", {"row": 7})), (NotApplied(), [["1"]], ("applied", "did 1"))],
)
async def test_reconcile_answers_for_a_mutation_that_was_cut_off(
    machine: TimeMachine, answer, effects, outcome
):
    script = Script(reconciles=True)
    script.deeds["mutate"] = [ConnectionError("lost")]
    script.answers = [Unknown(), answer]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(seconds=5)
    assert await statuses(machine.app) == [("mutating", "paused:reconciliation")]
    assert await events_of(machine.app, "reserved") == ["1"]
    await machine.advance(seconds=6)
    assert script.effects == effects
    assert outcome in script.outcomes
    assert await events_of(machine.app, "consumed") == ["1"]


@pytest.mark.contract("FLOW-22")
@pytest.mark.parametrize("reconciles", [True, False])
@pytest.mark.parametrize(
    ("decision", "effects", "outcome"),
    [
        ("applied", [], ("applied", "by hand")), ("not_applied", [["1"]], ("applied", "did 1")),
        ("skip", [], ("skipped", None)), ("retry", [["1"]], ("applied", "did 1")),
    ],
)  # fmt: skip
async def test_a_person_decides_what_reconcile_cannot(
    machine: TimeMachine, reconciles, decision, effects, outcome
):
    script = Script(reconciles=reconciles)
    script.deeds["mutate"] = [TimeoutError()]
    script.answers = [Unknown()] * 5 + [NotApplied()]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(days=1)
    assert script.calls.count("reconcile") == (5 if reconciles else 0)
    view = await machine.app.flows.show("f")
    assert view.status == "Needs attention"
    if decision == "retry" and not reconciles:
        with pytest.raises(FlowRefusedError, match="cannot find out by itself"):
            await machine.app.flows.resolve("f", "retry")
        return
    given = {"result": "by hand"} if decision == "applied" else {}
    await machine.app.flows.resolve("f", decision, **given)
    await machine.advance(seconds=1)
    assert script.effects == effects
    assert outcome in script.outcomes
    assert await events_of(machine.app, "consumed") == ["1"]
    with pytest.raises(FlowRefusedError, match="nothing to resolve"):
        await machine.app.flows.resolve("f", "retry")


@pytest.mark.contract("FLOW-18", "FLOW-23")
async def test_a_crash_in_mutate_is_reconciled_by_a_recovery_run(machine: TimeMachine):
    script = Script(reconciles=True)
    script.deeds["mutate"] = [never]
    script.answers = [Applied("found")]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    await crash(machine.app)
    await machine.advance(seconds=1)
    assert await statuses(machine.app) == [
        ("mutating", "crashed"), ("mutating", "paused:reconciliation"), ("committed", "committed"),
    ]  # fmt: skip
    assert ("applied", "found") in script.outcomes
    assert script.effects == []


@pytest.mark.contract("FLOW-23")
async def test_after_a_crash_consumers_with_pending_events_look_once(machine: TimeMachine):
    script = Script()
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    script.deeds["prepare"] = [lambda ctx: Prepared(), never]
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    await publish(machine.app, "2")
    await machine.advance(seconds=1)
    await crash(machine.app)
    await machine.advance(seconds=1)
    assert script.effects == [["1"], ["2"]]
    assert (await machine.app.flows.show("f")).operator.active_run is None  # type: ignore[union-attr]


@pytest.mark.contract("FLOW-23")
async def test_after_a_crash_another_consumer_with_pending_events_looks_again(machine: TimeMachine):
    script, looks = Script(), list[list[str]]()

    @script.flow.consumer(subscribes=["other"])
    class Waits:
        async def prepare(self, ctx, state):
            looks.append([each.id for each in await ctx.peek("other")])
            return Prepared()

    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "waiting", topic="other")
    await machine.advance(seconds=1)
    looked = len(looks)
    script.deeds["prepare"] = [never]
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    assert len(looks) == looked
    await crash(machine.app)
    await machine.advance(seconds=1)
    assert script.effects == [["1"]]
    assert looks[looked:] == [["waiting"]]


@pytest.mark.contract("FLOW-19")
async def test_a_handler_that_swallows_a_failed_call_cannot_commit(machine: TimeMachine):
    script = Script()

    async def swallow(ctx):
        for _ in range(2):
            try:
                await ctx.read(lambda: 1 / 0)
            except BaseException as error:
                assert isinstance(error, HandlerStopped)
        return Prepared()

    script.deeds["prepare"] = [swallow]
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    (run,) = await runs_of(machine.app)
    assert (run.status, run.error) == ("failed:logic", "ZeroDivisionError: division by zero")


@pytest.mark.contract("FLOW-03")
@pytest.mark.parametrize(
    ("part", "operation"),
    [
        (part, operation)
        for part, forbidden in {
            "prepare": ("publish", "register_input", "effect"),
            "mutate": ("peek", "get", "publish", "register_input", "read"),
            "next": ("peek", "get", "register_input", "read", "effect"),
        }.items()
        for operation in forbidden
    ],
)
async def test_what_a_part_must_not_do_stops_the_run_at_once(machine: TimeMachine, part: str, operation: str):
    made: list[int] = []
    arguments = {
        "peek": ("in",), "get": ("in", ["1"]), "publish": ("in", "x"), "register_input": ("s", "t", "1", "x"),
        "read": (lambda: made.append(1),), "effect": (lambda: made.append(1),),
    }[operation]  # fmt: skip
    script = Script()

    async def break_the_rules(ctx):
        found = getattr(ctx, operation)(*arguments)
        if asyncio.iscoroutine(found):
            await found
        made.append(2)

    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    script.deeds[part] = [break_the_rules]
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    last = (await runs_of(machine.app))[-1]
    assert (last.status, last.error) == ("failed:logic", f"{part} must not call ctx.{operation}")
    assert made == []


@pytest.mark.contract("FLOW-03")
@pytest.mark.parametrize("operation", ["peek", "get", "effect"])
async def test_what_a_producer_must_not_do(machine: TimeMachine, operation: str):
    flow = Flow("f")

    @flow.producer(publishes=["in"], every="1h")
    async def poll(ctx, state):
        await getattr(ctx, operation)(*{"peek": ("in",), "get": ("in", ["1"]), "effect": (print,)}[operation])

    flow.handlers.append(Script().flow.handlers[0])
    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    (run,) = await runs_of(machine.app)
    assert (run.phase, run.status, run.error) == (
        "executing", "failed:logic", f"producer must not call ctx.{operation}",
    )  # fmt: skip


@pytest.mark.contract("FLOW-03", "FLOW-22")
@pytest.mark.parametrize("operation", ["peek", "publish", "register_input", "effect"])
async def test_reconcile_that_breaks_the_rules_does_not_know(machine: TimeMachine, operation: str):
    script = Script(reconciles=True)
    given = {"peek": ("in",), "publish": ("in", "x"), "register_input": ("s", "t", "1"), "effect": (print,)}[
        operation
    ]
    script.deeds |= {
        "mutate": [ConnectionError("lost")],
        "reconcile": [lambda ctx: getattr(ctx, operation)(*given)],
    }
    script.answers = [Applied("found")]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(seconds=5)
    view = await machine.app.flows.show("f")
    assert (
        view.issue
        == f"It is not known whether the last change was made: reconcile must not call ctx.{operation}"
    )
    await machine.advance(seconds=10)
    assert ("applied", "found") in script.outcomes
    assert script.effects == []


@pytest.mark.contract("FLOW-18", "FLOW-19")
@pytest.mark.parametrize(
    ("part", "status"), [("prepare", "paused:transient"), ("mutate", "paused:reconciliation")]
)
async def test_a_handler_that_does_not_even_stop_when_it_is_cancelled(
    machine: TimeMachine, part: str, status: str
):
    script, asked = Script(timeout="20s"), list[int]()

    async def stubborn(ctx):
        while len(asked) < 2:
            try:
                await never()
            except asyncio.CancelledError:
                asked.append(1)

    script.deeds[part] = [stubborn] if part == "mutate" else [None, stubborn]
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    await publish(machine.app, "1")
    await machine.advance(seconds=60)
    assert len(asked) == 2  # once it was given up; what it returns then is not heard
    failed = (await runs_of(machine.app))[0]
    assert failed.status == status
    assert failed.failure_kind == "timeout"
    assert script.effects == [["1"]]


@pytest.mark.contract("FLOW-18", "FLOW-21")
async def test_code_that_changes_between_attempts_gets_what_the_earlier_one_prepared(machine: TimeMachine):
    script = Script()
    script.deeds["next"] = [None, LogicError("wrong")]
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    given: list[Any] = []
    flow = Flow("f", revision="2")

    @flow.consumer(subscribes=["in"], name="take")
    class Take:
        async def prepare(self, ctx, state) -> Prepared[dict[str, int]]:
            return Prepared()

        async def mutate(self, ctx, prepared):
            given.append("mutate")

        async def next(self, ctx, prepared: Prepared[dict[str, int]], outcome):
            given.append(prepared.data)

    await machine.app.flows.deploy(flow)  # it expects other data than there are
    await machine.advance(seconds=1)
    last = (await runs_of(machine.app))[-1]
    assert (last.phase, last.status) == ("emitting", "failed:logic")
    assert "is not what it is annotated as" in (last.error or "")
    assert given == []  # neither repeated nor forgotten
    await machine.app.flows.deploy(script.version("3"))
    await machine.advance(seconds=1)
    assert script.effects == [["1"]]
    assert ("applied", "did 1") in script.outcomes
    assert await events_of(machine.app, "consumed") == ["1"]


@pytest.mark.parametrize("payload", [object(), {1, object()}, "x" * 300_000])
async def test_a_payload_from_outside_that_is_no_json_or_too_large(machine: TimeMachine, payload):
    await machine.app.flows.deploy(Script().flow)
    with pytest.raises(InvalidInputError, match="cannot be stored"):
        await machine.app.flows.publish("f", "in", "1", payload)
    assert await events_of(machine.app) == []


@pytest.mark.contract("FLOW-03")
async def test_a_second_effect_is_refused_before_it_is_made(machine: TimeMachine):
    made: list[int] = []
    script = Script()

    async def twice(ctx):
        await ctx.effect(lambda: made.append(1))
        await ctx.effect(lambda: made.append(2))

    script.deeds["mutate"] = [twice]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    assert made == [1]
    assert await statuses(machine.app) == [("mutating", "failed:logic")]
    # The first one happened: a new version does not repeat it, but asks.
    await machine.app.flows.deploy(script.version("2", reconciles=True))
    script.answers = [Applied(1)]
    await machine.advance(seconds=1)
    assert made == [1]
    assert ("applied", 1) in script.outcomes


@pytest.mark.contract("FLOW-25")
async def test_flows_are_independent_and_run_in_parallel(machine: TimeMachine):
    scripts = [Script() for _ in range(3)]
    for number, script in enumerate(scripts):
        script.flow.name = f"f{number}"
        script.deeds["mutate"] = [lambda ctx: machine.sleep(seconds=60)]
        await machine.app.flows.deploy(script.flow)
        await machine.app.flows.publish(f"f{number}", "in", "1")
    await machine.advance(seconds=61)
    assert [script.effects for script in scripts] == [[["1"]]] * 3


@pytest.mark.contract("FLOW-26")
async def test_a_failure_pauses_the_whole_flow_and_triggers_accumulate(machine: TimeMachine):
    flow, times = poller()
    script = Script()
    flow.handlers.append(script.flow.handlers[0])
    await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    script.deeds["mutate"] = [NeedsApproval("reconnect Gmail")]
    await publish(machine.app, "1")
    await machine.advance(hours=1)
    await publish(machine.app, "2")
    await machine.advance(hours=1)
    assert times == [START]
    view = await machine.app.flows.show("f")
    assert (view.status, view.issue) == ("Needs attention", "Waiting for you to reconnect Gmail")
    await machine.app.flows.resolve("f", "approved")
    await machine.advance(seconds=1)
    assert script.effects == [["1"], ["2"]]
    assert len(times) == 2


async def test_a_redeploy_while_a_run_is_in_mutate_lets_it_commit(machine: TimeMachine):
    script = Script()
    script.deeds["mutate"] = [lambda ctx: machine.sleep(seconds=60)]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1", "2")
    await machine.advance(seconds=1)
    await machine.app.flows.deploy(script.version("2"))
    await machine.advance(seconds=120)
    assert script.effects == [["1"], ["2"]]
    assert [run.revision for run in await runs_of(machine.app)] == ["1", "2"]


@pytest.mark.contract("FLOW-18", "FLOW-26")
async def test_a_redeploy_that_removes_a_handler_in_mutate_needs_attention_and_loses_nothing(
    machine: TimeMachine,
):
    script = Script()

    async def lost(ctx):
        await machine.sleep(seconds=60)
        raise ConnectionError("lost")

    script.deeds["mutate"] = [lost]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    other, times = poller()
    await machine.app.flows.deploy(other)  # without the handler that runs
    await machine.advance(seconds=90)
    view = await machine.app.flows.show("f")
    assert view.status == "Needs attention"
    assert 'this version has no handler "take"' in (view.issue or "")
    assert await flow_decider(machine.app).step(machine.app.now()) is None  # it is not tried again and again
    assert times == []  # the whole flow waits
    assert await events_of(machine.app, "reserved") == ["1"]
    await machine.app.flows.deploy(script.version("2"))
    await machine.app.flows.resolve("f", "applied", result="by hand")
    await machine.advance(seconds=1)
    assert ("applied", "by hand") in script.outcomes
    assert script.effects == []


@pytest.mark.contract("FLOW-27")
async def test_a_look_that_takes_nothing_keeps_no_title_and_is_no_activity(machine: TimeMachine):
    script = Script()

    async def titled(ctx):
        ids = [event.id for event in await ctx.peek("in")]
        return Prepared([Reservation("in", ids)], ids, title=f"Processed {len(ids)}")

    script.deeds["prepare"] = [titled] * 3
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    assert [run.title for run in await machine.app.flows.runs("f")] == ["", "Processed 1", ""]
    assert [each.text for each in (await machine.app.flows.show("f")).activity] == ["Processed 1"]


@pytest.mark.parametrize(
    ("part", "deed", "error"),
    [
        ("prepare", lambda ctx: 7, "prepare must return Prepared(…), and returned int"),
        ("prepare", lambda ctx: {"rubbish": 1}, "prepare returned another mapping"),
        ("prepare", lambda ctx: Prepared(data=object()), "the data of the prepare result is no JSON"),
        ("prepare", lambda ctx: Prepared(data="x" * 2_000_000), "at most 1048576 are taken"),
        ("next", lambda ctx: object(), "the state is no JSON"),
    ],
)
async def test_garbage_from_a_handler_is_a_logic_error(machine: TimeMachine, part, deed, error):
    script = Script()
    script.deeds[part] = [deed]
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    (run,) = await runs_of(machine.app)
    assert run.status == "failed:logic"
    assert error in (run.error or "")


async def test_a_result_of_mutate_that_is_no_json_does_not_repeat_the_effect(machine: TimeMachine):
    script = Script()
    script.deeds["mutate"] = [lambda ctx: object()]
    await machine.app.flows.deploy(script.flow)
    await publish(machine.app, "1")
    await machine.advance(seconds=1)
    assert await statuses(machine.app) == [("mutated", "failed:logic")]
    await machine.app.flows.resume("f")
    await machine.advance(seconds=1)
    assert script.effects == [["1"]]
    assert ("applied", None) in script.outcomes


async def test_a_run_that_publishes_too_much_or_too_large_events_is_refused(machine: TimeMachine):
    flow = Flow("f")
    deeds: list[Any] = [
        lambda ctx: [ctx.publish("in", str(number)) for number in range(1_000_000)],
        lambda ctx: ctx.publish("in", "1", "x" * 300_000),
        lambda ctx: ctx.publish("in", "1", {1, 2, object()}),
        lambda ctx: ctx.publish("elsewhere", "1"),
        lambda ctx: ctx.publish("in", ""),
        lambda ctx: ctx.publish("in", 7),
    ]

    @flow.producer(publishes=["in"], every="1h")
    async def poll(ctx, state):
        ctx.publish("in", "kept back")
        deeds[0](ctx)

    flow.handlers.append(Script().flow.handlers[0])
    errors = []
    await machine.app.flows.deploy(flow)
    while deeds:
        await machine.advance(seconds=1)
        errors.append((await runs_of(machine.app))[-1].error or "")
        deeds.pop(0)
        if deeds:
            await machine.app.flows.resume("f")
    assert [word in error for word, error in zip(
        ("at most 10000 events", "300002 bytes", "is no JSON", "declares: in", "message id", "message id"), errors, strict=True
    )] == [True] * 6, errors  # fmt: skip
    assert await events_of(machine.app) == []


async def test_idle_flows_take_no_steps(machine: TimeMachine):
    script = Script()
    await machine.app.flows.deploy(script.flow)
    await machine.advance(seconds=1)
    assert await flow_decider(machine.app).step(machine.app.now()) is None
