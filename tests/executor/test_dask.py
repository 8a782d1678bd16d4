"""Hand-off to Dask, with a real scheduler and a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from horae import App
from horae.executor.dask_executor import DaskExecutor
from horae.model import Run
from tests.executor.harness import handing_off
from tests.support.nodes import ended
from tests.support.process import run_program
from tests.support.wait import wait_until

NAMES = ("add", "boom", "identify", "large", "slow", "deaf")
FUNCTIONS = {name: f"tests.executor.dask_functions:{name}" for name in NAMES} | {"gone": "nowhere:gone"}


class Cluster:
    """A scheduler and a worker with four threads, and what functions wrote there."""

    def __init__(self, address: str, log: Path) -> None:
        self.address = address
        self.log = log

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wake(self, who: str) -> None:
        with self.log.open("a") as file:
            file.write(f"wake {who}\n")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    log = tmp_path_factory.mktemp("dask") / "log"
    log.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HORAE_TEST_LOG", str(log))
        with local_cluster() as started:
            yield Cluster(started.scheduler_address, log)


def local_cluster() -> Any:
    # It takes a second to import, and every process of the tests collects this file.
    from distributed import LocalCluster  # noqa: PLC0415

    return LocalCluster(
        n_workers=1, threads_per_worker=4, processes=False, protocol="tcp://", dashboard_address=":0"
    )  # fmt: skip


def client_of(address: str) -> Any:
    from distributed import Client  # noqa: PLC0415

    return Client(address, asynchronous=True, set_as_default=False)


def running(address: str, **more: Any) -> AbstractAsyncContextManager[App]:
    return handing_off(DaskExecutor(address, FUNCTIONS, **more))


async def test_a_function_returns_its_result_or_fails(cluster: Cluster):
    async with running(cluster.address) as app:

        async def result_of(name: str, **more: Any) -> Run:
            await app.schedules.create(name, {}, f"dask:{name}", **more)
            return await ended(app, await app.schedules.trigger(name))

        run = await result_of("add", input={"x": 1, "y": 2})
        assert (run.status, run.result) == ("succeeded", 3)
        run = await result_of("identify")
        assert run.result == f"{run.key}-1"
        retried: Any = {"retry": {"attempts": 2, "initial_delay": "10ms"}}
        run = await result_of("boom", policies=retried)
        assert (run.status, run.failure) == (
            "failed", "HandOffFailedError: Dask says that boom failed: ValueError: no",
        )  # fmt: skip
        assert cluster.said().count("boom") == 2
        assert "bytes of JSON, and 1048576 are kept at most" in str((await result_of("large")).failure)
        assert "No module named 'nowhere'" in str((await result_of("gone")).failure)


async def test_overlap_stops_and_timeouts_reach_functions(cluster: Cluster):
    async with running(cluster.address) as app:

        async def started(schedule_id: str, who: str) -> str:
            run_id = await app.schedules.trigger(schedule_id, input={"who": who})
            await wait_until(lambda: any(each.endswith(f"begins {who}") for each in cluster.said()))
            return run_id

        await app.schedules.create("slow", {}, "dask:slow", policies={"overlap": "cancel_other"})
        first = await started("slow", "first")
        skipped = await app.schedules.trigger("slow", input={"who": "nobody"}, overlap="skip")
        second = await started("slow", "second")
        assert (await ended(app, first)).status == "cancelled"
        assert cluster.said().index("slow stops first") < cluster.said().index("slow begins second")
        assert (await ended(app, skipped)).reason == "overlap"
        await app.runs.terminate(second)
        assert (await ended(app, second)).status == "terminated"

        await app.schedules.create("deaf", {}, "dask:deaf", policies={"timeouts": {"run": "300ms"}})
        run = await ended(app, await app.schedules.trigger("deaf", input={"who": "third"}))
        assert run.status == "timed_out"
        cluster.wake("third")  # its thread could not be ended, and was left behind


async def test_a_task_is_kept_for_a_while_after_its_end():
    with local_cluster() as started:
        async with running(started.scheduler_address, keep=timedelta(seconds=1)) as app:
            await app.schedules.create("sum", {}, "dask:identify")
            run = await ended(app, await app.schedules.trigger("sum"))
            key = f"horae-{run.result}"
            async with client_of(started.scheduler_address) as client:

                async def state() -> Any:
                    return (await client.scheduler.get_task_status(keys=[key]))[key]

                assert await state() == "memory"

                async def is_forgotten() -> bool:
                    return await state() is None

                await wait_until(is_forgotten)


async def test_a_task_that_is_lost_fails_its_run(cluster: Cluster):
    async with running(cluster.address) as app:
        await app.schedules.create("deaf", {}, "dask:deaf", input={"who": "kept"})
        run_id = await app.schedules.trigger("deaf")
        await wait_until(lambda: "deaf begins kept" in cluster.said())
        key = f"horae-{(await app.runs.get(run_id)).key}-1"
        async with client_of(cluster.address) as client:
            await client.cancel([client.submit(len, "", key=key)], force=True)
            run = await ended(app, run_id)
            assert "its scheduler no longer knows the task" in str(run.failure)
        cluster.wake("kept")


async def test_processes_that_die_around_the_hand_off_neither_lose_the_work_nor_repeat_it(
    cluster: Cluster, tmp_path: Path
):
    program = ["-m", "tests.executor.dying_programs", "dask", f"sqlite:///{tmp_path}/horae.db"]
    done = await asyncio.to_thread(
        run_program,
        *program,
        "claimed",
        "submitted",
        "submitted",
        "following",
        settings={"HORAE_TEST_DASK": cluster.address},
    )
    assert (done.returncode, done.stdout) == (0, "succeeded 5\n"), done.stderr
    assert cluster.said().count("add 2 3") == 1


async def test_a_cluster_that_is_away_is_tried_again_then_a_clear_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("horae.executor.dask_executor.ANSWER_WITHIN_S", 0.2)
    async with running("tcp://127.0.0.1:1") as app:
        await app.schedules.create("add", {}, "dask:add", policies={"start_attempts": 2})
        run = await ended(app, await app.schedules.trigger("add"))
        assert (run.status, run.attempt) == ("dropped", 2)
        assert "Dask did not take the work: " in str(run.failure)
