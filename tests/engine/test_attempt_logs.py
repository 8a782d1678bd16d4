"""What actions log is kept with their attempts, on both stores, under their claims, while they run and when they have ended."""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
from typing import Any

import pytest

from horae import App, Config, Context, Policies, RetryPolicy, Status
from horae.engine.attempt_results import record
from horae.errors import InvalidInputError
from horae.model import AttemptEnd, AttemptResult, Limits, LogLine
from horae.testing import TimeMachine
from tests.support.nodes import step
from tests.support.wait import wait_until

AGAIN = Policies(retry=RetryPolicy(attempts=2, initial_delay="0s"))
QUICK = Config(attempt_log_flush_ms=20)


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


async def stepped(app: App, run_id: str, *statuses: Status) -> bool:
    await step(app)
    return (await app.runs.get(run_id)).status in statuses


async def messages(app: App, run_id: str) -> list[str]:
    return [line.message for line in await app.runs.logs(run_id)]


def told(lines: list[LogLine]) -> list[tuple[int, int, str, str, str]]:
    return [(line.attempt, line.number, line.level, line.logger, line.message) for line in lines]


@pytest.mark.parametrize("threaded", [False, True])
async def test_what_an_action_logs_is_kept_with_each_attempt(database: str, threaded: bool):
    jobs = logging.getLogger("jobs")

    def say(context: Context) -> None:
        context.log.info("attempt %d begins", context.attempt)
        jobs.info("in %s", "the middle")
        jobs.debug("below the level of its logger")
        context.log.debug("a detail")
        if context.attempt == 1:
            raise RuntimeError("as planned")

    async def work(context: Context) -> None:
        say(context)
        await asyncio.gather(asyncio.to_thread(jobs.warning, "from a thread"))

    async with App(database) as app:
        app.action("work")(say if threaded else work)
        await app.schedules.create("s", {}, "work", policies=AGAIN)
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        logging.getLogger("jobs").warning("outside of any attempt")
        lines = await app.runs.logs(run_id)
        only = await app.runs.logs(run_id, 1)
        now = app.now()
    expected = [
        each
        for attempt in (1, 2)
        for each in [
            (attempt, 1, "INFO", "work", f"attempt {attempt} begins"),
            (attempt, 2, "INFO", "jobs", "in the middle"),
            (attempt, 3, "DEBUG", "work", "a detail"),
        ]
    ]
    if not threaded:
        expected.append((2, 4, "WARNING", "jobs", "from a thread"))
    assert told(lines) == expected
    assert told(only) == expected[:3]
    assert lines.next is None
    assert all(0 <= now - line.at_ms < 60_000 for line in lines)


async def test_lines_can_be_read_while_the_attempt_runs_and_are_not_those_of_others(database: str):
    go_on = asyncio.Event()
    async with App(database, config=QUICK) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            context.log.info("%s begins", context.schedule_id)
            await go_on.wait()
            logging.getLogger("jobs").info("%s ends", context.schedule_id)

        runs: dict[str, str] = {}
        for name in "ab":
            await app.schedules.create(name, {}, "work")
            runs[name] = await app.schedules.trigger(name)
            await wait_until(partial(stepped, app, runs[name], Status.RUNNING))
        cursors: dict[str, str | None] = {}
        for name, run_id in runs.items():
            await wait_until(partial(messages, app, run_id))
            page = await app.runs.logs(run_id)
            assert [line.message for line in page] == [f"{name} begins"]
            assert page.next is not None  # more may come
            assert (await app.runs.logs(run_id, cursor=page.next)).next == page.next
            cursors[name] = page.next
        go_on.set()
        for name, run_id in runs.items():
            await wait_until(partial(stepped, app, run_id, Status.SUCCEEDED))
            rest = await app.runs.logs(run_id, cursor=cursors[name])
            assert ([line.message for line in rest], rest.next) == ([f"{name} ends"], None)
            assert await messages(app, run_id) == [f"{name} begins", f"{name} ends"]


@pytest.mark.contract("GRNT-07")
async def test_an_attempt_that_was_taken_over_writes_no_more_lines(database: str):
    go_on, over = threading.Event(), threading.Event()
    async with App(database, config=QUICK) as app:

        @app.action("work")
        def work(context: Context) -> None:
            if context.attempt > 1:
                return
            context.log.info("in time")
            go_on.wait(30)
            context.log.info("too late")
            over.set()

        await app.schedules.create("s", {}, "work", policies=AGAIN)
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.RUNNING))
        await wait_until(lambda: messages(app, run_id))
        run = await app.runs.get(run_id)
        async with app.transaction() as transaction:  # what another node does when it takes this one for dead
            crashed = AttemptResult(run=run, ending=AttemptEnd.CRASHED)
            await record(transaction, [crashed], app.now(), Limits())
        go_on.set()
        await wait_until(over.is_set)
        await app._logs.write()
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        assert await messages(app, run_id) == ["in time"]


async def test_too_many_lines_are_dropped_and_counted(database: str):
    async with App(database, config=Config(attempt_log_lines=300, attempt_log_flush_ms=5)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            for number in range(1, 2001):
                context.log.info("line %d", number)
                if number % 150 == 0:
                    await app._logs.write()

        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        lines = await app.runs.logs(run_id)
    assert len(lines) <= 300
    assert [line.number for line in lines[:150]] == list(range(1, 151))
    assert [line.message for line in lines] == [f"line {line.number}" for line in lines]
    assert lines[-1].number == 2000
    (gap,) = [line for line in lines if line.dropped]
    assert gap.dropped + len(lines) == 2000


async def test_pages_and_what_they_are_asked_for(machine: TimeMachine, monkeypatch: pytest.MonkeyPatch):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        for number in range(250):
            context.log.info("line %d", number + 1)
        raise RuntimeError("as planned")

    await machine.app.schedules.create("s", "0 * * * *", "work", policies=AGAIN)
    await machine.advance(minutes=61)
    (run,) = await machine.app.runs.list("s")
    monkeypatch.setattr("horae.app.attempt_logs.MOST", 2)
    runs, lines, cursor, pages = machine.app.runs, list[LogLine](), None, 0
    while pages == 0 or cursor is not None:
        page = await runs.logs(run.id, cursor=cursor)
        lines, cursor, pages = [*lines, *page], page.next, pages + 1
    assert [(line.attempt, line.number) for line in lines] == [
        (attempt, number) for attempt in (1, 2) for number in range(1, 251)
    ]
    assert pages >= 3
    assert {line.dropped for line in lines} == {0}
    assert [line.attempt for line in await runs.logs(run.id, 3)] == []
    wrongs: list[dict[str, Any]] = [{"attempt": 0}, {"attempt": 10**10}, {"cursor": "1"}, {"cursor": "a.b"}]
    for wrong in wrongs:
        with pytest.raises(InvalidInputError):
            await runs.logs(run.id, **wrong)


async def test_what_logs_nothing_writes_nothing(machine: TimeMachine, written: list[str]):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        if context.nominal.hour == 2:
            context.log.info("only now")
        await machine.sleep(seconds=0.5)

    await machine.app.schedules.create("s", "0 * * * *", "work")
    await machine.advance(minutes=61)
    assert "succeed" in written
    assert "append_log" not in written
    await machine.advance(minutes=60)
    assert written.count("append_log") == 1  # with the end of the attempt


async def test_none_are_kept_if_none_are_wanted(caplog: pytest.LogCaptureFixture):
    async with App(":memory:", config=Config(attempt_log_lines=0)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            context.log.info("for the program's own log")

        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        assert await app.runs.logs(run_id) == []
    assert "for the program's own log" in caplog.messages


async def test_lines_wait_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch, postgres: str):
    go_on = asyncio.Event()
    async with App(postgres, config=QUICK) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            context.log.info("while it is away")
            await go_on.wait()

        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")
        with monkeypatch.context() as away:
            away.setattr(app._logs, "_store", App("postgresql://nobody@127.0.0.1:1/none")._limited_store)
            await wait_until(lambda: stepped(app, run_id, Status.RUNNING))
            await asyncio.sleep(0.1)
            assert await messages(app, run_id) == []
        await wait_until(lambda: messages(app, run_id))
        go_on.set()
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        assert await messages(app, run_id) == ["while it is away"]
