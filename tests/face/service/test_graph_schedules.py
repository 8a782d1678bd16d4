"""``/api/v1/schedules`` for graphs: one resource, a grant made with it, and the ledger in the words of graphs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from horae.executor.graph_provider_port import Caller
from horae.testing import TimeMachine
from tests.support.graphs import TestGraphs, pass_time, settings
from tests.support.service import client_of
from tests.support.tokens import bearer

START = datetime(2026, 3, 1, tzinfo=UTC)
CONFIG = settings(":memory:", schedules_per_user=6)
BODY: dict[str, Any] = {"graph_id": "test:poet", "cron": "*/5 * * * *", "timezone": "Europe/Berlin"}


class Graphs:
    """Graphs that end when they are told to."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.stopped = 0

    async def poet(self, given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        self.inputs.append(given)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if given["model"] == "bad":
            raise ValueError("no such model")
        yield {"poem": given["model"]}


class Api:
    def __init__(self, machine: TimeMachine, client: httpx.AsyncClient, graphs: Graphs) -> None:
        self.machine, self.client, self.graphs = machine, client, graphs

    async def __call__(
        self, method: str, path: str = "", body: Any = None, user: str = "ada"
    ) -> httpx.Response:
        headers = bearer(user)
        return await self.client.request(method, f"/api/v1/schedules{path}", headers=headers, json=body)

    async def create(self, **more: Any) -> dict[str, Any]:
        answer = await self("POST", "", BODY | {"id": "s"} | more)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def runs(self) -> list[tuple[str, str | None]]:
        answer = await self("GET", "/s/runs")
        return [(each["status"], each["error_code"]) for each in answer.json()["items"]]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    graphs = Graphs()
    async with TimeMachine(START, CONFIG) as machine:
        machine.app.use_graphs(TestGraphs(poet=graphs.poet))
        async with client_of(machine.app, CONFIG) as client:
            yield Api(machine, client, graphs)


@pytest.mark.contract("GRNT-13")
async def test_a_graph_is_scheduled_changed_and_deleted(api: Api):
    made = await api("POST", "", BODY | {"input": {"messages": [], "model": "m"}})
    assert made.status_code == 201
    shown = made.json()
    expected = {
        "owner_user_id": "ada", "graph_id": "test:poet", "input": {"messages": [], "model": "m"}, "cron": "*/5 * * * *",
        "timezone": "Europe/Berlin", "enabled": True, "next_run_at": "2026-03-01T00:05:00Z", "last_run_at": None,
        "concurrency_policy": "Forbid", "backfill_limit": 0, "starting_deadline_seconds": 10,
    }  # fmt: skip
    assert {key: shown[key] for key in expected} == expected
    assert shown["created_at"] == shown["updated_at"] == "2026-03-01T00:00:00Z"
    path, grant_id = f"/{shown['id']}", shown["execution_grant_id"]
    grant = await api.machine.app.owned_by("ada").grants.get(grant_id)
    assert grant.scopes == ("graph:execute:test:poet",)
    assert [each["graph_id"] for each in (await api("GET")).json()["items"]] == ["test:poet"]
    assert (await api("GET", user="eve")).json()["items"] == []
    change = {
        "cron": "0 9 * * *",
        "timezone": "Asia/Tokyo",
        "input": {"model": "n"},
        "concurrency_policy": "Replace",
        "backfill_limit": 3,
    }
    changed = await api("PATCH", path, change | {"starting_deadline_seconds": 60})
    assert changed.status_code == 200, changed.text
    assert {key: changed.json()[key] for key in (*change, "starting_deadline_seconds", "next_run_at", "enabled")} == change | {
        "starting_deadline_seconds": 60, "next_run_at": "2026-03-02T00:00:00Z", "enabled": True,
    }  # fmt: skip
    assert (await api("PATCH", path, {"timezone": "UTC"})).json()["next_run_at"] == "2026-03-01T09:00:00Z"
    for method, body in (("PATCH", {"enabled": False}), ("DELETE", None), ("GET", None)):
        assert (await api(method, path, body, user="eve")).status_code == 404
    assert (await api("DELETE", path)).status_code == 204
    assert (await api("GET", path)).status_code == 404
    assert (await api.machine.app.grants.get(grant_id)).revoked_at is not None


@pytest.mark.contract("GRNT-13")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"cron": "* * * * * *"}, 400), ({"cron": "@daily"}, 400), ({"cron": "61 * * * *"}, 400), ({"cron": ""}, 400), ({"cron": 5}, 400),
        ({"timezone": "Europe/Berlim"}, 400), ({"timezone": ""}, 400), ({"input": []}, 400), ({"input": {"messages": "x"}}, 400),
        ({"input": {"model": 5}}, 400), ({"graph_id": "poet"}, 400), ({"graph_id": "test:none"}, 422), ({"concurrency_policy": "Sometimes"}, 400),
        ({"backfill_limit": -1}, 400), ({"backfill_limit": 10**9}, 400), ({"starting_deadline_seconds": -1}, 400), ({"enabled": "yes"}, 400),
        ({"spec": "* * * * *"}, 400), ({"action": "ping"}, 400), ({"execution_grant_id": "none"}, 404), ({"owner": "eve"}, 400),
        ({"session_id": "x"}, 400), ({"api_key": "x"}, 400),
    ],
)  # fmt: skip
async def test_bad_input_creates_nothing(api: Api, body: dict[str, Any], status: int):
    answer = await api("POST", "", BODY | body)
    assert answer.status_code == status, answer.text
    ada = api.machine.app.owned_by("ada")
    assert (await ada.schedules.list(), await ada.grants.list()) == ([], [])


@pytest.mark.contract("GRNT-13")
async def test_what_is_missing_taken_or_too_much(api: Api):
    for missing in ("cron", "timezone"):
        answer = await api("POST", "", {key: value for key, value in BODY.items() if key != missing})
        assert (answer.status_code, missing in answer.text) == (400, True)
    answer = await api("POST", "", {"cron": "* * * * *", "timezone": "UTC"})
    assert (answer.status_code, "graph_id" in answer.text) == (422, True)
    await api.create()
    assert (await api("POST", "", BODY | {"id": "s"})).status_code == 409
    assert len(await api.machine.app.grants.list()) == 1  # all or nothing
    anonymous = await api.client.get("/api/v1/schedules")
    assert anonymous.status_code == 401
    await api.machine.app.accounts.put("ada", credit=0)
    answer = await api("POST", "", BODY | {"id": "t"})
    assert (answer.status_code, answer.json()["code"]) == (402, "no_credit")
    api.machine.app.action("plain")(lambda: None)
    plain = await api("POST", "", {"id": "p", "spec": "0 0 1 1 *", "action": "plain"})
    assert (plain.status_code, "graph_id" in plain.json(), "cron" in plain.json()) == (201, False, False)
    assert (await api("PATCH", "/p", {"cron": "* * * * *"})).status_code == 422
    assert (await api("PATCH", "/p", {"tags": ["t"]})).status_code == 200


@pytest.mark.contract("GRNT-01", "GRNT-07", "GRNT-15")
async def test_the_ledger_in_the_words_of_graphs(api: Api):
    await api.create(cron="* * * * *", timezone="UTC")
    await pass_time(api.machine, 1)
    assert api.graphs.inputs == [{"messages": [], "model": "default"}]
    (run,) = (await api("GET", "/s/runs")).json()["items"]
    assert (run["status"], run["error_code"], run["run_id"]) == ("success", None, run["id"])
    assert (run["scheduled_for"], run["count"], run["result"]) == (
        "2026-03-01T00:01:00Z",
        1,
        {"poem": "default"},
    )
    assert run["started_at"] <= run["completed_at"]
    assert (await api("GET", "/s")).json()["last_run_at"] == run["started_at"]
    assert (await api("GET")).json()["items"][0]["last_run_at"] == run["started_at"]
    assert (await api("POST", "/s/resume")).json()["last_run_at"] == run["started_at"]
    await api("PATCH", "/s", {"input": {"model": "bad"}})
    await pass_time(api.machine, 1)
    grant = (await api("GET", "/s")).json()["execution_grant_id"]
    last = (await api("GET", "/s")).json()["last_run_at"]
    await api.machine.app.grants.revoke(grant)
    await pass_time(api.machine, 1)
    assert await api.runs() == [("skipped", "grant_revoked"), ("error", "failed"), ("success", None)]
    skipped = (await api("GET", "/s/runs")).json()["items"][0]
    assert (skipped["started_at"], bool(skipped["completed_at"])) == (None, True)
    shown = (await api("GET", "/s")).json()
    assert (shown["last_run_at"], "was revoked" in shown["attention"], shown["enabled"]) == (last, True, True)
    assert shown["next_run_at"] == "2026-03-01T00:04:00Z"
    another = await api.machine.app.owned_by("ada").grants.create(["graph:execute:test:poet"])
    shown = (await api("PATCH", "/s", {"execution_grant_id": another.id, "input": None})).json()
    assert (shown["attention"], shown["execution_grant_id"]) == ("", another.id)
    await pass_time(api.machine, 1)
    assert (await api.runs())[0] == ("success", None)
    assert (await api("GET", "/s/runs", user="eve")).status_code == 404


@pytest.mark.contract("GRNT-09")
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("Forbid", [("skipped", "overlap"), ("running", None)]), ("Allow", [("running", None)] * 3),
        ("Replace", [("running", None), ("cancelled", "replaced"), ("cancelled", "replaced")]),
    ],
)  # fmt: skip
async def test_slots_that_pass_while_a_run_executes(
    api: Api, policy: str, words: list[tuple[str, str | None]]
):
    api.graphs.gate.clear()
    await api.create(cron="* * * * *", timezone="UTC", concurrency_policy=policy)
    for _ in range(3):
        await api.machine.advance(minutes=1)
        for _ in range(50):  # graphs that are replaced end
            await asyncio.sleep(0)
        await api.machine.advance(seconds=0)
    assert sorted(await api.runs(), key=str) == sorted(words, key=str)
    if policy == "Forbid":
        skipped = (await api("GET", "/s/runs")).json()["items"][0]
        assert (skipped["count"], skipped["last_scheduled_for"]) == (2, "2026-03-01T00:03:00Z")
    api.graphs.gate.set()


@pytest.mark.contract("GRNT-10", "GRNT-11")
async def test_missed_slots_are_skipped_unless_there_is_consent(api: Api):
    await api.create(cron="* * * * *", timezone="UTC")
    api.machine.clock.move_to(datetime(2026, 3, 1, 1, 0, 30, tzinfo=UTC))  # nothing was driven for an hour
    await pass_time(api.machine, 1)
    runs = (await api("GET", "/s/runs")).json()["items"]
    assert [(each["status"], each["count"]) for each in runs] == [("success", 1), ("skipped", 60)]
    span = {"start": "2026-03-01T00:10:00Z", "end": "2026-03-01T00:12:00Z"}
    answer = await api("POST", "/s/backfills", span)
    assert (answer.status_code, answer.json()["code"]) == (422, "backfill_limit")
    await api("PATCH", "/s", {"backfill_limit": 3})
    assert (await api("POST", "/s/backfills", span)).status_code == 202
    api.machine.clock.move_to(datetime(2026, 3, 1, 2, 0, 30, tzinfo=UTC))
    await pass_time(api.machine, 10)
    runs = (await api("GET", "/s/runs")).json()["items"]
    made_up = [
        each for each in runs if each["status"] == "success" and each["scheduled_for"] < "2026-03-01T02:01"
    ]
    assert len(made_up) <= 1 + 3 + 3


@pytest.mark.contract("GRNT-14")
async def test_disabling_and_editing_replace_what_is_pending(api: Api):
    await api.create(cron="0 * * * *", timezone="UTC")
    off = (await api("PATCH", "/s", {"enabled": False})).json()
    assert (off["enabled"], off["next_run_at"]) == (False, None)
    await pass_time(api.machine, 61)
    assert api.graphs.inputs == []
    on = (await api("PATCH", "/s", {"enabled": True})).json()
    assert (on["enabled"], on["next_run_at"]) == (True, "2026-03-01T02:00:00Z")
    await api.machine.advance(minutes=58)
    api.machine.clock.move_to(datetime(2026, 3, 1, 2, 0, 1, tzinfo=UTC))  # due and is not decided yet
    edited = (await api("PATCH", "/s", {"cron": "*/30 * * * *"})).json()  # it names the slot that is due, too
    assert edited["next_run_at"] == "2026-03-01T02:30:00Z"
    await pass_time(api.machine, 3)
    assert api.graphs.inputs == []
    await pass_time(api.machine, 27)
    assert len(api.graphs.inputs) == 1


@pytest.mark.contract("GRNT-14")
@pytest.mark.parametrize("how", ["disabled", "deleted"])
async def test_a_slot_that_is_due_when_its_schedule_ends_does_not_run(api: Api, how: str):
    await api.create(cron="0 * * * *", timezone="UTC")
    api.machine.clock.move_to(datetime(2026, 3, 1, 1, 0, 1, tzinfo=UTC))
    await api(*(("PATCH", "/s", {"enabled": False}) if how == "disabled" else ("DELETE", "/s")))
    await pass_time(api.machine, 2)
    assert api.graphs.inputs == []
