"""Ids are per owner: owners who use the same ids see exactly what each would see alone."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from horae import Context, Filter, NewSchedule, Policies
from horae.app import ScopedOperations
from horae.errors import HoraeError, ScheduleAmbiguousError, ScheduleExistsError, ScheduleNotFoundError
from horae.model import Run, Schedule, UnstartedRange
from horae.spec import slot_key
from horae.testing import TimeMachine
from tests.support.dice import Dice

START = datetime(2026, 3, 1, tzinfo=UTC)
SEEDS = int(os.environ.get("HORAE_SEEDS", "3"))
IDS = ("nightly", "report")
SPECS = ("* * * * *", "*/2 * * * *", "*/3 * * * *")


def actions(machine: TimeMachine) -> None:
    @machine.app.action("work")
    async def work(context: Context) -> Any:
        await machine.sleep(seconds=70)
        if context.input == "bad":
            raise ValueError("bad")
        return context.schedule_id


@pytest.fixture
def machine(machine: TimeMachine) -> TimeMachine:
    actions(machine)
    return machine


async def test_one_request_names_each_id_once(machine: TimeMachine):
    first = NewSchedule(id="nightly", spec="* * * * *", action="work")
    for second in (first, NewSchedule(id="nightly", spec="*/2 * * * *", action="work")):
        with pytest.raises(ScheduleExistsError):
            await machine.app.schedules.create_many([first, second])
    other = NewSchedule(id="nightly", owner="ada", spec="* * * * *", action="work")
    assert len(await machine.app.schedules.create_many([first, other])) == 2


async def test_another_owners_id_is_no_conflict(machine: TimeMachine):
    app = machine.app
    ada, bob, none = app.owned_by("ada"), app.owned_by("bob"), app.owned_by("")
    for there in (ada, bob, none):
        made = await there.schedules.create("nightly", "* * * * *", "work")
        assert (made.id, made.generation, made.version) == ("nightly", 1, 1)
        with pytest.raises(ScheduleExistsError):
            await there.schedules.create("nightly", "* * * * *", "work")
    await machine.advance(minutes=1, seconds=80)
    found = [(await there.runs.list("nightly"))[0] for there in (ada, bob, none)]
    assert len({run.id for run in found}) == 3
    assert {run.schedule_id for run in found} == {"nightly"}
    key = slot_key("nightly", found[0].nominal_ms // 1000)
    assert {run.key for run in found} == {key}
    assert [run.result for run in found] == ["nightly"] * 3
    await bob.schedules.delete("nightly")
    assert len(await bob.runs.list("nightly")) == len(await ada.runs.list("nightly"))  # its ledger stays
    assert not await bob.schedules.exists("nightly")
    assert await ada.schedules.exists("nightly")
    assert (await bob.schedules.create("nightly", "0 9 * * *", "work")).generation == 2


async def test_who_sees_all_must_name_the_owner_of_an_id_that_several_have(machine: TimeMachine):
    app = machine.app
    await app.owned_by("ada").schedules.create("nightly", "* * * * *", "work")
    assert (await app.schedules.get("nightly")).owner == "ada"
    await app.schedules.pause("nightly")
    await app.schedules.create("nightly", "* * * * *", "work")  # it has no owner
    everything = {
        "get": app.schedules.get("nightly"),
        "exists": app.schedules.exists("nightly"),
        "describe": app.schedules.describe("nightly"),
        "update": app.schedules.update("nightly", "0 9 * * *"),
        "trigger": app.schedules.trigger("nightly"),
        "delete": app.schedules.delete("nightly"),
        "runs": app.runs.list("nightly"),
        "search": app.runs.search(schedule_id="nightly"),
        "versions": app.schedules.versions("nightly"),
        "explain": app.why.explain("nightly", START),
        "backfill": app.backfills.start("nightly", START, START),
    }
    for name, attempt in everything.items():
        with pytest.raises(ScheduleAmbiguousError, match='one without an owner, "ada"') as error:
            await attempt
        assert error.value.details == {"scheduleId": "nightly", "owners": ["", "ada"]}, name
    assert [(each.owner, each.version) for each in await app.schedules.list()] == [("", 1), ("ada", 2)]
    assert [each.owner for each in await app.owned_by("").schedules.list()] == [""]
    await app.owned_by("").schedules.delete("nightly")
    assert (await app.schedules.get("nightly")).owner == "ada"
    await app.owned_by("ada").schedules.delete("nightly")
    with pytest.raises(ScheduleAmbiguousError):
        await app.schedules.versions("nightly")  # both left a ledger
    with pytest.raises(ScheduleNotFoundError):
        await app.owned_by("bob").schedules.versions("nightly")


async def test_once_is_idempotent_within_an_owner(machine: TimeMachine):
    app = machine.app
    made = [await there.once("work", in_="1m", key="k") for there in (app.owned_by("ada"), app.all_owners)]
    again = [await there.once("work", in_="1m", key="k") for there in (app.owned_by("ada"), app.all_owners)]
    assert [each.owner for each in made] == ["ada", ""]
    assert again == made


async def test_a_program_defines_its_own_beside_those_of_owners(machine: TimeMachine):
    app = machine.app
    await app.owned_by("ada").schedules.create("report", "0 9 * * *", "work", managed_by="program:other")
    app.program.schedule("0 8 * * *")(report)
    await app.program.store()
    mine = await app.owned_by("").schedules.get("report")
    assert (mine.owner, mine.managed_by) == ("", app.program.label)
    assert (await app.owned_by("ada").schedules.get("report")).managed_by == "program:other"
    # One that was handed over keeps its owner.
    await app.owned_by("").schedules.delete("report")
    await app.owned_by("ada").schedules.update("report", managed_by=app.program.label)
    await app.program.store()
    assert '"0 8 * * *"' in (await app.schedules.get("report")).spec
    app.program.definitions.clear()
    assert await app.prune_orphans() == ["report"]
    assert await app.schedules.list() == []


def report() -> None: ...


class Actor:
    """One owner who does random things, and what they saw."""

    def __init__(self, there: ScopedOperations) -> None:
        self.there = there
        self.saw: list[object] = []

    async def act(self, machine: TimeMachine, dice: Dice) -> None:
        """Do one thing, by the dice."""
        schedule_id, spec = dice.choice(IDS), dice.choice(SPECS)
        schedules, runs = self.there.schedules, self.there.runs
        pair = [NewSchedule(id=each, spec=spec, action="work", request_id="r") for each in IDS]
        policies = Policies(overlap=dice.choice(("skip", "queue", "buffer_one")))
        given = dice.choice(("bad", 1))

        async def stop_or_run_again() -> None:
            for run in (await runs.list(schedule_id))[:1]:
                await (runs.cancel if run.ended_at is None else runs.rerun)(run.id)

        things: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: schedules.create(schedule_id, spec, "work", input=given, policies=policies),
            lambda: schedules.create_many(pair),
            lambda: schedules.update(schedule_id, spec, tags=(str(given),)),
            lambda: schedules.delete(schedule_id),
            lambda: schedules.trigger(schedule_id, input=2),
            lambda: self.there.backfills.start(schedule_id, START, machine.app.clock.now()),
            lambda: schedules.pause(schedule_id, "p"),
            lambda: schedules.resume(schedule_id),
            lambda: schedules.skip_next(schedule_id),
            lambda: schedules.pause_all(Filter(prefix=schedule_id), "all"),
            lambda: self.there.once("work", in_="30s", key=schedule_id),
            stop_or_run_again,
        )
        await dice.choice(things)()

    async def look(self) -> None:
        """Everything that the owner can see."""
        there = self.there
        self.saw.append([plain(each) for each in await there.schedules.list()])
        self.saw.append([plain(each) for each in await there.runs.search()])
        for schedule_id in IDS:
            questions: tuple[Callable[[str], Awaitable[object]], ...] = (
                there.schedules.describe,
                there.schedules.versions,
                there.runs.list,
                there.runs.unstarted_ranges,
                there.backfills.list,
                lambda each: there.why.explain(each, "2026-03-01T00:06:00Z"),
                there.schedules.exists,
            )
            for question in questions:
                try:
                    self.saw.append(plain(await question(schedule_id)))
                except HoraeError as error:
                    self.saw.append(f"{type(error).__name__}: {error}")


def plain(value: Any) -> Any:
    """A value without what is unique in the database: the owner, and ids that are made."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Run):
        return ("run", value.schedule_id, value.generation, value.nominal, value.origin.kind, value.status, value.reason,
                value.attempt, value.result, value.failure, value.started_at, value.ended_at, value.key if value.is_automatic else "")  # fmt: skip
    if isinstance(value, UnstartedRange):
        return (
            value.schedule_id,
            value.generation,
            value.start,
            value.end,
            value.count,
            value.reason,
            value.decided_at,
        )
    if not hasattr(value, "__struct_fields__"):
        return value
    hidden = {"owner", "schedule_key", "run_id"} | (set() if isinstance(value, Schedule) else {"id"})
    return {name: plain(getattr(value, name)) for name in value.__struct_fields__ if name not in hidden}


async def story(seed: int, owners: tuple[str, ...], seen_by: str) -> list[object]:
    """What one owner saw, of a story in which some owners act, each by a dice of their own."""
    async with TimeMachine(START) as machine:
        actions(machine)
        actors = {each: (Actor(machine.app.owned_by(each)), Dice(seed * 100 + len(each))) for each in owners}
        for _ in range(20):
            for actor, dice in actors.values():
                try:
                    await actor.act(machine, dice)
                except HoraeError as error:
                    actor.saw.append(f"{type(error).__name__}: {error}")
            await machine.advance(seconds=45)
        actor = actors[seen_by][0]
        await actor.look()
        return actor.saw


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_two_owners_with_the_same_ids_each_see_what_they_would_see_alone(seed: int):
    owners = ("ada", "barbara")
    for each in owners:
        assert await story(seed, owners, each) == await story(seed, (each,), each)
