"""Hand-off to Celery, with a real Redis and a real worker."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from horae import App
from horae.executor.celery_executor import CeleryExecutor
from horae.model import Run
from tests.executor.harness import handing_off
from tests.support.nodes import ended
from tests.support.process import ROOT, environment, kill, run_program
from tests.support.wait import wait_for, wait_until

pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server here")


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, str]]:
    """Redis and a worker; the environment in which both are found.

    Redis listens on a socket with a name of its own: a port that was free a moment ago may be another server's now.
    """
    folder = Path(tempfile.mkdtemp(prefix="redis"))  # not below pytest's: sockets have short names only
    socket, log = folder / "socket", folder / "log"
    found = {"HORAE_TEST_REDIS": f"redis+socket://{socket}", "HORAE_TEST_LOG": str(log)}
    log.touch()
    redis = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    wait_for(socket.exists)
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tests.executor.celery_tasks", "worker", "-c", "2", "--loglevel", "ERROR",
         "--without-gossip", "--without-mingle"],
        env=environment(**found), cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    yield found
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    kill(redis)
    shutil.rmtree(folder)


@pytest.fixture
def celery(engine: dict[str, str]) -> Iterator[Any]:
    from celery import Celery  # noqa: PLC0415

    made = Celery("tests", broker=engine["HORAE_TEST_REDIS"], backend=engine["HORAE_TEST_REDIS"])
    yield made
    made.close()


def running(celery: Any) -> AbstractAsyncContextManager[App]:
    return handing_off(CeleryExecutor(celery, ["add", "boom", "slow", "large"]))


def said(engine: dict[str, str]) -> list[str]:
    return Path(engine["HORAE_TEST_LOG"]).read_text().splitlines()


async def test_a_task_returns_its_result_or_fails(celery: Any, engine: dict[str, str]):
    async with running(celery) as app:
        await app.schedules.create("add", {}, "celery:add", input={"x": 1, "y": 2})
        run = await ended(app, await app.schedules.trigger("add"))
        assert (run.status, run.result) == ("succeeded", 3)

        retried: Any = {"retry": {"attempts": 2, "initial_delay": "10ms"}}
        await app.schedules.create("boom", {}, "celery:boom", policies=retried)
        run = await ended(app, await app.schedules.trigger("boom"))
        assert (run.status, run.failure) == (
            "failed", "HandOffFailedError: Celery says that boom failed: ValueError: no",
        )  # fmt: skip
        assert said(engine).count("boom") == 2

        await app.schedules.create("large", {}, "celery:large")
        run = await ended(app, await app.schedules.trigger("large"))
        assert (run.status, run.result) == ("failed", None)
        assert "bytes of JSON, and 1048576 are kept at most" in str(run.failure)


async def test_overlap_and_timeouts_reach_tasks(celery: Any, engine: dict[str, str]):
    async with running(celery) as app:

        async def started(schedule_id: str, who: str, **more: Any) -> str:
            run_id = await app.schedules.trigger(schedule_id, input={"who": who}, **more)
            await wait_until(lambda: f"slow begins {who}" in said(engine))
            return run_id

        def state_of(run: Run) -> Any:
            return celery.backend.get_task_meta(f"{run.key}-1", cache=False)["status"]

        await app.schedules.create("slow", {}, "celery:slow", policies={"overlap": "cancel_other"})
        first = await started("slow", "first")
        skipped = await app.schedules.trigger("slow", input={"who": "nobody"}, overlap="skip")
        second = await started("slow", "second")  # the first is revoked before
        run = await ended(app, first)
        assert (run.status, state_of(run)) == ("cancelled", "REVOKED")
        assert (await ended(app, skipped)).reason == "overlap"
        await app.runs.terminate(second)
        assert (await ended(app, second)).status == "terminated"

        await app.schedules.create("late", {}, "celery:slow", policies={"timeouts": {"run": "2s"}})
        run = await ended(app, await app.schedules.trigger("late", input={"who": "third"}))
        assert run.status == "timed_out"
        await wait_until(lambda: state_of(run) == "REVOKED")
        assert not [each for each in said(engine) if "nobody" in each or "ends" in each]


async def test_a_crash_between_hand_off_and_record_starts_the_work_once_and_loses_none(
    engine: dict[str, str], tmp_path: Path
):
    program = ["-m", "tests.executor.dying_programs", "celery", f"sqlite:///{tmp_path}/horae.db"]
    done = await asyncio.to_thread(
        run_program, *program, "claimed", "submitted", "submitted", "following", settings=engine
    )
    assert (done.returncode, done.stdout) == (0, "succeeded 5\n"), done.stderr
    assert said(engine).count("add 2 3") == 1


async def test_a_broker_that_is_away_is_retried_then_a_clear_reason():
    from celery import Celery  # noqa: PLC0415

    away = Celery("away", broker="redis+socket:///nowhere", backend="redis+socket:///nowhere")
    away.conf.result_backend_transport_options = {"retry_policy": {"max_retries": 0}}
    async with running(away) as app:
        await app.schedules.create("add", {}, "celery:add", policies={"start_attempts": 2})
        run = await ended(app, await app.schedules.trigger("add"))
        assert (run.status, run.attempt) == ("dropped", 2)
        assert "Celery did not take the work: " in str(run.failure)
    away.close()
