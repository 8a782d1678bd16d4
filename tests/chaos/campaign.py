"""A campaign on one database: does what the plan says, then waits until all is quiet, and gathers what was seen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from horae import App, NewSchedule
from horae.clock import SystemClock
from horae.errors import StoreUnavailableError
from tests.chaos.clock import ShiftedClock
from tests.chaos.evidence import (
    Answer,
    AskedBackfill,
    BackfillRow,
    Disturbance,
    Edit,
    Evidence,
    Place,
    RunRow,
    UnstartedRow,
)
from tests.chaos.fleet import Planned, fleet
from tests.chaos.nodes import Nodes, monotonic
from tests.chaos.plan import (
    EVERYTHING,
    KILL,
    NODES,
    SKEW,
    STOP,
    Fault,
    Operation,
    plan_faults,
    plan_operations,
)
from tests.chaos.store import Database, PostgresDatabase, SqliteDatabase
from tests.support.dice import Dice

T = TypeVar("T")
LEASE = 4000
CONFIG: dict[str, Any] = {
    "lease_ms": LEASE, "housekeeping_ms": 1000, "tick_ms": 500, "drain_ms": 3000, "terminate_ms": 1000,
    "reconcile_ms": 5000, "retention_count": 1_000_000,
}  # fmt: skip
SETTLING = 90.0
"""Seconds that the nodes have, after the last fault, to decide and do what is left."""
EXPLAINED = 400
"""How many slots are asked about at most: twenty for each second."""

PLACES = "SELECT s.id, s.created_at_ms / 1000, d.cursor_ms / 1000 FROM schedule AS s JOIN due AS d ON d.schedule_key = s.key"
CURSOR = "SELECT cursor_ms / 1000 FROM due WHERE schedule_key = '{schedule}'"
RUNS = "SELECT id, schedule_key, nominal_ms / 1000, origin, overlap, status, attempt, fire_ms FROM run ORDER BY number"
PASSED = (
    "SELECT schedule_key, start_ms / 1000, end_ms / 1000, count, reason FROM unstarted_range ORDER BY number"
)
BACKFILLS = "SELECT id, schedule_key, status FROM backfill ORDER BY number"
UNSETTLED = """
    SELECT count(*) FROM run WHERE status IN ('pending', 'retrying', 'starting', 'running') AND nominal_ms / 1000 <= {cutoff}
    UNION ALL SELECT count(*) FROM backfill WHERE status = 'open'
"""


class Settings(NamedTuple):
    """What was asked for."""

    store: str
    seconds: float
    seed: int
    folder: Path


async def run_campaign(settings: Settings) -> Evidence:
    """All of it: nodes start, things go wrong, all becomes quiet, and what was seen is gathered."""
    async with _database(settings) as database:
        campaign = Campaign(settings, database)
        try:
            return await campaign.run()
        finally:
            campaign.nodes.kill_all()


@contextlib.asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[Database]:
    database: Database
    if settings.store == "postgresql":
        database = await PostgresDatabase.open()
    else:
        database = SqliteDatabase(settings.folder / "horae.db")
    try:
        yield database
    finally:
        await database.close()


class Campaign:
    """Nodes, an operator, and a plan that disturbs both."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._schedules = fleet()
        self.nodes = Nodes(settings.folder, database, NODES, CONFIG)
        clock = settings.folder / ("clock" if database.one_clock else "clock-operator")
        self.app = App(database.address(None), clock=ShiftedClock(clock))
        self.app.action("work")(print)  # it is never called here
        self._disturbances: list[Disturbance] = []
        self.edits: list[Edit] = []
        self._triggers: list[str] = []
        self._backfills: list[AskedBackfill] = []
        self._clock_set_back = 0
        """How often the one clock of all nodes was set back."""
        self._clock_is_back = False
        self._places = [asyncio.Lock() for _ in range(NODES)]

    async def run(self) -> Evidence:
        seed, store, seconds = self._settings.seed, self._settings.store, self._settings.seconds
        faults = plan_faults(seed, store, seconds, LEASE / 1000)
        operations = plan_operations(seed, store, seconds, self._schedules, faults)
        await self.app.open()
        try:
            await self.create(self._schedules)
            for place in range(NODES):
                self.nodes.start(place)
            await self._disturb(faults, operations)
            cutoff = unix_second()
            await self._settle(cutoff)
            answers = await self._ask(cutoff)
            evidence = await self._gather(cutoff, answers)
        finally:
            await self.app.close()
        (self._settings.folder / "evidence.json").write_bytes(msgspec.json.encode(evidence))
        return evidence

    async def create(self, schedules: Iterable[Planned]) -> None:
        await self.app.schedules.create_many(
            NewSchedule(
                id=each.id, spec=each.rhythm.spec(each.kind.jitter), action="work",
                policies=each.kind.policies, input=each.input,
            )
            for each in schedules
        )  # fmt: skip

    async def _disturb(self, faults: list[Fault], operations: list[Operation]) -> None:
        """Let everything happen at its time."""
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(_later(fault.at, self.fault, fault))
            for operation in operations:
                group.create_task(_later(operation.at, self.operate, operation))
            watching = group.create_task(self._watch())
            await asyncio.sleep(self._settings.seconds)
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self.nodes.revive()

    async def fault(self, fault: Fault) -> None:
        name = "" if fault.node == EVERYTHING else self.nodes.name(fault.node)
        began = monotonic()
        if fault.kind in {KILL, STOP}:
            async with self._places[fault.node]:
                began = await self._disturb_process(fault)
        elif fault.kind == SKEW:
            await self._skew(fault)
        else:
            async with self._database.disturbed(fault):
                await asyncio.sleep(fault.lasts)
        self._disturbances.append(Disturbance(fault.kind, fault.node, name, began, monotonic()))

    async def _disturb_process(self, fault: Fault) -> int:
        began = monotonic()
        if fault.kind == KILL:
            await self.nodes.kill(fault.node)
            await asyncio.sleep(fault.lasts)
            self.nodes.start(fault.node)
        else:
            self.nodes.stop(fault.node)
            await asyncio.sleep(fault.lasts)
            self.nodes.go_on(fault.node)
        return began

    async def _skew(self, fault: Fault) -> None:
        """Set the clock of a process, or of all of them if they have one, and then right again."""
        clock = self.nodes.clocks[max(fault.node, 0)]
        if self._database.one_clock:
            self._clock_set_back += 1
            self._clock_is_back = True
        clock.set_offset(fault.amount)
        await asyncio.sleep(fault.lasts)
        clock.set_offset(0)
        self._clock_is_back = False

    async def operate(self, operation: Operation) -> None:
        act = {
            "pause": self._pause, "edit": self._edit, "trigger": self._trigger, "backfill": self._backfill,
        }[operation.kind]  # fmt: skip
        await act(operation)

    async def _pause(self, operation: Operation) -> None:
        await insist(lambda: self.app.schedules.pause(operation.schedule))
        await asyncio.sleep(operation.lasts)
        await insist(lambda: self.app.schedules.resume(operation.schedule))

    async def _edit(self, operation: Operation) -> None:
        assert operation.rhythm is not None
        (schedule,) = (each for each in self._schedules if each.id == operation.schedule)
        spec = operation.rhythm.spec(schedule.kind.jitter)
        was_back, set_back = self._clock_is_back, self._clock_set_back
        asked = unix_second()
        decided = await self._decided_until(operation.schedule) if self._database.one_clock else asked
        await insist(lambda: self.app.schedules.update(operation.schedule, spec))
        if was_back or self._clock_set_back > set_back:
            # By a clock that was set back the edit comes before every slot that was not decided yet.
            asked = min(asked, decided)
        self.edits.append(Edit(operation.schedule, operation.rhythm, asked, unix_second()))

    async def _decided_until(self, schedule_id: str) -> int:
        ((cursor,),) = await self._database.rows(CURSOR.format(schedule=schedule_id))
        return int(cursor)

    async def _trigger(self, operation: Operation) -> None:
        with contextlib.suppress(StoreUnavailableError):  # then it is not known whether there is one
            run_id = await self.app.schedules.trigger(operation.schedule, overlap=operation.overlap)
            self._triggers.append(run_id)

    async def _backfill(self, operation: Operation) -> None:
        last = unix_second()
        first = last - int(operation.lasts * 10)
        with contextlib.suppress(StoreUnavailableError):
            backfill = await self.app.backfills.start(
                operation.schedule, datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC),
                overlap=operation.overlap,
            )  # fmt: skip
            self._backfills.append(AskedBackfill(backfill.id, operation.schedule, first, last))

    async def _settle(self, cutoff: int) -> None:
        """Wait until all that fell due is decided and done, or the time for it is up; the checker says what is left."""
        until = monotonic() + SETTLING * 1000
        while monotonic() < until:
            await asyncio.sleep(0.5)
            self.nodes.revive()
            if await self._settled(cutoff):
                break
        await self.nodes.end(SETTLING)

    async def _settled(self, cutoff: int) -> bool:
        left = await self._database.rows(UNSETTLED.format(cutoff=cutoff))
        rhythms = {each.id: each.rhythm for each in self._schedules}
        rhythms |= {edit.schedule: edit.rhythm for edit in self.edits}
        cursors = await self._database.rows("SELECT schedule_key, cursor_ms / 1000 FROM due")
        return not any(count for (count,) in left) and not any(
            rhythms[schedule].slots(cursor, cutoff) for schedule, cursor in cursors
        )

    async def _ask(self, cutoff: int) -> list[Answer]:
        """Ask of some slots what became of them."""
        dice = Dice(f"{self._settings.seed}:{self._settings.store}:answers")
        answers = []
        begin = cutoff - int(self._settings.seconds)
        for _ in range(min(EXPLAINED, int(20 * self._settings.seconds))):
            schedule = dice.choice(self._schedules)
            second = begin + 2 + dice.below(max(cutoff - begin - 2, 1))
            moment = datetime.fromtimestamp(second, UTC)
            found = await insist(partial(self.app.why.explain, schedule.id, moment))
            answers.append(Answer(schedule.id, second, str(found.verdict)))
        return answers

    async def _gather(self, cutoff: int, answers: list[Answer]) -> Evidence:
        return Evidence(
            lease=LEASE,
            cutoff=cutoff,
            wall=int(SystemClock().now().timestamp() * 1000) - monotonic(),
            places=[Place(*row) for row in await self._database.rows(PLACES)],
            runs=[RunRow(*row) for row in await self._database.rows(RUNS)],
            unstarted=[UnstartedRow(*row) for row in await self._database.rows(PASSED)],
            backfills=[BackfillRow(*row) for row in await self._database.rows(BACKFILLS)],
            lines=self.nodes.lines(),
            disturbances=self._disturbances,
            edits=self.edits,
            triggers=self._triggers,
            asked_backfills=self._backfills,
            answers=answers,
            connections=self._database.connections(),
            ended_by_itself=self.nodes.ended_by_itself,
            errors=self.nodes.errors(),
        )


def unix_second() -> int:
    return int(SystemClock().now().timestamp())


async def _later(seconds: float, act: Callable[[T], Awaitable[None]], what: T) -> None:
    await asyncio.sleep(seconds)
    await act(what)


async def insist(act: Callable[[], Awaitable[T]]) -> T:
    """Do something that may be done twice, until the database has answered."""
    while True:
        try:
            return await act()
        except StoreUnavailableError:
            await asyncio.sleep(0.2)
