"""Hand-off to Procrastinate, with a real PostgreSQL and a real worker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import asyncpg
import procrastinate
import pytest

from horae import App
from horae.errors import InvalidInputError
from horae.executor.procrastinate_executor import ProcrastinateExecutor
from tests.executor.harness import handing_off
from tests.executor.procrastinate_tasks import app as tasks
from tests.support.nodes import ended
from tests.support.postgres import new_postgres_database
from tests.support.process import ROOT, environment, kill, run_program
from tests.support.wait import wait_until

TASKS = ["add", "boom", "slow"]


class Jobs:
    """A database with Procrastinate's tables, the log of its worker, and the tasks that programs know."""

    def __init__(self, database: str, log: Path) -> None:
        self.database = database
        self.log = log
        self.environment = {"HORAE_TEST_DATABASE": database, "HORAE_TEST_LOG": str(log)}
        self.app = tasks

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()

    async def rows(self, text: str = "SELECT * FROM public.procrastinate_jobs ORDER BY id") -> list[Any]:
        connection = await asyncpg.connect(self.database)
        try:
            return await connection.fetch(text)  # type: ignore[no-any-return]
        finally:
            await connection.close()


@pytest.fixture(scope="module")
def jobs(postgres_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    log = tmp_path_factory.mktemp("procrastinate") / "log"
    log.touch()
    made = Jobs(new_postgres_database(postgres_server), log)
    command = [sys.executable, "-m", "procrastinate", "-a", "tests.executor.procrastinate_tasks.app"]
    settings: Any = {"env": environment(**made.environment), "cwd": ROOT}
    subprocess.run([*command, "schema", "--apply"], check=True, capture_output=True, **settings)
    worker = subprocess.Popen(
        [*command, "worker", "-q", "sums,default", "-c", "4", "-p", "0.1", "--abort-job-polling-interval", "0.1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **settings,
    )  # fmt: skip
    yield made
    kill(worker)


def running(jobs: Jobs, **more: Any) -> AbstractAsyncContextManager[App]:
    return handing_off(ProcrastinateExecutor(jobs.app, TASKS, **more), jobs.database)


async def started(app: App, schedule_id: str, word: str, jobs: Jobs) -> str:
    run_id = await app.schedules.trigger(schedule_id, input={"who": word})
    await wait_until(lambda: f"slow begins {word}" in jobs.said())
    return run_id


async def test_jobs_end_fail_are_aborted_and_take_no_longer_than_they_may(jobs: Jobs):
    async with running(jobs) as app:
        await app.schedules.create("sum", {}, "procrastinate:add", input={"x": 1, "y": 2})
        run = await ended(app, await app.schedules.trigger("sum"))
        (row,) = [each for each in await jobs.rows() if each["queueing_lock"] == run.key]
        assert (run.status, run.result) == ("succeeded", {"job": row["id"], "attempts": 1})
        assert (row["lock"], row["queue_name"], row["args"]) == ("horae:sum", "sums", '{"x": 1, "y": 2}')
        assert jobs.said().count("add 1 2") == 1

        retried: Any = {"retry": {"attempts": 2, "initial_delay": "10ms"}, "overlap": "allow_all"}
        await app.schedules.create("boom", {}, "procrastinate:boom", policies=retried)
        run = await ended(app, await app.schedules.trigger("boom"))
        *_, row = [each for each in await jobs.rows() if each["queueing_lock"] == run.key]
        assert (run.status, jobs.said().count("boom"), row["lock"]) == ("failed", 2, None)
        assert f"Procrastinate says that boom failed: the job {row['id']} failed at attempt 1" in str(
            run.failure
        )

        await app.schedules.create("slow", {}, "procrastinate:slow", policies={"overlap": "cancel_other"})
        first = await started(app, "slow", "first", jobs)
        skipped = await app.schedules.trigger("slow", input={"who": "nobody"}, overlap="skip")
        second = await started(app, "slow", "second", jobs)  # only once the first has stopped
        assert (await ended(app, first)).status == "cancelled"
        assert jobs.said().index("slow stops first") < jobs.said().index("slow begins second")
        assert (await ended(app, skipped)).reason == "overlap"
        await app.runs.terminate(second)
        assert (await ended(app, second)).status == "terminated"

        await app.schedules.create("late", {}, "procrastinate:slow", policies={"timeouts": {"run": "1s"}})
        run = await ended(app, await app.schedules.trigger("late", input={"who": "third"}))
        (row,) = [each for each in await jobs.rows() if each["queueing_lock"] == run.key]
        assert (run.status, row["status"] in {"aborted", "cancelled"}) == ("timed_out", True)
        assert "slow begins nobody" not in jobs.said()


async def test_a_job_that_waits_is_cancelled_and_one_that_was_deleted_fails_its_run(jobs: Jobs):
    deaf = procrastinate.App(connector=procrastinate.PsycopgConnector())
    deaf.task(name="add", queue="nobody listens")(print)
    jobs = Jobs(jobs.database, jobs.log)
    jobs.app = deaf
    async with running(jobs) as app:
        await app.schedules.create("waits", {}, "procrastinate:add")

        async def row_of(run_id: str) -> Any:
            key = (await app.runs.get(run_id)).key
            return next((each for each in await jobs.rows() if each["queueing_lock"] == key), None)

        run_id = await app.schedules.trigger("waits")
        await wait_until(lambda: row_of(run_id))
        await app.runs.cancel(run_id)
        assert (await ended(app, run_id)).status == "cancelled"
        assert (await row_of(run_id))["status"] == "cancelled"

        run_id = await app.schedules.trigger("waits")
        await wait_until(lambda: row_of(run_id))
        await jobs.rows("DELETE FROM public.procrastinate_jobs WHERE status = 'todo'")
        run = await ended(app, run_id)
        assert "is gone; let workers keep what ended" in str(run.failure)


async def test_a_database_without_its_tables_is_tried_again_then_a_clear_reason(jobs: Jobs):
    async with running(jobs, schema="nowhere") as app:
        app.action("plain")(lambda: "plain")
        await app.schedules.create("away", {}, "procrastinate:add", policies={"start_attempts": 2})
        await app.schedules.create("plain", {}, "plain")
        away, plain = [await app.schedules.trigger(each) for each in ("away", "plain")]
        assert (await ended(app, plain)).result == "plain"  # what fails there concerns nothing else
        run = await ended(app, away)
        assert (run.status, run.attempt) == ("dropped", 2)
        assert "Procrastinate did not take the work: " in str(run.failure)


async def test_a_database_that_cannot_have_jobs_is_refused_when_the_schedule_is_stored():
    app = App(":memory:")
    app.use(ProcrastinateExecutor(tasks, TASKS))
    async with app:
        with pytest.raises(InvalidInputError, match="this one is not PostgreSQL"):
            await app.schedules.create("sum", {}, "procrastinate:add")
        assert await app.schedules.list() == []


async def test_processes_that_die_around_the_claim_neither_lose_the_job_nor_repeat_it(jobs: Jobs):
    program = ["-m", "tests.executor.dying_programs", "procrastinate", jobs.database]
    done = await asyncio.to_thread(
        run_program, *program, "prepared", "claimed", "following", "following", settings=jobs.environment
    )
    assert done.returncode == 0, done.stderr
    (row,) = [each for each in await jobs.rows() if each["lock"] == "horae:k"]
    assert done.stdout == f"succeeded {{'job': {row['id']}, 'attempts': 1}}\n"
    assert jobs.said().count("add 2 3") == 1
