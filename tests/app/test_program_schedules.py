"""The schedules that a program defines beside its functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horae import (
    App,
    CatchUp,
    CatchUpPolicy,
    Config,
    Context,
    Filter,
    OnResume,
    Overlap,
    Policies,
    Schedule,
    Spec,
)
from horae.errors import (
    DefinitionConflictError,
    HoraeError,
    InvalidActionError,
    InvalidInputError,
    NodeNameTakenError,
)
from horae.testing import TimeMachine, VirtualClock
from tests.support.cases import each_of

START = datetime(2026, 3, 1, tzinfo=UTC)
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


def report() -> None: ...


def send(to: str) -> None: ...


async def stored(database: str, define: Callable[[App], Any]) -> dict[str, Schedule]:
    """What a program of the name ``jobs`` has stored once it has started."""
    app = App(database, name="jobs", clock=VirtualClock(START))
    define(app)
    async with app:
        return {each.id: each for each in await app.schedules.list()}


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/horae.db"


async def test_a_function_and_its_schedule_are_defined_together(machine: TimeMachine):
    done: list[tuple[datetime, str]] = []

    @machine.app.schedule("0 9 * * *", timezone="Europe/Berlin", input={"to": "ada"})
    async def greet(context: Context, to: str) -> None:
        done.append((context.nominal, to))

    await machine.advance(days=2)
    assert done == [(START.replace(day=day, hour=8), "ada") for day in (1, 2)]


async def test_its_defaults_are_those_of_a_job(database: str):
    found = (await stored(database, lambda app: app.schedule("0 9 * * *")(report)))["report"]
    assert found.managed_by == "program:jobs"
    assert found.action.address == "report"
    assert found.policies == Policies(
        overlap=Overlap.SKIP,
        catch_up=CatchUpPolicy(mode=CatchUp.LATEST),
        on_resume=OnResume.SKIP,
        start_attempts=10,
        finished_ttl=None,
    )


@pytest.mark.parametrize(
    ("times", "document"),
    [
        ({"spec": "0 9 * * 1-5", "timezone": "Europe/Berlin"}, {"crons": ["0 9 * * 1-5"], "timezone": "Europe/Berlin"}),
        ({"spec": Spec.cron("0 9 * * *")}, {"crons": ["0 9 * * *"]}),
        ({"spec": {"intervals": [{"every": "6h"}], "jitter": "30s"}}, {"intervals": [{"every": "6h"}], "jitter": "30s"}),
        ({"every": "5m"}, {"intervals": [{"every": "5m"}]}),
        ({"every": timedelta(hours=36)}, {"intervals": [{"every": "1d12h"}]}),
        ({"at": NEW_YEAR}, {"times": ["2027-01-01T00:00:00Z"]}),
        ({"at": ["2027-01-01T09:00", "2027-02-01T09:00"], "timezone": "Europe/Berlin"},
         {"times": ["2027-01-01T09:00", "2027-02-01T09:00"], "timezone": "Europe/Berlin"}),
        ({"at": NEW_YEAR.replace(tzinfo=None), "timezone": "Europe/Berlin"},
         {"times": ["2027-01-01T00:00"], "timezone": "Europe/Berlin"}),
    ],
)  # fmt: skip
async def test_the_times_are_given_in_one_of_several_ways(
    database: str, times: dict[str, Any], document: dict[str, Any]
):
    found = await stored(database, lambda app: app.schedule(**times)(report))
    assert Spec.parse(found["report"].spec) == Spec.parse(document)


async def test_options_name_the_usual_policies_and_policies_the_rest(database: str):
    found = await stored(
        database,
        lambda app: app.schedule(
            every="1h", id="hourly", input={"to": "ada"}, retries=3, overlap="buffer_one", catch_up="all", description="why",
            timeout=timedelta(minutes=5), tags=["mail"], policies={"max_concurrent": 2, "retry": {"initial_delay": "30s"}},
        )(send),
    )  # fmt: skip
    made = found["hourly"]
    assert (made.action.name, made.action.input, made.tags, made.description) == (
        "send",
        {"to": "ada"},
        ("mail",),
        "why",
    )
    policies = made.policies
    assert (policies.overlap, policies.catch_up.mode, policies.max_concurrent) == (
        Overlap.BUFFER_ONE,
        CatchUp.ALL,
        2,
    )
    assert (policies.retry.attempts, policies.retry.initial_delay, policies.timeouts.run) == (4, "30s", "5m")
    assert (policies.on_resume, policies.finished_ttl) == (OnResume.SKIP, None)  # not named


@each_of(
    ("options", "error", "words"),
    [
        ({"spec": "0 25 * * *"}, HoraeError, "0 25"),
        ({"spec": "0 9 * * *", "timezone": "Europe/Berln"}, HoraeError, "Europe/Berln"),
        ({"spec": {"crons": ["0 9 * * *"]}, "timezone": "UTC"}, InvalidInputError, "timezone"),
        ({"spec": {"corns": []}}, HoraeError, "corns"),
        ({}, InvalidInputError, "the times are missing"),
        ({"spec": "0 9 * * *", "every": "5m"}, InvalidInputError, "times must be given in one way"),
        ({"every": "5 minutes"}, InvalidInputError, "every"),
        ({"every": 300}, InvalidInputError, "every"),
        ({"at": NEW_YEAR.replace(tzinfo=None)}, HoraeError, "no time zone"),
        ({"at": "soon"}, HoraeError, "soon"),
        ({"at": [7]}, InvalidInputError, "at"),
        ({"every": "1h", "retries": -1}, InvalidInputError, "retries"),
        ({"every": "1h", "retries": "3"}, InvalidInputError, "retries"),
        ({"every": "1h", "overlap": "skp"}, InvalidInputError, "overlap"),
        ({"every": "1h", "catch_up": "newest"}, InvalidInputError, "catch_up"),
        ({"every": "1h", "timeout": "5"}, InvalidInputError, "timeout"),
        ({"every": "1h", "policies": {"retry": {"atempts": 3}}}, InvalidInputError, "atempts"),
        ({"every": "1h", "id": ""}, InvalidInputError, "id"),
        ({"every": "1h", "id": "taken"}, InvalidInputError, "taken"),
        ({"every": "1h", "input": {"from": "bob"}}, InvalidInputError, "to"),
        ({"every": "1h", "input": {"to": object()}}, InvalidInputError, "input"),
    ],
)  # fmt: skip
def test_a_definition_is_checked_where_it_is_written(
    options: dict[str, Any], error: type[HoraeError], words: str
):
    app = App(":memory:")
    app.schedule("0 9 * * *", id="taken")(report)
    with pytest.raises(error, match=words):
        app.schedule(**{"input": {"to": "ada"}} | options)(send)
    assert list(app.program.definitions) == ["taken"]


async def test_a_function_may_have_several_schedules_and_another_name():
    app = App(":memory:")
    app.schedule("0 17 * * *", id="evening")(app.schedule("0 9 * * *", id="morning")(report))
    app.schedule(every="1h")(app.action("mail.send")(lambda_named("send")))
    async with app:
        found = {each.id: each.action.name for each in await app.schedules.list()}
    assert found == {"evening": "report", "morning": "report", "send": "mail.send"}


def lambda_named(name: str) -> Callable[[], None]:
    def function() -> None: ...

    function.__name__ = name
    return function


async def test_a_restart_changes_nothing_and_keeps_what_an_operator_did(database: str):
    def define(app: App) -> None:
        app.schedule("0 9 * * *", retries=3, input={"rows": (1, 2)}, tags=["a"])(report)

    await stored(database, define)
    app = App(database, clock=VirtualClock(START))
    await app.open()
    await app.schedules.pause("report", "the printer is broken")
    before = await app.schedules.get("report")
    await app.close()
    assert await stored(database, define) == {"report": before}

    changed = (await stored(database, lambda app: app.schedule("0 10 * * *")(report)))["report"]
    assert (changed.version, changed.generation) == (before.version + 1, before.generation)
    assert changed.policies.retry.attempts == 1
    assert (changed.state.paused, changed.state.note) == (True, "the printer is broken")


async def test_a_program_that_may_not_join_changes_nothing(database: str):
    config = Config(node_name="one", lease_ms=200, housekeeping_ms=100)
    app, other = (App(database, name="jobs", config=config) for _ in range(2))
    app.schedule("0 9 * * *")(report)
    other.schedule("0 10 * * *")(report)
    async with app:
        with pytest.raises(NodeNameTakenError):
            await other.__aenter__()
        assert (await app.schedules.get("report")).version == 1


async def test_a_node_whose_program_cannot_be_stored_is_gone(database: str):
    app, other = App(database, name="jobs"), App(database, name="other")
    app.schedule("0 9 * * *")(report)
    other.schedule("0 9 * * *")(report)
    async with app:
        with pytest.raises(DefinitionConflictError):
            await other.__aenter__()
        assert [each.epoch for each in await app.nodes()] == [app.engine.epoch]


async def test_what_is_no_longer_defined_is_orphaned_until_it_is_removed_or_comes_back(database: str):
    def both(app: App) -> None:
        app.schedule("0 9 * * *")(report)
        app.schedule("0 9 * * *", id="old")(report)

    await stored(database, both)
    found = await stored(database, lambda app: app.schedule("0 9 * * *")(report))
    assert {each.id: each.state.orphaned for each in found.values()} == {"report": False, "old": True}
    found = await stored(database, both)
    assert {each.id: each.state.orphaned for each in found.values()} == {"report": False, "old": False}

    app = App(database, name="jobs", clock=VirtualClock(START))
    async with app:  # defines nothing any more
        assert [each.id for each in await app.schedules.list(Filter(orphaned=True))] == ["old", "report"]
        await app.schedules.create("by-hand", "0 9 * * *", app.action(report).__name__)
        assert await app.prune_orphans() == ["old", "report"]
        assert [each.id for each in await app.schedules.list()] == ["by-hand"]


async def test_a_schedule_of_another_program_or_of_a_person_is_not_touched(database: str):
    other = App(database, name="other", clock=VirtualClock(START))
    other.schedule("0 9 * * *")(report)
    async with other:
        await other.schedules.create("by-hand", "0 9 * * *", "report")
    with pytest.raises(DefinitionConflictError, match='managed by "program:other"') as refused:
        await stored(database, lambda app: app.schedule("0 10 * * *")(report))
    assert refused.value.hint is not None
    assert "horae schedules update report --managed-by program:jobs" in refused.value.hint
    with pytest.raises(DefinitionConflictError, match="not defined by a program"):
        await stored(database, lambda app: app.schedule("0 10 * * *", id="by-hand")(report))
    async with other:
        await other.schedules.update("by-hand", managed_by="program:jobs")
    found = await stored(database, lambda app: app.schedule("0 10 * * *", id="by-hand")(report))
    assert Spec.parse(found["by-hand"].spec) == Spec.cron("0 10 * * *")
    assert not found["report"].state.orphaned  # it is the other program's


async def test_an_adopted_program_keeps_its_name(database: str):
    jobs = App(":memory:", name="jobs")
    jobs.schedule("0 9 * * *")(report)
    service = App(database, clock=VirtualClock(START))
    service.adopt(jobs)
    async with service:
        assert (await service.schedules.get("report")).managed_by == "program:jobs"


async def test_a_schedule_that_leaves_out_a_shared_calendar_is_stored_once(database: str):
    app = App(database, name="jobs", clock=VirtualClock(START))
    async with app:
        await app.calendars.put("holidays", {"dates": ["2026-12-25"]})
    spec = {"crons": ["0 9 * * *"], "exclude": [{"calendar": "holidays"}]}
    found = await stored(database, lambda app: app.schedule(spec)(report))
    assert await stored(database, lambda app: app.schedule(spec)(report)) == found


def test_the_name_of_a_program_is_that_of_its_module(tmp_path: Path):
    assert App(":memory:").program.label == f"program:{__name__}"
    assert App(":memory:", name="jobs").program.label == "program:jobs"


async def test_a_definition_that_comes_too_late_is_refused(machine: TimeMachine):
    machine.app.program.running = True
    with pytest.raises(InvalidInputError, match="too late"):
        machine.app.schedule("0 9 * * *")(report)


def test_an_action_that_cannot_be_called_cannot_be_scheduled():
    with pytest.raises(InvalidActionError, match="http"):
        App(":memory:").schedule("0 9 * * *")(lambda_named("http"))
