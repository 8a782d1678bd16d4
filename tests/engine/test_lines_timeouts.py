"""How long things may take, and how they are stopped: coroutines and plain functions, on a virtual clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from horae import Context
from horae.model import Overlap, Policies, RetryPolicy, Run, Status, Timeouts
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, at


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """What plain functions wait for; no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


def seconds(moment: int | None) -> float | None:
    """Seconds since the beginning."""
    return None if moment is None else moment / 1000 - START.timestamp()


class Stubborn:
    """A coroutine that keeps running for a while after it was asked to stop, and remembers when that was."""

    def __init__(self, machine: TimeMachine, lingers: float) -> None:
        self.machine, self.lingers = machine, lingers
        self.asked: list[datetime] = []

    async def __call__(self, context: Context) -> None:
        until = None
        while until is None or self.machine.now < until:
            try:
                await self.machine.sleep(
                    seconds=1_000_000 if until is None else (until - self.machine.now).total_seconds()
                )
            except asyncio.CancelledError:
                self.asked.append(self.machine.now)
                until = until or self.machine.now + timedelta(seconds=self.lingers)
                if not self.lingers:
                    raise
        raise asyncio.CancelledError


@pytest.fixture
def stubborn(machine: TimeMachine) -> Iterator[Callable[[float], Stubborn]]:
    """Makes such actions; none is stubborn any more when the test has ended."""
    made: list[Stubborn] = []

    def make(lingers: float = 0) -> Stubborn:
        made.append(Stubborn(machine, lingers))
        return made[-1]

    yield make
    for each in made:
        each.lingers = 0


async def start(machine: TimeMachine, action: Callable[[Context], Any], timeouts: Timeouts) -> Run:
    """One run of an action, just begun."""
    machine.app.action("work")(action)
    await machine.app.schedules.create("s", {}, "work", policies=Policies(timeouts=timeouts))
    run = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=0)
    return await machine.app.runs.get(run)


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize(
    ("lingers", "ended"), [(0, 10), (3, 13), (600, 15)], ids=["at once", "soon", "never"]
)
async def test_a_coroutine_that_takes_too_long_is_stopped(
    machine: TimeMachine, stubborn: Callable[[float], Stubborn], lingers: float, ended: float
):
    """It is asked to stop; if it does not within five seconds, the ledger records it as ended."""
    work = stubborn(lingers)
    run = await start(machine, work, Timeouts(run="10s"))
    await machine.advance(minutes=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TIMED_OUT, "run_timeout", ended)
    assert work.asked[0] == at(10 / 60)


@pytest.mark.contract("SCHD-17")
async def test_a_plain_function_that_takes_too_long_is_given_up(
    machine: TimeMachine, released: threading.Event
):
    noticed: list[bool] = []

    def work(context: Context) -> None:
        noticed.append(context.stop_requested())
        released.wait()
        noticed.append(context.stop_requested())

    run = await start(machine, work, Timeouts(run="10s"))
    await machine.advance(minutes=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TIMED_OUT, "run_timeout", 15)
    assert run.failure == "it did not stop when it was asked to"


@pytest.mark.contract("SCHD-17")
async def test_a_plain_function_that_checks_stop_requested_stops_in_time(
    machine: TimeMachine, released: threading.Event
):
    def work(context: Context) -> None:
        released.wait()
        if context.stop_requested():
            raise InterruptedError("I was asked to")

    run = await start(machine, work, Timeouts(run="10s"))
    (task,) = machine.app.worker.tasks
    await machine.advance(seconds=10)
    released.set()
    await asyncio.wait([task])
    await machine.advance(seconds=0)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TIMED_OUT, "run_timeout", 10)


@pytest.mark.contract("SCHD-17")
async def test_each_attempt_has_the_time(machine: TimeMachine):
    work = machine.app.action("work")(Recorder(machine, 20))
    policies = Policies(timeouts=Timeouts(run="10s"), retry=RetryPolicy(attempts=2, initial_delay="5s"))
    await machine.app.schedules.create("s", "*/10 * * * *", "work", policies=policies)
    await machine.advance(minutes=11)
    assert [(moment - at(10)).total_seconds() for _, moment in work.called] == [0, 15]
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.failures) == (Status.TIMED_OUT, 2)
    assert [each.reason for each in await machine.app.runs.attempts(run.id)] == ["run_timeout", "run_timeout"]


@pytest.mark.contract("SCHD-17")
async def test_a_sign_of_life_lets_a_coroutine_go_on(machine: TimeMachine):
    async def work(context: Context) -> None:
        for _ in range(5):
            await machine.sleep(seconds=9)
            context.heartbeat()
        await machine.sleep(seconds=1000)

    run = await start(machine, work, Timeouts(heartbeat="10s"))
    await machine.advance(seconds=54)
    assert (await machine.app.runs.get(run.id)).status is Status.RUNNING
    await machine.advance(seconds=6)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TIMED_OUT, "heartbeat_timeout", 55)


@pytest.mark.contract("SCHD-17")
async def test_a_sign_of_life_lets_a_plain_function_go_on(machine: TimeMachine, released: threading.Event):
    beaten, beat = threading.Event(), threading.Event()

    def work(context: Context) -> None:
        beat.wait()
        context.heartbeat()
        beaten.set()
        released.wait()

    run = await start(machine, work, Timeouts(heartbeat="10s"))
    await machine.advance(seconds=9)
    beat.set()
    await asyncio.to_thread(beaten.wait)
    await machine.advance(seconds=9)
    assert (await machine.app.runs.get(run.id)).status is Status.RUNNING
    await machine.advance(seconds=60)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TIMED_OUT, "heartbeat_timeout", 24)


@pytest.mark.contract("SCHD-17")
async def test_a_start_that_waits_too_long_times_out(machine: TimeMachine):
    machine.app.action("slow")(Recorder(machine, 600))
    policies = Policies(overlap=Overlap.BUFFER_ALL, timeouts=Timeouts(start="1m30s"))
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=4)
    ended = [(run.status, run.reason, seconds(run.ended_at_ms)) for run in await machine.app.runs.list("s")]
    assert ended == [
        (Status.PENDING, "", None),
        (Status.PENDING, "", None),
        (Status.TIMED_OUT, "start_timeout", 210),
        (Status.RUNNING, "", None),
    ]


@pytest.mark.contract("SCHD-17")
async def test_a_start_that_no_node_takes_times_out(machine: TimeMachine):
    machine.app.action("elsewhere")(Recorder(machine))
    policies = Policies(timeouts=Timeouts(start="30s"))
    await machine.app.schedules.create("s", "0 * * * *", "elsewhere", policies=policies)
    machine.app.functions.unregister("elsewhere")
    await machine.advance(minutes=61)
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TIMED_OUT, "start_timeout", 3630)


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize(
    ("lingers", "status", "ended", "asked"),
    [
        (0, Status.CANCELLED, 60, [60]),
        (29, Status.CANCELLED, 89, [60]),
        (32, Status.TERMINATED, 92, [60, 90]),  # the grace is over: it is made to stop
        (600, Status.TERMINATED, 95, [60, 90, 95]),  # and given up
    ],
)
async def test_cancel_asks_and_waits_a_grace(
    machine: TimeMachine,
    stubborn: Callable[[float], Stubborn],
    lingers: float,
    status: Status,
    ended: float,
    asked: list[float],
):
    work = stubborn(lingers)
    run = await start(machine, work, Timeouts(cancel="30s"))
    await machine.advance(minutes=1)
    asked_to = await machine.app.runs.cancel(run.id)
    assert (asked_to.status, asked_to.stop) == (Status.RUNNING, "cancel")
    await machine.advance(minutes=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (status, "cancelled", ended)
    assert work.asked == [at(each / 60) for each in asked]


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize(("lingers", "ended"), [(0, 60), (4, 64), (600, 65)])
async def test_terminate_forces(
    machine: TimeMachine, stubborn: Callable[[float], Stubborn], lingers: float, ended: float
):
    work = stubborn(lingers)
    run = await start(machine, work, Timeouts(cancel="1h"))
    await machine.advance(minutes=1)
    await machine.app.runs.terminate(run.id)
    await machine.advance(minutes=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TERMINATED, "terminated", ended)


@pytest.mark.contract("SCHD-17")
async def test_terminate_cuts_the_grace_of_a_cancel_short(
    machine: TimeMachine, stubborn: Callable[[float], Stubborn]
):
    run = await start(machine, stubborn(600), Timeouts(cancel="5m"))
    await machine.app.runs.cancel(run.id)
    await machine.advance(seconds=10)
    await machine.app.runs.terminate(run.id)
    await machine.advance(minutes=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason, seconds(run.ended_at_ms)) == (Status.TERMINATED, "terminated", 15)


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize(
    ("how", "status", "ended"), [("cancel", "terminated", 35), ("terminate", "terminated", 5)]
)
async def test_a_plain_function_that_does_not_check_stop_requested_is_given_up(
    machine: TimeMachine, released: threading.Event, how: str, status: str, ended: float
):
    run = await start(machine, lambda context: released.wait(), Timeouts(cancel="30s"))
    await (machine.app.runs.cancel(run.id) if how == "cancel" else machine.app.runs.terminate(run.id))
    await machine.advance(minutes=2)
    run = await machine.app.runs.get(run.id)
    assert (run.status, seconds(run.ended_at_ms)) == (status, ended)


@pytest.mark.contract("SCHD-17")
async def test_a_plain_function_sees_that_it_was_asked_to_stop(
    machine: TimeMachine, released: threading.Event
):
    def work(context: Context) -> None:
        released.wait()
        if context.stop_requested():
            raise InterruptedError("asked to")

    run = await start(machine, work, Timeouts(cancel="30s"))
    (task,) = machine.app.worker.tasks
    await machine.app.runs.cancel(run.id)
    await machine.advance(seconds=1)
    released.set()
    await asyncio.wait([task])
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.reason) == (Status.CANCELLED, "cancelled")
    assert run.failure == "InterruptedError: asked to"


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_what_waits_and_is_stopped_never_starts(machine: TimeMachine, how: str):
    slow = machine.app.action("slow")(Recorder(machine, 90))
    await machine.app.schedules.create("s", {}, "slow", policies=Policies(overlap=Overlap.BUFFER_ALL))
    await machine.app.schedules.trigger("s")
    second = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    run = await (machine.app.runs.cancel(second) if how == "cancel" else machine.app.runs.terminate(second))
    assert run.status == ("cancelled" if how == "cancel" else "terminated")
    await machine.advance(minutes=10)
    assert len(slow.called) == 1


@pytest.mark.contract("SCHD-17")
async def test_a_run_that_is_cancelled_while_it_times_out_is_not_attempted_again(
    machine: TimeMachine, stubborn: Callable[[float], Stubborn]
):
    work = stubborn(4)
    machine.app.action("work")(work)
    policies = Policies(timeouts=Timeouts(run="10s"), retry=RetryPolicy(attempts=3))
    await machine.app.schedules.create("s", {}, "work", policies=policies)
    run = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=12)
    await machine.app.runs.cancel(run)
    await machine.advance(minutes=5)
    assert (await machine.app.runs.get(run)).attempt == 1


@pytest.mark.contract("SCHD-10", "SCHD-17", "GRNT-09")
@pytest.mark.parametrize(
    ("overlap", "status", "began"),
    [("replace", "cancelled", 120 + 20), ("terminate_other", "terminated", 120 + 5)],
)
async def test_what_takes_the_place_of_another_waits_until_that_has_stopped(
    machine: TimeMachine, stubborn: Callable[[float], Stubborn], overlap: str, status: str, began: float
):
    machine.app.action("work")(stubborn(20))
    policies = Policies(overlap=Overlap(overlap), timeouts=Timeouts(cancel="30s"))
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    await machine.advance(seconds=170)
    newest, oldest = await machine.app.runs.list("s")
    assert (oldest.status, oldest.reason, newest.status) == (status, "replaced", Status.RUNNING)
    assert (seconds(oldest.ended_at_ms), seconds(newest.started_at_ms)) == (began, began)


@pytest.mark.contract("SCHD-17")
async def test_a_run_that_ends_well_although_it_was_asked_to_stop_has_succeeded(machine: TimeMachine):
    async def work(context: Context) -> str:
        try:
            await machine.sleep(seconds=1000)
        except asyncio.CancelledError:
            return "saved what there was"
        return "all of it"

    run = await start(machine, work, Timeouts())
    await machine.app.runs.cancel(run.id)
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(run.id)
    assert (run.status, run.result, run.stop) == (Status.SUCCEEDED, "saved what there was", "")
    for stop in (machine.app.runs.cancel, machine.app.runs.terminate):  # it is over
        assert (await stop(run.id)).status is Status.SUCCEEDED


@pytest.mark.contract("SCHD-17")
async def test_a_clock_that_is_set_back_gives_no_run_more_time(machine: TimeMachine):
    run = await start(machine, Recorder(machine, 1000), Timeouts(run="1m"))
    await machine.advance(seconds=30)
    machine.clock.set_back(hours=1)
    await machine.advance(seconds=29)
    assert (await machine.app.runs.get(run.id)).status is Status.RUNNING
    await machine.advance(seconds=1)
    assert (await machine.app.runs.get(run.id)).status is Status.TIMED_OUT


@pytest.mark.contract("SCHD-14", "SCHD-17")
async def test_a_run_that_waited_too_long_for_its_start_pauses_its_schedule_too(machine: TimeMachine):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        await machine.sleep(seconds=3600)

    policies = Policies(overlap=Overlap.BUFFER_ALL, timeouts=Timeouts(start="30s"), pause_on_failure=True)
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    await machine.advance(minutes=5)
    late, _ = await machine.app.runs.list("s")
    state = (await machine.app.schedules.get("s")).state
    assert (late.status, late.reason) == ("timed_out", "start_timeout")
    assert state.paused
    assert late.id in state.note
