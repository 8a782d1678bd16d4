"""A spec that costs too much holds up no other schedule: refused when it is given, or paused alone if it is already stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from horae.engine import schedule_decider
from horae.engine.observer import Observer
from horae.errors import SpecTooCostlyError
from horae.model import CatchUp, CatchUpPolicy, OnResume, Overlap, Policies, Reason, Schedule, ScheduleKey
from horae.policy.ledger_changes import Decision
from horae.spec import Spec
from horae.testing import TimeMachine
from tests.support.machine import Recorder, at
from tests.support.specs import forget_specs

COSTLY = "DTSTART:20260101T000000 RRULE:FREQ=SECONDLY;INTERVAL=43201;COUNT=100000"


@pytest.mark.contract("SCHD-08")
async def test_a_costly_spec_is_refused_by_everything_that_takes_one(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("good", "*/10 * * * *", "hello")
    document = {"rrules": [COSTLY]}
    with pytest.raises(SpecTooCostlyError, match=r"rrules\[0\]"):
        await machine.app.schedules.create("bad", document, "hello")
    with pytest.raises(SpecTooCostlyError):
        await machine.app.schedules.update("good", spec=document)
    with pytest.raises(SpecTooCostlyError):
        await machine.app.why.preview("good", document)
    await machine.advance(minutes=11)
    assert hello.nominal == [at(10)]


@pytest.mark.contract("SCHD-08")
async def test_a_stored_spec_over_the_budget_is_put_aside_alone(machine: TimeMachine, hello: Recorder):
    for name in ("bad", "good"):
        await machine.app.schedules.create(name, "*/10 * * * *", "hello")
    async with machine.app.transaction() as transaction:  # a row from before there was a budget
        [stored] = await transaction.schedules([ScheduleKey("bad")])
        spoiled = msgspec.structs.replace(stored, spec=Spec.parse({"rrules": [COSTLY]}).text)
        await transaction.update_schedules([(spoiled, machine.app.now())])
    await machine.advance(minutes=21)
    assert hello.nominal == [at(10), at(20)]
    bad = await machine.app.schedules.get("bad")
    assert bad.state.paused
    assert "more work than a spec may cause" in bad.state.attention
    # It can be corrected, and then fires again.
    await machine.app.schedules.update("bad", spec="*/10 * * * *")
    await machine.app.schedules.resume("bad")
    await machine.advance(minutes=10)
    assert hello.nominal == [at(10), at(20), at(30), at(30)]
    await machine.app.schedules.delete("bad")


async def test_a_transaction_decides_for_as_many_schedules_as_its_budget_allows(
    machine: TimeMachine, hello: Recorder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(schedule_decider, "BATCH_STEPS", 0)
    for number in range(4):
        excluded = [{"hour": "3", "minute": str(number)}]
        spec = {"crons": ["*/10 * * * *"], "exclude": excluded, "timezone": "Europe/London"}
        await machine.app.schedules.create(f"schedule-{number}", spec, "hello")
    sizes: list[int] = []

    class Sizes(Observer):
        def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
            sizes.append(len(decisions))

    machine.app.watch(Sizes())
    await machine.advance(minutes=11)
    assert hello.nominal == [at(10)] * 4
    assert set(sizes) == {1}


async def test_reading_long_specs_counts_towards_the_budget_of_a_transaction(
    machine: TimeMachine, hello: Recorder, monkeypatch: pytest.MonkeyPatch
):
    """As when a node starts: nothing is read yet, and every text is another one."""
    monkeypatch.setattr(schedule_decider, "BATCH_STEPS", 2000)
    times = [f"2027-01-01T{n // 60 % 24:02}:{n % 60:02}:01Z" for n in range(1000)]
    for number in range(4):
        spec = {"crons": ["*/10 * * * *"], "times": times, "end_at": f"2030-01-01T00:00:0{number}Z"}
        await machine.app.schedules.create(f"schedule-{number}", spec, "hello")
    forget_specs()
    sizes: list[int] = []

    class Sizes(Observer):
        def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
            sizes.append(len(decisions))

    machine.app.watch(Sizes())
    await machine.advance(minutes=11)
    assert hello.nominal == [at(10)] * 4
    assert sizes == [1] * 4


DENSE = {
    "rrules": [f"DTSTART:20260101T000000 RRULE:FREQ=SECONDLY;INTERVAL={7 + n};BYHOUR={n}" for n in range(20)],
    "intervals": [{"every": f"{31 + 2 * n}s"} for n in range(20)],
    "exclude": [{"hour": "3", "minute": "*"}],
    "timezone": "Europe/London",
}


@pytest.mark.contract("SCHD-12")
async def test_a_year_of_downtime_of_a_dense_spec_is_counted_exactly_in_parts(
    machine: TimeMachine,
):
    recorder = machine.app.action("dense")(Recorder(machine))
    latest = Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST))
    created = machine.clock.now()
    await machine.app.schedules.create("dense", DENSE, "dense", policies=latest)
    machine.clock.move_to(created + timedelta(days=100))
    await machine.advance(seconds=0)
    spec = Spec.parse(DENSE)
    second = int(created.timestamp())
    total = spec.count(second, second + 100 * 86_400)
    described = await machine.app.schedules.describe("dense")
    assert described.schedule.state.attention == ""
    assert sum(described.counts.unstarted.values()) + len(recorder.nominal) == total
    assert len(recorder.nominal) == 1


@pytest.mark.contract("SCHD-13")
async def test_a_long_pause_that_skips_ends_in_parts_and_starts_nothing_of_it(machine: TimeMachine):
    recorder = machine.app.action("dense")(Recorder(machine))
    skip = Policies(on_resume=OnResume.SKIP)
    created = machine.clock.now()
    await machine.app.schedules.create("dense", DENSE, "dense", policies=skip, paused=True)
    machine.clock.move_to(created + timedelta(days=100, milliseconds=500))
    await machine.app.schedules.resume("dense", note="go on")
    await machine.advance(milliseconds=400)
    assert recorder.nominal == []
    schedule = await machine.app.schedules.get("dense")
    assert not schedule.state.paused
    assert schedule.state.note == "go on"
    second = int(created.timestamp())
    described = await machine.app.schedules.describe("dense")
    assert described.counts.unstarted[Reason.PAUSED] == Spec.parse(DENSE).count(second, second + 100 * 86_400)
    await machine.advance(seconds=60)
    assert recorder.nominal


async def test_schedules_with_full_buffers_wait_for_one_transaction_and_no_longer(
    machine: TimeMachine, hello: Recorder
):
    """However many others are due all the time."""
    for name in ("full", "other"):
        await machine.app.schedules.create(name, "* * * * *", "hello")
    due = {each.key: each for each in await machine.app.schedules.list()}
    decider = machine.app.engine._deciders[0]
    assert isinstance(decider, schedule_decider.ScheduleDecider)
    decider._crowded[ScheduleKey("full")] = 10 * schedule_decider.BATCH_RUNS
    taken = [list(decider._within_bounds(due)) for _ in range(4)]
    assert taken == [["other"], ["other", "full"]] * 2
    alone = {ScheduleKey("full"): due[ScheduleKey("full")]}
    assert decider._within_bounds(alone) == alone


async def test_schedules_with_full_buffers_are_decided_after_the_others_and_a_few_at_a_time(
    machine: TimeMachine, hello: Recorder, monkeypatch: pytest.MonkeyPatch
):
    """What waits is read whole at each decision: a neighbour's full buffer must not stand before the others."""
    monkeypatch.setattr(schedule_decider, "BATCH_RUNS", 60)
    machine.app.action("slow")(Recorder(machine, seconds=86_400))
    for number in range(3):
        policies = Policies(overlap=Overlap.BUFFER_ALL)
        await machine.app.schedules.create(f"a-full-{number}", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=59)
    await machine.app.schedules.create("the-good-one", "0 * * * *", "hello")
    batches: list[list[str]] = []

    class Batches(Observer):
        def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
            batches.append([schedule.id for schedule, _ in decisions])

    machine.app.watch(Batches())
    await machine.advance(minutes=1, seconds=1)
    assert hello.nominal == [at(60)]
    assert batches[: batches.index(["the-good-one"]) + 2] == [["the-good-one"], ["a-full-0"]]
    assert max(map(len, batches)) == 1
    assert {name for batch in batches for name in batch} == {
        "a-full-0",
        "a-full-1",
        "a-full-2",
        "the-good-one",
    }
    for number in range(3):
        described = await machine.app.schedules.describe(f"a-full-{number}")
        assert described.pending == 59
