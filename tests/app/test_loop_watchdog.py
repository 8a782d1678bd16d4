"""What blocks the event loop is told, with where it does: real programs whose actions block it, and some whose actions do not."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from horae import App, Config
from horae.face.service.metrics import Metrics
from horae.testing import TimeMachine
from tests.support.nodes import ended, keeping_time, running
from tests.support.process import Programs
from tests.support.service import client_of
from tests.support.wait import PATIENCE, wait_for, wait_until

PROGRAM = """\
import asyncio, logging, sys, time
import horae
from horae.errors import StoreUnavailableError
from horae.model import OPEN

log, database, action, times = sys.argv[1:]
logging.basicConfig(filename=log, format="%(levelname)s %(message)s")
app = horae.App(database, config=horae.Config(tick_ms=100))
holding, blocked = asyncio.Event(), asyncio.Event()
begun = time.process_time()  # other programs may slow it now, and not then
sum(range(20_000_000))
SECONDS = int(20_000_000 / (time.process_time() - begun))

def note(text):
    with open(log, "a") as file:
        print(text, file=file)

@app.action
async def sleeps():
    wait_in_vain()

def wait_in_vain():
    time.sleep(3)

@app.action
async def computes():
    sum(range(3 * SECONDS))

@app.action
async def is_slow():
    note("it begins")
    for _ in range(30):
        await asyncio.sleep(0.1)

@app.action
def sleeps_in_a_thread():
    time.sleep(3)

@app.action
def computes_in_a_thread():
    sum(range(3 * SECONDS))

@app.action
async def blocks_a_transaction():
    await holding.wait()
    time.sleep(3.5)  # the server ends transactions that are idle for 2 s
    blocked.set()

async def hold_a_transaction():
    try:
        async with app.transaction():
            holding.set()
            await blocked.wait()
    except StoreUnavailableError as error:
        note(f"raised: {error}")

async def main():
    async with app:
        await app.schedules.create("daily", "0 0 1 1 *", action)
        serving = asyncio.create_task(app.serve())
        if action == "blocks_a_transaction":
            asyncio.create_task(hold_a_transaction())
        for _ in range(int(times)):
            run = await app.schedules.trigger("daily")
            while (await app.runs.get(run)).status in OPEN:
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)
        last = (await app.readiness()).loop_blocked
        note("last: " + ("none" if last is None else f"{last.cause} {last.schedule} {last.action} {last.lasted_ms >= 1000}"))
        serving.cancel()

asyncio.run(main())
"""


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    (tmp_path / "program.py").write_text(PROGRAM)
    each = Programs(tmp_path, tmp_path / "program.py")
    yield each
    each.end()


def log_of(programs: Programs, action: str, *, database: str = "", times: int = 1) -> str:
    """What a program logs whose action has run some times."""
    process = programs.launch(str(programs.file), database or programs.database, action, str(times))
    assert process.wait(PATIENCE) == 0
    return programs.text()


def test_an_action_that_blocks_the_loop_is_told_while_it_does_with_its_stack(
    programs: Programs, database: str
):
    log = log_of(programs, "sleeps", database=database)
    during, _, after = log.partition("and answers again")
    assert "WARNING the event loop has been blocked for 1." in during
    assert 'by action "sleeps" of schedule "daily", attempt 1 of the run' in during
    assert "define what blocks with `def` instead of `async def`" in during
    assert "asyncio.to_thread" in during
    shown = during.partition("  File ")[2]
    assert shown.index("in sleeps\n    wait_in_vain()") < shown.index("in wait_in_vain\n    time.sleep(3)")
    assert "horae" not in shown.partition("WARNING")[0].replace(str(programs.folder), "")
    assert "last: step daily sleeps True" in after
    assert "cannot be reached" not in log


def test_a_call_that_holds_the_interpreter_is_told_right_after_with_its_stack(
    programs: Programs, database: str
):
    log = log_of(programs, "computes", database=database)
    assert "was blocked for" in log or "stood still for" in log
    if (
        "last: held daily computes" not in log
    ):  # on a busy machine the loop may have its turn before the thread that looks
        return
    line = next(each for each in log.splitlines() if "computes" in each)
    assert "the event loop was blocked for" in line
    assert 'by action "computes" of schedule "daily", attempt 1' in line
    assert "in a process of its own" in line
    assert "in computes\n    sum(range(3 * SECONDS))" in log
    assert "last: held daily computes True" in log


def test_an_action_is_told_once_an_hour(programs: Programs):
    log = log_of(programs, "sleeps", times=2)
    assert log.count("has been blocked") == log.count("answers again") == 1
    assert log.count("in wait_in_vain") == 1


@pytest.mark.parametrize("action", ["is_slow", "sleeps_in_a_thread"])
def test_what_waits_without_blocking_is_not_told(programs: Programs, action: str):
    log = log_of(programs, action)
    assert action not in log
    assert "None None" in log or "last: none" in log  # a machine that is busy may let the process stand still


def test_a_thread_that_holds_the_interpreter_is_not_blamed_on_what_runs_in_the_loop(programs: Programs):
    log = log_of(programs, "computes_in_a_thread")
    assert "by action" not in log
    assert "by another thread, which held the global interpreter lock" in log or "stood still for" in log
    assert "None None True" in log


def test_a_process_that_was_stopped_stood_still_and_no_action_is_to_blame(programs: Programs):
    process = programs.launch(str(programs.file), programs.database, "is_slow", "1")
    wait_for(lambda: "it begins" in programs.text())
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE) == 0
    log = programs.text()
    assert "WARNING the process stood still for" in log
    assert "is_slow" not in log
    assert "last: process None None True" in log


def test_a_transaction_that_a_blocked_loop_lost_is_told_as_that(programs: Programs, postgres: str):
    log = log_of(programs, "blocks_a_transaction", database=postgres)
    (line,) = [each for each in log.splitlines() if "failed meanwhile: " in each]
    assert line.startswith("WARNING ")  # and not an error: the database is not away
    assert "was blocked for 3" in line
    assert 'by action "blocks_a_transaction" of schedule "daily"' in line
    assert (
        "raised: The event loop of this process was blocked, and what it asked of the database failed meanwhile"
        in log
    )
    assert "cannot be reached" not in log
    assert "answers again" in log


async def test_readyz_and_metrics_show_the_last_one(tmp_path: Path):
    app = App(f"sqlite:///{tmp_path / 'horae.db'}", config=Config(tick_ms=50, loop_blocked_ms=200))

    @app.action
    async def sleeps() -> None:
        time.sleep(1)

    metrics = Metrics()
    app.watch(metrics)
    async with running(app), client_of(app) as client:
        await wait_until(lambda: bool(watching()))
        assert (await client.get("/readyz")).json()["loop_blocked"] is None
        await app.schedules.create("daily", "0 0 1 1 *", "sleeps")
        before = app.clock.now()
        await ended(app, await app.schedules.trigger("daily"))
        answer = await client.get("/readyz")
        assert answer.status_code == 200
        shown = answer.json()["loop_blocked"]
        assert (shown["cause"], shown["schedule"], shown["action"]) == ("step", None, None)  # anyone may ask
        last = (await app.readiness()).loop_blocked
        assert last is not None
        assert (last.cause, last.schedule, last.action) == ("step", "daily", "sleeps")
        assert before <= last.at <= app.clock.now()
        assert 'horae_loop_blocked_seconds_count{cause="step"} 1.0' in (await metrics.page(app)).decode()


def watching() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "horae:watchdog"]


@asynccontextmanager
async def driven(app: App) -> AsyncIterator[None]:
    """An open app that keeps time, once its loops run."""
    async with keeping_time(app):
        await wait_until(lambda: bool(app._driver._loops))
        yield


async def test_no_thread_watches_a_virtual_clock_a_closed_app_or_one_that_is_not_to_be_watched(
    machine: TimeMachine, tmp_path: Path
):
    async with driven(machine.app):
        assert not watching()
    async with App(f"sqlite:///{tmp_path / 'off.db'}", config=Config(loop_blocked_ms=0)) as app, driven(app):
        assert not watching()
    async with App(f"sqlite:///{tmp_path / 'on.db'}") as app, driven(app):
        assert len(watching()) == 1
    wait_for(lambda: not watching())
