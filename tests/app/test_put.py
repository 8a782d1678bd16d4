"""``put``: it creates a schedule or replaces its definition, and says which; the same again changes nothing."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae import App, Config, Policies, ScheduleWarning, SyncApp
from horae.errors import ConflictTokenMismatchError, InvalidInputError, ScheduleNotFoundError
from horae.model import Action
from horae.spec import Spec
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, at

DAILY = "0 9 * * *"
THE_SAME: list[Any] = [
    " 00 9 * * * ",
    {"crons": ["0 9 * * *"], "timezone": "UTC"},
    {"crons": ["0 0 9 * * *"]},
    Spec.cron(DAILY),
]


def opened(database: str) -> App:
    app = App(database)
    app.action("report")(lambda: None)
    return app


async def test_it_creates_then_changes_and_then_nothing_is_left_to_do(database: str):
    app, reader = opened(database), App(database)
    async with app, reader:
        made = await app.schedules.put("s", DAILY, "report", tags=["a"], input={"to": "ada"})
        assert (made.outcome, made.schedule.version) == ("created", 1)
        assert made.schedule == await app.schedules.get("s")
        changed = await app.schedules.put("s", "0 10 * * *", "report", tags=["b"])
        assert (changed.outcome, changed.schedule.version) == ("changed", 2)
        assert (changed.schedule.tags, changed.schedule.action.input) == (("b",), None)
        before = (await app.schedules.get("s"), await app.schedules.versions("s"))
        again = await app.schedules.put("s", "0 10 * * *", "report", tags=["b"])
        assert (again.outcome, again.schedule) == ("unchanged", before[0])
        assert (await app.schedules.get("s"), await app.schedules.versions("s")) == before


@pytest.mark.parametrize("spec", THE_SAME, ids=str)
async def test_a_spec_that_means_the_same_changes_nothing(machine: TimeMachine, hello: Recorder, spec: Any):
    schedules = machine.app.schedules
    await schedules.put("s", DAILY, "hello")
    assert (await schedules.put("s", spec, {"name": "hello"}, policies={})).outcome == "unchanged"


async def test_what_changes_nothing_writes_nothing(tmp_path: Any):
    database = f"sqlite:///{tmp_path}/horae.db"
    app, reader = opened(database), App(database)
    await app.open()
    await reader.open()
    mark = await reader.change_mark()
    await app.schedules.put("s", DAILY, "report")
    assert (after := await reader.change_mark()) != mark
    for _ in range(3):
        assert (await app.schedules.put("s", DAILY, "report")).outcome == "unchanged"
    assert await reader.change_mark() == after
    await app.close()
    await reader.close()


async def test_what_an_operator_changed_stays_and_the_definition_is_replaced(
    machine: TimeMachine, hello: Recorder
):
    ada = machine.app.owned_by("ada").schedules
    kept: dict[str, Any] = {"memo": {"m": 1}, "search_attributes": {"team": 7}, "managed_by": "file"}
    await ada.create(
        "s", "* * * * *", "hello", tags=["old"], description="old", remaining_actions=50, input=1,
        policies={"overlap": "allow_all"}, **kept,
    )  # fmt: skip
    await machine.advance(minutes=3)
    before = await ada.pause("s", "holidays")
    done = await machine.app.schedules.put("s", "*/2 * * * *", "hello", policies={"max_concurrent": 2})
    new = done.schedule
    assert (done.outcome, new.owner, new.cursor_ms) == ("changed", "ada", before.cursor_ms)
    assert (new.state.paused, new.state.note, new.state.remaining_actions) == (True, "holidays", 47)
    assert {name: getattr(new, name) for name in kept} == kept
    assert (new.tags, new.description, new.action.input) == ((), "", None)
    assert new.policies == Policies(max_concurrent=2)
    given = await ada.put(
        "s", "*/2 * * * *", "hello", policies=Policies(max_concurrent=2), paused=False, note=""
    )
    assert (given.outcome, given.schedule.state.paused) == ("changed", False)


@pytest.mark.parametrize("form", ["address", "document", "function"])
async def test_an_action_in_any_form_replaces_the_whole_action(machine: TimeMachine, form: str):
    @machine.app.action
    async def hello() -> None: ...

    action: Any = {"address": "hello", "document": {"name": "hello"}, "function": hello}[form]
    put = machine.app.schedules.put
    await put("s", DAILY, {"name": "hello", "id": "base"}, input={"a": 1})
    done = await put("s", DAILY, action)
    assert (done.outcome, done.schedule.action) == ("changed", Action(name="hello"))
    assert (await put("s", DAILY, action)).outcome == "unchanged"
    assert (await put("t", DAILY, action)).schedule.action == Action(name="hello")


async def test_a_conflict_token_must_be_the_present_one(machine: TimeMachine, hello: Recorder):
    schedules = machine.app.schedules
    with pytest.raises(ScheduleNotFoundError):
        await schedules.put("s", DAILY, "hello", version=1)
    await schedules.put("s", DAILY, "hello")
    await schedules.put("s", "0 10 * * *", "hello", version=1)
    for spec in (DAILY, "0 10 * * *"):
        with pytest.raises(ConflictTokenMismatchError):
            await schedules.put("s", spec, "hello", version=1)
    assert (await schedules.get("s")).version == 2
    assert (await schedules.put("s", "0 10 * * *", "hello", version=2)).outcome == "unchanged"


async def test_what_is_wrong_is_named_and_stores_nothing(machine: TimeMachine, hello: Recorder):
    put: Any = machine.app.schedules.put
    wrong: dict[str, Any] = {
        "policies": {"overlap": "skp"},
        "tag": ["a"],
        "memo": 7,
        "owner": "ada",
        "trigger": {},
    }
    for name, value in wrong.items():
        with pytest.raises(InvalidInputError, match=name):
            await put("s", DAILY, "hello", **{name: value})
    assert not await machine.app.schedules.exists("s")


async def test_the_program_is_warned_when_something_is_stored(machine: TimeMachine, hello: Recorder):
    over = {"times": ["2026-02-01T00:00Z"]}
    with pytest.warns(ScheduleWarning, match="never fires again") as found:
        await machine.app.schedules.put("s", over, "hello")
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (await machine.app.schedules.put("s", over, "hello")).outcome == "unchanged"


@pytest.mark.parametrize("specs", [[DAILY] * 6, [f"{minute} 9 * * *" for minute in range(6)]])
async def test_of_several_at_once_one_creates(database: str, specs: list[str]):
    one, other = opened(database), opened(database)
    async with one, other:
        apps = [one, other] * 3
        done = await asyncio.gather(
            *(app.schedules.put("s", spec, "report") for app, spec in zip(apps, specs, strict=True))
        )
        outcomes = Counter(each.outcome for each in done)
        assert outcomes == {"created": 1, ("unchanged" if len(set(specs)) == 1 else "changed"): 5}
        assert (await one.schedules.get("s")).version == max(each.schedule.version for each in done)
        assert len({each.schedule.version for each in done}) == len(set(specs))


async def test_it_creates_again_what_was_deleted_meanwhile(database: str):
    one, other = opened(database), opened(database)
    async with one, other:
        await one.schedules.put("s", DAILY, "report")

        async def delete() -> None:
            await other.schedules.delete("s")

        done, _ = await asyncio.gather(one.schedules.put("s", "0 10 * * *", "report"), delete())
        exists = await one.schedules.exists("s")
        assert (done.outcome, exists) in {("changed", False), ("created", True)}


async def test_time_goes_on_over_a_put(machine: TimeMachine, hello: Recorder):
    schedules = machine.app.schedules
    await schedules.put("s", "*/10 * * * *", "hello")
    await machine.advance(minutes=25)
    assert (await schedules.put("s", {"crons": ["*/10 * * * *"]}, "hello")).outcome == "unchanged"
    await machine.advance(minutes=10)
    assert (await schedules.put("s", "*/15 * * * *", "hello")).outcome == "changed"
    await machine.advance(minutes=30)
    assert hello.nominal == [at(each) for each in (10, 20, 30, 45, 60)]


async def test_the_same_secret_and_the_same_calendar_are_no_change():
    config = Config(secret_key="seal " * 10, http_allow=("example.org",))
    async with TimeMachine(START, config=config) as machine:
        machine.app.use_builtin()
        schedules, calendars = machine.app.schedules, machine.app.calendars
        await calendars.put("free", {"dates": ["2026-12-25"]})
        spec = {"crons": ["0 9 * * *"], "exclude": [{"calendar": "free"}]}

        def action(token: str) -> dict[str, Any]:
            return {
                "kind": "http",
                "options": {"url": "https://example.org/", "headers": {"Authorization": token}},
            }

        outcomes = [
            (await schedules.put("s", spec, action(each))).outcome for each in ("one", "one", "two", "***")
        ]
        assert outcomes == ["created", "unchanged", "changed", "unchanged"]
        await calendars.put("free", {"dates": ["2026-12-24"]})
        assert (await schedules.put("s", spec, action("two"))).outcome == "unchanged"


def test_it_blocks_in_a_sync_app(tmp_path: Any):
    with SyncApp(f"sqlite:///{tmp_path}/horae.db") as app:
        app.action("report")(lambda: None)
        outcomes = [app.schedules.put("s", spec, "report").outcome for spec in (DAILY, DAILY, "0 10 * * *")]
    assert outcomes == ["created", "unchanged", "changed"]


# Any sequence of operations beside a model of one dictionary

DEFINITIONS = st.fixed_dictionaries(
    {"spec": st.sampled_from([DAILY, *THE_SAME, "*/7 * * * *", {"intervals": [{"every": "5m"}]}])},
    optional={
        "tags": st.sampled_from([["a"], ["a", "b"], ()]),
        "description": st.sampled_from(["", "why"]),
        "input": st.sampled_from([None, 1]),
        "policies": st.sampled_from([{}, {"overlap": "buffer_all"}, Policies(overlap="buffer_all")]),
        "paused": st.booleans(),
        "memo": st.sampled_from([{}, {"m": 1}]),
    },
)
STORIES = st.lists(
    st.tuples(st.just("put"), DEFINITIONS)
    | st.tuples(st.sampled_from(["pause", "resume", "trigger", "advance", "delete"]), st.just({})),
    max_size=12,
)
NEW: dict[str, Any] = {"paused": False, "memo": {}}
OMITTED: dict[str, Any] = {"tags": (), "description": "", "input": None, "policies": Policies()}


def modelled(model: dict[str, Any] | None, definition: dict[str, Any]) -> dict[str, Any]:
    wanted = {**(model or NEW), **OMITTED, **definition}
    return wanted | {
        "spec": read(definition["spec"]).text,
        "tags": tuple(wanted["tags"]),
        "policies": msgspec.convert(msgspec.to_builtins(wanted["policies"]), Policies),
    }


def read(spec: Any) -> Spec:
    if spec in THE_SAME:
        return Spec.cron(DAILY)
    return Spec.cron(spec) if isinstance(spec, str) else Spec.parse(spec)


@given(STORIES)
def test_any_sequence_of_changes_is_as_the_model_says(story: list[tuple[str, dict[str, Any]]]):
    asyncio.run(live(story))


async def live(story: list[tuple[str, dict[str, Any]]]) -> None:
    model: dict[str, Any] | None = None
    async with TimeMachine(START) as machine:
        machine.app.action("hello")(Recorder(machine))
        schedules = machine.app.schedules
        for step, definition in story:
            if step == "put":
                wanted, version = modelled(model, definition), await version_of(machine)
                expected = "created" if model is None else "unchanged" if wanted == model else "changed"
                done = await schedules.put("s", action="hello", **definition)
                assert done.outcome == expected, (definition, model)
                assert done.schedule.version == version + (expected != "unchanged")
                model = wanted
            elif step == "advance":
                await machine.advance(minutes=11)
            elif model is not None:
                await getattr(schedules, step)("s")
                paused = {"pause": True, "resume": False}.get(step, model["paused"])
                model = None if step == "delete" else model | {"paused": paused}
            if model is not None:
                found = await schedules.get("s")
                shown = {
                    name: getattr(found, name) for name in ("spec", "tags", "description", "policies", "memo")
                }
                assert shown | {"paused": found.state.paused, "input": found.action.input} == model
        assert await schedules.exists("s") == (model is not None)


async def version_of(machine: TimeMachine) -> int:
    try:
        return (await machine.app.schedules.get("s")).version
    except ScheduleNotFoundError:
        return 0
