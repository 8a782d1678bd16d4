"""Workflows of an app: deployed once per version, with their schedules, in one transaction; launched once per key."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

from horae import App, Context
from horae.app.workflows import launch_schedule
from horae.config import Config
from horae.errors import (
    InvalidInputError,
    InvalidWorkflowError,
    LimitExceededError,
    ScheduleNotFoundError,
    WorkflowConflictError,
    WorkflowNotFoundError,
)
from horae.model import schedule_key
from horae.registrar import Registrar, RunMeta
from horae.store.port import Transaction
from horae.testing import TimeMachine
from horae.workflow import WorkflowBuilder
from tests.support.machine import START
from tests.support.nodes import ended, keeping_time, waits_for_lock
from tests.support.wait import wait_until


def trigger(name: str, cron: str = "0 9 * * *", **more: Any) -> dict[str, Any]:
    schedule = {"cron_expr": cron, "timezone": "Europe/Berlin", **more}
    return {"id": name, "type": "trigger", "data": {"kind": "schedule_based", "schedule": schedule}}


def document(version: int, *nodes: dict[str, Any], workflow_id: str = "report") -> dict[str, Any]:
    edges = [{"source": each["id"], "target": "work"} for each in nodes]
    work = {"id": "work", "type": "action", "data": {"action": "work"}}
    return {"workflow_id": workflow_id, "version": version, "nodes": [*nodes, work], "edges": edges}


WEBHOOK = {"id": "hook", "type": "trigger", "data": {"kind": "webhook", "path": "/x"}}


@pytest.mark.contract("CRON-03", "CRON-05")
async def test_deploying_upserts_the_schedules_of_triggers_and_removes_those_that_are_gone(database: str):
    async with App(database) as app:
        app.action("work")(lambda: None)
        mine = app.owned_by("alice").workflows
        first = await mine.deploy(document(1, trigger("daily"), trigger("weekly", "0 9 * * 1"), WEBHOOK))
        assert first.created
        daily, weekly = first.schedules
        found = await Registrar(app, owner="alice").get_schedule(daily)
        assert (found.workflow_id, found.version, found.user_id, found.cron_expr) == (
            "report",
            1,
            "alice",
            "0 9 * * *",
        )
        assert len(await app.schedules.list()) == 2  # triggers of other kinds are left alone
        await app.schedules.pause(daily)
        stands = await app.schedules.get(daily)

        again = await mine.deploy(document(1, trigger("daily"), trigger("weekly", "0 9 * * 1"), WEBHOOK))
        assert (again.created, again.schedules) == (False, first.schedules)
        assert await app.schedules.get(daily) == stands

        second = await mine.deploy(document(2, trigger("daily"), trigger("hourly", "0 * * * *")))
        assert second.schedules[0] == daily
        after = await app.schedules.get(daily)
        assert (after.state.paused, after.action.input["version"], after.cursor_ms) == (
            True,
            2,
            stands.cursor_ms,
        )
        assert {each.id for each in await app.schedules.list()} == {daily, second.schedules[1]}
        assert weekly not in second.schedules

        late = await mine.deploy(document(0, trigger("daily")))  # schedules follow the highest version
        assert late.created
        assert {each.id for each in await app.schedules.list()} == {daily, second.schedules[1]}
        assert [each.version for each in await mine.list()] == [0, 1, 2]


@pytest.mark.contract("CRON-05")
async def test_a_version_never_changes(database: str):
    async with App(database) as app:
        app.action("work")(lambda: None)
        await app.workflows.deploy(document(1, trigger("daily")))
        with pytest.raises(WorkflowConflictError):
            await app.workflows.deploy(document(1, trigger("daily", "0 10 * * *")))
        (schedule,) = await app.schedules.list()
        assert '"0 9 * * *"' in schedule.spec
        stored = await app.workflows.get("report")
        assert stored == await app.workflows.get("report", 1)
        with pytest.raises(WorkflowNotFoundError):
            await app.workflows.get("report", 2)


async def test_deploying_at_the_same_time_ends_with_the_highest_version(database: str):
    async with App(database) as app:
        app.action("work")(lambda: None)
        versions = [document(version, trigger(f"t{version}")) for version in range(6)]
        await asyncio.gather(*(app.workflows.deploy(each) for each in versions))
        (schedule,) = await app.schedules.list()
        assert schedule.action.input["version"] == 5


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"cron_expr": "61 * * * *"}, "61"),
        ({"timezone": "Nowhere/City"}, "Nowhere/City"),
        ({"cron_expr": "@daily"}, "fields"),
        ({"jitter_ms": 10**12}, "jitter"),
        ({"overlap_policy": "sometimes"}, "overlap_policy"),
    ],
)
@pytest.mark.contract("CRON-05", "CRON-24")
async def test_a_bad_schedule_is_named_with_its_trigger_and_nothing_is_stored(
    fields: dict[str, Any], reason: str
):
    async with App(":memory:") as app:
        app.action("work")(lambda: None)
        bad = trigger("bad")
        bad["data"]["schedule"] |= fields
        with pytest.raises(InvalidWorkflowError) as raised:
            await app.workflows.deploy(document(1, trigger("good"), bad))
        (fault,) = raised.value.details["faults"]
        assert fault["where"] == "node bad"
        assert reason in fault["reason"]
        assert not await app.workflows.list()
        assert not await app.schedules.list()


@pytest.mark.contract("CRON-23")
@pytest.mark.parametrize("action", ["http", "command:rm", "request:secret", "workflow", "os.system", ""])
async def test_a_node_calls_only_what_the_program_or_the_operator_named(action: str):
    async with App(":memory:") as app:
        app.use_builtin()
        given = document(1, trigger("daily"))
        given["nodes"][-1]["data"]["action"] = action
        with pytest.raises(InvalidWorkflowError, match="node work"):
            await app.workflows.deploy(given)


async def test_one_user_has_so_many_versions():
    async with App(":memory:", config=Config(workflows_per_user=2)) as app:
        app.action("work")(lambda: None)
        mine = app.owned_by("alice").workflows
        for version in (1, 2):
            await mine.deploy(document(version, WEBHOOK))
        with pytest.raises(LimitExceededError, match="workflows_per_user"):
            await mine.deploy(document(3, WEBHOOK))
        assert len(await mine.list()) == 2
        await app.owned_by("bob").workflows.deploy(document(3, WEBHOOK))


async def test_owners_have_their_own_and_share_those_of_all():
    async with App(":memory:") as app:
        app.action("work")(lambda: None)
        await app.workflows.deploy(document(1, WEBHOOK))
        alice, bob = app.owned_by("alice").workflows, app.owned_by("bob").workflows
        await alice.deploy(document(1, trigger("own")))
        assert "own" in (await alice.get("report")).document
        assert "hook" in (await bob.get("report")).document
        assert [each.owner for each in await bob.list()] == [""]
        page = await alice.list(limit=1)
        assert [each.owner for each in await alice.list(cursor=page.next)] == ["alice"]


async def test_who_sees_all_owners_gets_the_only_workflow_of_an_id_and_never_a_guess():
    async with App(":memory:") as app:
        app.action("work")(lambda: None)
        await app.owned_by("alice").workflows.deploy(document(1, WEBHOOK))
        assert (await app.workflows.get("report")).owner == "alice"
        assert (await app.workflows.get("report", 1)).version == 1
        with pytest.raises(WorkflowNotFoundError):
            await app.workflows.get("repor")
        with pytest.raises(WorkflowNotFoundError):
            await app.owned_by("bob").workflows.get("report")
        await app.owned_by("bob").workflows.deploy(document(1, WEBHOOK))
        with pytest.raises(InvalidInputError, match='alice and bob have a workflow "report"'):
            await app.workflows.get("report")


async def work(context: Context) -> str:
    return context.key


@pytest.mark.contract("CRON-11", "CRON-13", "CRON-14")
async def test_a_tick_runs_the_workflow_and_the_ledger_shows_it():
    flow = WorkflowBuilder("report", 1)
    daily = flow.schedule("0 9 * * *", "UTC", input={"n": 5})
    flow.end(
        after=flow.task(work, after=daily),
        output={"n": "input.n", "at": "run.scheduled_for", "key": "run.key"},
    )
    async with TimeMachine(START) as machine:
        (schedule_id,) = (await machine.app.workflows.deploy(flow)).schedules
        await machine.advance(days=1)
        (row,) = await Registrar(machine.app).runs(schedule_id)
        assert (row.status, row.run_at) == ("SUCCESS", datetime(2026, 3, 1, 9, tzinfo=UTC))
        assert row.run_id is not None
        run = await machine.app.runs.get(row.run_id)
        assert run.result == {"n": 5, "at": "2026-03-01T09:00:00Z", "key": row.idempotency_key}
        nodes = {each.place: each for each in await machine.app.workflows.nodes(run.id)}
        assert {place: each.state.value for place, each in nodes.items()} == {
            "schedule": "succeeded", "work": "succeeded", "end": "succeeded",
        }  # fmt: skip
        assert nodes["work"].record is not None
        assert nodes["work"].record.attempts == 1


@pytest.mark.contract("CRON-12")
async def test_a_version_that_is_missing_fails_the_tick_at_once():
    async with TimeMachine(START) as machine:
        registrar = Registrar(machine.app)
        given = {
            "workflow_id": "none",
            "version": 1,
            "user_id": "u",
            "cron_expr": "0 9 * * *",
            "timezone": "UTC",
        }
        upserted = await registrar.upsert_schedule(given)
        await machine.advance(days=1)
        (row,) = await registrar.runs(upserted.schedule_id)
        assert (row.status, row.reason) == (
            "FAILED", 'not_started: NotStartedError: there is no workflow "none" of version 1',
        )  # fmt: skip
        assert row.run_id is not None
        assert (await machine.app.runs.get(row.run_id)).attempt == 1


@pytest.mark.contract("CRON-11", "CRON-12")
async def test_store_and_executor_are_ports_and_an_executor_that_fails_is_asked_three_times():
    asked: list[tuple[Any, RunMeta, datetime]] = []

    class Store:
        async def load_dag(self, workflow_id: str, version: int, user_id: str) -> Any:
            return {"it": workflow_id} if version == 1 else None

    class Queue:
        async def run(self, dag: Any, meta: RunMeta) -> None:
            asked.append((dag, meta, machine.now))
            raise ConnectionError("the broker is away")

    async with TimeMachine(START) as machine:
        registrar = Registrar(machine.app, store=Store(), executor=Queue())
        given = {
            "workflow_id": "w",
            "version": 1,
            "user_id": "u",
            "cron_expr": "0 9 1 3 *",
            "timezone": "UTC",
        }
        ok = await registrar.upsert_schedule(given)
        gone = await registrar.upsert_schedule(given | {"version": 2, "cron_expr": "1 9 1 3 *"})
        await machine.advance(days=1)
        (row,) = await registrar.runs(ok.schedule_id)
        assert row.status == "FAILED"
        assert "the executor failed: ConnectionError: the broker is away" in str(row.reason)
        assert [(at - asked[0][2]).total_seconds() for _, _, at in asked] == [0, 1, 3]
        dag, meta, _ = asked[0]
        assert dag == {"it": "w"}
        assert (meta.source, meta.user_id, meta.scheduled_for) == (
            "schedule",
            "u",
            datetime(2026, 3, 1, 9, tzinfo=UTC),
        )
        assert meta.idempotency_key == row.idempotency_key
        (row,) = await registrar.runs(gone.schedule_id)
        assert (row.status, "no workflow" in str(row.reason)) == ("FAILED", True)


@pytest.mark.contract("CRON-11")
async def test_a_launch_is_idempotent_on_its_key_and_in_the_ledger(database: str):
    async with App(database) as app:
        app.action("work")(work)
        await app.workflows.deploy(document(1, WEBHOOK))
        for_when = datetime(2026, 3, 1, 9, tzinfo=UTC)
        started = await asyncio.gather(
            *(app.workflows.start("report", 1, "u", for_when, "k1") for _ in range(5))
        )
        assert started == [True] * 5
        assert not await app.workflows.start("report", 9, "u", for_when, "k2")
        assert not await app.workflows.start("none", 1, "u", for_when, "k2")
        (schedule,) = await app.schedules.list()
        assert schedule.owner == "u"
        (run,) = await app.runs.list(schedule.id)
        assert run.nominal == for_when
        async with keeping_time(app):
            assert (await ended(app, run.id)).status == "succeeded"
        again = await app.workflows.launch("report", 1, key="k1", user="u")
        assert (again.id, again.status) == (run.id, "succeeded")
        for key, when in (("", for_when), ("k", for_when.replace(tzinfo=None))):
            with pytest.raises(InvalidInputError):
                await app.workflows.start("report", 1, "u", when, key)


async def test_a_version_that_is_replaced_is_run_to_its_end():
    async with TimeMachine(START) as machine:

        async def slow() -> str:
            await machine.sleep(hours=2)
            return "old"

        old = WorkflowBuilder("w", 1)
        old.end(
            after=old.task(slow, after=old.schedule("0 9 * * *", "UTC"), timeout="3h"),
            output={"x": "nodes.slow.output"},
        )
        new = WorkflowBuilder("w", 2)
        new.end(after=new.schedule("0 9 * * *", "UTC"), output={"x": "'new'"})
        (schedule_id,) = (await machine.app.workflows.deploy(old)).schedules
        await machine.app.schedules.update(schedule_id, policies={"timeouts": {"run": "5h"}})
        await machine.advance(hours=10)
        (run,) = await machine.app.runs.list(schedule_id)
        states = {each.place: each.state.value for each in await machine.app.workflows.nodes(run.id)}
        assert states == {"schedule": "succeeded", "slow": "running", "end": "waiting"}
        await machine.app.workflows.deploy(new)
        await machine.advance(days=1)
        assert [each.result for each in await machine.app.runs.list(schedule_id)] == [
            {"x": "new"},
            {"x": "old"},
        ]


@pytest.mark.parametrize("how", ["cancel", "terminate", "timeout"])
async def test_stopping_the_run_stops_its_nodes(how: str):
    stopped: list[bool] = []

    async def slow(context: Context) -> None:
        try:
            await machine.sleep(hours=9)
        finally:
            stopped.append(context.stop_requested())

    async with TimeMachine(START) as machine:
        flow = WorkflowBuilder("w", 1)
        flow.task(slow, after=flow.schedule("0 9 * * *", "UTC"), timeout="24h")
        (schedule_id,) = (await machine.app.workflows.deploy(flow)).schedules
        await machine.advance(hours=9.5)
        (run,) = await machine.app.runs.list(schedule_id)
        if how == "cancel":
            await machine.app.runs.cancel(run.id)
        elif how == "terminate":
            await machine.app.runs.terminate(run.id)
        await machine.advance(hours=1)
        run = await machine.app.runs.get(run.id)
        assert run.status == {"cancel": "cancelled", "terminate": "terminated", "timeout": "timed_out"}[how]
        assert stopped == [True]
        states = {each.place: each.state.value for each in await machine.app.workflows.nodes(run.id)}
        assert states["slow"] == "cancelled"


async def test_an_owner_runs_no_workflow_of_another_owner():
    async with TimeMachine(START) as machine:
        app = machine.app
        calls: list[str] = []
        app.action("work")(lambda context: calls.append(context.owner))
        alice, bob = app.owned_by("alice"), app.owned_by("bob")
        await bob.workflows.deploy(document(1, WEBHOOK))
        with pytest.raises(WorkflowNotFoundError):
            await alice.workflows.launch("report", user="bob")
        assert not await alice.workflows.start("report", 1, "bob", START, "k")
        given = {"workflow_id": "report", "version": 1, "user_id": "bob"}
        await alice.schedules.create("s", "0 9 1 3 *", {"kind": "workflow", "input": given})
        await app.schedules.create("t", "0 9 1 3 *", {"kind": "workflow", "input": given})
        await machine.advance(days=1)
        (run,) = await alice.runs.list("s")
        assert (run.status, run.reason) == ("skipped", "not_allowed")
        assert 'another owner, "bob"' in str(run.failure)
        assert await alice.workflows.nodes(run.id) == ()
        assert calls == [""]  # an operator may


async def test_a_launch_for_a_time_that_no_zone_tells_is_refused():
    async with TimeMachine(START) as machine:
        machine.app.action("work")(lambda: None)
        await machine.app.workflows.deploy(document(1, WEBHOOK))
        for when in (datetime(2026, 3, 1, 9), datetime(1, 1, 1, tzinfo=UTC)):
            with pytest.raises(InvalidInputError, match="scheduled_for"):
                await machine.app.workflows.launch("report", scheduled_for=when)
        assert await machine.app.schedules.list() == []


async def test_a_deploy_locks_its_schedules_in_the_order_of_their_ids(postgres: str):
    """Whatever it does with them: otherwise it and another change of the same schedules wait for each other."""
    async with App(postgres) as app:
        app.action("work")(lambda: None)
        names = {}
        for number in range(4):
            names[(await app.workflows.deploy(document(number, trigger(f"t{number}")))).schedules[0]] = (
                f"t{number}"
            )
        deployed = await app.workflows.deploy(document(4, *map(trigger, names.values())))
        first, *_, last = sorted(deployed.schedules)
        kept = [trigger(name) for schedule_id, name in names.items() if schedule_id != first]
        async with app.transaction() as transaction:
            await transaction.lock([schedule_key("", first)])
            deploying = asyncio.create_task(app.workflows.deploy(document(5, *kept)))
            await wait_until(lambda: waits_for_lock(postgres))
            async with asyncio.timeout(10):
                await transaction.lock([schedule_key("", last)])
        await deploying
        assert {each.id for each in await app.schedules.list()} == set(deployed.schedules) - {first}


async def test_a_launch_and_a_deletion_of_the_schedule_that_keeps_launches_do_not_collide(database: str):
    async with App(database) as app:
        app.action("work")(lambda: None)
        await app.workflows.deploy(document(1, WEBHOOK))
        mine = launch_schedule("report", "")

        async def delete() -> None:
            with contextlib.suppress(ScheduleNotFoundError):
                await app.schedules.delete(mine)

        for number in range(10):
            launches = (app.workflows.launch("report", key=f"{number}-{each}") for each in range(5))
            await asyncio.gather(*launches, *(delete() for _ in range(5)))


async def test_a_launch_that_fails_leaves_no_schedule_behind():
    async with TimeMachine(START) as machine:
        machine.app.action("work")(lambda: None)
        await machine.app.workflows.deploy(document(1, WEBHOOK))

        async def fails(*_: object) -> None:
            raise ConnectionError

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Transaction, "insert_runs", fails)
            with pytest.raises(ConnectionError):
                await machine.app.workflows.launch("report")
        assert await machine.app.schedules.list() == []
