"""An argument that is misspelt, missing or of another type is an error at the call, which names it.

As in ``tests/test_checked.py``, each ``type: ignore`` proves that mypy sees the mistake too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horae import App, HoraeError, NewSchedule, Policies, SyncApp
from horae.app import Trigger
from horae.errors import InvalidInputError, NaiveTimeError, StoreUnavailableError
from horae.model import Action
from horae.testing import TimeMachine
from tests.support.cases import each_of

DAILY = "0 9 * * *"
START = datetime(2026, 3, 1, tzinfo=UTC)

WRONG: list[tuple[Callable[[App], Awaitable[object]], str, str, str]] = [
    (lambda app: app.schedules.create("x", DAILY, "hello", polices=Policies()), "polices", "is unknown", "did you mean policies?"),  # type: ignore[call-arg]
    (lambda app: app.schedules.create("x", DAILY, "hello", policies={"overlap": "skp"}), "policies.overlap", 'is "skp"', "did you mean skip?"),  # type: ignore[arg-type]
    (lambda app: app.schedules.create("x", DAILY, "hello", policies=Policies(retry={"attempts": 0})), "policies.retry.attempts", "must be at least 1", ""),
    (lambda app: app.schedules.create("x", DAILY, "hello", policies={"retry": {"factor": float("inf")}}), "policies.retry.factor", "must be at most", ""),
    (lambda app: app.schedules.create(7, DAILY, "hello"), "schedule_id", "must be a text, not a whole number", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.create("x", 7, "hello"), "spec", "must be", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.create("x", DAILY, print), "action", "is a function that is not registered", "register it with @app.action"),
    (lambda app: app.schedules.create("x", DAILY, 7), "action", "must be an Action or a mapping or a text or a function, not a whole number", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.create("x", DAILY), "action", "is missing", ""),  # type: ignore[call-arg]
    (lambda app: app.schedules.create("x", DAILY, "hello", input={"at": float("nan")}), "input", "has a number that is not finite", ""),
    (lambda app: app.schedules.create("x", DAILY, "hello", memo={"m": object()}), "memo.m", "is of the type object, which JSON cannot hold", ""),
    (lambda app: app.schedules.create("x", DAILY, "hello", input={"n": [1, object()]}), "input.n[1]", "is of the type object, which JSON cannot hold", "JSON holds texts, numbers"),
    (lambda app: app.schedules.trigger("s", input=object()), "input", "is of the type object, which JSON cannot hold", "JSON holds texts, numbers"),
    (lambda app: app.schedules.update("s", descripton="x"), "descripton", "is unknown", "did you mean description?"),  # type: ignore[call-arg]
    (lambda app: app.schedules.update("s", policies=None), "policies", "must be a mapping, not nothing", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.update("s", version="1"), "version", "must be a whole number or None, not a text", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.trigger("s", overlap="skp"), "overlap", 'is "skp"', "did you mean skip?"),  # type: ignore[arg-type]
    (lambda app: app.schedules.trigger("s", note=5), "note", "must be a text, not a whole number", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.pause("s", untl="x"), "untl", "is unknown", "did you mean until?"),  # type: ignore[call-arg]
    (lambda app: app.schedules.pause("s", until=5), "until", "must be a datetime or a text", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.patch("s", backfills="all"), "backfills", "must be", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.list(limit=0), "limit", "must be at least 1, and is 0", ""),
    (lambda app: app.schedules.list("report"), "only", "must be a Filter or None, not a text", ""),  # type: ignore[arg-type]
    (lambda app: app.runs.list("s", limit="10"), "limit", "must be a whole number, not a text", ""),  # type: ignore[arg-type]
    (lambda app: app.runs.list("s", 20, cursor=7), "cursor", "must be a text or None, not a whole number", ""),  # type: ignore[arg-type]
    (lambda app: app.runs.get(None), "run_id", "must be a text, not None", ""),  # type: ignore[arg-type]
    (lambda app: app.backfills.start("s", START, START, overlap="x"), "overlap", 'is "x"', ""),  # type: ignore[arg-type]
    (lambda app: app.backfills.start("s", START), "end", "is missing", ""),  # type: ignore[call-arg]
    (lambda app: app.backfills.start("s", START, START - timedelta(days=1)), "end", "is before start", ""),
    (lambda app: app.calendars.put("c", ["2026-12-25"]), "calendar", "must be a SharedCalendar or a mapping", ""),  # type: ignore[arg-type]
    (lambda app: app.schedules.put("x", DAILY, "hello", timezone="Europe/Berlin"), "timezone", "is unknown", '{"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}'),  # type: ignore[call-arg]
    (lambda app: app.schedules.create("x", DAILY, "hello", tz="Europe/Berlin"), "tz", "is unknown", '{"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}'),  # type: ignore[call-arg]
    (lambda app: app.schedules.create("x", action="hello", every="5m"), "every", "is unknown", '{"intervals": [{"every": "5m"}]}'),  # type: ignore[call-arg]
    (lambda app: app.schedules.create("x", [DAILY], "hello"), "spec", "not a list", '{"crons": ["0 9 * * *", …]}'),  # type: ignore[arg-type]
    (lambda app: app.schedules.create("x", timedelta(minutes=5), "hello"), "spec", "not a timedelta", '{"intervals": [{"every": "5m"}]}'),  # type: ignore[arg-type]
    (lambda app: app.schedules.create("x", DAILY, "hello", kwargs={}), "kwargs", "is unknown", "did you mean input?"),  # type: ignore[call-arg]
    (lambda app: app.once("hello", in_="5m", tz="Europe/Berlin"), "tz", "is unknown", "did you mean timezone?"),  # type: ignore[call-arg]
    (lambda app: app.runs.list(), "schedule_id", "is missing", "app.runs.search() lists the runs of all schedules"),  # type: ignore[call-arg]
    (lambda app: app.why.explain("s", 5), "when", "must be a datetime or a text, not a whole number", ""),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("call", "field", "reason", "hint"), WRONG)
async def test_a_wrong_argument_is_refused_at_the_call(
    machine: TimeMachine, call: Callable[[App], Awaitable[object]], field: str, reason: str, hint: str
):
    app = machine.app
    app.action("hello")(lambda context: None)
    before = await app.schedules.create("s", DAILY, "hello")
    with pytest.raises(InvalidInputError) as refused:
        await call(app)
    assert refused.value.details["field"] == field
    assert reason in refused.value.details["reason"]
    assert hint in (refused.value.hint or "")
    assert await app.schedules.list() == [before]


def test_a_path_is_shown_as_an_address():
    for kind in (App, SyncApp):
        with pytest.raises(InvalidInputError, match="database must be a text, not a PosixPath") as refused:
            kind(Path("x.db"))  # type: ignore[arg-type]
        assert refused.value.hint == 'write "sqlite:///x.db"'


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: App(5), "database"),  # type: ignore[arg-type]
        (lambda: App(databse=":memory:"), "databse"),  # type: ignore[call-arg]
        (lambda: App(":memory:", config={"port": 1}), "config"),  # type: ignore[arg-type]
        (lambda: App(":memory:").owned_by(7), "owner"),  # type: ignore[arg-type]
    ],
)
def test_an_app_checks_what_it_is_made_of(make: Callable[[], object], field: str):
    with pytest.raises(HoraeError) as refused:
        make()
    assert refused.value.details["field"] == field


NO_DATABASE = [
    ("no/such/folder/x.db", "no/such/folder/x.db: its folder does not exist", "make the folder no/such/folder, or name another file"),
    ("text.db", "text.db: file is not a database", "name another file"),
    ("folder", "folder: is a folder, and a database is a file", "name a file in it: sqlite:///folder/horae.db"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "reason", "hint"), NO_DATABASE)
async def test_a_database_that_cannot_be_opened_says_why(
    path: str, reason: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("This is a text, and longer than the header of a database.\n" * 10)
    app, sync = App(f"sqlite:///{path}"), SyncApp(f"sqlite:///{path}")
    for attempt in (app.open(), asyncio.to_thread(sync.start)):
        with pytest.raises(StoreUnavailableError) as refused:
            await attempt
        assert str(refused.value) == f"The database cannot be reached: {reason}"
        assert refused.value.for_operator == str(refused.value)
        assert hint in (refused.value.hint or "")
        assert refused.value.__notes__ == [f"hint: {refused.value.hint}"]


DEFINITIONS: list[tuple[Callable[[App], object], str, str]] = [
    (lambda app: app.schedule("every 5 minutes"), "expression field has 3 fields", 'every="5m" in @app.schedule'),
    (lambda app: app.schedule("5m"), "expression field has 1 field", 'every="5m" in @app.schedule'),
    (lambda app: app.schedule(timedelta(minutes=5)), "spec must be", 'write every="5m"'),  # type: ignore[arg-type]
    (lambda app: app.schedule(5), "spec must be", 'write every="5m"'),  # type: ignore[arg-type]
    (lambda app: app.schedule([DAILY, "0 10 * * *"]), "spec must be", '{"crons": ["0 9 * * *", …]}'),  # type: ignore[arg-type]
    (lambda app: app.schedule(DAILY, tz="Europe/Berlin"), "tz is unknown", "did you mean timezone?"),  # type: ignore[call-arg]
    (lambda app: app.schedule(cron=DAILY), "cron is unknown", "give the cron expression as spec, the first argument"),  # type: ignore[call-arg]
    (lambda app: app.schedule(interval="5m"), "interval is unknown", "did you mean every?"),  # type: ignore[call-arg]
    (lambda app: app.schedule(DAILY, args=[1]), "args is unknown", "did you mean input?"),  # type: ignore[call-arg]
    (lambda app: app.schedule(DAILY, "Europe/Berlin"), "timezone must be given by name", 'write timezone="Europe/Berlin"'),  # type: ignore[call-arg]
    (lambda app: app.schedule(DAILY, {"n": 1}), "the arguments are too many", "give the others by name: every=…"),  # type: ignore[call-arg, arg-type]
    (lambda app: app.schedule(), "the times are missing", 'every="5m"'),
    (lambda app: app.schedule(every="0s"), "every is shorter than 1s", ""),
]  # fmt: skip


@each_of(("define", "sentence", "hint"), DEFINITIONS)
def test_a_wrong_definition_says_what_to_write(define: Callable[[App], object], sentence: str, hint: str):
    with pytest.raises(HoraeError) as refused:
        define(App(":memory:"))
    assert sentence in str(refused.value)
    assert hint in (refused.value.hint or "")


def test_with_and_async_with_are_told_apart():
    machine = TimeMachine(START)
    for kind, enter, sentence in (
        (App, lambda: App(":memory:").__enter__(), 'write "async with" for an App; without an event loop, use horae.SyncApp'),  # type: ignore[attr-defined]
        (TimeMachine, machine.__enter__, 'write "async with" for a TimeMachine'),  # type: ignore[attr-defined]
        (SyncApp, lambda: SyncApp(":memory:").__aenter__(), 'write "with" for a SyncApp; in an event loop, use horae.App'),  # type: ignore[attr-defined]
    ):  # fmt: skip
        assert hasattr(kind, "__exit__" if kind is not SyncApp else "__aexit__")
        with pytest.raises(TypeError, match=re.escape(sentence)):
            enter()


async def test_a_time_machine_checks_its_start_and_what_it_advances():
    with pytest.raises(NaiveTimeError, match="has no time zone"):
        TimeMachine(START.replace(tzinfo=None))
    for text, hint in (("2026-03-01T00:00", "write it with its offset"), ("soon", "ISO 8601 with an offset")):
        with pytest.raises(HoraeError, match="start is") as refused:
            TimeMachine(text)
        assert hint in (refused.value.hint or "")
    async with TimeMachine("2026-03-01T00:00:00Z") as machine:
        assert machine.now == START
        with pytest.raises(InvalidInputError, match="the span is negative") as refused:
            await machine.advance(hours=-1)
        assert "machine.clock.set_back(hours=1)" in (refused.value.hint or "")
        with pytest.raises(InvalidInputError, match="months is unknown"):
            await machine.advance(months=1)
        assert machine.now == START


async def test_a_time_machine_tests_an_app_that_it_adopts():
    assert "machine.app.adopt(app)" in (TimeMachine.__doc__ or "")
    app, done = App("sqlite:///never-opened.db"), []

    @app.schedule(DAILY)
    def report() -> None:
        done.append(1)

    async with TimeMachine(START) as machine:
        machine.app.adopt(app)
        await machine.advance(hours=48)
        assert [str(each.status) for each in await machine.app.runs.list("report")] == ["succeeded"] * 2
    assert done == [1, 1]
    assert not Path("never-opened.db").exists()


async def test_policies_are_given_as_values_or_mappings_and_a_mapping_changes_only_what_it_names(
    machine: TimeMachine,
):
    app = machine.app
    app.action("hello")(lambda context: None)
    made = await app.schedules.create(
        "s", DAILY, "hello", policies={"overlap": "queue", "retry": {"attempts": 3, "initial_delay": timedelta(minutes=1)}},
        tags=["a"], trigger={"note": "now", "overlap": "allow_all"},
    )  # fmt: skip
    assert made.policies == Policies(overlap="buffer_all", retry={"attempts": 3, "initial_delay": "1m"})
    assert made.tags == ("a",)
    changed = await app.schedules.update("s", policies={"retry": {"attempts": None}})
    assert changed.policies == Policies(overlap="buffer_all", retry={"attempts": None, "initial_delay": "1m"})
    replaced = await app.schedules.update("s", policies=Policies(overlap="skip"))
    assert replaced.policies == Policies()
    await app.schedules.patch("s", trigger=Trigger(overlap="skip"))
    assert await app.schedules.get("s") == replaced


async def test_a_registered_function_is_its_action(machine: TimeMachine):
    app = machine.app

    @app.action("reports.daily")
    def report() -> None: ...

    @app.schedule(DAILY)
    def other() -> None: ...

    assert (await app.schedules.create("x", DAILY, report, input={})).action.name == "reports.daily"
    await app.schedules.create_many([NewSchedule(id="y", spec=DAILY, action=other)])
    assert (await app.once(report, in_="1h")).action.name == "reports.daily"
    assert (await app.schedules.update("x", action=other)).action == Action(name="other", input={})
    assert (await app.schedules.put("x", DAILY, report)).schedule.action == Action(name="reports.daily")
    assert await app.schedules.knows_action(other)


def test_the_decorator_without_parentheses_shows_what_to_write():
    def report() -> None: ...

    app, sync = App(":memory:"), SyncApp(":memory:")
    for decorate in (app.schedule, sync.schedule):
        for given in (report, print, app.now, dict):
            with pytest.raises(InvalidInputError) as refused:
                decorate(given)  # type: ignore[arg-type]
            assert str(refused.value) == "@schedule needs parentheses"
            assert refused.value.hint == 'write @app.schedule("0 9 * * *"), or @app.schedule(every="5m")'
