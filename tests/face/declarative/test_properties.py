"""Histories of any kind, told by the scheduler and by a model of a page, second by second: they must say the same.

The model knows the contract and nothing else: what is owed when (a slot, a retry, an orphan, the first minute), that one
run serves all that is due, and what a crash, a stop, and other registrations change.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horae import Scheduler
from tests.face.declarative import TASK_EVENTS, Story
from tests.spec.oracle import zoneinfo
from tests.support.dice import Dice

EXAMPLES = max(settings().max_examples // 4, 1)
NAMES = ("a", "b", "c")
CRONS: dict[str, tuple[set[int], set[int]]] = {  # minutes and hours
    "* * * * *": (set(range(60)), set(range(24))),
    "0,7,8,30 * * * *": ({0, 7, 8, 30}, set(range(24))),
    "30 1-2 * * *": ({30}, {1, 2}),
    "5 0-3 * * *": ({5}, {0, 1, 2, 3}),
    "0 0 * * *": ({0}, {0}),
}
DELAYS = (7, 45, 90, 600)
TAKES = (0, 0, 5, 59, 60, 61, 200)
PLACES = {  # a while before clocks change, or do not
    "America/New_York": datetime(2026, 11, 1, 5, 20, 40, tzinfo=UTC),
    "Europe/London": datetime(2026, 3, 29, 0, 10, 0, tzinfo=UTC),
    "UTC": datetime(2026, 2, 28, 23, 50, 59, tzinfo=UTC),
}
SECOND = timedelta(seconds=1)
Happening = tuple[str, int, int]


@dataclass
class Task:
    """What the contract keeps of a task."""

    cron: str
    delay: int
    served: datetime
    created: datetime
    attempt: datetime | None = None
    retry: datetime | None = None
    until: datetime | None = None
    """When the callback that runs will end."""
    orphan: bool = False


class Model:
    """A scheduler as the contract has it."""

    def __init__(self, now: datetime, zone: str) -> None:
        self.now, self.zone = now, zone
        self.tasks: dict[str, Task] = {}
        self.takes: dict[str, int] = {}
        self.failing: set[str] = set()
        self.told: dict[str, list[str]] = defaultdict(list)
        self.up = False
        self.starting = False
        self.doubtful = False
        """A run ended as a minute began, and one before it waits: see the test of just that."""

    def tell(self, name: str, word: str) -> None:
        self.told[name].append(f"{word} {self.now:%d %H:%M:%S}")

    def begin(self, wanted: dict[str, tuple[str, int]]) -> None:
        for name in set(self.tasks) - set(wanted):
            del self.tasks[name]
        for name, (cron, delay) in wanted.items():
            task = self.tasks.get(name)
            if task is None:
                self.tasks[name] = Task(cron, delay, self.now.replace(second=0) - SECOND, self.now)
                continue
            if task.cron != cron:
                task.served = task.created if task.attempt is None else task.attempt
            task.cron, task.delay = cron, delay
        self.up = self.starting = True
        self.act()

    def crash(self) -> None:
        self.up = self.starting = False
        for task in self.tasks.values():
            task.orphan = task.orphan or task.until is not None
            task.until = None

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += SECOND
            if self.up:
                self.act()

    def act(self) -> None:
        for name, task in self.tasks.items():
            ended = task.until is not None and self.now >= task.until
            self.end(name, task)
            if self.starting and task.until is None:
                self.doubtful = self.doubtful or (ended and self.now.second == 0 and self.owes_two(task))
                self.start(name, task)
                self.end(name, task)

    def start(self, name: str, task: Task) -> None:
        if not task.orphan and (task.retry is None or self.now < task.retry):
            if not self.is_due(task):
                return
            if task.retry is not None:
                self.tell(name, "preempt")
            task.retry = None
        self.tell(name, "start" if task.retry is None else "retry")
        task.orphan, task.retry = False, None
        task.attempt = task.served = self.now
        task.until = self.now + timedelta(seconds=self.takes.get(name, 0))

    def end(self, name: str, task: Task) -> None:
        if task.until is None or self.now < task.until:
            return
        task.until = None
        if name in self.failing:
            task.retry = self.now + timedelta(seconds=task.delay)
        self.tell(name, "fail" if name in self.failing else "end")

    def owed(self, task: Task) -> Iterator[datetime]:
        """The minutes that match since the last that was served, the latest first."""
        minutes, hours = CRONS[task.cron]
        minute = self.now.replace(second=0)
        while minute > task.served:
            local = minute.astimezone(zoneinfo(self.zone)) if self.zone != "UTC" else minute
            if local.minute in minutes and local.hour in hours:
                yield minute
            minute -= timedelta(minutes=1)

    def owes_two(self, task: Task) -> bool:
        found = list(islice(self.owed(task), 2))
        return len(found) == 2 and found[0] == self.now

    def is_due(self, task: Task) -> bool:
        if any(self.owed(task)):
            return True
        # Nothing up to here is owed: no need to check it again.
        task.served = max(task.served, self.now.replace(second=0))
        return False


class History:
    """What happens, to the scheduler and to the model alike."""

    def __init__(self, folder: Path, zone: str) -> None:
        self.story = Story(folder, PLACES[zone], zone)
        self.model = Model(PLACES[zone], zone)
        self.scheduler: Scheduler | None = None
        self.wanted: dict[str, tuple[str, int]] = {}

    async def happen(self, what: str, which: int, how: int) -> None:
        await getattr(self, what)(which, how)
        if not self.model.doubtful:
            self.compare()

    async def go_on(self, which: int, how: int) -> None:
        await self.advance((1, 20, 61, 137, 600)[how % 5] + which)

    async def stay_away(self, which: int, how: int) -> None:
        if self.scheduler is None:
            await self.advance((30, 600, 5000)[how % 3] + which)

    async def take(self, which: int, how: int) -> None:
        self.story.takes[NAMES[which]] = self.model.takes[NAMES[which]] = TAKES[how % len(TAKES)]

    async def fail(self, which: int, how: int) -> None:
        name = NAMES[which]
        if how % 2:
            self.story.raises[name] = (RuntimeError, KeyboardInterrupt, asyncio.CancelledError)[which]
            self.model.failing.add(name)
        else:
            self.story.raises.pop(name, None)
            self.model.failing.discard(name)

    async def register(self, which: int, how: int) -> None:
        """Another configuration for the next start."""
        if self.scheduler is None:
            crons = list(CRONS)
            self.wanted[NAMES[which]] = (crons[how % len(crons)], DELAYS[how % len(DELAYS)])

    async def leave_out(self, which: int, how: int) -> None:
        if self.scheduler is None and how % 4 == 0:
            self.wanted.pop(NAMES[which], ("", 0))

    async def begin(self, which: int, how: int) -> None:
        if self.scheduler is None:
            tasks = [
                self.story.task(name, cron, timedelta(seconds=delay))
                for name, (cron, delay) in self.wanted.items()
            ]
            self.scheduler = await self.story.begin(*(tasks if how % 2 else reversed(tasks)))
            self.model.begin(self.wanted)

    async def crash(self, which: int, how: int) -> None:
        if self.scheduler is not None:
            await self.story.crash(self.scheduler)
            self.scheduler = None
            self.model.crash()

    async def stop(self, which: int, how: int) -> None:
        if self.scheduler is None:
            return
        tasks = self.model.tasks
        running = [name for name in NAMES if name in tasks and tasks[name].until is not None]
        if len(running) > 1:  # one that fails while another is waited for: see the test of just that
            for name in running:
                await self.fail(NAMES.index(name), 0)
        stopping = [asyncio.ensure_future(self.scheduler.stop()) for _ in range(1 + how % 2)]
        self.model.starting = False
        await self.story.clock.settle()
        while not all(each.done() for each in stopping):
            await self.advance(20)
        self.model.up = False
        self.scheduler = None
        assert sum(self.story.running.values()) == 0
        assert self.story.sql("SELECT count(*) FROM run WHERE status IN ('running', 'starting')") == [(0,)]

    async def advance(self, seconds: int) -> None:
        await self.story.clock.advance(seconds=seconds)
        self.model.pass_time(seconds)

    def told(self) -> dict[str, list[str]]:
        told: dict[str, list[str]] = defaultdict(list)
        for event in self.story.events:
            if event.task is not None:
                told[event.task].append(f"{TASK_EVENTS[event.name]} {event.time:%d %H:%M:%S}")
        return told

    def compare(self) -> None:
        assert self.told() == self.model.told
        assert self.story.overlapped == set()


async def tell(zone: str, events: list[Happening]) -> dict[str, list[str]]:
    """A history, compared after each event; what the scheduler told of it."""
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder), zone)
        try:
            for number in range(3):
                await history.register(number, number)
            for event in events:
                await history.happen(*event)
                if history.model.doubtful:
                    break
        finally:
            with contextlib.suppress(AssertionError):
                await history.crash(0, 0)
        return history.told()


KINDS = (
    "go_on", "go_on", "go_on", "stay_away", "take", "fail", "fail", "register", "register", "leave_out", "begin", "begin",
    "begin", "crash", "stop",
)  # fmt: skip
EVENTS: Any = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.integers(0, 11)), min_size=6, max_size=30
)


def seeded(seed: int) -> tuple[str, list[Happening]]:
    """A history that follows from a number."""
    dice = Dice(seed)
    events: list[Happening] = [
        ("fail", dice.below(3), 1),
        ("take", dice.below(3), dice.below(7)),
        ("begin", 0, 0),
    ]
    for _ in range(40):
        events.append((dice.choice(KINDS), dice.below(3), dice.below(12)))
        if events[-1][0] in {"crash", "stop"}:  # what follows is what matters
            events += [
                ("stay_away", 0, dice.below(2)),
                ("leave_out", dice.below(3), dice.below(8)),
                ("register", dice.below(3), dice.below(12)),
                ("begin", 0, 0),
            ]
    return dice.choice(sorted(PLACES)), events


@pytest.mark.contract(
    "DECL-06", "DECL-07", "DECL-08", "DECL-09", "DECL-14", "DECL-17", "DECL-18", "DECL-36", "DECL-40"
)
def test_many_histories_agree_with_the_model_of_the_contract():
    words: Counter[str] = Counter()
    for seed in range(EXAMPLES):
        zone, events = seeded(seed)
        try:
            told = asyncio.run(tell(zone, events))
        except AssertionError as error:
            error.add_note(f"the seed is {seed}")
            raise
        words.update(line.split()[0] for lines in told.values() for line in lines)
    assert set(words) == set(TASK_EVENTS.values())  # everything that can happen did
    assert min(words.values()) > EXAMPLES // 4


@pytest.mark.contract(
    "DECL-06", "DECL-07", "DECL-08", "DECL-09", "DECL-14", "DECL-17", "DECL-18", "DECL-36", "DECL-40"
)
@given(zone=st.sampled_from(sorted(PLACES)), events=EVENTS)
@settings(max_examples=EXAMPLES)
def test_every_history_agrees_with_the_model_of_the_contract(zone: str, events: list[Happening]):
    asyncio.run(tell(zone, [("begin", 0, 0), *events]))


@pytest.mark.contract("DECL-39")
@given(zone=st.sampled_from(sorted(PLACES)), events=EVENTS)
@settings(max_examples=max(EXAMPLES // 6, 1))
def test_the_same_history_gives_the_same_events(zone: str, events: list[Happening]):
    events = [("begin", 0, 0), *events]
    assert asyncio.run(tell(zone, events)) == asyncio.run(tell(zone, events))


@pytest.mark.contract("DECL-10")
@given(
    steps=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400), st.booleans()), min_size=1, max_size=8)
)
@settings(max_examples=EXAMPLES)
def test_however_a_clock_is_set_back_no_minute_runs_twice(steps: list[tuple[int, int, bool]]):
    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            story = Story(Path(folder))
            tasks = [story.task("a"), story.task("b", "0,3,5 * * * *")]
            scheduler = await story.begin(*tasks)
            for forward, back, restart in steps:
                await story.clock.advance(seconds=forward)
                story.clock.set_back(seconds=back)
                if restart:
                    await scheduler.stop()
                    scheduler = await story.begin(*tasks)
                await story.clock.settle()
            await scheduler.stop()
            for times in story.starts.values():
                minutes = [each.replace(second=0, microsecond=0) for each in times]
                assert minutes == sorted(set(minutes))

    asyncio.run(live())
