"""Hand-off to Temporal, with its own server and a real worker."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice import v1 as api

from horae import App
from horae.executor.temporal_connection import TemporalConnection
from horae.executor.temporal_executor import TemporalExecutor, end_of
from horae.model import OPEN, Run
from tests.executor.harness import handing_off
from tests.support.network import Network
from tests.support.process import ROOT, run_program
from tests.support.temporal_cluster import QUEUE, TemporalCluster, free_port
from tests.support.wait import wait_for, wait_until

STOPPED = "it was terminated: its run was stopped"
TYPES = ("Greet", "Boom", "Countdown", "Slow")


def running(target: str) -> AbstractAsyncContextManager[App]:
    return handing_off(TemporalExecutor(target, dict.fromkeys(TYPES, QUEUE)))


async def started(app: App, name: str, **more: Any) -> Run:
    await app.schedules.create(name, {}, f"temporal:{name}", **more)
    return await app.runs.get(await app.schedules.trigger(name))


async def ended(app: App, run: Run) -> Run:
    while (run := await app.runs.get(run.id)).status in OPEN:
        await asyncio.sleep(0.05)
    return run


async def last_event(cluster: TemporalCluster, workflow_id: str) -> HistoryEvent:
    connection = TemporalConnection(cluster.address)
    try:
        answer = await connection.send(
            api.GetWorkflowExecutionHistoryRequest(
                namespace="default", execution=WorkflowExecution(workflow_id=workflow_id)
            ),
            api.GetWorkflowExecutionHistoryResponse,
            10,
        )
    finally:
        await connection.close()
    return answer.history.events[-1]


def test_a_crash_between_hand_off_and_record_starts_the_workflow_once_and_loses_none(
    temporal_cluster: TemporalCluster, tmp_path: Path
):
    program = str(ROOT / "tests/executor/temporal_program.py")
    run = partial(run_program, program, f"sqlite:///{tmp_path}/horae.db", temporal_cluster.address)

    assert run("die").returncode == -9
    greeted = ["greet forwarded", "greet named"]
    wait_for(lambda: sorted(set(temporal_cluster.lines) & set(greeted)) == greeted)
    assert run("die").returncode == -9  # nothing was recorded, so they are started again
    assert run().stdout == "succeeded hello named\nsucceeded hello forwarded\n"
    assert sorted(each for each in temporal_cluster.lines if each in greeted) == greeted


async def test_a_workflow_returns_its_result_continues_fails_and_is_retried(
    temporal_cluster: TemporalCluster,
):
    async with running(temporal_cluster.address) as app:
        run = await ended(app, await started(app, "Greet", input="you"))
        assert (run.status, run.result) == ("succeeded", "hello you")
        run = await ended(app, await started(app, "Countdown", input=2))
        assert (run.status, run.result) == ("succeeded", "done")
        before = temporal_cluster.lines.count("boom")
        retried = {"retry": {"attempts": 2, "initial_delay": "10ms"}}
        run = await ended(app, await started(app, "Boom", policies=retried))
        assert (run.status, run.failure) == (
            "failed", "HandOffFailedError: Temporal says that Boom failed: Wrong: no",
        )  # fmt: skip
        assert temporal_cluster.lines.count("boom") == before + 2
        assert (await last_event(temporal_cluster, f"{run.key}-2")).HasField(
            "workflow_execution_failed_event_attributes"
        )


async def test_stopping_a_run_cancels_or_terminates_its_workflow_and_overlap_waits_for_it(
    temporal_cluster: TemporalCluster,
):
    async def began(number: int) -> None:
        await wait_until(lambda: temporal_cluster.lines.count("slow begins") == number)

    before = temporal_cluster.lines.count("slow begins")
    async with running(temporal_cluster.address) as app:
        run = await started(app, "Slow", policies={"timeouts": {"cancel": "30s"}})
        await began(before + 1)
        other = await app.runs.get(await app.schedules.trigger("Slow"))
        assert (await ended(app, other)).status == "skipped"  # by the overlap policy: the workflow is running
        await app.runs.cancel(run.id)
        assert (await ended(app, run)).status == "cancelled"
        assert end_of(await last_event(temporal_cluster, f"{run.key}-1")).reason == "it was cancelled"
        assert "slow was cancelled" in temporal_cluster.lines

        await app.schedules.update("Slow", input=True, policies={"timeouts": {"cancel": "100ms"}})
        insists = await app.runs.get(await app.schedules.trigger("Slow"))
        await began(before + 2)
        await app.runs.cancel(insists.id)
        assert (await ended(app, insists)).status == "terminated"
        assert end_of(await last_event(temporal_cluster, f"{insists.key}-1")).reason == STOPPED

        await app.schedules.update("Slow", policies={"timeouts": {"run": "500ms"}})
        late = await app.runs.get(await app.schedules.trigger("Slow"))
        assert (await ended(app, late)).status == "timed_out"
        assert end_of(await last_event(temporal_cluster, f"{late.key}-1")).reason == STOPPED


async def test_a_server_that_goes_away_while_a_workflow_runs_is_asked_again(
    temporal_cluster: TemporalCluster,
):
    network = await Network(temporal_cluster.address).open()
    async with running(f"127.0.0.1:{network.port}") as app:
        before = temporal_cluster.lines.count("slow begins")
        run = await started(app, "Slow", policies={"timeouts": {"cancel": "30s"}})
        await wait_until(lambda: temporal_cluster.lines.count("slow begins") > before)
        network.cut()
        await app.runs.cancel(run.id)
        seen = len(network.connections)
        await wait_until(lambda: len(network.connections) > seen)
        network.mend()
        assert (await ended(app, run)).status == "cancelled"
        assert end_of(await last_event(temporal_cluster, f"{run.key}-1")).reason == "it was cancelled"
    await network.close()


async def test_a_server_that_is_away_is_retried_then_a_clear_reason():
    target = f"127.0.0.1:{free_port()}"
    async with running(target) as app:
        run = await ended(app, await started(app, "Greet", policies={"start_attempts": 2}))
        assert (run.status, run.attempt) == ("dropped", 2)
        assert f"the workflow cannot be started on Temporal at {target}: UNAVAILABLE: " in str(run.failure)
