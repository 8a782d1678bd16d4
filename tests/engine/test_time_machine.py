"""Schedules on a virtual clock: what runs, when, and what the ledger says of the rest."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from horae.app import App
from horae.errors import ScheduleExistsError, ScheduleNotFoundError, UnknownActionError
from horae.executor.attempt_context import Context
from horae.model import CatchUp, CatchUpPolicy, OnResume, Overlap, Policies, RetryPolicy, Status
from horae.store.sqlite import SqliteStore
from horae.testing import TimeMachine, VirtualClock
from tests.support.machine import START, Recorder, accounted, at
from tests.support.nodes import keeping_time

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "policy.json").read_text("utf-8")
)


async def test_a_schedule_fires_at_its_times(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("greet", "*/5 * * * *", "hello")
    await machine.advance(minutes=20)
    assert hello.called == [(at(m), at(m)) for m in (5, 10, 15, 20)]
    runs = await machine.app.runs.list("greet")
    assert [run.status for run in runs] == [Status.SUCCEEDED] * 4
    assert runs[0].result == "done 00:20"
    assert await machine.app.runs.unstarted_ranges("greet") == []


@pytest.mark.contract("SCHD-10")
@pytest.mark.parametrize(
    ("overlap", "started"),
    [
        ("skip", [1, 4, 7, 10]),
        ("buffer_one", [1, 2, 4, 6]),
        ("buffer_all", [1, 2, 3, 4]),
        ("allow_all", list(range(1, 11))),
    ],
)
async def test_overlap(machine: TimeMachine, overlap: str, started: list[int]):
    """Each run takes two minutes and a half, a slot comes every minute."""
    slow = machine.app.action("slow")(Recorder(machine, 150))
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
    slow = machine.app.action("slow")(Recorder(machine, 1000))
    await machine.app.schedules.create(
        "s", "*/10 * * * *", "slow", policies=Policies(overlap=Overlap(overlap))
    )
    await machine.advance(minutes=25)
    assert slow.nominal == [at(10), at(20)]
    newest, oldest = await machine.app.runs.list("s")
    assert (newest.status, oldest.status) == (Status.RUNNING, ended)


@pytest.mark.contract("SCHD-11")
async def test_at_most_so_many_run_at_once(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 600))
    policies = Policies(overlap=Overlap.BUFFER_ALL, max_concurrent=3)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=10)
    assert slow.nominal == [at(1), at(2), at(3)]
    await machine.advance(minutes=3)
    assert slow.nominal == [at(m) for m in range(1, 7)]


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize(("on_resume", "expected"), [("catch_up", [1, 2, 3, 4, 5, 6]), ("skip", [1, 2, 6])])
async def test_pause_and_resume(machine: TimeMachine, hello: Recorder, on_resume: str, expected: list[int]):
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
    broken = machine.app.action("broken")(Recorder(machine, fails=99))
    policies = Policies(pause_on_failure=True, retry=RetryPolicy(attempts=2))
    await machine.app.schedules.create("s", "*/5 * * * *", "broken", policies=policies)
    await machine.advance(minutes=30)
    assert len(broken.called) == 2
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.failure) == (Status.FAILED, "RuntimeError: failure 2")
    schedule = await machine.app.schedules.get("s")
    assert schedule.state.paused
    assert run.id in schedule.state.note


@pytest.mark.contract("SCHD-15")
async def test_limited_actions(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello", remaining_actions=3)
    await machine.advance(minutes=10)
    assert hello.nominal == [at(1), at(2), at(3)]
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.reason) == (7, "limit_reached")
    await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    assert len(hello.called) == 4


@pytest.mark.contract("SCHD-16")
async def test_retries_wait_longer_each_time(machine: TimeMachine):
    flaky = machine.app.action("flaky")(Recorder(machine, fails=3))
    policies = Policies(retry=RetryPolicy(attempts=5, initial_delay="10s", factor=2, max_delay="15s"))
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
    for _ in range(2):
        await machine.advance(seconds=1)
        if threads := machine.app.worker.tasks:
            await asyncio.wait(threads)
    await machine.advance(seconds=1)
    assert seen == ["usual", {"special": True}]
    assert {run.id for run in await machine.app.runs.list("s")} == {first, second}


@pytest.mark.contract("SCHD-12")
async def test_catch_up_takes_a_hundred_at_a_time_and_loses_none(machine: TimeMachine, hello: Recorder):
    policies = Policies(overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies, paused=True)
    await machine.advance(hours=5)
    await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert hello.nominal == [at(m) for m in range(1, 301)]


@pytest.mark.contract("SCHD-12")
async def test_missed_slots_are_recorded_with_their_reason(machine: TimeMachine, hello: Recorder):
    policies = Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST))
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies, paused=True)
    await machine.advance(days=365)
    await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert len(hello.called) == 1
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.status, unstarted.reason) == (
        365 * 1440 - 1,
        Status.MISSED,
        "superseded",
    )


class Timeline:
    """A whole schedule of the original, played on a virtual clock: what ran and when, and what could be seen on the way."""

    def __init__(self, facts: dict[str, Any], machine: TimeMachine) -> None:
        self.facts, self.machine = facts, machine
        self.runs = {run["workflow_id"]: run for run in facts["runs"]}
        self.started: list[tuple[str, str]] = []
        machine.app.action("work")(self.work)

    async def work(self, context: Context) -> None:
        run = self.runs.get(context.action_id, {})
        self.started.append((context.action_id, f"{self.machine.now:%Y-%m-%dT%H:%M:%SZ}"))
        until = self.end_of(run)
        try:
            await self.machine.sleep(seconds=(until - self.machine.now).total_seconds())
        except asyncio.CancelledError:  # it was asked to stop, and takes its time
            await self.machine.sleep(seconds=(until - self.machine.now).total_seconds())
            raise
        if "FAILED" in run.get("status", ""):
            raise RuntimeError("oops")

    def end_of(self, run: dict[str, Any]) -> datetime:
        """When a run ends: as it is told, in words (“at 00:10”), or at once."""
        told = run.get("ends_at") or ""
        if words := re.fullmatch(r"\D+(\d\d):(\d\d)\D+", told):
            return self.machine.now.replace(hour=int(words[1]), minute=int(words[2]))
        return datetime.fromisoformat(told) if told else self.machine.now

    async def create(self) -> None:
        spec = self.facts["spec"]
        document = {
            "intervals": [{"every": each["interval"]} for each in spec.get("interval", [])],
            "calendars": [each | {"month": each.get("month", "*")} for each in spec.get("calendar", [])],
        }
        policies = Policies(
            overlap=Overlap(self.facts.get("overlap", "SKIP").lower()),
            on_resume=OnResume.SKIP,
            pause_on_failure=self.facts.get("pause_on_failure", False),
        )
        await self.machine.app.schedules.create(
            "s", document, {"name": "work", "id": "myid"}, policies=policies
        )

    async def play(self) -> None:
        """Everything that was done or read, in the order of time; then on to the end."""
        for each in sorted(
            [*self.facts.get("events", []), *self.facts.get("checks", [])], key=itemgetter("at")
        ):
            await self.go_to(each["at"])
            await (self.check(each) if each in self.facts.get("checks", []) else self.do(each))
        if last := self.facts.get("until") or max(
            (run["starts_at"] for run in self.facts["runs"]), default=None
        ):
            await self.go_to(last)

    async def go_to(self, moment: str) -> None:
        ahead = datetime.fromisoformat(moment) - self.machine.now
        await self.machine.advance(seconds=max(ahead.total_seconds(), 0))

    async def do(self, event: dict[str, Any]) -> None:
        app = self.machine.app
        if "pause" in event:
            await app.schedules.pause("s", event["pause"])
        if "unpause" in event:
            await app.schedules.resume("s", event["unpause"])
        if "update" in event:
            every = event["update"]["spec"]["interval"][0]["interval"]
            base = event["update"]["base_workflow_id"]
            await app.schedules.update(
                "s", {"intervals": [{"every": every}]}, action={"name": "work", "id": base}
            )
        for each in event.get("backfill", []):
            first, last = (datetime.fromisoformat(each[end]) for end in ("start", "end"))
            await app.backfills.start("s", first, last, overlap=Overlap(each["overlap"].lower()))

    async def check(self, facts: dict[str, Any]) -> None:
        """What could be seen at a moment is what is seen here; of what is to come, the runs tell."""
        app = self.machine.app
        runs = await app.runs.list("s")
        state = (await app.schedules.get("s")).state
        seen = {
            "running": [run.action_id for run in runs if run.status is Status.RUNNING],
            "buffer_size": sum(run.status is Status.PENDING for run in runs),
            "overlap_skipped": (await app.schedules.counts("s")).skipped,
            "cancel_requested": next((run.action_id for run in runs if run.stop == "cancel"), None),
            "terminate_requested": next((run.action_id for run in runs if run.stop == "terminate"), None),
            "paused": state.paused,
            "notes": state.note,
        }
        assert {key: seen[key] for key in facts if key in seen} == {
            key: facts[key] for key in facts if key in seen
        }
        assert facts.get("notes_contains", "") in state.note


@pytest.mark.contract("SCHD-10", "SCHD-13", "SCHD-14", "SCHD-19", "SCHD-20", "SCHD-23")
@pytest.mark.parametrize("facts", VECTORS["timelines"], ids=lambda facts: facts["source"].rpartition(":")[2])
async def test_timelines(facts: dict[str, Any]):
    async with TimeMachine(datetime.fromisoformat(facts["created_at"])) as machine:
        timeline = Timeline(facts, machine)
        await timeline.create()
        await timeline.play()
        assert timeline.started == [(run["workflow_id"], run["starts_at"]) for run in facts["runs"]]


@pytest.mark.contract("SCHD-25")
@pytest.mark.parametrize(
    "facts",
    [facts for facts in VECTORS["timelines"] if "closes_at" in facts],
    ids=lambda facts: facts["source"].rpartition(":")[2],
)
async def test_timelines_that_close(facts: dict[str, Any]):
    """A finished schedule goes when the original's does; one with an empty spec is kept here, by contract."""
    async with TimeMachine(datetime.fromisoformat(facts["created_at"])) as machine:
        timeline = Timeline(facts, machine)
        await timeline.create()
        closing = datetime.fromisoformat(facts["closes_at"])
        await machine.advance(seconds=(closing - machine.now).total_seconds() - 1)
        await machine.app.schedules.get("s")
        await machine.advance(seconds=1)
        gone = contextlib.nullcontext() if facts["spec"] == {} else pytest.raises(ScheduleNotFoundError)
        with gone:
            await machine.app.schedules.get("s")


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


async def test_deleting_stops_it_and_keeps_the_ledger(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    await machine.advance(minutes=2)
    await machine.app.schedules.delete("s")
    await machine.advance(minutes=5)
    assert len(hello.called) == 2
    assert len(await machine.app.runs.list("s")) == 2
    again = await machine.app.schedules.create("s", "* * * * *", "hello")
    assert again.generation == 2
    await machine.advance(minutes=1)
    assert len(await machine.app.runs.list("s")) == 3


async def test_a_schedule_that_cannot_be_decided_stops_no_other(machine: TimeMachine, hello: Recorder):
    """A spec that was fine when it was stored and cannot be read now: a zone that is gone, say."""
    await machine.app.schedules.create("bad", "* * * * *", "hello")
    await machine.app.schedules.create("good", "* * * * *", "hello")
    broken = '{"crons": ["* * * * *"], "timezone": "Atlantis/Capital"}'
    store = machine.app._store
    assert isinstance(store, SqliteStore)
    await store.work(lambda c: c.execute("UPDATE schedule SET spec = ? WHERE id = 'bad'", (broken,)))
    await machine.advance(minutes=3)
    assert len(hello.called) == 3
    bad = await machine.app.schedules.get("bad")
    assert bad.state.paused
    assert 'Unknown time zone "Atlantis/Capital"' in bad.state.note


@pytest.mark.contract("SCHD-15")
async def test_no_more_are_started_at_once_than_are_left(machine: TimeMachine, hello: Recorder):
    policies = Policies(overlap=Overlap.ALLOW_ALL)
    await machine.app.schedules.create(
        "s", "* * * * *", "hello", policies=policies, remaining_actions=2, paused=True
    )
    await machine.advance(minutes=5)
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=5)
    assert hello.nominal == [at(1), at(2)]
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 0


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("driven", ["machine", "clock"])
async def test_a_run_that_ends_when_the_next_slot_falls_due_does_not_block_it(driven: str, nested: bool):
    machine = TimeMachine(START)
    begun: list[datetime] = []

    @machine.app.action("work")
    async def work(context: Context) -> None:
        begun.append(context.nominal)
        sleeping = machine.clock.sleep(seconds=60)
        await (
            asyncio.wait_for(sleeping, None) if not nested else asyncio.gather(asyncio.create_task(sleeping))
        )

    async with machine:
        await machine.app.schedules.create("s", "* * * * *", "work", policies=Policies(overlap=Overlap.SKIP))
        if driven == "machine":
            await machine.advance(minutes=3)
        else:
            async with keeping_time(machine.app):
                await machine.clock.advance(minutes=3)
        assert [each.minute - START.minute for each in begun] == [1, 2, 3]


async def test_an_app_on_a_virtual_clock_can_be_left_while_an_action_sleeps_on_it(tmp_path: Path):
    clock = VirtualClock(START)
    async with asyncio.timeout(20):
        async with App(f"sqlite:///{tmp_path / 'horae.db'}", clock=clock) as app:

            @app.action("work")
            async def work(context: Context) -> None:
                await clock.sleep(seconds=10)

            await app.schedules.create("s", "* * * * *", "work")
            task = asyncio.create_task(app.serve())
            await clock.advance(minutes=1)
            task.cancel()
        async with App(f"sqlite:///{tmp_path / 'horae.db'}", clock=clock) as app:
            (run,) = await app.runs.list("s")
            assert (run.status, run.reason) == ("retrying", "shutdown")
