"""The same operations for code without an event loop."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from horae import Config, Filter, SyncApp
from horae.app import App, Backfills, Calendars, Runs, Schedules, ScopedOperations, sync
from horae.app.accounts import Accounts
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.program_schedules import Program
from horae.app.usage import UsageSums
from horae.app.why import Why
from horae.app.workflows import Workflows
from horae.errors import ScheduleNotFoundError, StoreUnavailableError
from tests.support.process import environment
from tests.support.wait import wait_for

QUICK = Config(tick_ms=50, housekeeping_ms=100)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[SyncApp]:
    with SyncApp(f"sqlite:///{tmp_path}/horae.db", config=QUICK) as app:
        app.action("hello")(lambda: "done")
        yield app


@pytest.mark.parametrize(
    ("proxy", "target"),
    [
        (sync.SyncSchedules, Schedules),
        (sync.SyncRuns, Runs),
        (sync.SyncBackfills, Backfills),
        (sync.SyncCalendars, Calendars),
        (sync.SyncWhy, Why),
        (sync.SyncFlows, Flows),
        (sync.SyncGrants, Grants),
        (sync.SyncUsage, UsageSums),
        (sync.SyncAccounts, Accounts),
        (sync.SyncWorkflows, Workflows),
        (sync.SyncOperations, ScopedOperations),
    ],
)
def test_no_operation_is_forgotten(proxy: type, target: type):
    blocking = {name for name, each in vars(proxy).items() if hasattr(each, "__wrapped__")}
    assert blocking == operations_of(target)
    assert not operations_of(proxy)


def test_no_operation_of_an_app_is_forgotten(app: SyncApp):
    # Background has the first five; the last is the console's
    background = {"open", "join", "serve", "close", "store", "change_mark"}
    for name in (operations_of(App) | operations_of(Program)) - background:
        assert callable(getattr(app, name)), name
        assert not inspect.iscoroutinefunction(getattr(app, name)), name


def operations_of(target: type) -> set[str]:
    asynchronous = inspect.getmembers(target, inspect.iscoroutinefunction)
    return {name for name, _ in asynchronous if not name.startswith("_")}


def test_operations_block_until_they_are_done(app: SyncApp):
    made = app.schedules.create("s", "0 9 * * *", "hello", tags=["a"])
    assert app.schedules.get("s") == made
    assert [each.id for each in app.schedules.list(Filter(tag="a"))] == ["s"]
    assert app.schedules.describe("s").schedule.id == "s"
    assert app.once("hello", in_="1h", key="k").id == "k"
    assert app.owned_by("ada").schedules.list() == []
    assert str(app.why.explain("s", "2099-01-01T09:00:00Z").verdict) == "will_fire"
    assert app.backfills.preview("s", "2026-01-01T00:00Z", "2026-01-03T00:00Z").slots == 2
    with pytest.raises(ScheduleNotFoundError):
        app.schedules.get("none")
    assert app.schedules.create.__doc__ == App(":memory:").schedules.create.__doc__


def test_many_threads_use_one_app(app: SyncApp):
    def one(number: int) -> str:
        app.schedules.create(f"s{number:02}", "0 9 * * *", "hello")
        return app.schedules.get(f"s{number:02}").id

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(one, range(40)))
    assert [each.id for each in app.schedules.list()] == ids


def test_it_keeps_time_in_the_background_and_waits_for_what_runs_when_it_is_closed(app: SyncApp):
    begun, done = threading.Event(), list[int]()

    @app.schedule(every="1s")
    def work(context: Any) -> None:
        begun.set()
        while not context.stop_requested() and not closing.is_set():
            closing.wait(0.05)
        done.append(context.attempt)

    closing = threading.Event()
    app.start()
    app.start()  # once
    assert begun.wait(30)
    assert app.readiness().lease
    threading.Timer(0.3, closing.set).start()
    app.close()
    assert done == [1]
    assert app.schedules.get("work").managed_by == f"program:{__name__}"  # it opens again
    (run,) = [each for each in app.runs.list("work") if each.attempt]
    assert run.status == "succeeded"


def test_a_plain_action_may_use_it_and_a_coroutine_is_told_not_to(app: SyncApp):
    @app.action
    def plain() -> int:
        return app.schedules.count()

    @app.action
    async def coroutine() -> int:
        return app.schedules.count()

    app.schedules.create("plain", "0 0 1 1 *", "plain")
    app.schedules.create("coroutine", "0 0 1 1 *", "coroutine")
    app.start()
    runs = [app.schedules.trigger(each) for each in ("plain", "coroutine")]
    wait_for(lambda: all(app.runs.get(each).ended_at for each in runs))
    good, bad = (app.runs.get(each) for each in runs)
    assert good.result == 2
    assert "would block the event loop" in str(bad.failure)


def test_it_opens_by_itself_and_says_why_it_cannot(tmp_path: Path):
    (tmp_path / "horae.db").mkdir()
    app = SyncApp(f"sqlite:///{tmp_path}/horae.db")
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            app.schedules.list()
    (tmp_path / "horae.db").rmdir()
    assert app.schedules.list() == []
    app.close()
    app.close()
    assert threading.active_count() < 20


def test_a_forked_process_is_told_to_open_its_own(app: SyncApp):
    app.schedules.list()
    if not (child := os.fork()):
        try:
            app.schedules.list()
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


SCRIPT = """
import horae
app = horae.SyncApp("{database}")
app.action("hello")(lambda: None)
print(app.schedules.create("s", "0 9 * * *", "hello").id)
"""


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_script_that_never_closes_it_ends_quietly(store: str, tmp_path: Path, postgres: str):
    database = f"sqlite:///{tmp_path}/horae.db" if store == "sqlite" else postgres
    ran = subprocess.run(
        [sys.executable, "-W", "default", "-c", SCRIPT.format(database=database)],
        capture_output=True, text=True, timeout=60, env=environment(), check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "s\n", "")
