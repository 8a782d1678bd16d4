"""The life of a scheduler: its events in order, stopping at any time, and nothing after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from horae import Scheduler
from horae.errors import (
    DatabaseUrlError,
    RegistrationsNotArrayError,
    SchedulerAlreadyActiveError,
    StoreUnavailableError,
)
from horae.face.declarative import Event
from horae.face.declarative import scheduler as module
from horae.store.sqlite import SqliteStore
from tests.face.declarative import DELAY, NOON, Story, at
from tests.support.wait import wait_until

BEGIN = ["SchedulerInitializationStarted", "PollingStarted", "SchedulerInitializationCompleted"]
END = ["SchedulerStopRequested", "PollingStopRequested", "PollingStopped", "SchedulerStopped"]
RUN = ["TaskRunStarted", "TaskRunCompleted"]


@pytest.mark.contract("DECL-11", "DECL-12", "DECL-20", "DECL-01")
async def test_events_come_in_order_with_their_time_task_and_details(story: Story):
    scheduler = await story.begin(story.task("a"))
    assert scheduler._state == "Running"
    await scheduler.stop()
    assert scheduler._state == "Stopped"
    assert story.names() == BEGIN + RUN + END
    assert all(event.time == NOON and event.time.tzinfo is UTC for event in story.events)
    assert [event.task for event in story.events] == [None] * 3 + ["a"] * 2 + [None] * 4
    counts = {"new": 1, "preserved": 0, "overridden": 0, "orphaned": 0, "forgotten": 0}
    assert story.events[2].details == counts
    assert all(event.details == {} for event in story.events if event is not story.events[2])


@pytest.mark.contract("DECL-12")
async def test_events_go_to_the_log_too(story: Story, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "horae.scheduler")
    await (await story.begin(story.task("a"), listener=None)).stop()
    words = [record.getMessage() for record in caplog.records if record.name == "horae.scheduler"]
    assert words == [*BEGIN, *(f"{name}: a" for name in RUN), *END]


@pytest.mark.contract("DECL-11", "DECL-13")
async def test_a_stopped_scheduler_may_be_initialized_again_and_that_duplicates_nothing(story: Story):
    scheduler = await story.begin(story.task("a"))
    await scheduler.stop()
    before = story.dump()
    for _ in range(3):
        await scheduler.initialize([story.task("a")])
        await story.clock.settle()
        await scheduler.stop()
        assert story.counts() == {"preserved": 1}
        assert story.dump() == before
    await scheduler.initialize([story.task("a")])
    await story.clock.advance(minutes=1)
    await scheduler.stop()
    assert story.starts["a"] == at("12:00:30", "12:01:00")


@pytest.mark.contract("DECL-13", "DECL-30")
async def test_an_active_scheduler_cannot_be_initialized_and_says_nothing(story: Story):
    story.takes["a"] = 10
    scheduler = story.scheduler()
    first = scheduler.initialize([story.task("a")])
    heard = len(story.events)
    for bad in ([story.task("a")], None):  # what is wrong with the list does not matter
        with pytest.raises(SchedulerAlreadyActiveError) as raised:
            scheduler.initialize(bad)  # type: ignore[arg-type]
        assert raised.value.message == "Cannot initialize scheduler: scheduler is already initializing"
        assert raised.value.details == {"currentState": "initializing"}
    assert len(story.events) == heard
    await first
    await story.clock.settle()
    heard = len(story.events)
    with pytest.raises(SchedulerAlreadyActiveError) as raised:
        scheduler.initialize([])
    assert raised.value.message == "Cannot initialize scheduler: scheduler is already running"
    assert raised.value.details == {"currentState": "running"}
    assert len(story.events) == heard
    stopping = scheduler.stop()
    await story.clock.settle()
    with pytest.raises(SchedulerAlreadyActiveError):
        scheduler.initialize([])
    await story.clock.advance(seconds=10)
    await stopping
    assert story.starts["a"] == [NOON]


@pytest.mark.contract("DECL-13")
async def test_of_concurrent_calls_only_the_first_proceeds(story: Story):
    scheduler = story.scheduler()

    async def initialize(name: str) -> None:
        await scheduler.initialize([story.task(name)])

    found = await asyncio.gather(*(initialize(name) for name in "abc"), return_exceptions=True)
    await story.clock.settle()
    await scheduler.stop()
    assert found[0] is None
    assert [type(each) for each in found[1:]] == [SchedulerAlreadyActiveError] * 2
    assert list(story.starts) == ["a"]


@pytest.mark.contract("DECL-01")
async def test_a_listener_that_raises_is_logged_and_harms_nothing(
    story: Story, caplog: pytest.LogCaptureFixture
):
    told: list[str] = []

    def listener(event: Event) -> None:
        told.append(event.name)
        raise RuntimeError(event.name)

    scheduler = await story.begin(story.task("a"), listener=listener)
    await scheduler.stop()
    with pytest.raises(RegistrationsNotArrayError):
        scheduler.initialize(None)  # type: ignore[arg-type]
    assert told == [
        *BEGIN, *RUN, *END, "SchedulerInitializationStarted", "SchedulerInitializationFailed",
    ]  # fmt: skip
    assert story.starts["a"] == [NOON]
    complaints = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [str(record.exc_info[1]) for record in complaints if record.exc_info] == told


@pytest.mark.contract("DECL-14", "DECL-11")
async def test_stop_without_initialize_returns_and_says_nothing(story: Story):
    scheduler = story.scheduler()
    await asyncio.gather(scheduler.stop(), scheduler.stop())
    await scheduler.stop()
    assert story.events == []
    assert not story.file.exists()
    await scheduler.initialize([story.task("a")])
    await story.clock.settle()
    assert story.starts["a"] == [NOON]
    await scheduler.stop()


@pytest.mark.contract("DECL-14")
async def test_stop_after_a_failed_initialize_returns(story: Story):
    scheduler = story.scheduler()
    with pytest.raises(RegistrationsNotArrayError):
        scheduler.initialize(None)  # type: ignore[arg-type]
    await scheduler.stop()
    assert story.names()[-1] == "SchedulerInitializationFailed"


@pytest.mark.contract("DECL-14", "DECL-12")
async def test_stop_may_be_called_many_times_and_concurrently_and_emits_once(story: Story):
    scheduler = await story.begin(story.task("a"))
    await asyncio.gather(*(scheduler.stop() for _ in range(5)))
    for _ in range(3):
        await scheduler.stop()
    assert story.names() == BEGIN + RUN + END


@pytest.mark.contract("DECL-14")
async def test_a_stop_that_is_given_up_by_one_caller_continues_for_the_others(story: Story):
    story.takes["a"] = 60
    scheduler = await story.begin(story.task("a", "0 12 * * *"))
    first = asyncio.ensure_future(scheduler.stop())
    second = asyncio.ensure_future(scheduler.stop())
    await story.clock.settle()
    first.cancel()
    await story.clock.advance(seconds=60)
    await second
    assert story.told() == ["start a 12:00:30", "end a 12:01:30"]


@pytest.mark.contract("DECL-14", "DECL-15", "DECL-20")
@pytest.mark.parametrize("fails", [False, True])
async def test_stop_waits_for_running_callbacks_and_starts_nothing_more(fails: bool, story: Story):
    story.takes |= {"slow": 3600, "slower": 7200}
    if fails:
        story.raises["slow"] = KeyboardInterrupt
    scheduler = await story.begin(story.task("slow"), story.task("slower"), story.task("quick"))
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(hours=1)
    assert not stopping.done()
    assert scheduler._state == "Stopping"
    await story.clock.advance(hours=1)
    await stopping
    assert story.names()[-6:] == [
        "SchedulerStopRequested", "PollingStopRequested", "TaskRunFailed" if fails else "TaskRunCompleted",
        "TaskRunCompleted", "PollingStopped", "SchedulerStopped",
    ]  # fmt: skip
    assert {name: len(times) for name, times in story.starts.items()} == {"slow": 1, "slower": 1, "quick": 1}
    assert story.sql("SELECT count(*) FROM run WHERE status IN ('running', 'starting')") == [(0,)]
    assert story.sql("SELECT count(*) FROM node") == [(0,)]
    heard = len(story.events)
    await story.clock.advance(hours=5)
    assert len(story.events) == heard
    assert sum(story.running.values()) == 0


@pytest.mark.contract("DECL-14")
async def test_stop_frees_every_resource(story: Story, tmp_path: Path):
    scheduler = await story.begin(story.task("a"))
    await scheduler.stop()
    await story.clock.settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [path.name for path in tmp_path.iterdir()] == ["horae.db"]


@pytest.mark.contract("DECL-14", "DECL-15")
@pytest.mark.parametrize("turns", range(6))
async def test_stop_during_initialize_keeps_what_was_persisted_and_schedules_nothing(
    turns: int, story: Story
):
    """On the machine's clock, where initializing takes turns of the event loop and a thread."""
    scheduler = Scheduler(database=story.database, timezone="UTC", listener=story.events.append)
    starting = asyncio.ensure_future(scheduler.initialize([story.task("a"), story.task("b")]))
    for _ in range(turns):
        await asyncio.sleep(0)
    assert scheduler._state == "Initializing"
    await asyncio.gather(starting, scheduler.stop(), scheduler.stop())
    assert scheduler._state == "Stopped"
    assert story.names() == [
        "SchedulerInitializationStarted", "SchedulerInitializationCompleted", "SchedulerStopRequested",
        "SchedulerStopped",
    ]  # fmt: skip
    assert story.starts == {}
    assert story.sql("SELECT count(*) FROM schedule") == [(2,)]
    assert story.sql("SELECT count(*) FROM run") == [(0,)]


@pytest.mark.contract("DECL-14")
async def test_stop_during_an_initialize_that_fails_lets_both_return(story: Story, tmp_path: Path):
    (tmp_path / "horae.db").write_bytes(b"this is no database, whatever its name says" * 100)
    scheduler = Scheduler(database=story.database, timezone="UTC", listener=story.events.append)
    starting = asyncio.ensure_future(scheduler.initialize([story.task("a")]))
    found = await asyncio.gather(starting, scheduler.stop(), return_exceptions=True)
    assert isinstance(found[0], Exception)
    assert found[1] is None
    assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    assert scheduler._state == "Uninitialized"


@pytest.mark.contract("DECL-15")
@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_stop_at_any_moment_leaves_no_phantom_orphan(turns: int, story: Story):
    """On the machine's clock: the stop comes while the first starts are claimed, launched or recorded."""
    tasks = [story.task(f"{number}") for number in range(3)]
    for _ in range(2):
        scheduler = Scheduler(database=story.database, timezone="UTC", listener=story.events.append)
        await scheduler.initialize(tasks)
        for _ in range(turns):
            await asyncio.sleep(0)
        await scheduler.stop()
        assert story.counts().get("orphaned") is None
        started = story.names().count("TaskRunStarted")
        ended = story.names().count("TaskRunCompleted")
        assert started == ended == sum(map(len, story.starts.values()))
        assert story.sql("SELECT count(*) FROM run WHERE status = 'running'") == [(0,)]
        assert story.sql("SELECT count(*) FROM run WHERE status = 'succeeded'") == [(started,)]


@pytest.mark.contract("DECL-14")
async def test_nothing_starts_once_stop_has_returned_although_much_is_due(story: Story):
    story.raises["failing"] = RuntimeError
    scheduler = await story.begin(story.task("a"), story.task("failing", delay=timedelta()))
    await story.clock.advance(seconds=10)
    await scheduler.stop()
    before = sum(map(len, story.starts.values()))
    await story.clock.advance(days=2)
    assert sum(map(len, story.starts.values())) == before


@pytest.mark.contract("DECL-20")
async def test_an_empty_list_is_valid_and_polls_nothing(story: Story):
    scheduler = await story.begin()
    assert story.clock.next_sleeper() is None
    assert scheduler._state == "Running"
    assert story.counts() == {}
    await story.clock.advance(days=1)
    await scheduler.stop()
    assert story.names() == [
        "SchedulerInitializationStarted", "SchedulerInitializationCompleted", "SchedulerStopRequested",
        "SchedulerStopped",
    ]  # fmt: skip


@pytest.mark.contract("DECL-12")
async def test_a_database_that_cannot_be_opened_fails_the_initialization(tmp_path: Path):
    story = Story(tmp_path / "nowhere")
    scheduler = story.scheduler()
    with pytest.raises(StoreUnavailableError) as raised:
        await scheduler.initialize([story.task("a")])
    assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    assert story.events[1].details == {"error": raised.value}
    assert scheduler._state == "Uninitialized"
    (tmp_path / "nowhere").mkdir()
    await scheduler.initialize([story.task("a")])
    await story.clock.settle()
    await scheduler.stop()
    assert story.starts["a"] == [NOON]


@pytest.mark.contract("DECL-12", "DECL-11")
async def test_an_address_that_cannot_be_read_fails_the_initialization(story: Story):
    scheduler = story.scheduler(database="mysql://somewhere")
    for _ in range(2):
        with pytest.raises(DatabaseUrlError):
            await scheduler.initialize([story.task("a")])
    assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"] * 2


@pytest.mark.contract("DECL-12")
async def test_a_scheduler_whose_name_cannot_be_stored_fails_the_initialization(story: Story):
    with pytest.raises(Exception, match=r".*"):
        await story.scheduler("half \ud800").initialize([story.task("a")])
    assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]


@pytest.mark.contract("DECL-14")
async def test_a_stop_from_a_listener_is_a_stop(story: Story):
    stopping: list[Any] = []

    def listener(event: Event) -> None:
        story.events.append(event)
        if event.name == "TaskRunStarted":
            stopping.append(scheduler.stop())

    scheduler = story.scheduler(listener=listener)
    await scheduler.initialize([story.task("a")])
    await story.clock.settle()
    await stopping[0]
    assert story.names() == BEGIN + RUN + END


@pytest.mark.contract("DECL-13", "DECL-40")
@pytest.mark.parametrize("calls", range(1, 20, 2))
async def test_an_initialize_that_its_caller_gives_up_may_be_tried_again(
    calls: int, story: Story, monkeypatch: pytest.MonkeyPatch
):
    """It is given up in the middle of some call of the database."""
    work, made = SqliteStore.work, 0

    async def counted(self: SqliteStore, what: Any) -> Any:
        nonlocal made
        made += 1
        if made == calls:
            starting.cancel()
        return await work(self, what)

    scheduler = Scheduler(database=story.database, timezone="UTC", listener=story.events.append)
    monkeypatch.setattr(SqliteStore, "work", counted)
    starting = asyncio.ensure_future(scheduler.initialize([story.task("a", "0 0 1 1 *")]))
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    monkeypatch.setattr(SqliteStore, "work", work)
    assert starting.cancelled() == (scheduler._state == "Uninitialized")
    if starting.cancelled():
        assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
        await scheduler.initialize([story.task("a", "0 0 1 1 *")])
    await scheduler.stop()
    assert scheduler._state == "Stopped"
    assert story.sql("SELECT count(*) FROM schedule") == [(1,)]


@pytest.mark.contract("DECL-14", "DECL-36", "DECL-08")
async def test_a_scheduler_that_waits_for_its_callbacks_to_stop_is_alive(
    postgres: str, monkeypatch: pytest.MonkeyPatch
):
    """On PostgreSQL a life is a lease, and the callback takes longer than that."""
    limits = {"drain_ms": 2**40, "lease_ms": 2500, "housekeeping_ms": 500}
    monkeypatch.setattr(module, "UNLIMITED", limits)
    release, begun = asyncio.Event(), 0

    async def callback() -> None:
        nonlocal begun
        begun += 1
        await release.wait()

    registrations = [("a", "* * * * *", callback, DELAY)]
    first, second = (Scheduler(database=postgres, timezone="UTC") for _ in range(2))
    await first.initialize(registrations)
    await wait_until(lambda: begun == 1)
    stopping = asyncio.ensure_future(first.stop())
    heard: list[str] = []
    other = Scheduler(
        database=postgres, timezone="UTC", name="other", listener=lambda event: heard.append(event.name)
    )
    failing = ("b", "* * * * *", _fail, timedelta(milliseconds=100))
    await second.initialize(registrations)
    await other.initialize([failing])
    try:
        await wait_until(lambda: heard.count("TaskRunFailed") >= 35)  # longer than the lease
        assert begun == 1
    finally:
        release.set()
        await asyncio.gather(stopping, second.stop(), other.stop())


async def _fail() -> None:
    raise RuntimeError
