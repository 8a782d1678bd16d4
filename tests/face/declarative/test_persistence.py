"""What is stored of tasks, over restarts: new, preserved, overridden, orphaned, forgotten; all of it or nothing."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from horae import App, Scheduler
from horae.errors import HoraeError, SchedulerInitializationError, StoreUnavailableError
from tests.face.declarative import DELAY, NOON, Story, at


@pytest.mark.contract("DECL-36")
async def test_each_task_is_new_preserved_overridden_orphaned_or_forgotten(story: Story):
    story.takes = dict.fromkeys(["orphan", "changed orphan"], 3600)
    once = "0 12 * * *"
    first = ["same", "cron", "delay", "both", "gone", "gone too", "orphan", "changed orphan"]
    scheduler = await story.begin(*(story.task(name, once) for name in first))
    assert story.counts() == {"new": 8}
    await story.crash(scheduler)
    story.takes.clear()
    again = await story.begin(
        story.task("same", once), story.task("cron", "0 11 * * *"), story.task("delay", once, timedelta(1)),
        story.task("both", "0 11 * * *", timedelta(1)), story.task("orphan", once),
        story.task("changed orphan", "0 11 * * *", timedelta(1)), story.task("fresh", once),
    )  # fmt: skip
    assert story.counts() == {"new": 1, "preserved": 1, "overridden": 3, "orphaned": 2, "forgotten": 2}
    await again.stop()
    starts = {name: len(times) for name, times in story.starts.items()}
    assert starts == dict.fromkeys(first, 1) | {"orphan": 2, "changed orphan": 2, "fresh": 1}


@pytest.mark.contract("DECL-36", "DECL-37", "DECL-40")
@pytest.mark.parametrize("away", [timedelta(0), timedelta(hours=5)])
@pytest.mark.parametrize("cron", ["0 12 * * *", "0 0 29 2 *", "* * * * *"])
async def test_an_orphan_restarts_at_once_once_with_its_new_configuration(
    away: timedelta, cron: str, story: Story
):
    story.takes["a"] = 600
    scheduler = await story.begin(story.task("a", "0 12 * * *"))
    await story.crash(scheduler)
    await story.clock.advance(seconds=away.total_seconds())
    story.takes.clear()
    story.raises["a"] = RuntimeError
    again = await story.begin(story.task("a", cron, timedelta(seconds=20)))
    assert story.counts() == {"orphaned": 1}
    assert story.starts["a"] == [NOON, NOON + away]
    await story.clock.advance(seconds=20)
    assert story.starts["a"][2:] == [NOON + away + timedelta(seconds=20)]  # by its new delay
    await again.stop()
    del story.raises["a"]
    last = await story.begin(story.task("a", cron, timedelta(seconds=20)))
    assert story.counts() == {"preserved": 1}
    await last.stop()


@pytest.mark.contract("DECL-36")
async def test_an_orphan_that_was_retrying_restarts_at_once_too(story: Story):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=1)))
    story.takes["a"] = 600
    await story.clock.advance(minutes=1)
    assert len(story.starts["a"]) == 2
    await story.crash(scheduler)
    again = await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=1)))
    assert story.counts() == {"orphaned": 1}
    assert story.starts["a"] == at("12:00:30", "12:01:30", "12:01:30")
    await story.crash(again)


@pytest.mark.contract("DECL-36", "DECL-40")
async def test_an_orphan_restarts_however_often_its_process_died(story: Story):
    story.takes["a"] = 600
    for number in range(12):
        scheduler = await story.begin(story.task("a", "0 12 * * *"))
        assert story.counts() == ({"orphaned": 1} if number else {"new": 1})
        assert len(story.starts["a"]) == number + 1
        await story.crash(scheduler)


@pytest.mark.contract("DECL-36")
async def test_an_orphan_is_one_although_another_instance_noticed_the_death_first(story: Story):
    story.takes["a"] = 600
    scheduler = await story.begin(story.task("a", "0 12 * * *"))
    await story.crash(scheduler)
    other = await story.begin(story.task("b", "0 0 1 1 *"), name="other")  # it takes note of dead nodes
    again = await story.begin(story.task("a", "0 12 * * *"))
    try:
        assert len(story.starts["a"]) == 2
        assert story.counts() == {"orphaned": 1}
    finally:
        await story.crash(again)
        await other.stop()


@pytest.mark.contract("DECL-36")
async def test_a_live_instances_task_is_no_orphan(story: Story):
    story.takes["a"] = 90
    first = await story.begin(story.task("a", "0 12 * * *"))
    second = await story.begin(story.task("a", "0 12 * * *"))
    assert story.counts() == {"preserved": 1}
    await story.clock.advance(minutes=2)
    await asyncio.gather(first.stop(), second.stop())
    assert story.told() == ["start a 12:00:30", "end a 12:02:00"]


@pytest.mark.contract("DECL-08", "DECL-36")
async def test_an_instance_runs_only_the_tasks_it_was_given(story: Story):
    """While a new version with one task more takes over from the old one, both run."""
    old = await story.begin(story.task("a"))
    new = await story.begin(story.task("a"), story.task("b", "5 12 * * *"))
    await story.clock.advance(minutes=5)
    await asyncio.gather(old.stop(), new.stop())
    assert story.starts["b"] == at("12:05:00")
    assert story.sql("SELECT failure FROM run WHERE failure IS NOT NULL") == []


@pytest.mark.contract("DECL-36", "DECL-18")
async def test_an_overridden_task_keeps_its_history_and_its_pending_retry(story: Story):
    story.raises["a"] = RuntimeError
    await (await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=10)))).stop()
    await story.clock.advance(minutes=1)
    del story.raises["a"]
    again = await story.begin(story.task("a", "30 * * * *", timedelta(minutes=1)))
    assert story.counts() == {"overridden": 1}
    await story.clock.advance(minutes=8, seconds=59)
    assert len(story.starts["a"]) == 1
    await story.clock.advance(seconds=1)
    assert story.told()[2:] == ["retry a 12:10:30", "end a 12:10:30"]
    await story.clock.advance(minutes=20)
    await again.stop()
    assert story.told()[4:] == ["start a 12:30:00", "end a 12:30:00"]
    assert story.sql("SELECT count(*) FROM run") == [(2,)]


@pytest.mark.contract("DECL-36", "DECL-18")
async def test_a_kept_retry_is_preempted_by_a_slot_of_the_new_expression(story: Story):
    story.raises["a"] = RuntimeError
    await (await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=10)))).stop()
    del story.raises["a"]
    again = await story.begin(story.task("a", "2 12 * * *", timedelta(minutes=10)))
    await story.clock.advance(minutes=30)
    await again.stop()
    assert story.told()[2:] == ["preempt a 12:02:00", "start a 12:02:00", "end a 12:02:00"]


@pytest.mark.contract("DECL-36", "DECL-18", "DECL-07")
async def test_a_slot_of_the_new_expression_missed_while_a_retry_waits_preempts_it(story: Story):
    """The process was away over 12:05 of the new expression; the retry is due at 12:30:30, and the slot now."""
    story.raises["a"] = RuntimeError
    await (await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=30)))).stop()
    await story.clock.advance(minutes=10)
    del story.raises["a"]
    again = await story.begin(story.task("a", "5 12 * * *", timedelta(minutes=30)))
    await again.stop()
    assert story.told()[2:] == ["preempt a 12:10:30", "start a 12:10:30", "end a 12:10:30"]


@pytest.mark.contract("DECL-36")
async def test_a_task_that_is_not_registered_any_more_is_forgotten_and_logged(
    story: Story, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "horae.scheduler")
    story.raises["gone"] = RuntimeError
    await (await story.begin(story.task("gone", "0 12 * * *"), story.task("a", "0 12 * * *"))).stop()
    again = await story.begin(story.task("a", "0 12 * * *"))
    assert story.counts() == {"preserved": 1, "forgotten": 1}
    assert any("forgotten" in record.getMessage() for record in caplog.records)
    await story.clock.advance(days=2)
    await again.stop()
    assert len(story.starts["gone"]) == 1  # its retry is given up
    await (await story.begin(story.task("gone", "0 18 * * *"), story.task("a", "0 12 * * *"))).stop()
    assert story.counts() == {"new": 1, "preserved": 1}
    assert len(story.starts["gone"]) == 1  # by the rule of a first registration


@pytest.mark.contract("DECL-36")
async def test_the_log_names_the_task_that_is_forgotten(story: Story, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "horae.scheduler")
    await (await story.begin(story.task("the weekly report", "0 0 * * 1"))).stop()
    caplog.clear()
    await (await story.begin()).stop()
    assert any("the weekly report" in record.getMessage() for record in caplog.records)


@pytest.mark.contract("DECL-36")
async def test_an_orphan_that_is_not_registered_any_more_is_forgotten_for_good(story: Story):
    story.takes["a"] = 600
    await story.crash(await story.begin(story.task("a", "0 12 * * *")))
    story.takes.clear()
    for _ in range(2):
        await (await story.begin()).stop()
    assert story.counts() == {}
    await story.clock.advance(minutes=10)
    for expected in ("new", "preserved"):
        await (await story.begin(story.task("a", "0 12 * * *"))).stop()
        assert story.counts() == {expected: 1}
    assert story.starts["a"] == [NOON]


@pytest.mark.contract("DECL-36")
async def test_schedules_of_others_in_the_same_database_are_left_alone(story: Story):
    async with App(story.database, clock=story.clock) as app:
        app.action("work")(_nothing)
        await app.schedules.create("mine", "0 0 1 1 *", "work")
        scheduler = await story.begin(story.task("a"))
        await scheduler.stop()
        await (await story.begin()).stop()
        assert story.counts() == {"forgotten": 1}
        assert story.sql("SELECT id FROM schedule") == [("mine",)]


async def _nothing() -> None: ...


FAIL = "CREATE TRIGGER fate BEFORE {} BEGIN SELECT RAISE({}, 'fate'); END"
PLACES = [
    "INSERT ON schedule WHEN json_extract(NEW.action, '$.input.task') = 'new'",
    "UPDATE ON schedule WHEN json_extract(NEW.action, '$.input.task') = 'changed'",
    "DELETE ON schedule WHEN json_extract(OLD.action, '$.input.task') = 'gone'",
    "DELETE ON due",
    "INSERT ON due",
    "INSERT ON generation",
]


@pytest.mark.contract("DECL-38", "DECL-12", "DECL-35")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["ABORT", "ROLLBACK"])
async def test_an_override_that_fails_in_the_middle_leaves_the_previous_state(
    place: str, kind: str, story: Story
):
    names = ["same", "changed", "also changed", "gone"]
    scheduler = await story.begin(*(story.task(name, "0 12 * * *") for name in names))
    await scheduler.stop()
    before = story.dump()
    story.sql(FAIL.format(place, kind))
    heard = len(story.events)
    after = [
        story.task("same", "0 12 * * *"), story.task("also changed", "1 12 * * *"), story.task("changed"),
        story.task("new"), story.task("newer"),
    ]  # fmt: skip
    with pytest.raises(SchedulerInitializationError) as raised:
        await scheduler.initialize(after)
    assert isinstance(raised.value.__cause__, sqlite3.IntegrityError)
    assert raised.value.details["cause"] is raised.value.__cause__
    assert story.names()[heard:] == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    assert story.events[-1].details == {"error": raised.value}
    await story.clock.advance(hours=1)
    assert story.dump() == before
    assert story.sql("SELECT count(*) FROM node") == [(0,)]
    story.sql("DROP TRIGGER fate")
    await scheduler.initialize(after)
    await story.clock.settle()
    assert story.counts() == {"new": 2, "preserved": 1, "overridden": 2, "forgotten": 1}
    await scheduler.stop()


@pytest.mark.contract("DECL-38", "DECL-40")
@pytest.mark.parametrize("call", range(0, 24, 2))
async def test_a_crash_at_any_call_of_the_database_leaves_a_state_from_which_the_next_start_is_right(
    call: int, story: Story, monkeypatch: pytest.MonkeyPatch
):
    from horae.store.sqlite import SqliteStore  # noqa: PLC0415

    story.takes["orphan"] = 600
    tasks = [story.task(name, "0 12 * * *") for name in ("orphan", "same", "changed", "gone")]
    await story.crash(await story.begin(*tasks))
    story.takes.clear()
    after = [*tasks[:2], story.task("changed", "0 11 * * *"), story.task("new", "0 12 * * *")]
    before = story.dump()
    work, calls = SqliteStore.work, iter(range(10_000))

    async def fails(self: SqliteStore, what: object) -> object:
        if next(calls) == call:
            raise StoreUnavailableError("cut")
        return await work(self, what)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStore, "work", fails)
    scheduler = story.scheduler()
    failed = False
    try:
        await scheduler.initialize(after)
    except HoraeError:
        failed = True
    monkeypatch.setattr(SqliteStore, "work", work)
    if failed:
        assert story.dump() == before
        await scheduler.initialize(after)
    await story.clock.settle()
    await scheduler.stop()
    assert story.counts() == {"new": 1, "preserved": 1, "overridden": 1, "orphaned": 1, "forgotten": 1}
    starts = {name: len(times) for name, times in story.starts.items()}
    assert starts == {"orphan": 2, "same": 1, "changed": 1, "gone": 1, "new": 1}


@pytest.mark.contract("DECL-37")
async def test_each_instance_has_an_identifier_of_its_own(story: Story):
    seen: list[tuple[int, str]] = []
    for _ in range(3):
        one, two = await story.begin(story.task("a")), await story.begin(story.task("b"), name="other")
        seen += story.sql("SELECT epoch, name FROM node")
        await one.stop()
        await two.stop()
    assert len({epoch for epoch, _ in seen}) == len({name for _, name in seen}) == 6


@pytest.mark.contract("DECL-39")
async def test_the_same_registrations_state_and_clock_give_the_same_selection(tmp_path: Path):
    told = set()
    for order in (1, -1):
        story = Story(tmp_path / f"{order}")
        story.file.parent.mkdir()
        story.takes["slow"] = 400
        story.raises["bad"] = RuntimeError
        tasks = [story.task(name, cron) for name, cron in
                 (("slow", "* * * * *"), ("bad", "0,7 * * * *"), ("other", "3 * * * *"))][::order]  # fmt: skip
        scheduler = await story.begin(*tasks)
        await story.clock.advance(minutes=4)
        await story.crash(scheduler)
        await story.clock.advance(minutes=10)
        scheduler = await story.begin(*tasks)
        await story.clock.advance(minutes=30)
        await story.crash(scheduler)
        told.add(tuple(sorted(story.told())))
    assert len(told) == 1


@pytest.mark.contract("DECL-40", "DECL-13")
async def test_writing_the_same_state_twice_is_harmless(story: Story):
    story.raises["retrying"] = RuntimeError
    tasks = [story.task("a", "0 18 * * *"), story.task("retrying", "0 12 * * *", timedelta(hours=1))]
    await (await story.begin(*tasks)).stop()
    before = story.dump()
    for _ in range(3):
        await (await story.begin(*tasks)).stop()
        assert story.dump() == before


@pytest.mark.contract("DECL-36", "DECL-05")
async def test_tasks_on_postgresql_are_compared_in_the_same_way(postgres: str):
    told: list[dict[str, int]] = []

    def listener(event: object) -> None:
        if type(event).__name__ == "SchedulerInitializationCompleted":
            told.append({key: count for key, count in event.details.items() if count})  # type: ignore[attr-defined]

    async def call() -> None: ...

    yearly = "0 0 29 2 *"
    for registrations in (
        [("a", yearly, call, DELAY), ("b", yearly, call, DELAY), ("c", yearly, call, DELAY)],
        [("a", yearly, call, DELAY), ("b", "0 0 28 2 *", call, DELAY), ("d", yearly, call, DELAY)],
    ):
        scheduler = Scheduler(database=postgres, timezone="UTC", listener=listener)
        await scheduler.initialize(registrations)
        await scheduler.stop()
    assert told == [{"new": 3}, {"new": 1, "preserved": 1, "overridden": 1, "forgotten": 1}]


@pytest.mark.contract("DECL-02", "DECL-08")
async def test_any_name_runs_on_postgresql(postgres: str):
    names = ["plain", "nul \x00", "ä😀", "{id} %H"]
    done: set[str] = set()
    scheduler = Scheduler(
        database=postgres, timezone="UTC", listener=lambda event: done.add(event.task or "")
    )

    async def call() -> None: ...

    from tests.support.wait import wait_until  # noqa: PLC0415

    try:
        await scheduler.initialize([(name, "* * * * *", call, DELAY) for name in names])
        await wait_until(lambda: set(names) <= done)
    finally:
        await scheduler.stop()


@pytest.mark.contract("DECL-06", "DECL-36")
@pytest.mark.parametrize("downtime", [0, 3])
async def test_one_run_makes_up_for_what_another_program_decided_meanwhile(
    story: Story, tmp_path: Path, downtime: int
):
    """Another program on the same database decides what it cannot run: one slot is released, one waits behind it."""
    await (await story.begin(story.task("a"))).stop()
    async with App(f"sqlite:///{tmp_path / 'horae.db'}", clock=story.clock) as other:
        for _ in range(5):
            await story.clock.advance(minutes=1)
            await other.engine.step(other.now())
    assert story.sql("SELECT count(*) FROM run WHERE status IN ('starting', 'pending')") == [(2,)]
    await story.clock.advance(minutes=downtime)
    again = await story.begin(story.task("a"))
    await story.clock.advance(seconds=1)
    assert len(story.starts["a"]) == 2  # the first minute, and one for all that was missed
    await again.stop()
