"""The life of a task: runs, failures, retries and what preempts them, one run at a time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horae.errors import NotStartedError
from tests.face.declarative import DELAY, Story, at


class Odd(BaseException):
    """No ordinary exception."""


class Unspeakable(Exception):  # noqa: N818 - it is one
    def __str__(self) -> str:
        raise RuntimeError("no words")


EXCEPTIONS: list[Callable[[], BaseException]] = [
    RuntimeError, Odd, KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, StopAsyncIteration,
    TimeoutError, Unspeakable, lambda: ExceptionGroup("two", [ValueError(), KeyError()]), lambda: ValueError("\x00\ud800"),
    lambda: ValueError("x" * 1_000_000),
]  # fmt: skip


@pytest.mark.contract("DECL-17", "DECL-18")
@pytest.mark.parametrize("exception", EXCEPTIONS, ids=lambda each: getattr(each, "__name__", "?"))
async def test_whatever_is_raised_is_retried_after_the_delay(
    exception: Callable[[], BaseException], story: Story
):
    story.raises["a"] = exception
    scheduler = await story.begin(story.task("a", "0 12 * * *", timedelta(seconds=40)))
    assert story.told() == ["start a 12:00:30", "fail a 12:00:30"]
    failure = story.events[-1]
    assert failure.details.keys() == {"error", "pendingRetryUntil"}
    assert isinstance(failure.details["error"], BaseException)
    assert failure.details["pendingRetryUntil"] == at("12:01:10")[0]
    await story.clock.advance(seconds=39)
    assert len(story.starts["a"]) == 1
    await story.clock.advance(seconds=1)
    assert story.told()[2:] == ["retry a 12:01:10", "fail a 12:01:10"]
    await story.clock.advance(seconds=80)
    assert story.starts["a"] == at("12:00:30", "12:01:10", "12:01:50", "12:02:30")  # the delay does not grow
    del story.raises["a"]
    await story.clock.advance(hours=2)
    assert story.told()[-2:] == ["retry a 12:03:10", "end a 12:03:10"]  # success clears it
    await scheduler.stop()


@pytest.mark.contract("DECL-17")
@pytest.mark.parametrize("permanent", [False, True])
async def test_an_exception_of_horaes_own_is_retried_too(permanent: bool, story: Story):
    story.raises["a"] = lambda: NotStartedError("the callback's own affair", permanent=permanent)
    scheduler = await story.begin(story.task("a", "0 12 * * *", timedelta(seconds=40)))
    await story.clock.advance(seconds=40)
    await scheduler.stop()
    assert story.told()[2:] == ["retry a 12:01:10", "fail a 12:01:10"]


@pytest.mark.contract("DECL-18")
async def test_no_delay_retries_at_the_next_evaluation_and_not_in_the_same(story: Story):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0 12 * * *", timedelta()))
    await story.clock.settle()
    assert story.told() == ["start a 12:00:30", "fail a 12:00:30"]
    await story.clock.advance(seconds=3)
    assert story.starts["a"] == at("12:00:30", "12:00:31", "12:00:32", "12:00:33")
    del story.raises["a"]
    await story.clock.advance(hours=3)
    assert story.told()[-2:] == ["retry a 12:00:34", "end a 12:00:34"]
    await scheduler.stop()


@pytest.mark.contract("DECL-18")
async def test_a_slot_before_the_retry_preempts_it(story: Story):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0-1 12 * * *", timedelta(minutes=5)))
    await story.clock.advance(seconds=30)
    assert story.told() == [
        "start a 12:00:30", "fail a 12:00:30", "preempt a 12:01:00", "start a 12:01:00", "fail a 12:01:00",
    ]  # fmt: skip
    await story.clock.advance(minutes=5)
    assert story.told()[5:] == ["retry a 12:06:00", "fail a 12:06:00"]  # only the latest failure is retried
    await scheduler.stop()


@pytest.mark.contract("DECL-18")
@pytest.mark.parametrize("succeeds", [False, True])
async def test_when_both_are_due_one_retry_serves_both(succeeds: bool, story: Story):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0-1 12 * * *", timedelta(seconds=30)))
    if succeeds:
        del story.raises["a"]
    await story.clock.advance(seconds=30)
    assert story.told()[2:] == ["retry a 12:01:00", "end a 12:01:00" if succeeds else "fail a 12:01:00"]
    await story.clock.advance(seconds=29)
    assert len(story.starts["a"]) == 2
    await story.clock.advance(seconds=1)
    assert story.told()[4:] == ([] if succeeds else ["retry a 12:01:30", "fail a 12:01:30"])
    await scheduler.stop()


@pytest.mark.contract("DECL-18", "DECL-06")
async def test_when_both_fell_due_while_the_process_was_away_one_retry_serves_both(story: Story):
    story.raises["a"] = RuntimeError
    await (await story.begin(story.task("a", delay=timedelta(minutes=1)))).stop()
    await story.clock.advance(hours=3)
    del story.raises["a"]
    scheduler = await story.begin(story.task("a", delay=timedelta(minutes=1)))
    assert story.told()[2:] == ["retry a 15:00:30", "end a 15:00:30"]
    await story.clock.advance(seconds=30)
    assert story.told()[4:] == ["start a 15:01:00", "end a 15:01:00"]
    await scheduler.stop()


@pytest.mark.contract("DECL-18", "DECL-36")
async def test_a_pending_retry_survives_a_restart_and_may_be_preempted_then(story: Story):
    story.raises["a"] = RuntimeError
    tasks = [story.task("a", "0,30 * * * *", timedelta(minutes=10))]
    await (await story.begin(*tasks)).stop()
    await story.clock.advance(minutes=5)
    scheduler = await story.begin(*tasks)
    assert len(story.starts["a"]) == 1
    await story.clock.advance(minutes=5)
    assert story.told()[2:] == ["retry a 12:10:30", "fail a 12:10:30"]
    await story.clock.advance(minutes=17)
    assert story.told()[4:] == ["retry a 12:20:30", "fail a 12:20:30"]
    await scheduler.stop()
    again = await story.begin(*tasks)
    del story.raises["a"]
    await story.clock.advance(minutes=30)
    assert story.told()[6:] == ["preempt a 12:30:00", "start a 12:30:00", "end a 12:30:00"]
    await again.stop()


@pytest.mark.contract("DECL-17")
async def test_a_failure_while_stopping_is_retried_after_the_delay_from_then(story: Story):
    story.takes["a"] = 3600
    story.raises["a"] = RuntimeError
    task = story.task("a", "0 12 * * *", timedelta(minutes=30))
    scheduler = await story.begin(task)
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(hours=1)
    await stopping
    assert story.events[-3].details["pendingRetryUntil"] == at("13:30:30")[0]
    story.takes.clear()
    again = await story.begin(task)
    await story.clock.advance(minutes=40)
    await again.stop()
    assert story.starts["a"][1] == at("13:30:30")[0]


LATE = "what ends while stop waits for others is recorded only when all have ended"


@pytest.mark.contract("DECL-14", "DECL-36", "DECL-40")
async def test_what_ends_while_stop_waits_for_others_is_recorded_as_it_ends(story: Story):
    """If the process is killed while it waits, what has ended is no orphan."""
    story.takes |= {"a": 10, "slow": 3600}
    tasks = [story.task(name, "0 12 * * *") for name in ("a", "slow")]
    scheduler = await story.begin(*tasks)
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(minutes=10)
    try:
        assert story.sql("SELECT status FROM run ORDER BY status") == [("running",), ("succeeded",)]
    finally:
        await story.clock.advance(hours=1)
        await stopping


@pytest.mark.contract("DECL-17")
async def test_a_failure_while_stop_waits_for_others_is_retried_after_the_delay_from_then(story: Story):
    story.takes |= {"a": 10, "slow": 3600}
    story.raises["a"] = RuntimeError
    tasks = [story.task(name, "0 12 * * *", timedelta(minutes=5)) for name in ("a", "slow")]
    scheduler = await story.begin(*tasks)
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(hours=1, minutes=1)
    await stopping
    story.takes.clear()
    again = await story.begin(*tasks)  # at 13:01:30, long after 12:05:40
    await again.stop()
    assert story.starts["a"] == at("12:00:30", "13:01:30")


@pytest.mark.contract("DECL-09", "DECL-08")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("minutes", [1, 2, 10])
async def test_slots_during_a_run_are_served_by_one_right_after(fails: bool, minutes: int, story: Story):
    story.takes["a"] = 60 * minutes
    if fails:
        story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0-5 12 * * *", timedelta(hours=2)))
    story.takes["a"] = 0
    await story.clock.advance(minutes=minutes)
    end = story.clock.now()
    assert story.starts["a"] == [end - timedelta(minutes=minutes), end]
    words = ["start", "fail", "preempt", "start", "fail"] if fails else ["start", "end", "start", "end"]
    assert [told.split()[0] for told in story.told()] == words
    await story.clock.advance(hours=1, minutes=40)
    latest = story.starts["a"][2:]
    assert all(each.second == 0 and each.minute <= 5 for each in latest)  # and then it follows its schedule
    assert story.overlapped == set()
    await scheduler.stop()


TWICE = "a start that waits and one that falls due in the same look both run, one after the other"


@pytest.mark.contract("DECL-09", "DECL-06", "DECL-17")
@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_that_ends_as_a_minute_begins_is_followed_by_one_run(fails: bool, tmp_path: Path):
    story = Story(tmp_path, at("12:00:59")[0])
    story.takes["a"] = 61
    if fails:
        story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a"))
    story.takes["a"] = 0
    await story.clock.advance(seconds=61)
    await scheduler.stop()
    assert story.starts["a"] == at("12:00:59", "12:02:00")  # 12:01 and 12:02 are served by the one at 12:02


@pytest.mark.contract("DECL-06", "DECL-09")
async def test_a_host_that_was_suspended_during_a_run_makes_up_once(story: Story):
    story.takes["a"] = 90
    scheduler = await story.begin(story.task("a"))
    story.takes["a"] = 0
    await story.clock.advance(seconds=40)
    story.clock.move_to(at("15:00:10")[0])
    await story.clock.settle()
    await scheduler.stop()
    assert story.starts["a"] == at("12:00:30", "15:00:10")


@pytest.mark.contract("DECL-09", "DECL-15")
async def test_a_slot_that_passed_while_stopping_waited_is_made_up_by_the_next_start(story: Story):
    story.takes["a"] = 150
    scheduler = await story.begin(story.task("a", "0-1 12 * * *"))
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(minutes=10)
    await stopping
    story.takes.clear()
    again = await story.begin(story.task("a", "0-1 12 * * *"))
    await again.stop()
    assert story.counts() == {"preserved": 1}
    assert story.starts["a"] == at("12:00:30", "12:10:30")


@pytest.mark.contract("DECL-08")
async def test_slow_and_failing_tasks_delay_no_other_and_none_overlaps_itself(story: Story):
    story.takes |= {"slow": 100, "never": 10**9}
    story.raises |= {"failing": RuntimeError, "slow": RuntimeError}
    names = ["slow", "never", "failing", "quick"]
    scheduler = await story.begin(*(story.task(name, delay=timedelta()) for name in names))
    assert all(len(story.starts[name]) == 1 for name in names)
    await story.clock.advance(minutes=5)
    minutes = at(*(f"12:0{minute}:00" for minute in range(1, 6)))
    assert story.starts["quick"][1:] == minutes
    assert set(minutes) <= set(story.starts["failing"])
    assert len(story.starts["never"]) == 1
    assert story.overlapped == set()
    await story.crash(scheduler)


@pytest.mark.contract("DECL-08")
async def test_a_thousand_slow_tasks_delay_no_other_either(story: Story):
    names = [f"{number}" for number in range(1001)]
    story.takes = dict.fromkeys(names, 86_400)
    scheduler = await story.begin(*(story.task(name) for name in names))
    await story.clock.advance(minutes=1)
    try:
        assert len(story.starts) == len(names)
    finally:
        await story.crash(scheduler)


@pytest.mark.contract("DECL-19")
async def test_the_claim_is_durable_before_the_callback_is_called(story: Story):
    seen: list[Any] = []

    async def look() -> None:
        with sqlite3.connect(
            f"file:{story.file}?mode=ro", uri=True
        ) as connection:  # as another process sees it
            seen.extend(connection.execute("SELECT status, attempt, started_at_ms FROM run").fetchall())
        connection.close()

    scheduler = await story.begin(("a", "0 12 * * *", look, DELAY))
    await scheduler.stop()
    assert seen == [("running", 1, int(at("12:00:30")[0].timestamp() * 1000))]
    assert story.sql("SELECT status FROM run") == [("succeeded",)]


@pytest.mark.contract("DECL-16")
async def test_the_four_times_of_a_task_are_kept(story: Story):
    story.takes["a"] = 5
    task = story.task("a", "0 12 * * *", timedelta(minutes=1))
    scheduler = await story.begin(task)
    await story.clock.advance(seconds=5)
    await scheduler.stop()

    def moment(statement: str) -> datetime:
        ((found,),) = story.sql(statement)
        return datetime.fromtimestamp(found / 1000, at("00:00:00")[0].tzinfo)

    assert moment("SELECT max(started_at_ms) FROM run") == at("12:00:30")[0]
    assert moment("SELECT max(ended_at_ms) FROM run WHERE status = 'succeeded'") == at("12:00:35")[0]
    await story.clock.advance(days=1)
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(task)  # at 12:00:35 on the next day
    await story.clock.advance(seconds=5)
    await scheduler.stop()
    (attempt, failure, until) = (
        moment("SELECT max(started_at_ms) FROM run"), moment("SELECT max(ended_at_ms) FROM attempt"),
        moment("SELECT start_at_ms FROM run WHERE status = 'retrying'"),
    )  # fmt: skip
    assert [attempt, failure, until] == at("12:00:35", "12:00:40", "12:01:40", day="2026-03-03")


@pytest.mark.contract("DECL-16", "DECL-17")
async def test_every_task_goes_through_its_states_by_the_table(story: Story):
    from horae.face.declarative.states import TASK  # noqa: PLC0415

    story.takes["a"] = 25
    scheduler = await story.begin(story.task("a", delay=timedelta(seconds=7)))
    for number in range(40):
        story.raises = {"a": RuntimeError} if number % 3 else {}
        await story.clock.advance(seconds=11 + number % 5)
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(minutes=1)
    await stopping
    state = "AwaitingRun"
    for event in story.events:
        if event.task:
            state = next(each.after for each in TASK if (each.before, each.event) == (state, type(event)))
    assert {word.split()[0] for word in story.told()} >= {"start", "end", "fail", "retry"}


@pytest.mark.contract("DECL-17")
async def test_a_callback_that_takes_an_argument_or_returns_anything_is_the_callbacks_affair(story: Story):

    async def needs(_argument: object) -> None: ...

    async def returns() -> object:
        return object()

    scheduler = await story.begin(
        ("needs", "0 12 * * *", needs, DELAY), ("returns", "0 12 * * *", returns, DELAY)
    )
    await scheduler.stop()
    assert sorted(story.told()) == [
        "end returns 12:00:30", "fail needs 12:00:30", "start needs 12:00:30", "start returns 12:00:30",
    ]  # fmt: skip
