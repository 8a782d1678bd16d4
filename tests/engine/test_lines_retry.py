"""Another attempt: when an action failed, and when it could not begin. On a virtual clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from horae import Context, NotStartedError
from horae.model import Overlap, Policies, RetryPolicy, Status
from horae.testing import TimeMachine
from tests.support.machine import Recorder, at

SLOT = at(60)


class Raiser:
    """An action that raises one thing after the other, then returns; it remembers when it was called."""

    def __init__(self, machine: TimeMachine, *raised: BaseException) -> None:
        self.machine, self.raised = machine, list(raised)
        self.seconds: list[int] = []
        self.seen: list[tuple[str, str, int]] = []
        self.rows: list[tuple[str, int]] = []
        machine.app.action("work")(self)

    async def __call__(self, context: Context) -> str:
        self.seconds.append(round((self.machine.now - SLOT).total_seconds()))
        self.seen.append((context.run_id, context.key, context.attempt))
        if self.raised:
            raise self.raised.pop(0)
        return "done"


async def play(machine: TimeMachine, policies: Policies) -> Any:
    """An hourly schedule, an hour and a half long: its only run."""
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=90)
    (run,) = await machine.app.runs.list("s")
    return run


def busy() -> NotStartedError:
    return NotStartedError("busy")


@pytest.mark.contract("SCHD-16")
async def test_an_action_that_cannot_begin_is_started_ten_times_and_then_dropped(machine: TimeMachine):
    work = Raiser(machine, *[busy() for _ in range(20)])
    run = await play(machine, Policies())
    assert work.seconds == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    assert (run.status, run.reason, run.failure) == (Status.DROPPED, "not_started", "NotStartedError: busy")
    assert (run.refusals, run.failures) == (10, 0)


@pytest.mark.contract("SCHD-16")
async def test_an_action_that_can_never_begin_is_started_once(machine: TimeMachine):
    work = Raiser(machine, NotStartedError("no such graph", permanent=True))
    run = await play(machine, Policies(retry=RetryPolicy(attempts=5)))
    assert work.seconds == [0]
    assert (run.status, run.reason) == (Status.DROPPED, "not_started")


@pytest.mark.contract("SCHD-16")
async def test_starts_and_attempts_are_counted_apart(machine: TimeMachine):
    """Two refusals, two failures, a refusal: three attempts of each kind would not have been enough together."""
    work = Raiser(machine, busy(), busy(), ValueError("a"), ValueError("b"), busy())
    policies = Policies(retry=RetryPolicy(attempts=3, initial_delay="10s", factor=1), start_attempts=4)
    run = await play(machine, policies)
    assert work.seconds == [0, 1, 3, 13, 23, 27]
    assert (run.status, run.refusals, run.failures, run.attempt) == (Status.SUCCEEDED, 3, 2, 6)
    assert (await machine.app.schedules.counts("s")).started == 1  # a run, however often it was attempted


@pytest.mark.contract("SCHD-16")
@pytest.mark.parametrize(
    ("raised", "named", "attempts"),
    [
        (ConnectionResetError("x"), ("ConnectionError",), 3),  # it derives from that
        (ConnectionResetError("x"), ("OSError", "ValueError"), 3),
        (ConnectionResetError("x"), ("ValueError",), 1),
        (KeyError("x"), (), 3),
        (asyncio.CancelledError(), (), 3),  # raised by the action itself: it was not asked to stop
    ],
)
async def test_only_the_named_errors_are_worth_another_attempt(
    machine: TimeMachine, raised: BaseException, named: tuple[str, ...], attempts: int
):
    work = Raiser(machine, raised, raised, raised, raised)
    run = await play(machine, Policies(retry=RetryPolicy(attempts=3, retry_on=named)))
    assert len(work.seconds) == attempts
    assert (run.status, run.reason, run.failures) == (Status.FAILED, "failed", attempts)


@pytest.mark.contract("SCHD-16")
@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        (RetryPolicy(attempts=4, initial_delay="1s", factor=3, max_delay="5s"), [0, 1, 4, 9]),
        (RetryPolicy(attempts=4, initial_delay="0s"), [0, 0, 0, 0]),
        (RetryPolicy(attempts=4, initial_delay="20s", factor=1), [0, 20, 40, 60]),
        (RetryPolicy(attempts=None, initial_delay="6m40s", factor=1, max_delay="8m20s"), [0, 400, 800, 1200, 1600]),
    ],
)  # fmt: skip
async def test_attempts_and_backoff_are_policies(
    machine: TimeMachine, retry: RetryPolicy, expected: list[int]
):
    work = Raiser(machine, *[ValueError("x") for _ in range(20)])
    await play(machine, Policies(retry=retry))
    assert work.seconds == expected


@pytest.mark.contract("GRNT-07", "CRON-06")
async def test_one_row_one_run_id_and_one_key_over_all_attempts(machine: TimeMachine):
    work = Raiser(machine, ValueError("first"), busy())
    policies = Policies(retry=RetryPolicy(attempts=3, initial_delay="1m"))
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=60, seconds=30)
    (waiting,) = await machine.app.runs.list("s")
    assert (waiting.status, waiting.attempt) == (Status.RETRYING, 1)
    await machine.advance(minutes=10)
    (run,) = await machine.app.runs.list("s")
    assert {seen[:2] for seen in work.seen} == {(run.id, work.seen[0][1])}
    assert [attempt for _, _, attempt in work.seen] == [1, 2, 3]
    assert (run.status, run.attempt, run.id) == (Status.SUCCEEDED, 3, waiting.id)
    attempts = await machine.app.runs.attempts(run.id)
    assert [(each.attempt, each.reason, each.failure) for each in attempts] == [
        (1, "failed", "ValueError: first"),
        (2, "not_started", "NotStartedError: busy"),
    ]
    assert attempts[0].ended_at_ms == int(SLOT.timestamp() * 1000)


async def test_a_run_has_ended_only_when_no_attempt_follows(machine: TimeMachine):
    machine.app.action("work")(Recorder(machine, seconds=30, fails=1))
    policies = Policies(retry=RetryPolicy(attempts=2, initial_delay="1m"))
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=61)
    (waiting,) = await machine.app.runs.list("s")
    await machine.advance(seconds=45)
    (again,) = await machine.app.runs.list("s")
    assert [(each.status, each.attempt) for each in (waiting, again)] == [
        (Status.RETRYING, 1),
        (Status.RUNNING, 2),
    ]
    assert [each.ended_at for each in (waiting, again)] == [None, None]
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    assert (run.ended_at_ms or 0) - (run.started_at_ms or 0) == 30_000


@pytest.mark.contract("GRNT-07", "GRNT-09")
async def test_a_run_stands_in_the_way_over_all_its_attempts(machine: TimeMachine):
    work = machine.app.action("work")(Recorder(machine, fails=2))
    policies = Policies(retry=RetryPolicy(attempts=3, initial_delay="1m30s", factor=1, max_delay="1m30s"))
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    await machine.advance(minutes=5)
    assert work.nominal == [at(1), at(1), at(1), at(5)]
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.reason) == (3, "overlap")


@pytest.mark.contract("SCHD-10", "SCHD-16")
async def test_a_retry_that_waits_is_replaced_by_a_newer_start(machine: TimeMachine):
    work = machine.app.action("work")(Recorder(machine, fails=1))
    policies = Policies(
        overlap=Overlap.CANCEL_OTHER,
        retry=RetryPolicy(attempts=9, initial_delay="10m", max_delay="10m"),
    )
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    await machine.advance(minutes=2)
    newest, oldest = await machine.app.runs.list("s")
    assert (oldest.status, oldest.reason) == (Status.CANCELLED, "replaced")
    assert (newest.status, work.called[-1]) == (Status.SUCCEEDED, (at(2), at(2)))


@pytest.mark.contract("SCHD-16", "SCHD-17")
@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_a_retry_that_waits_can_be_stopped(machine: TimeMachine, how: str):
    work = Raiser(machine, ValueError("x"))
    policies = Policies(retry=RetryPolicy(attempts=3, initial_delay="1m"))
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=60, seconds=30)
    (run,) = await machine.app.runs.list("s")
    await (machine.app.runs.cancel(run.id) if how == "cancel" else machine.app.runs.terminate(run.id))
    await machine.advance(minutes=10)
    assert len(work.seconds) == 1
    assert (await machine.app.runs.get(run.id)).status == ("cancelled" if how == "cancel" else "terminated")


@pytest.mark.contract("SCHD-17")
async def test_a_wish_to_stop_that_comes_as_an_attempt_fails_is_not_lost(machine: TimeMachine):
    failing = asyncio.Event()
    called: list[int] = []

    @machine.app.action("work")
    async def work(context: Context) -> None:
        called.append(context.attempt)
        await failing.wait()
        raise ValueError("x")

    await machine.app.schedules.create("s", {}, "work", policies=Policies(retry=RetryPolicy(attempts=3)))
    run = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    failing.set()
    await asyncio.wait(machine.app.worker.tasks)  # it has failed, and no step has seen that
    await machine.app.runs.cancel(run)
    await machine.advance(minutes=1)
    assert (await machine.app.runs.get(run)).status is Status.CANCELLED
    assert called == [1]
