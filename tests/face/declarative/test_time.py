"""Minutes in local time: first registration, what was missed, clock changes, and a clock that is set back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horae import Scheduler
from tests.face.declarative import DELAY, NOON, Registered, Story, at
from tests.spec.oracle import zoneinfo

MINUTE = timedelta(minutes=1)


@pytest.mark.contract("DECL-04", "DECL-07")
@pytest.mark.parametrize("second", [0, 0.001, 30, 59, 59.999])
async def test_a_new_task_runs_at_once_if_the_present_minute_matches(second: float, tmp_path: Path):
    start = NOON.replace(second=0) + timedelta(seconds=second)
    story = Story(tmp_path, start)
    scheduler = await story.begin(
        story.task("now"), story.task("this", "0 12 * * *"), story.task("next", "1 12 * * *"),
        story.task("last", "59 11 * * *"), story.task("later", "5 12 * * *"), story.task("sunday", "0 12 * * 0"),
    )  # fmt: skip
    assert story.starts == {"now": [start], "this": [start]}
    await story.clock.advance(minutes=2)
    await scheduler.stop()
    assert story.starts["next"] == at("12:01:00")
    assert story.starts["now"] == [start, *at("12:01:00", "12:02:00")]
    assert story.starts["this"] == [start]
    assert "last" not in story.starts
    assert "later" not in story.starts


@pytest.mark.contract("DECL-04")
async def test_every_minute_is_evaluated_at_its_second_0(story: Story):
    scheduler = await story.begin(story.task("a", "1-59 12 * * *"), story.task("b", "0,30 13,14 * * *"))
    await story.clock.advance(hours=3)
    await scheduler.stop()
    assert story.starts["a"] == at(*(f"12:{minute:02d}:00" for minute in range(1, 60)))
    assert story.starts["b"] == at("13:00:00", "13:30:00", "14:00:00", "14:30:00")


DAYS = {
    "0 0 13 * 5": [6, 13, 20, 27], "0 0 10 * 5": [6, 10, 13, 20, 27], "0 0 10 * *": [10], "0 0 * * 5": [6, 13, 20, 27],
    "0 0 10 * 0-6": list(range(3, 32)), "0 0 1-31 * 5": list(range(3, 32)), "  00\t0 010,10   3 *\t": [10],
    "0 0 12,5-6,5 * *": [5, 6, 12],
}  # fmt: skip
"""The days of a March on which tasks run."""


@pytest.mark.contract("DECL-21", "DECL-23")
async def test_a_task_runs_on_the_days_that_its_expression_names(story: Story):
    scheduler = await story.begin(*(story.task(cron, cron) for cron in DAYS))
    await story.clock.advance(days=29)
    await scheduler.stop()
    ran = {cron: [(each.day, each.hour, each.minute) for each in story.starts[cron]] for cron in DAYS}
    assert ran == {cron: [(day, 0, 0) for day in days] for cron, days in DAYS.items()}


@pytest.mark.contract("DECL-06")
@pytest.mark.parametrize("away", [timedelta(minutes=1), timedelta(hours=5), timedelta(days=400)])
@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "crashed"])
async def test_however_much_was_missed_one_run_makes_up_for_it(away: timedelta, stopped: bool, story: Story):
    scheduler = await story.begin(story.task("a"))
    await (scheduler.stop() if stopped else story.crash(scheduler))
    await story.clock.advance(seconds=away.total_seconds())
    again = await story.begin(story.task("a"))
    assert story.starts["a"] == [NOON, NOON + away]
    await story.clock.advance(minutes=2)
    first = (NOON + away).replace(second=0) + MINUTE
    assert story.starts["a"][2:] == [first, first + MINUTE]
    await again.stop()


@pytest.mark.contract("DECL-06")
async def test_a_suspended_host_makes_up_once_too(story: Story):
    scheduler = await story.begin(story.task("a"), story.task("daily", "0 0 * * *"))
    story.clock.move_to(NOON + timedelta(days=3))  # no step in between
    await story.clock.settle()
    assert story.starts["a"] == [NOON, NOON + timedelta(days=3)]
    assert story.starts["daily"] == [NOON + timedelta(days=3)]
    await story.clock.advance(minutes=1)
    assert len(story.starts["a"]) == 3
    await scheduler.stop()


@pytest.mark.contract("DECL-06", "DECL-07")
async def test_a_registered_task_that_never_ran_gets_its_one_make_up_run(story: Story):
    task = story.task("a", "0 18 * * *")
    await (await story.begin(task)).stop()
    await story.clock.advance(days=3)
    scheduler = await story.begin(task)
    await story.clock.advance(hours=1)
    await scheduler.stop()
    assert story.starts["a"] == [NOON + timedelta(days=3)]


@pytest.mark.contract("DECL-07", "DECL-36")
@pytest.mark.parametrize(
    ("old", "new", "away", "expected"),
    [
        ("0 12 * * *", "30 12 * * *", {"minutes": 20}, []),
        ("0 12 * * *", "30 12 * * *", {"minutes": 40}, ["12:40:30"]),
        ("0 12 * * *", "* * * * *", {"minutes": 5}, ["12:05:30"]),
        ("0 12 * * *", "* * * * *", {"seconds": 10}, []),  # this minute's was attempted
        ("* * * * *", "0 11 * * *", {"hours": 2}, []),  # the old one's are not missed by the new
        ("* * * * *", "0 12 * * *", {"hours": 2}, []),  # the attempt was for 12:00
        ("* * * * *", "1 12 * * *", {"hours": 2}, ["14:00:30"]),
        ("0 12 * * *", "0 0 29 2 *", {"hours": 2}, []),
        ("0 12 * * *", "0\t12 * * *", {"hours": 2}, []),  # another text, and the same times
    ],
)
@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "crashed"])
async def test_a_changed_expression_judges_what_was_missed_since_the_last_attempt(
    old: str, new: str, away: dict[str, float], expected: list[str], stopped: bool, story: Story
):
    scheduler = await story.begin(story.task("a", old))
    await (scheduler.stop() if stopped else story.crash(scheduler))
    await story.clock.advance(**away)
    again = await story.begin(story.task("a", new))
    assert story.counts() == {"overridden": 1}
    assert story.starts["a"][1:] == at(*expected)
    count = len(story.starts["a"])
    await again.stop()
    last = await story.begin(story.task("a", new))  # and that is that
    assert len(story.starts["a"]) == count
    await last.stop()


@pytest.mark.contract("DECL-07", "DECL-06")
@pytest.mark.parametrize(
    ("new", "expected"), [("30 12 * * *", ["13:00:30"]), ("30 11 * * *", []), ("0 12 * * *", [])]
)
async def test_a_changed_expression_of_a_task_that_never_ran_judges_since_it_was_registered(
    new: str, expected: list[str], story: Story
):
    await (await story.begin(story.task("a", "0 18 * * *"))).stop()
    await story.clock.advance(hours=1)
    await (await story.begin(story.task("a", new))).stop()
    assert story.starts["a"] == at(*expected)


@pytest.mark.contract("DECL-07", "DECL-36")
async def test_a_task_that_was_forgotten_and_registered_anew_missed_nothing_before(story: Story):
    await (await story.begin(story.task("a"))).stop()
    await (await story.begin()).stop()
    await story.clock.advance(hours=2)
    await (await story.begin(story.task("a", "0 18 * * *"))).stop()
    assert story.counts() == {"new": 1}
    await story.clock.advance(minutes=1)
    await (await story.begin(story.task("a", "0 13 * * *"))).stop()  # it was not registered at 13:00
    assert story.starts["a"] == [NOON]


@pytest.mark.contract("DECL-07", "DECL-16")
async def test_the_last_attempt_is_known_however_long_ago_it_was(tmp_path: Path):
    story = Story(tmp_path, datetime(2025, 12, 30, tzinfo=UTC))
    scheduler = await story.begin(story.task("a", "0 0 1 1 *"))
    await story.clock.advance(days=2 + 91)  # longer than the ledger keeps runs
    await scheduler.stop()
    assert story.starts["a"] == [datetime(2026, 1, 1, tzinfo=UTC)]
    again = await story.begin(story.task("a", "0 0 31 12 *"))  # before the last attempt
    await again.stop()
    assert len(story.starts["a"]) == 1


@pytest.mark.contract("DECL-10")
@pytest.mark.parametrize("back", [timedelta(seconds=45), timedelta(minutes=10), timedelta(days=2)])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_clock_that_is_set_back_runs_nothing_again(back: timedelta, restarted: bool, story: Story):
    tasks = [story.task("a"), story.task("b", "0,5 * * * *")]
    scheduler = await story.begin(*tasks)
    await story.clock.advance(minutes=5)
    assert len(story.starts["a"]) == 6
    story.clock.set_back(seconds=back.total_seconds())
    if restarted:
        await scheduler.stop()
        scheduler = await story.begin(*tasks)
    await story.clock.advance(seconds=back.total_seconds())  # to 12:05:30 again
    assert len(story.starts["a"]) == 6
    assert len(story.starts["b"]) == 2
    await story.clock.advance(minutes=2)
    assert story.starts["a"][6:] == at("12:06:00", "12:07:00")
    await scheduler.stop()


@pytest.mark.contract("DECL-10")
async def test_a_clock_that_is_set_back_holds_up_no_retry_for_longer_than_that(story: Story):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=5)))
    story.clock.set_back(minutes=2)
    await story.clock.advance(minutes=7)
    assert story.starts["a"] == at("12:00:30", "12:05:30")
    await scheduler.stop()


@pytest.mark.contract("DECL-10", "DECL-07")
async def test_a_new_expression_on_a_clock_set_back_runs_nothing_at_or_before_the_last_attempt(
    story: Story,
):
    story.raises["a"] = RuntimeError
    scheduler = await story.begin(story.task("a", "0 12 * * *", timedelta(minutes=5)))
    await story.clock.advance(minutes=4)
    del story.raises["a"]
    await story.clock.advance(minutes=1)
    await scheduler.stop()
    assert story.starts["a"] == at("12:00:30", "12:05:30")
    story.clock.set_back(minutes=10)
    again = await story.begin(story.task("a", "3,7 12 * * *"))
    await story.clock.advance(minutes=15)
    await again.stop()
    assert story.starts["a"][2:] == at("12:07:00")


ZONES = [  # where clocks change, and on which days: forward, back
    ("America/New_York", datetime(2026, 3, 8), datetime(2026, 11, 1)),
    ("Europe/London", datetime(2026, 3, 29), datetime(2026, 10, 25)),
    ("Europe/Berlin", datetime(2026, 3, 29), datetime(2026, 10, 25)),
    ("Australia/Lord_Howe", datetime(2026, 10, 4), datetime(2026, 4, 5)),
    ("Australia/Sydney", datetime(2026, 10, 4), datetime(2026, 4, 5)),
    ("America/Santiago", datetime(2026, 9, 6), datetime(2026, 4, 5)),
    ("Africa/Cairo", datetime(2026, 4, 24), datetime(2026, 10, 30)),
    ("Asia/Beirut", datetime(2026, 3, 29), datetime(2026, 10, 25)),
    ("America/Havana", datetime(2025, 3, 9), datetime(2025, 11, 2)),
    ("America/St_Johns", datetime(2026, 3, 8), datetime(2026, 11, 1)),
    ("Pacific/Chatham", datetime(2026, 9, 27), datetime(2026, 4, 5)),
    ("Atlantic/Azores", datetime(2026, 3, 29), datetime(2026, 10, 25)),
    ("Pacific/Apia", datetime(2011, 12, 30), datetime(2011, 4, 2)),  # a day that was not
]
CHANGES = [(zone, day) for zone, *days in ZONES for day in days]
CRONS = ["0,10,30,45 0-3,23 * * *", "30 2 * * *", "0 0 * * *", "15 1-2 * * *", "59 23 * * *"]


def matches(cron: str, local: datetime) -> bool:
    """Whether a minute matches: only what the expressions here need."""
    minute, hour, *_ = cron.split()
    return _within(minute, local.minute) and _within(hour, local.hour)


def _within(field: str, value: int) -> bool:
    for part in field.split(","):
        low, _, high = part.partition("-")
        if int(low) <= value <= int(high or low):
            return True
    return False


def walk(cron: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
    """All minutes between two instants that match, one after the other, by the standard library."""
    found, moment = [], after.replace(second=0, microsecond=0) + MINUTE
    while moment <= until:
        if matches(cron, moment.astimezone(zoneinfo(zone))):
            found.append(moment)
        moment += MINUTE
    return found


def around(zone: str, day: datetime) -> tuple[datetime, datetime]:
    """The night to a day in a zone, from 22:00 to 05:00, as instants: the tasks run in between."""
    midnight = day.replace(tzinfo=zoneinfo(zone))
    return (midnight - timedelta(hours=2)).astimezone(UTC), (midnight + timedelta(hours=5)).astimezone(UTC)


def tasks_of(story: Story) -> list[Registered]:
    return [story.task(cron, cron) for cron in CRONS]


@pytest.mark.contract("DECL-05", "DECL-25")
@pytest.mark.parametrize(("zone", "day"), CHANGES, ids=lambda each: str(each)[:16])
async def test_minutes_that_are_skipped_never_were_and_minutes_that_come_twice_run_twice(
    zone: str, day: datetime, tmp_path: Path
):
    begin, end = around(zone, day)
    offsets = {each.astimezone(zoneinfo(zone)).utcoffset() for each in (begin, end)}
    assert len(offsets) == 2  # a change there was
    story = Story(tmp_path, begin + timedelta(seconds=1), zone)
    scheduler = await story.begin(*tasks_of(story))
    await story.clock.advance(seconds=(end - story.clock.now()).total_seconds())
    await scheduler.stop()
    for cron in CRONS:
        assert story.starts[cron] == walk(cron, zone, begin, end), cron


@pytest.mark.contract("DECL-05", "DECL-06")
@pytest.mark.parametrize(("zone", "day"), CHANGES, ids=lambda each: str(each)[:16])
async def test_a_change_while_the_process_is_away_is_made_up_for_by_one_run_if_anything_was_missed(
    zone: str, day: datetime, tmp_path: Path
):
    begin, end = around(zone, day)
    for number, hours in enumerate((2.75, 3.25, 5.1)):  # it comes back somewhere around the change
        story = Story(tmp_path / f"{number}", begin + timedelta(seconds=1), zone)
        story.file.parent.mkdir()
        scheduler = await story.begin(*tasks_of(story))
        await story.clock.advance(hours=0.5)
        await scheduler.stop()
        down = story.clock.now()
        await story.clock.advance(hours=hours - 0.5)
        up = story.clock.now()
        scheduler = await story.begin(*tasks_of(story))
        await story.clock.advance(seconds=(end - up).total_seconds())
        await scheduler.stop()
        for cron in CRONS:
            missed = walk(cron, zone, down, up)
            expected = walk(cron, zone, begin, down) + [up] * bool(missed) + walk(cron, zone, up, end)
            assert story.starts[cron] == expected, cron


@pytest.mark.contract("DECL-05", "DECL-07")
@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2026-11-01T05:30:10", ["2026-11-01T05:30:10", "2026-11-01T06:30:00"]),  # 01:30 EDT
        ("2026-11-01T05:31:00", ["2026-11-01T06:30:00"]),
        ("2026-11-01T06:29:59", ["2026-11-01T06:30:00"]),
        ("2026-11-01T06:30:10", ["2026-11-01T06:30:10"]),  # 01:30 EST
        ("2026-11-01T06:31:00", []),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_start_within_the_repeated_hour_knows_which_one_it_is(
    start: str, expected: list[str], restarted: bool, tmp_path: Path
):
    story = Story(tmp_path, datetime.fromisoformat(start + "+00:00"), "America/New_York")
    scheduler = await story.begin(story.task("a", "30 1 * * *"))
    if restarted:
        await scheduler.stop()
        scheduler = await story.begin(story.task("a", "30 1 * * *"))
    await story.clock.advance(hours=20)
    await scheduler.stop()
    assert story.starts["a"] == [datetime.fromisoformat(each + "+00:00") for each in expected]


@pytest.mark.contract("DECL-05", "DECL-36")
async def test_a_host_that_moves_to_another_zone_keeps_its_tasks_and_their_history(tmp_path: Path):
    story = Story(tmp_path, NOON, "Europe/Berlin")
    await (await story.begin(story.task("a", "0 13 * * *"))).stop()  # 13:00 is now
    story.timezone = "America/New_York"
    scheduler = await story.begin(story.task("a", "0 13 * * *"))
    assert story.counts() == {"preserved": 1}
    await story.clock.advance(days=1)
    await scheduler.stop()
    assert story.starts["a"] == at("12:00:30", "18:00:00")


@pytest.mark.contract("DECL-39", "DECL-05")
async def test_a_scheduler_in_memory_says_the_same_as_one_in_a_file(tmp_path: Path):
    told = []
    for database in (":memory:", f"sqlite:///{tmp_path / 'horae.db'}"):
        story = Story(tmp_path)
        story.raises["a"] = RuntimeError
        scheduler = Scheduler(
            database=database, clock=story.clock, timezone="Africa/Cairo", listener=story.events.append
        )
        await scheduler.initialize([story.task("a"), ("b", "3 * * * *", story.task("b")[2], DELAY)])
        await story.clock.advance(hours=2)
        await scheduler.stop()
        told.append(story.told())
    assert told[0] == told[1]
