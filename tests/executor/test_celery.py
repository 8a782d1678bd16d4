"""Hand-off to Celery, with a real Redis and a real worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config
from horae.executor.celery_executor import CeleryExecutor
from horae.model import OPEN, Run
from tests.support.process import ROOT, environment
from tests.support.wait import wait_for

pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server here")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Redis and a worker; the environment in which both are found."""
    folder = tmp_path_factory.mktemp("celery")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = {
        "HORAE_TEST_REDIS": f"redis://127.0.0.1:{port}/0", "HORAE_TEST_LOG": str(folder / "log"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    (folder / "log").touch()
    redis = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)], stdout=subprocess.DEVNULL
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tests.executor.celery_tasks", "worker", "-c", "2", "--loglevel", "ERROR",
         "--without-gossip", "--without-mingle"],
        env=environment(**found), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    yield found
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    redis.kill()
    redis.wait()


@pytest.fixture
def celery(engine: dict[str, str]) -> Iterator[Any]:
    from celery import Celery  # noqa: PLC0415

    made = Celery("tests", broker=engine["HORAE_TEST_REDIS"], backend=engine["HORAE_TEST_REDIS"])
    yield made
    made.close()


@contextlib.asynccontextmanager
async def running(celery: Any) -> Any:
    app = App(":memory:", config=Config(tick_ms=50, terminate_ms=1000))
    app.use(CeleryExecutor(celery, ["add", "boom", "slow", "gone"]))
    async with app:
        serving = asyncio.create_task(app.serve())
        yield app
        serving.cancel()


async def started(app: App, task: str, **more: Any) -> Run:
    await app.schedules.create(task, {}, f"celery:{task}", **more)
    return await app.runs.get(await app.schedules.trigger(task))


async def ended(app: App, run: Run) -> Run:
    while (run := await app.runs.get(run.id)).status in OPEN:
        await asyncio.sleep(0.05)
    return run


def said(engine: dict[str, str]) -> list[str]:
    return Path(engine["HORAE_TEST_LOG"]).read_text().splitlines()


def test_a_crash_between_hand_off_and_record_starts_the_work_once_and_loses_none(
    engine: dict[str, str], tmp_path: Path
):
    program = [
        sys.executable,
        str(ROOT / "tests/executor/celery_program.py"),
        f"sqlite:///{tmp_path}/horae.db",
    ]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *more],
            env=environment(**engine),
            check=False,
            timeout=60,
            stdout=subprocess.PIPE,
            text=True,
        )

    assert run("die").returncode == -9
    wait_for(lambda: said(engine).count("add 2 3") == 1)
    assert run("die").returncode == -9  # it was not recorded, so it is sent again
    assert run().stdout == "succeeded 5\n"
    assert said(engine).count("add 2 3") == 1


async def test_a_broker_that_is_away_is_retried_then_a_clear_reason():
    from celery import Celery  # noqa: PLC0415

    away = Celery("away", broker="redis://127.0.0.1:1/0", backend="redis://127.0.0.1:1/0")
    away.conf.result_backend_transport_options = {"retry_policy": {"max_retries": 0}}
    async with running(away) as app, asyncio.timeout(60):
        run = await ended(
            app, await started(app, "add", input={"x": 1, "y": 2}, policies={"start_attempts": 2})
        )
        assert (run.status, run.attempt) == ("dropped", 2)
        assert "Celery did not take the work: " in str(run.failure)
    away.close()


# The last one: what is revoked takes its worker's process with it.
async def test_a_task_returns_its_result_fails_and_is_revoked(celery: Any, engine: dict[str, str]):
    async with running(celery) as app, asyncio.timeout(60):
        run = await ended(app, await started(app, "add", input={"x": 1, "y": 2}))
        assert (run.status, run.result) == ("succeeded", 3)
        retried = {"retry": {"attempts": 2, "initial_delay": "10ms"}}
        run = await ended(app, await started(app, "boom", policies=retried))
        assert (run.status, run.failure) == (
            "failed", "HandOffFailedError: Celery says that boom failed: ValueError: no",
        )  # fmt: skip
        assert said(engine).count("boom") == 2
        run = await started(app, "slow")
        while "slow begins" not in said(engine):
            await asyncio.sleep(0.05)
        await app.runs.cancel(run.id)
        assert (await ended(app, run)).status == "cancelled"
        state = celery.AsyncResult(f"{run.key}-1")
        while state.state != "REVOKED":
            await asyncio.sleep(0.05)
        assert "slow ends" not in said(engine)
