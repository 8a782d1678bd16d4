"""Owners see only what they own, through every operation; and what else creating and editing must keep."""

from datetime import UTC, datetime
from typing import Any

import pytest

from horae import App, Config, Context, Filter, NewSchedule, Policies, Status
from horae.app import BackfillRequest, Trigger
from horae.errors import (
    BackfillNotFoundError,
    ConflictTokenMismatchError,
    HoraeError,
    InvalidInputError,
    LimitExceededError,
    RunNotFoundError,
    ScheduleExistsError,
    ScheduleNotFoundError,
)
from horae.model import Reason
from horae.testing import TimeMachine

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


async def nothing(context: Context) -> Any:
    return context.input


@pytest.fixture
def machine(machine: TimeMachine) -> TimeMachine:
    machine.app.functions.register("x", nothing)
    return machine


async def test_nothing_of_another_owner_can_be_reached(machine: TimeMachine):
    app = machine.app
    ada, bob = app.owned_by("ada"), app.owned_by("bob")
    await ada.schedules.create("hers", "0 9 * * *", "x")
    run_id = await ada.schedules.trigger("hers")
    backfill = await ada.backfills.start("hers", START, START.replace(day=5))
    await machine.advance(hours=2)
    attempts: list[tuple[Any, type[HoraeError]]] = [
        (bob.schedules.get("hers"), ScheduleNotFoundError),
        (bob.schedules.describe("hers"), ScheduleNotFoundError),
        (bob.schedules.counts("hers"), ScheduleNotFoundError),
        (bob.schedules.times("hers"), ScheduleNotFoundError),
        (bob.schedules.versions("hers"), ScheduleNotFoundError),
        (bob.schedules.update("hers", "0 10 * * *"), ScheduleNotFoundError),
        (bob.schedules.patch("hers", pause="mine now"), ScheduleNotFoundError),
        (bob.schedules.pause("hers"), ScheduleNotFoundError),
        (bob.schedules.resume("hers"), ScheduleNotFoundError),
        (bob.schedules.skip_next("hers"), ScheduleNotFoundError),
        (bob.schedules.trigger("hers"), ScheduleNotFoundError),
        (bob.schedules.delete("hers"), ScheduleNotFoundError),
        (bob.why.explain("hers", "2026-01-01T09:00:00Z"), ScheduleNotFoundError),
        (bob.why.preview("hers", "0 10 * * *"), ScheduleNotFoundError),
        (bob.runs.list("hers"), ScheduleNotFoundError),
        (bob.runs.unstarted_ranges("hers"), ScheduleNotFoundError),
        (bob.runs.get(run_id), RunNotFoundError),
        (bob.runs.attempts(run_id), RunNotFoundError),
        (bob.runs.logs(run_id), RunNotFoundError),
        (bob.runs.cancel(run_id), RunNotFoundError),
        (bob.runs.terminate(run_id), RunNotFoundError),
        (bob.backfills.preview("hers", START, START), ScheduleNotFoundError),
        (bob.backfills.start("hers", START, START), ScheduleNotFoundError),
        (bob.backfills.list("hers"), ScheduleNotFoundError),
        (bob.backfills.get(backfill.id), BackfillNotFoundError),
        (bob.backfills.cancel(backfill.id), BackfillNotFoundError),
    ]
    for attempt, error in attempts:
        with pytest.raises(error):
            await attempt
    assert (await bob.schedules.list(), await bob.schedules.count()) == ([], 0)
    assert await bob.schedules.list(Filter(owner="ada")) == []  # a filter opens no door
    assert await bob.schedules.pause_all(Filter()) == 0
    assert await ada.schedules.count() == await app.schedules.count() == 1
    assert (await ada.schedules.get("hers")).version == 1
    assert (await ada.runs.get(run_id)).status is Status.SUCCEEDED
    assert (await ada.backfills.get(backfill.id)).made == 4


async def test_an_owner_cannot_create_for_another(machine: TimeMachine):
    created = await machine.app.owned_by("ada").schedules.create("s", "0 9 * * *", "x", owner="bob")
    assert created.owner == "ada"
    for name in ("a" * 201, "a\nb", "a\x1fb"):
        with pytest.raises(InvalidInputError):
            machine.app.owned_by(name)


@pytest.mark.contract("CRON-19")
async def test_one_user_has_so_many_schedules_at_most():
    app = App(":memory:", config=Config(schedules_per_user=3))
    app.functions.register("x", nothing)
    async with app:
        ada = app.owned_by("ada")
        await ada.schedules.create_many(
            NewSchedule(id=f"a{n}", spec="0 9 * * *", action="x") for n in range(2)
        )
        with pytest.raises(LimitExceededError) as error:
            await ada.schedules.create_many(
                NewSchedule(id=f"b{n}", spec="0 9 * * *", action="x") for n in range(2)
            )
        assert error.value.details == {"limit": "schedules_per_user", "most": 3}
        assert await ada.schedules.count() == 2
        await ada.schedules.create("c", "0 9 * * *", "x")
        await app.owned_by("bob").schedules.create("d", "0 9 * * *", "x")
        for n in range(5):  # a program's own are not counted
            await app.schedules.create(f"own{n}", "0 9 * * *", "x")


@pytest.mark.contract("SCHD-21")
async def test_a_request_id_makes_creation_idempotent_for_all_or_none(machine: TimeMachine):
    ada = machine.app.owned_by("ada")
    pair = [NewSchedule(id=n, spec="0 9 * * *", action="x", request_id="r") for n in ("a", "b")]
    first = await ada.schedules.create_many(pair)
    await ada.schedules.pause("a")
    again = await ada.schedules.create_many(pair)
    assert [each.version for each in again] == [2, 1]
    assert [each.id for each in again] == [each.id for each in first]
    with pytest.raises(ScheduleExistsError):
        await ada.schedules.create_many(
            [*pair, NewSchedule(id="c", spec="0 9 * * *", action="x", request_id="r")]
        )
    # another owner's request is not repeated by guessing its id
    bobs = await machine.app.owned_by("bob").schedules.create("a", "0 9 * * *", "x", request_id="r")
    assert (bobs.owner, bobs.version) == ("bob", 1)


@pytest.mark.contract("SCHD-22", "SCHD-23")
async def test_an_edit_sees_what_is_there_and_a_stale_one_changes_nothing(machine: TimeMachine):
    schedules = machine.app.schedules
    await schedules.create("s", "0 9 * * *", "x", memo={"a": 1}, search_attributes={"b": 2}, tags=("t",))
    await schedules.update("s", policies=Policies(max_concurrent=2), version=1)
    with pytest.raises(ConflictTokenMismatchError):
        await schedules.update("s", "0 10 * * *", version=1)
    with pytest.raises(ConflictTokenMismatchError):
        await schedules.delete("s", version=1)
    with pytest.raises(ConflictTokenMismatchError):
        await schedules.patch("s", trigger=Trigger(), version=1)
    assert await machine.app.runs.list("s") == []
    stored = await schedules.get("s")
    assert (stored.version, stored.memo, stored.search_attributes, stored.tags) == (
        2,
        {"a": 1},
        {"b": 2},
        ("t",),
    )
    cleared = await schedules.update("s", memo={}, search_attributes={})
    assert (cleared.memo, cleared.search_attributes) == ({}, {})


@pytest.mark.contract("SCHD-13", "SCHD-23")
async def test_an_update_that_resumes_and_changes_the_spec_counts_each_slot_once(machine: TimeMachine):
    app = machine.app
    from horae import OnResume  # noqa: PLC0415

    await app.schedules.create("s", "0 * * * *", "x", paused=True, policies=Policies(on_resume=OnResume.SKIP))
    await machine.advance(hours=5)
    await app.schedules.update("s", "30 * * * *", paused=False, note="go on")
    ranges = await app.runs.unstarted_ranges("s")
    assert sum(each.count for each in ranges) == 5
    assert (await app.schedules.counts("s")).unstarted == {Reason.PAUSED: 5}
    await machine.advance(hours=2)
    assert len(await app.runs.list("s")) == 2


@pytest.mark.contract("SCHD-21", "SCHD-19")
async def test_a_patch_that_fails_leaves_no_trace(machine: TimeMachine):
    app = machine.app
    await app.schedules.create("s", "0 9 * * *", "x", policies=Policies(backfill_limit=1))
    too_much = BackfillRequest(start=START, end=START.replace(day=20))
    with pytest.raises(HoraeError):
        await app.schedules.patch("s", trigger=Trigger(), pause="p", backfills=[too_much])
    assert await app.runs.list("s") == []
    assert not (await app.schedules.get("s")).state.paused
    with pytest.raises(HoraeError):
        await app.schedules.create(
            "t", "0 9 * * *", "x", backfills=(too_much,), policies=Policies(backfill_limit=1)
        )
    with pytest.raises(ScheduleNotFoundError):
        await app.schedules.get("t")


async def test_a_filter_finds_by_search_attribute_and_state(machine: TimeMachine):
    schedules = machine.app.schedules
    values: list[str | float] = ["x", 5, 2.5, True, "true"]
    for number, value in enumerate(values):
        await schedules.create(f"s{number}", "0 9 * * *", "x", search_attributes={"k": value})
    await schedules.create("done", {"times": ["2020-01-01T00:00:00Z"]}, "x")
    await machine.advance(seconds=1)

    async def found(**only: Any) -> list[str]:
        return [each.id for each in await schedules.list(Filter(**only))]

    assert await found(search_key="k", search_value="x") == ["s0"]
    assert await found(search_key="k", search_value="5") == ["s1"]
    assert await found(search_key="k", search_value="2.5") == ["s2"]
    assert await found(search_key="k", search_value="true") == ["s3", "s4"]
    assert await found(search_key="none", search_value="x") == []
    assert await found(completed=True) == ["done"]
    assert await schedules.count(Filter(completed=False)) == 5
