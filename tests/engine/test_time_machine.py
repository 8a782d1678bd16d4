"""Schedules on a virtual clock: what runs, when, and what the ledger says of the rest."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horae.errors import ScheduleExistsError, ScheduleNotFoundError, UnknownActionError
from horae.executor.function import Context
from horae.model import CatchUp, CatchUpPolicy, OnResume, Overlap, Policies, RetryPolicy, Status
from horae.store.sqlite import SqliteStore
from horae.testing import TimeMachine

START = datetime(2026, 3, 1, tzinfo=UTC)
VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "policy.json").read_text("utf-8")
)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


@pytest.fixture
async def machine() -> AsyncIterator[TimeMachine]:
    async with TimeMachine(START) as machine:
        yield machine


class Recorder:
    """An action that takes its time and remembers when it was called."""

    def __init__(self, machine: TimeMachine, seconds: float = 0, *, fails: int = 0) -> None:
        self.machine, self.seconds, self.fails = machine, seconds, fails
        self.called: list[tuple[datetime, datetime]] = []

    async def __call__(self, context: Context) -> str:
        self.called.append((context.nominal, self.machine.now))
        if self.seconds:
            await self.machine.sleep(self.seconds)
        if len(self.called) <= self.fails:
            raise RuntimeError(f"failure {len(self.called)}")
        return f"done {context.nominal:%H:%M}"

    @property
    def nominal(self) -> list[datetime]:
        return [nominal for nominal, _ in self.called]


async def accounted(machine: TimeMachine, schedule: str) -> int:
    """Runs and ranges together: how many automatic slots the ledger knows."""
    runs = [run for run in await machine.app.runs.list(schedule, 1000) if run.origin == "automatic"]
    return len(runs) + sum(each.count for each in await machine.app.runs.passed_over(schedule, 1000))


async def test_a_schedule_fires_at_its_times(machine: TimeMachine):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    await machine.app.schedules.create("greet", "*/5 * * * *", "hello")
    await machine.advance(minutes=20)
    assert hello.called == [(at(m), at(m)) for m in (5, 10, 15, 20)]
    runs = await machine.app.runs.list("greet")
    assert [run.status for run in runs] == [Status.SUCCEEDED] * 4
    assert runs[0].result == "done 00:20"
    assert await machine.app.runs.passed_over("greet") == []


@pytest.mark.contract("SCHD-10")
@pytest.mark.parametrize(
    ("overlap", "started"),
    [
        ("skip", [1, 4, 7, 10]),
        ("buffer_one", [1, 2, 4, 7]),
        ("buffer_all", [1, 2, 3, 4]),
        ("allow_all", list(range(1, 11))),
    ],
)
async def test_overlap(machine: TimeMachine, overlap: str, started: list[int]):
    """Each run takes two minutes and a half, a slot comes every minute."""
    slow = Recorder(machine, 150)
    machine.app.action("slow")(slow)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=Policies(overlap=Overlap(overlap)))
    await machine.advance(minutes=10, seconds=59)
    assert [round((nominal - START).total_seconds() / 60) for nominal in slow.nominal] == started
    assert await accounted(machine, "s") == 10
    for (_, begun), (_, following) in zip(slow.called, slow.called[1:], strict=False):
        assert overlap == "allow_all" or following - begun >= timedelta(seconds=150)


@pytest.mark.contract("SCHD-10")
@pytest.mark.parametrize(
    ("overlap", "ended"), [("cancel_other", Status.CANCELLED), ("terminate_other", Status.TERMINATED)]
)
async def test_the_newest_takes_the_place_of_the_running_one(
    machine: TimeMachine, overlap: str, ended: Status
):
    slow = Recorder(machine, 1000)
    machine.app.action("slow")(slow)
    await machine.app.schedules.create(
        "s", "*/10 * * * *", "slow", policies=Policies(overlap=Overlap(overlap))
    )
    await machine.advance(minutes=25)
    assert slow.nominal == [at(10), at(20)]
    newest, oldest = await machine.app.runs.list("s")
    assert (newest.status, oldest.status) == (Status.RUNNING, ended)


@pytest.mark.contract("SCHD-11")
async def test_at_most_so_many_run_at_once(machine: TimeMachine):
    slow = Recorder(machine, 600)
    machine.app.action("slow")(slow)
    policies = Policies(overlap=Overlap.BUFFER_ALL, max_concurrent=3)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=10)
    assert slow.nominal == [at(1), at(2), at(3)]
    await machine.advance(minutes=3)
    assert slow.nominal == [at(m) for m in range(1, 7)]


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize(("on_resume", "expected"), [("catch_up", [1, 2, 3, 4, 5, 6]), ("skip", [1, 2, 6])])
async def test_pause_and_resume(machine: TimeMachine, on_resume: str, expected: list[int]):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    policies = Policies(on_resume=OnResume(on_resume), overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    await machine.advance(minutes=2)
    paused = await machine.app.schedules.pause("s", "maintenance")
    assert paused.state.note == "maintenance"
    await machine.advance(minutes=3, seconds=30)
    assert hello.nominal == [at(1), at(2)]
    await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    assert len(hello.called) == 3  # triggers work in a pause
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=1)
    automatic = [at(m) for m in expected]
    assert [nominal for nominal in hello.nominal if nominal in automatic] == automatic
    assert await accounted(machine, "s") == 6


@pytest.mark.contract("SCHD-14")
async def test_pause_on_failure(machine: TimeMachine):
    broken = Recorder(machine, fails=99)
    machine.app.action("broken")(broken)
    policies = Policies(pause_on_failure=True, retry=RetryPolicy(attempts=2))
    await machine.app.schedules.create("s", "*/5 * * * *", "broken", policies=policies)
    await machine.advance(minutes=30)
    assert len(broken.called) == 2
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.failure) == (Status.FAILED, "RuntimeError: failure 2")
    schedule = await machine.app.schedules.describe("s")
    assert schedule.state.paused
    assert run.id in schedule.state.note


@pytest.mark.contract("SCHD-15")
async def test_limited_actions(machine: TimeMachine):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    await machine.app.schedules.create("s", "* * * * *", "hello", limited_actions=3)
    await machine.advance(minutes=10)
    assert hello.nominal == [at(1), at(2), at(3)]
    (passed,) = await machine.app.runs.passed_over("s")
    assert (passed.count, passed.reason) == (7, "limit_reached")
    await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    assert len(hello.called) == 4


@pytest.mark.contract("SCHD-16")
async def test_retries_wait_longer_each_time(machine: TimeMachine):
    flaky = Recorder(machine, fails=3)
    machine.app.action("flaky")(flaky)
    policies = Policies(retry=RetryPolicy(attempts=5, first_delay=10_000, factor=2, longest_delay=15_000))
    await machine.app.schedules.create("s", "0 * * * *", "flaky", policies=policies)
    await machine.advance(hours=1, minutes=5)
    delays = [round((begun - at(60)).total_seconds()) for _, begun in flaky.called]
    assert delays == [0, 10, 25, 40]
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.attempt) == (Status.SUCCEEDED, 4)


@pytest.mark.contract("SCHD-18")
async def test_two_triggers_in_one_second_are_two_runs(machine: TimeMachine):
    seen: list[Any] = []

    @machine.app.action("note")
    def note(context: Context) -> None:  # a plain function
        seen.append(context.input)

    await machine.app.schedules.create(
        "s", {}, "note", input="usual", policies=Policies(overlap=Overlap.BUFFER_ALL)
    )
    first = await machine.app.schedules.trigger("s")
    second = await machine.app.schedules.trigger("s", input={"special": True})
    assert first != second
    for _ in range(50):
        await machine.advance(seconds=1)
        await asyncio.sleep(0.01)
    assert seen == ["usual", {"special": True}]
    assert {run.id for run in await machine.app.runs.list("s")} == {first, second}


@pytest.mark.contract("SCHD-12")
async def test_catch_up_takes_a_hundred_at_a_time_and_loses_none(machine: TimeMachine):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    policies = Policies(overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies, paused=True)
    await machine.advance(hours=5)
    await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert hello.nominal == [at(m) for m in range(1, 301)]


@pytest.mark.contract("SCHD-12")
async def test_missed_slots_are_recorded_with_their_reason(machine: TimeMachine):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    policies = Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST))
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies, paused=True)
    await machine.advance(days=365)
    await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert len(hello.called) == 1
    (passed,) = await machine.app.runs.passed_over("s")
    assert (passed.count, passed.status, passed.reason) == (365 * 1440 - 1, Status.MISSED, "superseded")


TIMELINES = [
    t for t in VECTORS["timelines"] if "closes_at" not in t and "backfill" not in str(t.get("events"))
]


@pytest.mark.contract("SCHD-10", "SCHD-13", "SCHD-14")
@pytest.mark.parametrize("timeline", TIMELINES, ids=lambda t: t["source"].rpartition(":")[2])
async def test_timelines(timeline: dict[str, Any]):
    """What ran and when, in whole schedules of the original."""
    runs = {run["workflow_id"].partition("-")[2]: run for run in timeline["runs"]}
    started: list[tuple[str, str]] = []

    async with TimeMachine(datetime.fromisoformat(timeline["created_at"])) as machine:

        @machine.app.action("work")
        async def work(context: Context) -> None:
            name = context.nominal.strftime("%Y-%m-%dT%H:%M:%SZ")
            started.append((name, machine.now.strftime("%Y-%m-%dT%H:%M:%SZ")))
            end = runs.get(name, {}).get("ends_at")
            until = (
                datetime.fromisoformat(end) if end and end[0] == "2" else machine.now + timedelta(seconds=5)
            )
            with contextlib.suppress(asyncio.CancelledError):
                await machine.sleep((until - machine.now).total_seconds())
            if machine.now < until:  # was asked to stop, and takes its time
                await machine.sleep((until - machine.now).total_seconds())
            if "FAILED" in runs.get(name, {}).get("status", ""):
                raise RuntimeError("oops")

        policies = Policies(
            overlap=Overlap(timeline.get("overlap", "SKIP").lower()),
            on_resume=OnResume.SKIP,
            pause_on_failure=timeline.get("pause_on_failure", False),
        )
        spec = {"intervals": [{"every": i["interval"]} for i in timeline["spec"]["interval"]]}
        await machine.app.schedules.create("s", spec, "work", policies=policies)
        for event in timeline.get("events", []):
            moment = datetime.fromisoformat(event["at"])
            await machine.advance(seconds=(moment - machine.now).total_seconds())
            if "pause" in event:
                await machine.app.schedules.pause("s", event["pause"])
            elif "unpause" in event:
                await machine.app.schedules.resume("s", event["unpause"])
            else:
                every = event["update"]["spec"]["interval"][0]["interval"]
                await machine.app.schedules.update("s", {"intervals": [{"every": every}]})
        until = timeline.get("until") or max(
            [run["starts_at"] for run in timeline["runs"]] + [c["at"] for c in timeline["checks"]]
        )
        await machine.advance(seconds=(datetime.fromisoformat(until) - machine.now).total_seconds())
        assert started == [(name, run["starts_at"]) for name, run in runs.items()]
        if timeline.get("pause_on_failure"):
            schedule = await machine.app.schedules.describe("s")
            assert "oops" in schedule.state.note


async def test_bad_input_says_what_to_do(machine: TimeMachine):
    with pytest.raises(UnknownActionError, match="nothing"):
        await machine.app.schedules.create("s", "* * * * *", "nothing")
    machine.app.action("hello")(Recorder(machine))
    await machine.app.schedules.create("s", "* * * * *", "hello")
    with pytest.raises(ScheduleExistsError):
        await machine.app.schedules.create("s", "* * * * *", "hello")
    for call in (machine.app.schedules.describe, machine.app.schedules.trigger, machine.app.schedules.delete):
        with pytest.raises(ScheduleNotFoundError):
            await call("other")


@pytest.mark.parametrize(
    ("raised", "said"),
    [(ValueError("no"), "ValueError: no"), (SystemExit(3), "SystemExit: 3"), (KeyboardInterrupt(), "KeyboardInterrupt: ")],
)  # fmt: skip
async def test_whatever_an_action_raises_is_its_failure(
    machine: TimeMachine, raised: BaseException, said: str
):
    @machine.app.action("bad")
    async def bad(context: Context) -> None:
        raise raised

    await machine.app.schedules.create("s", "* * * * *", "bad")
    await machine.advance(minutes=2)
    assert [run.failure for run in await machine.app.runs.list("s")] == [said, said]


async def test_a_result_that_is_no_json_is_a_failure(machine: TimeMachine):
    @machine.app.action("odd")
    async def odd(context: Context) -> object:
        return object()

    await machine.app.schedules.create("s", "* * * * *", "odd")
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    assert run.status is Status.FAILED
    assert "object" in (run.failure or "")


async def test_deleting_stops_it_and_keeps_the_ledger(machine: TimeMachine):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    await machine.app.schedules.create("s", "* * * * *", "hello")
    await machine.advance(minutes=2)
    await machine.app.schedules.delete("s")
    await machine.advance(minutes=5)
    assert len(hello.called) == 2
    assert len(await machine.app.runs.list("s")) == 2
    again = await machine.app.schedules.create("s", "* * * * *", "hello")
    assert again.incarnation == 2
    await machine.advance(minutes=1)
    assert len(await machine.app.runs.list("s")) == 3


async def test_a_schedule_that_cannot_be_decided_stops_no_other(machine: TimeMachine):
    """A spec that was fine when it was stored and cannot be read now: a zone that is gone, say."""
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    await machine.app.schedules.create("bad", "* * * * *", "hello")
    await machine.app.schedules.create("good", "* * * * *", "hello")
    broken = '{"crons": ["* * * * *"], "timezone": "Atlantis/Capital"}'
    store = machine.app._store
    assert isinstance(store, SqliteStore)
    await store.work(lambda c: c.execute("UPDATE schedule SET spec = ? WHERE id = 'bad'", (broken,)))
    await machine.advance(minutes=3)
    assert len(hello.called) == 3
    bad = await machine.app.schedules.describe("bad")
    assert bad.state.paused
    assert 'Unknown time zone "Atlantis/Capital"' in bad.state.note


@pytest.mark.contract("SCHD-15")
async def test_no_more_are_started_at_once_than_are_left(machine: TimeMachine):
    hello = Recorder(machine)
    machine.app.action("hello")(hello)
    policies = Policies(overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.create(
        "s", "* * * * *", "hello", policies=policies, limited_actions=2, paused=True
    )
    await machine.advance(minutes=5)
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=5)
    assert hello.nominal == [at(1), at(2)]
    assert (await machine.app.schedules.describe("s")).state.remaining == 0
