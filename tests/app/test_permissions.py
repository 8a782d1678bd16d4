"""Actions that the operator does not let an owner use: refused when they are stored, and again before each attempt."""

from __future__ import annotations

from typing import Any

import pytest

from horae import Config
from horae.errors import ActionNotAllowedError
from horae.executor.action_permissions import Permissions
from horae.model import Reason, Status
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder
from tests.support.service import client_of
from tests.support.tokens import SECRET, bearer

RULES = Permissions({"deploy": ("ada", "scope:ops")})


@pytest.fixture
def machine(machine: TimeMachine) -> TimeMachine:
    for name in ("deploy", "report"):
        machine.app.action(name)(Recorder(machine))
    machine.app.executors.permissions = RULES
    return machine


async def test_what_is_not_allowed_is_not_stored_whatever_the_way(machine: TimeMachine):
    app = machine.app
    ada, bob = app.owned_by("ada"), app.owned_by("bob")
    await ada.schedules.create("s", "0 9 * * *", "deploy")
    await bob.schedules.create("mine", "0 9 * * *", "report")
    attempts = (
        bob.schedules.create("s", "0 9 * * *", "deploy"),
        bob.schedules.update("mine", action="deploy"),
        bob.schedules.update("mine", action={"name": "deploy", "input": 1}),
        bob.once("deploy", in_="1h"),
    )
    for attempt in attempts:
        with pytest.raises(ActionNotAllowedError) as error:
            await attempt
        assert error.value.details == {"action": "deploy", "owner": "bob"}
    assert [each.id for each in await bob.schedules.list()] == ["mine"]
    assert (await bob.schedules.get("mine")).action.name == "report"


async def test_a_scope_or_an_operator_may_store_what_the_owner_may_not(machine: TimeMachine):
    app = machine.app
    ops = app.owned_by("bob", {"ops"})
    await ops.schedules.create("by-ops", "* * * * *", "deploy")
    await app.schedules.create("by-operator", "* * * * *", "deploy", owner="bob")
    await app.schedules.create("own", "* * * * *", "deploy")  # a program's own
    await machine.advance(minutes=1)
    for schedule_id in ("by-ops", "by-operator", "own"):
        assert [run.status for run in await app.runs.list(schedule_id)] == [Status.SUCCEEDED]
    bob = app.owned_by("bob")
    await bob.schedules.update("by-ops", "*/2 * * * *", tags=("mine",))  # its action stays as it was allowed
    run_id = await bob.schedules.trigger("by-ops")
    await machine.advance(seconds=1)
    for attempt in (
        bob.schedules.trigger("by-ops", input="other"),
        bob.schedules.update("by-ops", input="other"),
        bob.runs.rerun(run_id, input="other"),
        bob.backfills.start("by-ops", START, START, input="other"),
    ):
        with pytest.raises(ActionNotAllowedError):
            await attempt
    await bob.runs.rerun(run_id)
    await bob.backfills.start("by-ops", START, START)


async def test_what_is_no_longer_allowed_is_skipped_and_needs_attention(machine: TimeMachine):
    app = machine.app
    ada = app.owned_by("ada")
    await ada.schedules.create("s", "* * * * *", "deploy", remaining_actions=5)
    await app.owned_by("bob", {"ops"}).schedules.create("s", "* * * * *", "deploy")
    await machine.advance(minutes=1)
    app.executors.permissions = Permissions({"deploy": ("scope:ops",)})
    await machine.advance(minutes=1)
    latest = (await ada.runs.list("s"))[0]
    assert (latest.status, latest.reason) == (Status.SKIPPED, Reason.NOT_ALLOWED)
    assert latest.failure == 'The owner "ada" may not use the action "deploy"'
    state = (await ada.schedules.get("s")).state
    assert state.attention == latest.failure
    assert state.remaining_actions == 4  # it was not charged
    with pytest.raises(ActionNotAllowedError):
        await ada.schedules.trigger("s")
    assert {run.status for run in await app.owned_by("bob").runs.list("s")} == {Status.SUCCEEDED}
    app.executors.permissions = RULES
    await machine.advance(minutes=1)
    assert (await ada.runs.list("s"))[0].status is Status.SUCCEEDED
    assert (await ada.schedules.get("s")).state.attention == ""


async def test_over_http_it_is_refused_with_a_code_and_what_to_ask_for(machine: TimeMachine):
    config = Config(jwt_secret=SECRET)
    body: dict[str, Any] = {"spec": "0 9 * * *", "action": "deploy"}
    async with client_of(machine.app, config) as client:
        for method, path, given in (
            ("POST", "/api/v1/schedules", body | {"id": "s"}),
            ("PUT", "/api/v1/schedules/s", body),
            ("PUT", "/api/v1/schedules/s", body | {"dry_run": True}),
            ("POST", "/api/v1/bulk/schedules", {"schedules": [body]}),
        ):
            answer = await client.request(method, path, json=given, headers=bearer("bob"))
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (403, "action_not_allowed"), path
            assert 'may not use the action "deploy"' in problem["detail"]
            assert "HORAE_ACTION_PERMISSIONS" in problem["hint"]
            allowed = await client.request(method, path, json=given, headers=bearer("carol", "ops"))
            assert allowed.status_code in {200, 201, 409}, allowed.text
        named = await client.put("/api/v1/schedules/t?owner=bob", json=body, headers=bearer("root", "admin"))
        assert named.status_code == 201


async def test_the_nodes_of_a_workflow_call_what_its_owner_may_use(machine: TimeMachine):
    app = machine.app
    schedule = {"cron_expr": "* * * * *", "timezone": "UTC"}
    document = {
        "workflow_id": "w", "version": 1, "edges": [{"source": "each", "target": "node"}],
        "nodes": [
            {"id": "each", "type": "trigger", "data": {"kind": "schedule_based", "schedule": schedule}},
            {"id": "node", "type": "action", "data": {"action": "deploy"}},
        ],
    }  # fmt: skip
    with pytest.raises(ActionNotAllowedError):
        await app.owned_by("bob", {"ops"}).workflows.deploy(document)
    ada = app.owned_by("ada")
    (schedule_id,) = (await ada.workflows.deploy(document)).schedules
    await machine.advance(minutes=1)
    assert [run.status for run in await ada.runs.list(schedule_id)] == [Status.SUCCEEDED]
    app.executors.permissions = Permissions({"deploy": ()})
    await machine.advance(minutes=1)
    latest = (await ada.runs.list(schedule_id))[0]
    assert latest.status is not Status.SUCCEEDED
    assert 'may not use the action "deploy"' in str(latest.failure or latest.result)
