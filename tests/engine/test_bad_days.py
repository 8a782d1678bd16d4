"""What must hold when something goes wrong: the table in docs/reference/runs.md, line by line."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from horae import App, Config, Context, Overlap, Policies, RetryPolicy, Timeouts
from horae.app import Schedules
from horae.app.owner_scope import OwnerScope
from horae.clock import SystemClock
from horae.engine.engine import Engine
from horae.engine.worker import Worker
from horae.errors import NodeNameTakenError, StoreUnavailableError, UnknownActionError
from horae.executor.action_registry import Executors
from horae.executor.function_executor import FunctionExecutor
from horae.model import ScheduleKey
from horae.store.sqlite import SqliteStore
from tests.engine.programs import Programs
from tests.support.nodes import (
    ShiftedClock,
    due_now,
    has_status,
    only_run,
    running,
    soon,
    step,
    step_until,
    waits_for_lock,
    writes_wait,
)
from tests.support.process import kill
from tests.support.wait import PATIENCE, wait_for, wait_until

QUICK = Config(
    lease_ms=60_000, housekeeping_ms=300, tick_ms=100, attention_ms=500, terminate_ms=200, drain_ms=500
)
SHORT = msgspec.structs.replace(QUICK, lease_ms=3000)
"""For tests in which a lease ends by itself."""


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'horae.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, file: str) -> str:
    return str(request.getfixturevalue("postgres")) if request.param == "postgres" else file


async def once(app: App, action: str, **more: Any) -> None:
    """A schedule of an action, named for it, that fires once and soon."""
    await app.schedules.create(action, soon(app), action, **more)


# The action


async def test_a_schedule_of_an_action_that_no_node_knows_is_not_created(database: str):
    async with App(database) as app:
        app.action("work")(print)
        with pytest.raises(UnknownActionError, match="wrok"):
            await app.schedules.create("s", "* * * * *", "wrok")
        assert await app.schedules.list() == []


async def test_an_action_that_is_gone_after_a_restart_is_waited_for(file: str):
    async with App(file) as app:
        app.action("work")(print)
        await app.schedules.create("s", soon(app), "work")
    async with running(App(file, config=QUICK)) as app:
        await wait_until(lambda: has_status(app, "starting"))

        async def needs_attention() -> bool:
            return "work" in (await app.schedules.get("s")).state.attention

        await wait_until(needs_attention)
        app.action("work")(lambda context: "at last")  # it is announced, and then it runs
        await wait_until(lambda: has_status(app, "succeeded"))
        assert (await only_run(app)).result == "at last"
        assert not await needs_attention()


class OwnError(BaseException):
    """A BaseException that is no Exception."""


class UnspeakableError(Exception):
    """Something that cannot be put in words."""

    def __str__(self) -> str:
        raise ValueError("no words")


class SilencingError(Exception):
    """An exception whose text cannot be read: asking for it raises a BaseException."""

    def __str__(self) -> str:
        raise OwnError


@pytest.mark.parametrize("threaded", [False, True])
async def test_whatever_an_action_raises_its_attempt_has_failed_and_the_program_continues(threaded: bool):
    kinds = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopAsyncIteration,
             OwnError, UnspeakableError, RecursionError)  # fmt: skip
    async with running(App(":memory:", config=QUICK)) as app:
        for kind in kinds:
            app.functions.register(kind.__name__, raising(kind, threaded=threaded))
            await once(
                app, kind.__name__, policies=Policies(retry=RetryPolicy(attempts=2, initial_delay="1ms"))
            )
        for kind in kinds:
            await wait_until(partial(has_status, app, "failed", kind.__name__))
            run = await only_run(app, kind.__name__)
            assert (run.attempt, run.failures, run.reason) == (2, 2, "failed")
            assert (run.failure or "").startswith(kind.__name__)
        app.action("work")(lambda context: "goes on")
        await once(app, "work")
        await wait_until(lambda: has_status(app, "succeeded", "work"))


def raising(kind: type[BaseException], *, threaded: bool) -> Callable[[Context], Any]:
    def raise_it(context: Context) -> None:
        raise kind

    async def raise_it_too(context: Context) -> None:
        raise kind

    return raise_it if threaded else raise_it_too


async def test_an_error_whose_words_raise_anything_at_all_has_failed_its_attempt_too():
    async with running(App(":memory:", config=QUICK)) as app:
        app.functions.register("work", raising(SilencingError, threaded=False))
        await once(app, "work")
        await wait_until(lambda: app.runs.list("work"))
        with contextlib.suppress(OwnError):
            await asyncio.gather(*app.worker.tasks)
        await wait_until(lambda: has_status(app, "failed", "work"))


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_result_that_is_no_json_or_too_long_has_failed_its_attempt(threaded: bool):
    results = {
        "object": object(), "surrogate": "\ud800", "keys": {(1, 2): 3}, "lambda": [lambda: 1],
        "long": "x" * (1024 * 1024), "longest": "x" * (1024 * 1024 - 2), "nul": "a\x00b", "big": 2**70,
    }  # fmt: skip
    fine = {"longest", "nul", "big"}
    async with running(App(":memory:", config=QUICK)) as app:
        for name, result in results.items():
            app.functions.register(name, returning(result, threaded=threaded))
            await once(app, name)
        for name, result in results.items():
            await wait_until(partial(has_status, app, "succeeded" if name in fine else "failed", name))
            run = await only_run(app, name)
            assert run.result == (result if name in fine else None)


def returning(result: object, *, threaded: bool) -> Callable[[Context], Any]:
    def return_it(context: Context) -> object:
        return result

    async def return_it_too(context: Context) -> object:
        return result

    return return_it if threaded else return_it_too


async def test_a_result_of_more_than_a_mebibyte_of_json_has_failed_its_attempt():
    async with running(App(":memory:", config=QUICK)) as app:
        app.functions.register("work", returning("é" * (600 * 1024), threaded=False))
        await once(app, "work")

        async def ended() -> bool:
            return any(run.ended_at_ms is not None for run in await app.runs.list("work"))

        await wait_until(ended)
        assert (await only_run(app, "work")).status == "failed"


async def test_what_a_database_cannot_hold_is_written_otherwise(
    postgres: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logging.getLogger("horae"), "propagate", False)  # pytest cannot hold it either

    class NulError(Exception):
        pass

    async def work(context: Context) -> None:
        raise NulError("a\x00b \ud800")

    async with running(App(postgres, config=QUICK)) as app:
        app.functions.register("work", work)
        await once(app, "work")
        await wait_until(lambda: has_status(app, "failed", "work"))
        assert (await only_run(app, "work")).failure == "NulError: a\\x00b \\ud800"


@pytest.mark.parametrize("threaded", [False, True])
async def test_an_action_that_never_returns_is_timed_out_and_its_schedule_continues(
    file: str, threaded: bool
):
    released = threading.Event()
    begun: list[str] = []

    def hang(context: Context) -> None:
        begun.append(context.key)
        released.wait()

    async def ignore_it(context: Context) -> None:
        begun.append(context.key)
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    async with running(App(file, config=QUICK)) as app:
        app.functions.register("work", hang if threaded else ignore_it)
        policies = Policies(overlap=Overlap.BUFFER_ALL, timeouts=Timeouts(run="200ms"))
        await app.schedules.create("s", "* * * * * *", "work", policies=policies)

        async def two_timed_out() -> bool:
            runs = await app.runs.list("s")
            return [run.status for run in reversed(runs)][:2] == ["timed_out"] * 2

        await wait_until(two_timed_out)
        await app.schedules.pause("s")
        run = (await app.runs.list("s"))[-1]
        assert (run.reason, run.failure) == ("run_timeout", "it did not stop when it was asked to")
        assert len(begun) == len(set(begun))
        assert len(app.worker.known("schedules")) < 2  # the node has room again
    released.set()


def test_a_program_ends_although_one_of_its_threads_never_does(programs: Programs, file: str):
    process = programs.start(0, drain_ms=300, terminate_ms=200)
    asyncio.run(create_when_known(file, "hang", Policies(timeouts=Timeouts(run="300ms"))))
    wait_for(lambda: any(word == "1" for _, word, _ in programs.log()))
    wait_for(lambda: "timed_out" in read(file, "SELECT status FROM run"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


async def create_when_known(database: str, action: str, policies: Policies) -> None:
    async with App(database) as app:

        async def known() -> bool:
            return any(action in node.actions for node in await app.nodes())

        await wait_until(known)
        await app.schedules.create("s", "* * * * * *", action, policies=policies)


def read(database: str, query: str) -> list[Any]:
    connection = sqlite3.connect(database.removeprefix("sqlite:///"))
    try:
        return [row[0] for row in connection.execute(query)]
    finally:
        connection.close()


# The process


def test_a_program_that_is_stopped_leaves_its_running_runs_to_the_next(programs: Programs, file: str):
    process = programs.start(600, schedules=1, drain_ms=300, terminate_ms=300)
    wait_for(programs.log)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    key = programs.log()[0][0]
    assert [word for _, word, _ in programs.log()] == ["1", "stopped"]
    assert read(file, "SELECT status || ' ' || reason FROM run ORDER BY number")[0] == "retrying shutdown"
    assert read(file, "SELECT epoch FROM node") == []
    programs.start(0, schedules=1)
    wait_for(
        lambda: [word for other, word, _ in programs.log() if other == key] == ["1", "stopped", "2", "done"]
    )


async def test_a_run_over_which_ten_processes_died_has_failed(file: str):
    for number in range(1, 11):
        app = await App(file, config=QUICK).__aenter__()
        app.functions.register("work", forever)
        if number == 1:
            await app.schedules.create("s", soon(app), "work")
        await wait_until(partial(step_until, app, "running"))
        assert (await only_run(app)).attempt == number
        tasks = app.worker.tasks
        await app.close()  # nothing is recorded, as if it had been killed
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    async with App(file, config=QUICK) as app:
        run = await only_run(app)
        assert (run.status, run.reason, run.crashes) == ("failed", "crashed", 10)
        assert len(await app.runs.attempts(run.id)) == 10


async def forever(context: Context) -> None:
    await asyncio.Event().wait()


# The database


def is_said(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    return any(words in record.getMessage() for record in caplog.records)


async def check_every_second(app: App, begun: list[str]) -> None:
    """A schedule of every second that overlaps with itself: each slot is a run, and each was begun once."""
    async with app._store.transaction() as transaction:
        (schedule,) = await transaction.schedules([ScheduleKey("s")])
        runs, unstarted = (
            await transaction.runs(ScheduleKey("s"), 1000),
            await transaction.unstarted_ranges(ScheduleKey("s"), 1000),
        )
    assert unstarted == []
    nominal = sorted(run.nominal_ms // 1000 for run in runs)
    assert nominal == list(range(schedule.created_at_ms // 1000 + 1, schedule.cursor_ms // 1000 + 1))
    assert len(begun) == len(set(begun))
    assert all(run.attempt == 1 for run in runs if run.status == "succeeded")


async def test_a_full_disk_loses_nothing(file: str, caplog: pytest.LogCaptureFixture):
    begun: list[str] = []
    async with running(App(file, config=QUICK)) as app:

        @app.action("work")
        async def work(context: Context) -> str:
            begun.append(context.key)
            return "x" * 20_000

        assert isinstance(app._store, SqliteStore)
        pages: list[int] = await app._store.work(
            lambda connection: list(connection.execute("PRAGMA page_count").fetchone())
        )
        await allow_pages(app._store, pages[0] + 12)
        await app.schedules.create("s", "* * * * * *", "work", policies=Policies(overlap=Overlap.ALLOW_ALL))
        await wait_until(lambda: is_said(caplog, "disk is full"))
        before, later = len(begun), app.now() + 1500
        await wait_until(lambda: app.now() > later)  # slots fall due in that time
        await allow_pages(app._store, 1_000_000)
        await wait_until(lambda: len(begun) >= before + 2)

        async def all_recorded() -> bool:
            return not [run for run in await app.runs.list("s", 1000) if run.status != "succeeded"]

        await wait_until(all_recorded)
        await check_every_second(app, begun)


async def allow_pages(store: SqliteStore, pages: int) -> None:
    await store.work(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())


async def test_a_database_that_is_locked_for_too_long_loses_nothing(tmp_path: Path):
    path = str(tmp_path / "horae.db")
    clock, begun = SystemClock(), list[str]()
    store = SqliteStore(path, patience=0.2)
    await store.open(lambda: None)

    def now() -> int:
        return int(clock.now().timestamp() * 1000)

    functions = FunctionExecutor()
    executors = Executors(functions)
    worker = Worker(executors, lambda: None, now, now, concurrency=10, terminate_ms=100)
    engine = Engine(store, worker, clock, QUICK)

    async def work(context: Context) -> None:
        begun.append(context.key)

    functions.register("work", work)
    await engine.enter(now())
    await engine.maintain(now())
    policies = Policies(overlap=Overlap.ALLOW_ALL)
    schedules = Schedules(OwnerScope(store, now, lambda: None, executors=executors, config=Config()))
    schedule = await schedules.create("s", "* * * * * *", "work", policies=policies)

    async def fired(times: int) -> bool:
        await engine.step(now())
        return len(begun) >= times

    await wait_until(lambda: fired(1))  # it has ended, and is not recorded yet
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    locked_at = now()
    while now() < locked_at + 1500:
        with pytest.raises(StoreUnavailableError, match="locked"):
            await engine.step(now())
    other.execute("ROLLBACK")
    other.close()
    await wait_until(lambda: fired(4))
    await engine.drain(now)
    async with store.transaction() as transaction:
        runs = await transaction.runs(ScheduleKey("s"), 100)
        (schedule,) = await transaction.schedules([ScheduleKey("s")])
    await store.close()
    assert [run.nominal_ms // 1000 for run in reversed(runs)] == list(
        range(schedule.created_at_ms // 1000 + 1, schedule.cursor_ms // 1000 + 1)
    )
    assert {(run.status, run.attempt) for run in runs} == {("succeeded", 1)}
    assert len(begun) == len(set(begun)) == len(runs)


async def test_a_transaction_that_is_cancelled_while_it_waits_for_the_file_leaves_nothing_behind(
    tmp_path: Path,
):
    path = str(tmp_path / "horae.db")
    store = SqliteStore(path)
    await store.open(lambda: None)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    async def transact() -> int:
        async with store.transaction() as transaction:
            return await transaction.next_number()

    waiting = asyncio.create_task(transact())
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.sleep(0.1)
    other.execute("ROLLBACK")  # only now can it begin, and it is no longer wanted
    other.close()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    try:
        assert await transact() == 1
    finally:
        await store.close()


async def test_a_database_that_only_reads_for_a_while_ends_no_node(postgres: str, postgres_server: Any):
    name = postgres.partition("?")[0].rpartition("/")[2]
    async with App(postgres, config=QUICK) as app:
        app.action("work")(returning("done", threaded=True))
        await app.schedules.create("s", "* * * * * *", "work")
        task = asyncio.create_task(app.serve())
        await wait_until(lambda: has_status(app, "succeeded"))
        await asyncio.to_thread(only_read, postgres_server, name, "on")  # as a standby does, in a failover
        await asyncio.wait([task], timeout=3)
        ended = task.done()
        await asyncio.to_thread(only_read, postgres_server, name, "off")
        task.cancel()
        await asyncio.wait([task])
        assert not ended


def only_read(server: Any, name: str, word: str) -> None:
    server.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = {word};")
    server.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';")  # noqa: S608


class Proxy:
    """Stands between a program and PostgreSQL, and cuts connections at their next commit while it is told to."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.cut = ""
        """``before`` the commit has reached the server, or ``after`` it has answered; empty is not at all."""
        self.silent = False
        """Whether what is sent gets lost, in both directions, while all connections stay."""

    async def serve(self, program: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        server, question = await asyncio.open_unix_connection(self._socket)
        back = asyncio.create_task(self._copy(server, answer))
        try:
            while chunk := await program.read(1 << 16):
                if self.silent:
                    continue
                cut = self.cut if b"COMMIT" in chunk else ""
                if cut:
                    back.cancel()
                    await asyncio.wait([back])
                if cut != "before":
                    question.write(chunk)
                    await question.drain()
                if cut == "after":
                    await server.read(1 << 16)  # so it is committed, and only the answer is lost
                if cut:
                    break
        finally:
            back.cancel()
            for writer in (question, answer):
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(1 << 16):
                if not self.silent:
                    target.write(chunk)
                    await target.drain()
            target.close()


@asynccontextmanager
async def proxied(database: str) -> AsyncIterator[tuple[str, Proxy]]:
    """The address of a database behind a proxy."""
    folder = Path(f"/tmp/horae-proxy-{uuid.uuid4().hex[:8]}")  # noqa: S108 - sockets have short names only
    await asyncio.to_thread(folder.mkdir)
    socket = folder / ".s.PGSQL.5432"
    address, _, real = database.partition("?host=")
    proxy = Proxy(f"{real}/.s.PGSQL.5432")
    server = await asyncio.start_unix_server(proxy.serve, socket)
    try:
        yield f"{address}?host={folder}", proxy
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.to_thread(socket.unlink, missing_ok=True)
        await asyncio.to_thread(folder.rmdir)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_claim_whose_commit_was_lost_sight_of_is_launched_once(postgres: str, moment: str):
    begun: list[int] = []
    async with proxied(postgres) as (address, proxy), App(address) as app:

        @app.action("work")
        async def work(context: Context) -> str:
            begun.append(context.attempt)
            return "done"

        await app.schedules.create("s", soon(app), "work")
        await wait_until(lambda: due_now(app))
        proxy.cut = moment
        with pytest.raises(StoreUnavailableError):
            await step(app)
        proxy.cut = ""
        assert await statuses(postgres) == (["running"] if moment == "after" else [])
        assert begun == []
        await wait_until(lambda: step_until(app, "running"))
        await wait_until(lambda: begun == [1])
        # The same for the commit that records how it ended.
        app.engine._deciders[0]._doubtful_until = 0.0  # the first is long ago
        proxy.cut = moment
        with pytest.raises(StoreUnavailableError):
            await step(app)
        proxy.cut = ""
        assert await statuses(postgres) == (["succeeded"] if moment == "after" else ["running"])
        await wait_until(lambda: step_until(app, "succeeded"))
        run = await only_run(app)
        assert (run.attempt, run.result, begun) == (1, "done", [1])
        assert await app.runs.attempts(run.id) == []


async def test_a_node_that_is_cut_off_stops_its_runs_before_another_takes_them_over(postgres: str):
    told: list[str] = []
    async with proxied(postgres) as (address, proxy), contextlib.AsyncExitStack() as stack:
        cut_off = App(address, config=SHORT)

        @cut_off.action("work")
        async def wait(context: Context) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                told.append(f"stopped {context.attempt}")

        await stack.enter_async_context(running(cut_off))
        await cut_off.schedules.create("s", soon(cut_off), "work")
        await wait_until(lambda: has_status(cut_off, "running"))
        epoch = cut_off.engine.epoch
        other = await stack.enter_async_context(running(App(postgres, config=SHORT)))

        @other.action("work")
        async def work(context: Context) -> str:
            told.append(f"begun {context.attempt}")
            return "other"

        proxy.silent = True
        await wait_until(lambda: has_status(other, "succeeded"))
        assert told == ["stopped 1", "begun 2"]
        assert not cut_off.engine.holds_lease
        proxy.silent = (
            False  # what was sent in that time is lost, and so are the connections that it was sent on
        )
        await wait_until(lambda: cut_off.engine.epoch > epoch and cut_off.engine.holds_lease)
        run = await only_run(other)
        assert (run.attempt, run.result) == (2, "other")


async def test_a_lease_that_ends_stops_what_is_running_without_asking_the_database(postgres: str):
    clock, stopped = ShiftedClock(), asyncio.Event()
    async with App(postgres, clock=clock) as app:

        @app.action("work")
        async def wait(context: Context) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                stopped.set()
            return "it did not notice"

        await app.schedules.create("s", soon(app), "work")
        await wait_until(lambda: step_until(app, "running"))
        lease = app.config.lease_ms / 1000
        clock.slept = lease / 2
        assert 0 < app.engine.guard() < lease / 2  # it leaves some of the lease to stop in
        assert not stopped.is_set()
        clock.slept += app.engine.guard()
        app._store._pool, pool = None, app._store._pool  # type: ignore[attr-defined]
        app.engine.guard()
        await asyncio.wait_for(stopped.wait(), PATIENCE)
        assert not app.engine.holds_lease
        app._store._pool = pool  # type: ignore[attr-defined]
        # What ended after that counts for nothing, although no other node has attempted it yet.
        await wait_until(lambda: bool(app.worker.ended()))
        await step(app)
        (attempt,) = await app.runs.attempts((await only_run(app)).id)
        assert (attempt.reason, attempt.failure) == ("crashed", "it ended after its node had lost its lease")


async def test_a_transaction_that_stands_still_holds_up_a_takeover_for_less_than_a_lease(postgres: str):
    config = Config(lease_ms=30_000, housekeeping_ms=500)
    dead = App(postgres, config=config)
    async with App(postgres, config=config) as standing, App(postgres, config=config) as other:
        await dead.__aenter__()
        for app in (dead, other):
            app.action("work")(returning("done", threaded=False))
        await dead.schedules.create("s", soon(dead), "work")
        await wait_until(lambda: due_now(dead))
        dead.worker.launch = lambda *_: None  # type: ignore[method-assign]
        await step(dead)  # it claims, and dies before it launches anything
        await dead.close()
        await execute(
            postgres, "UPDATE node SET deadline = clock_timestamp() WHERE epoch = $1", dead.engine.epoch
        )
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def stand() -> None:
            async with standing.transaction() as transaction:
                await transaction.schedules([ScheduleKey("s")])
                begun.set()
                await go_on.wait()

        standing_still = asyncio.create_task(stand())
        await begun.wait()
        async with asyncio.timeout(config.lease_ms / 1000 / 2):
            assert (await other.engine.maintain(other.now())).rescued == 1
        go_on.set()
        with pytest.raises(StoreUnavailableError):
            await standing_still


async def execute(database: str, statement: str, *values: object) -> None:
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(statement, *values)
    finally:
        await connection.close()


async def statuses(database: str) -> list[str]:
    connection = await asyncpg.connect(database)
    try:
        return [row[0] for row in await connection.fetch("SELECT status FROM run")]
    finally:
        await connection.close()


# Nodes


async def test_a_node_whose_lock_file_is_removed_stops_its_runs_before_another_takes_them_over(
    tmp_path: Path,
):
    told: list[str] = []
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    one, other = App(database, config=SHORT), App(database, config=SHORT)

    @one.action("work")
    async def wait(context: Context) -> None:
        told.append(f"begun {context.attempt}")
        try:
            await asyncio.sleep(60 if context.attempt == 1 else 0)
        finally:
            told.append(f"ended {context.attempt}")

    async with running(one), running(other):
        await one.schedules.create("s", soon(one), "work")
        await wait_until(lambda: has_status(one, "running"))
        epoch = one.engine.epoch
        (tmp_path / f"horae.db.node-{epoch}").unlink()
        await wait_until(lambda: one.engine.epoch > epoch)  # it rejoined
        await wait_until(lambda: has_status(other, "succeeded"))
        assert told[:2] == ["begun 1", "ended 1"]
        assert len(told) == 4  # once more; an attempt that is claimed while it rejoins does not begin
        assert (await one.readiness()).status == "ready"
        alive = {one.engine.epoch, other.engine.epoch}

        async def are_alive() -> bool:
            return {node.epoch for node in await other.nodes()} == alive

        await wait_until(are_alive)


async def test_a_name_that_a_living_node_has_is_refused(database: str):
    config = Config(node_name="one", lease_ms=3000, housekeeping_ms=200)
    async with running(App(database, config=config)) as first:
        with pytest.raises(NodeNameTakenError, match="one"):
            async with App(database, config=config):
                pass
        assert [node.epoch for node in await first.nodes()] == [first.engine.epoch]
    async with App(database, config=config) as second:
        assert [node.name for node in await second.nodes()] == ["one"]


async def test_the_name_of_a_killed_node_is_free_when_its_lease_has_ended(postgres: str, programs: Programs):
    config: dict[str, Any] = {"node_name": "one", "lease_ms": 2000, "housekeeping_ms": 500}
    process = programs.start(0, postgres, 1, **config)
    await wait_until(lambda: programs.lines() > 0)
    kill(process)
    async with App(postgres, config=Config(**config)) as app:  # it waits for the name
        (node,) = [each for each in await app.nodes() if each.name == "one"]
        assert node.epoch == app.engine.epoch


async def test_of_two_nodes_that_ask_for_one_name_at_once_one_gets_it(postgres: str):
    config = Config(node_name="one", lease_ms=4000, housekeeping_ms=200)
    async with App(postgres), contextlib.AsyncExitStack() as stack:
        async with writes_wait("node", postgres):
            entering = [
                asyncio.create_task(stack.enter_async_context(running(App(postgres, config=config))))
                for _ in range(2)
            ]
            await wait_until(lambda: waits_for_lock(postgres, 2))  # each found that the name is free
        answers = await asyncio.gather(*entering, return_exceptions=True)
        assert [type(answer) for answer in answers].count(NodeNameTakenError) == 1
