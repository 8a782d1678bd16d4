"""The seeded simulator with a flow: nodes die, answers are lost, clocks are off, events race with wake times and people.

What happened is recorded twice, and in one order: by the outside world, which logs what handlers and people did, and by triggers of
the database, which log every change of runs and events that was committed. ``flow_history`` judges the two.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from horae.engine.flow_decider import FlowDecider
from horae.engine.flow_deploy import deploy
from horae.engine.flow_host import FlowHost
from horae.errors import StoreUnavailableError
from horae.flow_model import Recovery
from horae.flows import (
    Applied,
    Flow,
    LogicError,
    NeedsApproval,
    NotApplied,
    Prepared,
    Reservation,
    Transient,
    Unknown,
)
from horae.store.flow_queries import FlowRecords
from tests.engine.simulator import Crash, Machine, World
from tests.support.dice import Dice

TRIGGERS = """
CREATE TABLE history (seq INTEGER, at_ms INTEGER, what TEXT, said TEXT);
CREATE TRIGGER run_begun AFTER INSERT ON flow_run BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'run begun', json_object('run', NEW.id, 'handler', NEW.handler,
        'phase', NEW.phase, 'status', NEW.status, 'retry_of', NEW.retry_of, 'prepared', NEW.prepared, 'mutation', NEW.mutation));
END;
CREATE TRIGGER run_moved AFTER UPDATE ON flow_run BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'run moved', json_object('run', NEW.id, 'handler', NEW.handler,
        'phase', NEW.phase, 'status', NEW.status, 'prepared', NEW.prepared, 'mutation', NEW.mutation));
END;
CREATE TRIGGER event_published AFTER INSERT ON flow_event BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'event published', json_object('event', NEW.number, 'topic', NEW.topic,
        'id', NEW.message_id));
END;
CREATE TRIGGER event_updated AFTER UPDATE OF payload ON flow_event BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'event updated', json_object('event', NEW.number, 'topic', NEW.topic));
END;
CREATE TRIGGER event_moved AFTER UPDATE OF status ON flow_event BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'event moved', json_object('event', NEW.number, 'topic', NEW.topic,
        'before', OLD.status, 'status', NEW.status, 'run', NEW.run_id));
END;
CREATE TRIGGER flow_claimed AFTER UPDATE OF run_id ON flow_lane WHEN NEW.run_id IS NOT OLD.run_id BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'claimed', json_object('run', NEW.run_id, 'epoch', NEW.epoch));
END;
CREATE TRIGGER flow_created AFTER INSERT ON flow_lane BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'version', json_object('revision', NEW.revision));
END;
CREATE TRIGGER flow_deployed AFTER UPDATE OF revision ON flow_lane WHEN NEW.revision <> OLD.revision BEGIN
    INSERT INTO history VALUES (next_seq(), true_time(), 'version', json_object('revision', NEW.revision));
END;
"""
EVERY = ("25s", "70s")
"""How often the producer runs, by the version of the flow."""
TIMEOUT = 150
MAX_STEPS = 1000
"""How many steps nodes may take in a second."""


class FlowMachine(Machine):
    """A process that hosts the flow."""

    world: FlowWorld

    def __init__(self, world: FlowWorld, name: str) -> None:
        super().__init__(world, name)
        self.host = FlowHost()
        self.engine.add_decider(lambda node: FlowDecider(node, self.host))
        self.line.on_crash = self._fall
        self.cut_until = 0.0
        self.line.is_cut = lambda: world.seconds() < self.cut_until

    def _fall(self) -> None:
        """The process ends where it is: what it runs goes no further."""
        self.world.note("died", epoch=self.engine.epoch, machine=self.name)
        self.dead = True
        for task in self.worker.tasks:
            task.cancel()

    async def die(self) -> None:
        if not self.dead:
            self._fall()
        await super().die()

    async def step(self) -> None:
        self.world.count_step()
        await super().step()

    async def join(self) -> None:
        await super().join()
        await self.deploy()

    async def deploy(self) -> None:
        """What a service does with its flows when it starts, and when it gets a new version."""
        flow = self.world.flow(self)
        await self.set_clock()
        self.world.note("deploy", revision=flow.revision)
        async with self.line.transaction() as transaction:
            stored = await deploy(FlowRecords(transaction), flow, "", self.now())
        self.host.host(flow, stored)


class FlowWorld(World):
    """One flow: a producer, a consumer with an effect, and one that waits for three events or a hundred seconds."""

    machines: list[Machine]

    def __init__(self, seed: int) -> None:
        self.log: list[dict[str, Any]] = []
        self.seq = 0
        self.fate = Dice(f"flows {seed}")
        self.version = 1
        self.peace = False
        self.fails = self.fate.choice([0, 8, 20])
        self.slow = self.fate.choice([0, 30, 60])
        self.sure = self.fate.choice([100, 60, 0])
        self.effects: Counter[str] = Counter()
        self.fenced: set[str] = set()
        self.serial = 0
        self.steps, self.stepped_at = 0, 0
        super().__init__(seed, 1)

    def machine(self, name: str) -> Machine:
        return FlowMachine(self, name)

    def note(self, what: str, **said: Any) -> None:
        self.log.append({"seq": self.next_seq(), "at": self.now(), "what": what, **said})

    def count_step(self) -> None:
        """Nothing steps without end."""
        second = self.now() // 1000
        self.steps, self.stepped_at = self.steps + 1 if self.stepped_at == second else 0, second
        assert self.steps < MAX_STEPS, "FLOW-11 at the end: nodes step without end"

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    # The outside world

    def do(self, key: str, events: list[str]) -> str:
        """The effect. What was once said not to have happened never happens."""
        if key in self.fenced:
            self.note("refused", key=key)
            raise LogicError("it is too late for this")
        self.effects[key] += 1
        self.note("effect", key=key, events=events)
        return f"did {key}"

    def settle(self, key: str) -> bool:
        """Whether an effect happened; if not, it never will."""
        happened = key in self.effects
        if not happened:
            self.fenced.add(key)
        self.note("answer", key=key, answer="applied" if happened else "not_applied")
        return happened

    async def trouble(self, *kinds: type[Exception] | Exception) -> None:
        """Take time, and fail now and then."""
        if self.peace:
            return
        if self.fate.chance(self.slow):
            await self.clock.sleep(seconds=self.fate.choice([0.4, 7, 45, 100, 2 * TIMEOUT]))
        if self.fate.chance(self.fails):
            raise self.fate.choice(kinds)

    def flow(self, machine: FlowMachine) -> Flow:
        """The flow in its present version."""
        flow = Flow("f", revision=str(self.version))
        flow.producer(publishes=["in"], every=EVERY[self.version % 2], timeout=f"{TIMEOUT}s", name="poll")(
            Poll(self, machine)
        )
        flow.consumer(subscribes=["in"], publishes=["out"], timeout=f"{TIMEOUT}s", name="take")(
            Take(self, machine)
        )
        flow.consumer(subscribes=["out"], timeout=f"{TIMEOUT}s", name="gather")(Gather(self, machine))
        return flow

    # The story

    async def tell(self) -> None:
        await self.store.open(lambda: None)
        connection = self.store._connected()
        connection.create_function("next_seq", 0, self.next_seq)
        connection.create_function("true_time", 0, self.now)
        connection.executescript(TRIGGERS)
        for _ in range(20 + self.dice.below(30)):
            await self.happen()
            await self.pass_time(self.dice.below(40))
        await self.make_peace()

    async def make_peace(self) -> None:
        """Nothing goes wrong any more, all nodes have the latest version, and a person resolves what waits for one."""
        self._make_peace()
        self.peace = True
        for machine in self.machines:
            assert isinstance(machine, FlowMachine)
            machine.cut_until = 0
        for machine in self.machines:
            if machine.joined and not machine.dead:
                assert isinstance(machine, FlowMachine)
                await machine.deploy()
        await self._ask(self.flows.resume("f"))
        await self.pass_time(100)
        for _ in range(8):
            await self.pass_time(100)
            await self.help()
        self.note("peace")
        await self._ask(self.flows.publish("f", "in", "last"))
        await self.pass_time(300)

    async def happen(self) -> None:
        dice = self.dice
        event = dice.below(22)
        if event < 5:
            await self.pass_time(1 + dice.below(100))
        elif event == 5:
            for machine in self.machines:
                await machine.die()
            self.clock.move_to(self.clock.now() + timedelta(seconds=1 + dice.below(1500)))
        elif event == 6:
            await dice.choice(self.machines).die()
        elif event in {7, 8, 9}:
            machine = dice.choice(self.machines)
            machine.line.fate = dice.choice([Crash, StoreUnavailableError])
            machine.line.calls_left = dice.below(30)
        elif event in {10, 19}:
            skew = dice.choice([-90_000, -2000, -300, 300, 2000, 90_000, 4_000_000])
            for machine in dice.choice([self.machines, [dice.choice(self.machines)]]):
                machine.skew += skew
        elif event in {11, 21}:
            self.hold(dice.choice(self.machines))
        else:
            await self.act(event)

    def hold(self, machine: Machine) -> None:
        """A process stands still, or cannot reach the database: perhaps for longer than its lease."""
        until = self.seconds() + 30 + self.dice.below(300)
        if self.dice.chance(50):
            self.stalled = True
            machine.stalled_until = until
        elif isinstance(machine, FlowMachine):
            machine.cut_until = until

    async def act(self, event: int) -> None:
        """Something that people and programs ask of the flow."""
        dice = self.dice
        if event in {12, 13}:
            self.serial += dice.below(2)
            topic, count = dice.choice([("in", 1), ("in", 3), ("out", 1)])
            wanted = [(topic, f"x{self.serial}.{number}", None) for number in range(count)]
            await self.ask("publish", self.flows.publish_many("f", wanted), topic=topic)
        elif event == 14:
            await self.ask("pause", self.flows.pause("f"))
            await self.pass_time(dice.below(120))
        elif event == 15:
            await self.ask("resume", self.flows.resume("f"))
        elif event == 16:
            await self.ask("run_now", self.flows.run_now("f"))
        elif event == 17:
            await self.help()
        elif event == 18:
            await self.redeploy()
        elif event == 20:
            found = await self.flows.inputs("f", limit=20) if await self._is_deployed() else []
            if found:
                chosen = dice.choice(list(found))
                await self.ask(
                    "skip", self.flows.skip("f", chosen.source, chosen.type, chosen.id), id=chosen.id
                )

    async def redeploy(self) -> None:
        """Deploy a new version on some nodes; the others get it later, or when they start again."""
        self.version += 1
        for machine in self.machines:
            if not machine.joined or machine.dead or self.dice.chance(30):
                continue
            assert isinstance(machine, FlowMachine)
            try:
                await machine.deploy()
            except Crash:
                await machine.die()
            except StoreUnavailableError:
                continue

    async def ask(self, operation: str, asked: Any, **said: Any) -> None:
        refused = len(self.asked)
        self.note("asking", operation=operation, **said)
        await self._ask(asked)
        self.note("asked", operation=operation, done=len(self.asked) == refused, **said)

    async def _is_deployed(self) -> bool:
        return bool(await self.flows.list())

    async def help(self) -> None:
        """A person looks whether the flow needs one, and says the truth about what happened."""
        if not await self._is_deployed():
            return
        operator = (await self.flows.show("f")).operator
        trouble = None if operator is None else operator.trouble
        if trouble is None or trouble.retry_at is not None or (operator and operator.active_run):
            return
        if trouble.recovery != Recovery.RECONCILE:
            await self.ask("retry", self.flows.resolve("f", "retry"))
            return
        (run, *_) = [each for each in await self.flows.runs("f", limit=1000) if each.id == trouble.run_id]
        key = run.prepared["key"]
        if self.fate.chance(15):
            self.fenced.add(key)
            self.note("answer", key=key, answer="skip")
            await self.ask("skip it", self.flows.resolve("f", "skip"))
        elif self.settle(key):
            await self.ask("applied", self.flows.resolve("f", "applied", result=f"did {key}"))
        else:
            await self.ask("not_applied", self.flows.resolve("f", "not_applied"))

    async def history(self) -> list[dict[str, Any]]:
        """Everything that happened, in order: what the outside world saw, and what was committed."""
        async with self.store.transaction() as transaction:
            found = await transaction.execute("SELECT seq, at_ms, what, said FROM history")
            lane = (await FlowRecords(transaction).lanes([1]))[1]
        committed = [
            {"seq": seq, "at": at, "what": what, **json.loads(said)} for seq, at, what, said in found
        ]
        marks = {name: mark.at_ms for name, mark in lane.marks.items()}
        self.note("end", marks=marks, trouble=lane.trouble is not None, claimed=lane.run_id is not None)
        return sorted([*self.log, *committed], key=lambda each: each["seq"])


class Part:
    """The code of a handler, which says what it does to the world."""

    def __init__(self, world: FlowWorld, machine: FlowMachine) -> None:
        self.world, self.machine = world, machine

    def begin(self, part: str, ctx: Any, **said: Any) -> Any:
        world = self.world
        late = [each.name for each in world.machines if each.stalled_until >= world.seconds()]
        return _Noted(
            world, part, run=ctx.run_id, handler=ctx.handler, machine=self.machine.name, late=late, **said
        )


class _Noted:
    """Notes that a part of a handler began and ended."""

    def __init__(self, world: FlowWorld, part: str, **said: Any) -> None:
        self._world, self._said = world, {"part": part, **said}

    def __enter__(self) -> None:
        self._world.note("part begun", **self._said)

    def __exit__(self, *_: object) -> None:
        self._world.note("part ended", **self._said)


class Poll(Part):
    """Finds up to two new things."""

    async def __call__(self, ctx: Any, state: int | None) -> int:
        world, seen = self.world, state or 0
        with self.begin("producer", ctx, state=state):
            await world.trouble(
                Transient("rate limit"), LogicError("wrong"), NeedsApproval("sign in"), ValueError("?")
            )
            found = world.fate.below(3)
            for number in range(seen, seen + found):
                ctx.register_input("mail", "message", str(number), f"Mail {number}")
                ctx.publish("in", f"p{number}", {"number": number})
            return seen + found


class Take(Part):
    """Takes a few events, has one effect for them, and can mostly find out whether it happened."""

    async def prepare(self, ctx: Any, state: int | None) -> Prepared[list[str]]:
        world = self.world
        with self.begin("prepare", ctx, state=state):
            found = await ctx.peek("in", limit=1 + world.fate.below(4))
            await world.trouble(Transient("rate limit"), LogicError("wrong"), KeyError("x"))
            ids = [] if not world.peace and world.fate.chance(25) else [each.id for each in found]
            wake_at = self.wake_time(ctx.now)
            world.note(
                "looked",
                run=ctx.run_id,
                handler="take",
                ids=ids,
                wake_at=wake_at and wake_at.timestamp() * 1000,
            )
            return Prepared([Reservation("in", ids)] if ids else [], ids, wake_at=wake_at)

    def wake_time(self, now: datetime) -> datetime | None:
        spans = [None, None, -100, 5, 45, 200, 400_000]
        span = None if self.world.peace else self.world.fate.choice(spans)
        return None if span is None else now + timedelta(seconds=span)

    async def mutate(self, ctx: Any, prepared: Prepared[list[str]]) -> str:
        world = self.world
        with self.begin("mutate", ctx, key=ctx.key):
            await world.trouble(
                Transient("busy", applied=False), LogicError("wrong"), NeedsApproval("sign in"), ConnectionError("lost"),
                ValueError("?"),
            )  # fmt: skip
            result: str = await ctx.effect(lambda: world.do(ctx.key, prepared.data))
            await world.trouble(
                ConnectionError("the answer was lost"), TimeoutError(), KeyError("in the answer")
            )
            return result

    async def next(self, ctx: Any, prepared: Prepared[list[str]], outcome: Any) -> int:
        with self.begin("next", ctx, key=ctx.key):
            await self.world.trouble(Transient("rate limit"), LogicError("wrong"))
            for each in prepared.data:
                ctx.publish("out", each, outcome.result)
            return len(prepared.data)

    async def reconcile(self, ctx: Any, prepared: Prepared[list[str]]) -> Any:
        world = self.world
        with self.begin("reconcile", ctx, key=ctx.key):
            await world.trouble(Transient("rate limit"), ValueError("?"))
            if not world.peace and not world.fate.chance(world.sure):
                return Unknown()
            return Applied(f"did {ctx.key}") if world.settle(ctx.key) else NotApplied()


class Gather(Part):
    """Takes three events or more at once, or what there is after a hundred seconds."""

    async def prepare(self, ctx: Any, state: int | None) -> Prepared[list[str]]:
        with self.begin("prepare", ctx, state=state):
            found = await ctx.peek("out")
            await self.world.trouble(Transient("rate limit"), LogicError("wrong"))
            ripe = found and (len(found) >= 3 or ctx.now - found[0].created_at >= timedelta(seconds=100))
            ids = [each.id for each in found] if ripe else []
            wake_at = found[0].created_at + timedelta(seconds=100) if found and not ripe else None
            wanted = wake_at and wake_at.timestamp() * 1000
            self.world.note("looked", run=ctx.run_id, handler="gather", ids=ids, wake_at=wanted)
            return Prepared([Reservation("out", ids)] if ids else [], ids, wake_at=wake_at)

    async def next(self, ctx: Any, prepared: Prepared[list[str]], outcome: Any) -> int:
        with self.begin("next", ctx):
            await self.world.trouble(Transient("rate limit"), LogicError("wrong"))
            return len(prepared.data)
