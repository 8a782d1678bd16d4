"""A seeded simulator: the real engine on several nodes, in a world where everything goes wrong that can.

Everything follows from the seed: what the schedules are, what happens to them, which node steps when, at which call of the store
one dies or loses its connection, whose clock is off. It runs on SQLite in memory and in line, so that a seed replays exactly.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from horae.app.backfills import Backfills
from horae.app.flows import Flows
from horae.app.owner_scope import OwnerScope
from horae.app.runs import Runs
from horae.app.schedules import Schedules
from horae.config import Config
from horae.engine.checkpoint_writer import CheckpointWriter
from horae.engine.engine import Engine
from horae.engine.external_worker_reports import keep_token
from horae.engine.worker import Worker
from horae.errors import ClockOffError, HoraeError, StoreUnavailableError
from horae.executor.action_registry import Executors
from horae.executor.attempt_context import Context
from horae.executor.function_executor import FunctionExecutor
from horae.model import (
    Action,
    CatchUp,
    CatchUpPolicy,
    Denial,
    Node,
    OnResume,
    Overlap,
    Policies,
    RetryPolicy,
    Schedule,
    ScheduleKey,
    Timeouts,
    WhenFull,
)
from horae.store.port import HasClaims, Store, Transaction
from horae.store.row_mapping import Row, Table
from horae.store.sqlite import SqliteStore
from horae.testing import VirtualClock
from tests.support.dice import Dice

START = datetime(2026, 3, 1, tzinfo=UTC)
LEASE = 60.0
TICK = 20.0
HOUSE = 17.0
T = TypeVar("T")

SPECS: list[dict[str, Any]] = [
    {"crons": ["* * * * *"]},
    {"crons": ["*/3 * * * *"], "jitter": "2m"},
    {"intervals": [{"every": "40s"}], "jitter": {"span": "15s", "centred": True}},
    {"crons": ["* * * * *"], "exclude": [{"minute": "*/2", "hour": "*"}]},
    {"crons": ["* * * * *"], "jitter": "50s"},
    {"crons": ["*/10 0 1 3 *"], "timezone": "UTC", "end_at": "2026-03-01T00:31:00Z"},
]


class Crash(Exception):  # noqa: N818 - it is no error, it is fate
    """The node is gone."""


class SharedStore(SqliteStore):
    """The one database, with leases by the world's clock, as PostgreSQL has them by its own."""

    lease = LEASE

    def __init__(self, world: World) -> None:
        super().__init__(":memory:", inline=True)
        self._world = world
        self.deadlines: dict[int, float] = {}

    async def register_node(self, node: Node) -> bool:
        if node.epoch not in self.deadlines:
            self.deadlines[node.epoch] = self._world.seconds() + LEASE
        return await super().register_node(node)

    async def renew(self, epoch: int) -> bool:
        if self.deadlines.get(epoch, 0) <= self._world.seconds():
            return False
        self.deadlines[epoch] = self._world.seconds() + LEASE
        return True

    async def nodes(self) -> list[Node]:
        found = await super().nodes()
        return [
            msgspec.structs.replace(each, alive=self.deadlines[each.epoch] > self._world.seconds())
            for each in found
        ]

    async def time(self) -> int | None:
        return self._world.now()


class Line(Store):
    """A node's connection to the database: it may be lost at any call, and the node may die at any."""

    lease = LEASE

    def __init__(self, store: SharedStore, parallel_batches: int) -> None:
        self._store = store
        self.parallel_batches = parallel_batches
        # Batches are full now and then; those of nodes with parallel batches always are, else they would decide none in parallel.
        self.batch = 7 if parallel_batches == 1 else 1
        self.calls_left: int | None = None
        self.fate: type[Exception] = Crash
        self.crashed = False
        self.is_cut: Callable[[], bool] = lambda: False
        self.on_crash: Callable[[], None] = lambda: None

    def call(self) -> None:
        if self.crashed:
            raise Crash
        if self.is_cut():
            raise StoreUnavailableError("cut")
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                self.calls_left = None
                if self.fate is StoreUnavailableError:
                    raise StoreUnavailableError("cut")
                self.crashed = True
                self.on_crash()
                raise Crash

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        self.call()
        async with self._store.transaction() as transaction:
            over_line = LineTransaction(self, transaction)
            yield over_line
            transaction.on_commit = over_line.on_commit
            self.call()
        self.call()  # the commit went through, and its answer was lost

    async def open(self, wake: object, *, setup: bool = True) -> None: ...
    async def close(self) -> None: ...

    async def register_node(self, node: Node) -> bool:
        self.call()
        return await self._store.register_node(node)

    async def renew(self, epoch: int) -> bool:
        self.call()
        return await self._store.renew(epoch)

    async def nodes(self) -> list[Node]:
        self.call()
        return await self._store.nodes()

    async def change_mark(self) -> object:
        self.call()
        return await self._store.change_mark()

    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        self.call()
        await self._store.deregister(epochs, has_claims)

    async def time(self) -> int | None:
        return await self._store.time()


class LineTransaction(Transaction):
    """A transaction over a line; a node whose clock is off acts on nothing it reads."""

    def __init__(self, line: Line, transaction: Transaction) -> None:
        self._line = line
        self._transaction = transaction

    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:
        self._line.call()
        return await self._transaction.rows(name, **values)

    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:
        self._line.call()
        return await self._transaction.execute(text, **values)

    async def write(self, name: str, rows: list[dict[str, Any]], /, **shared: Any) -> int:
        self._line.call()
        return await self._transaction.write(name, rows, **shared)

    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        self._line.call()
        await self._transaction.insert(table, values)

    async def lock(self, keys: Collection[ScheduleKey]) -> Collection[ScheduleKey]:
        self._line.call()
        return await self._transaction.lock(keys)

    async def due(self, now: int, limit: int) -> list[Schedule]:
        found = await super().due(now, limit)
        if found:
            await self._check_clock(now, ahead_only=True)
        return found

    async def is_node(self, epoch: int, now: int) -> bool:
        await self._check_clock(now)
        return await super().is_node(epoch, now)

    async def _check_clock(self, now: int, *, ahead_only: bool = False) -> None:
        off = now - (await self._line.time() or 0)
        if off > 1000 or (off < -1000 and not ahead_only):
            raise ClockOffError(off)

    async def notify(self, decider: str = "") -> None:
        """Notifications get lost here: nodes step at their own times."""


class Machine:
    """One process: an engine, its worker, and a clock that may be off."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.skew = 0
        self.offset = 0
        self.line = Line(world.store, world.parallel_batches)
        functions = FunctionExecutor()
        functions.register("work", self.work, admit=world.admit)
        self.worker = Worker(
            Executors(functions),
            lambda: None,
            world.now,
            self.now,
            concurrency=world.concurrency,
            terminate_ms=5000,
        )
        self.worker.keep_token = partial(keep_token, self.line)
        self.worker.save_checkpoints = CheckpointWriter(self.line, self.now).save
        self.engine = Engine(self.line, self.worker, world.clock, world.config)
        self.wake = world.seconds()
        self.house = world.seconds()
        self.joined = False
        self.stalled_until = 0.0
        self.dead = False

    def now(self) -> int:
        return self.world.now() + self.skew + self.offset

    async def set_clock(self) -> None:
        self.offset += (await self.line.time() or 0) - self.now()

    async def work(self, context: Context) -> Any:
        return await self.world.work(self, context)

    async def join(self) -> None:
        await self.set_clock()
        await self.engine.enter(self.now())
        await self.engine.maintain(self.now())

    async def step(self) -> None:
        """Do what a process does when it wakes; whatever happens to it, the simulation continues."""
        world = self.world
        if self.joined:
            self.engine.guard()
        try:
            if not self.joined:
                await self.join()
                self.joined = True
            if self.house <= world.seconds():
                self.house = world.seconds() + HOUSE
                await self.set_clock()
                await self.engine.renew_and_maintain(self.now())
            wake = await self.engine.step(self.now())
        except Crash:
            await self.die()
            return
        except ClockOffError:
            await self.set_clock()
            wake = self.now()
        except StoreUnavailableError:
            wake = self.now() + 1000
        due = TICK if wake is None else min(max(wake - self.now(), 0) / 1000 + 0.0005, TICK)
        self.wake = min(world.seconds() + due, self.house) if self.joined else world.seconds() + due
        if self.joined and self.engine.holds_lease:
            self.wake = min(self.wake, world.seconds() + self.engine.guard())

    async def die(self) -> None:
        """Gone, with everything it was doing."""
        self.dead = True
        tasks = self.worker.tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class World:
    """One database, one true time, some nodes, one schedule of whose life everything is known."""

    def __init__(self, seed: int, parallel_batches: int) -> None:
        self.dice = dice = Dice(seed)
        self.parallel_batches = parallel_batches
        self.clock = VirtualClock(START)
        self.store = SharedStore(self)
        self.concurrency = dice.choice([1000, 1000, 2])
        self.config = Config(tick_ms=1000)
        self.takes = dice.choice([0, 0.5, 30, 100, 700])
        self.failing = dice.choice([0, 0, 2])
        self.refusing = dice.chance(15)
        self.calls: Counter[tuple[str, int]] = Counter()
        self.live: set[tuple[str, str, int]] = set()
        self.most_live = 0
        self.started_without_lease: list[str] = []
        self.running_without_lease: list[str] = []
        self.stalled = False
        self.deleted = False
        self.machines = [self.machine(f"n{number}") for number in range(dice.choice([1, 2, 3]))]
        self.born = len(self.machines)
        self.policies = _policies(dice)
        self.document = dice.choice(SPECS)
        self.remaining_actions: int | None = None
        outside = FunctionExecutor()
        outside.register("work", self._never)
        scope = OwnerScope(
            self.store, self.now, lambda *_: None, executors=Executors(outside), config=Config()
        )
        self.schedules, self.backfills, self.runs = Schedules(scope), Backfills(scope), Runs(scope)
        self.flows = Flows(scope)
        self.asked: list[str] = []

    def machine(self, name: str) -> Machine:
        """A new process."""
        return Machine(self, name)

    async def _never(self, context: Context) -> None: ...

    def now(self) -> int:
        return int(self.clock.now().timestamp() * 1000)

    def seconds(self) -> float:
        return self.clock.now().timestamp()

    def admit(self, action: Action) -> Denial | None:
        """Whether a claimed run may happen."""
        return None

    async def work(self, machine: Machine, context: Context) -> Any:
        """What every run does: note that it was called, take its time, fail now and then."""
        me = (machine.name, context.run_id, context.attempt)
        if self.store.deadlines.get(machine.engine.epoch, 0) <= self.seconds():
            self.started_without_lease.append(context.run_id)
        self.calls[context.run_id, context.attempt] += 1
        self.live.add(me)
        self.most_live = max(self.most_live, len(self.live))
        try:
            await self.do_steps(machine, context)
            if self.takes:
                await self.clock.sleep(seconds=self.takes)
            if self.failing and context.nominal.minute % self.failing == 0 and context.attempt == 1:
                raise RuntimeError("as planned")
        finally:
            self.live.discard(me)
        return {"attempt": context.attempt}

    async def do_steps(self, machine: Machine, context: Context) -> None:
        """What a run saves on the way: nothing here."""

    async def tell(self) -> None:
        """The whole story: some events, then peace, so that everything comes to its end."""
        await self.store.open(lambda: None)
        await self.schedules.create(
            "s", self.document, "work", policies=self.policies, remaining_actions=self.remaining_actions
        )
        for _ in range(4 + self.dice.below(10)):
            await self.happen()
        self._make_peace()
        await self._ask(self.schedules.resume("s"))
        await self.pass_time(1500)

    async def happen(self) -> None:
        dice = self.dice
        event = dice.below(18)
        if event < 5:
            await self.pass_time(1 + dice.below(400))
        elif event == 5:  # no node runs while time passes
            for machine in self.machines:
                await machine.die()
            self.clock.move_to(self.clock.now() + timedelta(seconds=1 + dice.below(2000)))
        elif event in {6, 7, 8}:
            machine = dice.choice(self.machines)
            machine.line.fate = dice.choice([Crash, StoreUnavailableError])
            machine.line.calls_left = dice.below(40)
        elif event == 9:
            dice.choice(self.machines).skew += dice.choice(
                [-90_000, -2000, -300, 300, 2000, 90_000, 4_000_000]
            )
        elif event == 10:
            self.stalled = True
            dice.choice(self.machines).stalled_until = self.seconds() + dice.below(200)
        else:
            await self._edit(event)

    async def _edit(self, event: int) -> None:
        dice = self.dice
        if event == 11:
            await self._ask(
                self.schedules.pause(
                    "s", until=dice.choice([None, self.clock.now() + timedelta(seconds=200)])
                )
            )
        elif event == 12:
            await self._ask(self.schedules.resume("s"))
        elif event == 13:
            await self._ask(self.schedules.trigger("s", overlap=dice.choice([None, *Overlap])))
        elif event == 14:
            await self._ask(self.schedules.update("s", dice.choice(SPECS)))
            if dice.chance(30):  # and once more, before or after its slot fires
                await self.pass_time(dice.below(60))
                await self._ask(self.schedules.update("s", dice.choice(SPECS)))
        elif event == 15:
            begin = START + timedelta(seconds=dice.below(4000) - 2000)
            overlap = dice.choice([Overlap.BUFFER_ALL, Overlap.ALLOW_ALL, Overlap.SKIP])
            await self._ask(
                self.backfills.start("s", begin, begin + timedelta(seconds=dice.below(3000)), overlap=overlap)
            )
        elif event == 16:
            await self._ask(self.schedules.skip_next("s", dice.below(4)))
        else:
            found = await self.runs.list("s", 3)
            if found:
                stop = dice.choice([self.runs.cancel, self.runs.terminate])
                await self._ask(stop(dice.choice(found).id))

    async def _ask(self, asked: Any) -> None:
        """A manual operation may come too late: a finished schedule is gone."""
        try:
            await asked
        except HoraeError as error:
            self.asked.append(error.message)

    def _make_peace(self) -> None:
        for machine in self.machines:
            machine.line.calls_left = None
            machine.stalled_until = 0
            machine.skew = 0

    async def pass_time(self, seconds: float) -> None:
        """Let nodes step in the order of their times; of those whose time has come, in any order."""
        target = self.clock.now() + timedelta(seconds=seconds)
        while True:
            self._revive()
            await self._let_actions_run()
            self._note_leases()
            moment = min(max(machine.wake, machine.stalled_until) for machine in self.machines)
            sleeper = self.clock.next_sleeper()
            following = datetime.fromtimestamp(max(moment, self.seconds()), UTC)
            if sleeper is not None and sleeper < following:
                following = sleeper
            if following > target:
                break
            self.clock.move_to(following)
            ready = [m for m in self.machines if max(m.wake, m.stalled_until) <= self.seconds() + 0.00001]
            if ready:
                await self.dice.choice(ready).step()
            else:
                await self._let_actions_run()
                for machine in self.machines:  # a node hears of what ended in it
                    if machine.worker.ended():
                        machine.wake = self.seconds()
        self.clock.move_to(target)

    def _note_leases(self) -> None:
        """Runs of nodes that others may take for dead; one that stood still could not stop anything in that time."""
        late = {
            machine.name
            for machine in self.machines
            if self.store.deadlines.get(machine.engine.epoch, 0) <= self.seconds()
        }
        if not self.stalled:
            self.running_without_lease += [run_id for name, run_id, _ in self.live if name in late]

    def _revive(self) -> None:
        for place, machine in enumerate(self.machines):
            if machine.dead:
                self.born += 1
                self.machines[place] = self.machine(f"n{self.born}")

    async def _let_actions_run(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def end(self) -> None:
        for machine in self.machines:
            await machine.die()
        await self.store.close()


def _policies(dice: Dice) -> Policies:
    return Policies(
        overlap=dice.choice(list(Overlap)),
        max_concurrent=dice.choice([None, None, 1, 2]),
        catch_up=CatchUpPolicy(
            mode=dice.choice(list(CatchUp)), window=dice.choice([None, None, "0s", "90s"]), grace=dice.choice(["0s", "10s", "1m"])
        ),
        backfill_limit=dice.choice([None, None, None, 0, 2]),
        on_resume=dice.choice(list(OnResume)),
        retry=RetryPolicy(
            attempts=dice.choice([1, 1, 2, 3, None]), initial_delay=dice.choice(["0s", "5s", "70s"]), preempted=dice.chance(20)
        ),
        max_buffer_size=dice.choice([1, 3, None]),
        when_full=dice.choice(list(WhenFull)),
        expire_waiting=dice.chance(50),
        at_most_once=dice.chance(30),
        timeouts=Timeouts(
            start=dice.choice([None, None, None, "45s"]), run=dice.choice([None, None, "1m"]), cancel="10s"
        ),
        pause_on_failure=dice.chance(10),
        finished_ttl=dice.choice([None, "100000s"]),
    )  # fmt: skip


def replace(value: T, **changes: Any) -> T:
    return msgspec.structs.replace(value, **changes)  # type: ignore[type-var]
