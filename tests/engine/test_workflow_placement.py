"""A run of a workflow goes to a node that has the actions of all its nodes."""

from __future__ import annotations

import asyncio

import pytest

from horae import App, Config
from horae.model import Run
from tests.support.wait import wait_until

WORKFLOW = {
    "workflow_id": "w", "version": 1, "edges": [{"source": "begin", "target": "work"}, {"source": "work", "target": "end"}],
    "nodes": [
        {"id": "begin", "type": "trigger", "data": {"kind": "schedule_based", "schedule": {"cron_expr": "0 0 1 1 *", "timezone": "UTC"}}},
        {"id": "work", "type": "action", "data": {"action": "work"}},
        {"id": "end", "type": "end", "data": {"output": {"done": "nodes.work.output"}}},
    ],
}  # fmt: skip


def node(database: str, *actions: str) -> App:
    app = App(database, config=Config(tick_ms=60_000))
    for each in actions:
        app.action(each)(lambda: "well")
    return app


async def stepped(app: App) -> None:
    """Let a node decide, run what it claimed, and record it."""
    await app.engine.step(app.now())
    if app.worker.tasks:
        await asyncio.wait(app.worker.tasks)
        await app.engine.step(app.now())


async def ended(run_id: str, *apps: App) -> Run:
    async def has_ended() -> bool:
        for each in apps:
            await stepped(each)
        return (await apps[0].runs.get(run_id)).ended_at_ms is not None

    await wait_until(has_ended)
    return await apps[0].runs.get(run_id)


async def test_a_node_that_lacks_an_action_leaves_the_run_to_one_that_has_it(database: str):
    async with node(database) as without, node(database, "work") as other:
        await other.workflows.deploy(WORKFLOW)
        (schedule,) = await without.schedules.list()
        run_id = await without.schedules.trigger(schedule.id)
        await stepped(without)  # it claims the run first, and cannot run it
        run = await without.runs.get(run_id)
        assert (run.status, run.refusals, run.failures) == ("starting", 0, 0)
        run = await ended(run_id, without, other)
        assert (run.status, run.result) == ("succeeded", {"done": "well"})


async def test_without_such_a_node_the_run_says_what_is_missing(database: str):
    async with node(database, "work") as other:
        await other.workflows.deploy(WORKFLOW)
    async with node(database) as without:
        (schedule,) = await without.schedules.list()
        run = await ended(await without.schedules.trigger(schedule.id), without)
        assert run.status == "failed"
        assert 'calls an unknown action, "work"' in str(run.failure)


async def test_a_node_that_gets_the_action_takes_the_run(database: str, monkeypatch: pytest.MonkeyPatch):
    async with node(database) as without, node(database, "work") as other:
        await other.workflows.deploy(WORKFLOW)
        (schedule,) = await without.schedules.list()
        run_id = await without.schedules.trigger(schedule.id)
        await stepped(without)
        monkeypatch.setattr(without.clock, "monotonic", lambda: 0.0)  # its time to leave the run never ends
        without.action("work")(lambda: "late")
        assert (await ended(run_id, without)).result == {"done": "late"}


async def test_a_run_is_not_left_for_long_to_a_node_that_is_gone(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("horae.engine.workflow_executor.LEFT_FOR_S", 0.1)
    async with node(database) as without:
        async with node(database, "work") as other:
            await other.workflows.deploy(WORKFLOW)
            (schedule,) = await without.schedules.list()
            run_id = await without.schedules.trigger(schedule.id)
            await stepped(without)
        assert "unknown action" in str((await ended(run_id, without)).failure)
