"""Flows over HTTP and on the command line, and whose they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from horae import App, Config, SyncApp
from horae.errors import FlowNotFoundError, InvalidInputError
from horae.face.service.server import load_flows
from horae.flows import NeedsApproval
from horae.testing import TimeMachine
from tests.face.cli.command import horae
from tests.support.flows import Script, publish
from tests.support.machine import START
from tests.support.process import Server
from tests.support.service import client_of
from tests.support.wait import wait_for

SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing


@pytest.fixture
async def machine() -> AsyncIterator[TimeMachine]:
    async with TimeMachine(START) as machine:
        yield machine


@pytest.fixture
async def client(machine: TimeMachine) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(machine.app) as client:
        yield client


async def ask(client: httpx.AsyncClient, method: str, path: str, status: int = 200, body: Any = None) -> Any:
    found = await client.request(method, f"/api/v1/flows{path}", json=body)
    assert found.status_code == status, found.text
    return found.json()


@pytest.mark.contract("FLOW-27")
async def test_a_flow_over_http_from_publishing_to_resolving(machine: TimeMachine, client: httpx.AsyncClient):
    script = Script()
    script.deeds["mutate"] = [NeedsApproval("reconnect Gmail"), TimeoutError("lost")]
    await machine.app.flows.deploy(script.flow)
    assert await ask(
        client, "POST", "/f/events", 202, {"topic": "in", "message_id": "1", "payload": {"a": 1}}
    ) == {"published": 1}
    many = [{"topic": "in", "message_id": each} for each in ("1", "2", "3")]
    assert await ask(client, "POST", "/f/events", 202, many) == {"published": 3}
    await machine.advance(seconds=1)
    (listed,) = (await ask(client, "GET", ""))["items"]
    assert (listed["status"], listed["issue"]) == ("Needs attention", "Waiting for you to reconnect Gmail")
    assert (await ask(client, "POST", "/f/run-now", 409))["code"] == "flow_refused"
    await ask(client, "POST", "/f/resolve", body={"decision": "approved"})
    await machine.advance(seconds=1)
    shown = await ask(client, "GET", "/f")
    assert shown["action"] == "Say what happened: resolve it as applied, not_applied or skip"
    assert shown["operator"]["trouble"]["status"] == "paused:reconciliation"
    assert (await ask(client, "POST", "/f/resolve", 400, {"decision": "perhaps"}))[
        "code"
    ] == "invalid_request"
    await ask(client, "POST", "/f/resolve", body={"decision": "applied", "result": {"row": 7}})
    await machine.advance(seconds=1)
    assert ("applied", {"row": 7}) in script.outcomes
    assert script.effects == [["2"], ["3"]]
    shown = await ask(client, "GET", "/f")
    assert shown["status"] == "Idle"
    assert [each["text"] for each in shown["activity"]] == ["Processed 1 event"] * 3
    events = await ask(client, "GET", "/f/events?status=consumed&limit=2")
    assert [each["id"] for each in events["items"]] == ["3", "2"]
    more = await ask(client, "GET", f"/f/events?status=consumed&limit=2&cursor={events['next']}")
    assert [each["payload"] for each in more["items"]] == [None]
    runs = (await ask(client, "GET", "/f/runs?handler=take"))["items"]
    chain = await ask(client, "GET", f"/f/runs/{runs[-2]['id']}")
    assert len(chain) == 2
    assert "did not run" in (await ask(client, "GET", "/f/explain?time=2020-01-01T00:00:00Z"))["sentence"]
    assert (await ask(client, "POST", "/f/pause", body={"note": "lunch"}))["issue"] == "Paused: lunch"
    assert (await ask(client, "POST", "/f/resume"))["status"] in {"Idle", "Running"}


async def test_what_a_request_gets_wrong(machine: TimeMachine, client: httpx.AsyncClient):
    await machine.app.flows.deploy(Script().flow)
    for path, body, status in (
        ("/g/events", {"topic": "in", "message_id": "1"}, 404),
        ("/f/events", {"topic": "out", "message_id": "1"}, 422),
        ("/f/events", {"topic": "in", "message_id": ""}, 422),
        ("/f/events", {"topic": "in"}, 400),
        ("/f/events", {"topic": "in", "message_id": "1", "payload": "x" * 300_000}, 422),
        ("/f/events", [{"topic": "in", "message_id": "1"}, {"topic": "in", "message_id": 7}], 400),
        ("/f/inputs/skip", {"source": "a", "type": "b", "id": "c"}, 404),
        ("/f/resolve", {"decision": "retry"}, 409),
    ):
        found = await ask(client, "POST", path, status, body)
        assert found["code"], path
    assert (await ask(client, "GET", "/f/runs/none", 404))["code"] == "flow_run_not_found"
    assert (await ask(client, "GET", "/f/events?status=odd", 422))["code"] == "invalid_input"
    assert list(await machine.app.flows.events("f")) == []


async def test_owners_see_only_their_flows():
    config = Config(jwt_secret=SECRET)
    async with App(":memory:", config=config) as app, client_of(app, config) as client:
        await app.owned_by("alice").flows.deploy(Script().flow)
        await app.owned_by("bob").flows.deploy(Script().flow)

        async def see(user: str, path: str = "", scope: str = "") -> Any:
            token = jwt.encode({"sub": user, "aud": "horae", "exp": 4_000_000_000, "scope": scope}, SECRET)
            found = await client.get(f"/api/v1/flows{path}", headers={"Authorization": f"Bearer {token}"})
            return found.json() if found.status_code == 200 else found.status_code

        assert [each["owner"] for each in (await see("alice"))["items"]] == ["alice"]
        assert [each["owner"] for each in (await see("root", scope="admin"))["items"]] == ["alice", "bob"]
        assert await see("carol", "/f") == 404
        assert (await see("root", "/f?owner=bob", "admin"))["owner"] == "bob"
        assert await see("root", "/f", "admin") == 404  # which of the two?
        await publish_as(app, "alice")
        assert len((await see("alice", "/f/events"))["items"]) == 1
        assert (await see("bob", "/f/events"))["items"] == []
        with pytest.raises(FlowNotFoundError):
            await app.owned_by("alice").flows.show("f", owner="bob")
        with pytest.raises(InvalidInputError):
            await app.owned_by("alice").flows.deploy(Script().flow, owner="bob")


async def publish_as(app: App, owner: str) -> None:
    await app.owned_by(owner).flows.publish("f", "in", "1")


def test_flows_without_an_event_loop(tmp_path: Path):
    script = Script()
    with SyncApp(f"sqlite:///{tmp_path / 'f.db'}") as app:
        app.flows.deploy(script.flow)
        app.flows.publish("f", "in", "1", {"a": 1})
        assert [each.id for each in app.flows.events("f")] == ["1"]
        assert app.flows.show("f").status == "Idle"


@pytest.fixture
def database(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'f.db'}"
    script = Script()
    with SyncApp(address) as app:
        app.flows.deploy(script.flow)
    return address


def test_the_command(database: str):
    def run(*arguments: str, status: int = 0) -> Any:
        ran = horae("flows", *arguments, "--database", database, "--json")
        assert ran.returncode == status, ran.stderr + ran.stdout
        return json.loads(ran.stdout or "null")

    assert [each["name"] for each in run("list")] == ["f"]
    assert run("publish", "f", "in", "m1", "--payload", '{"a": 1}') == {"published": 1}
    assert [each["id"] for each in run("events", "f", "--status", "pending")] == ["m1"]
    assert run("runs", "f") == []
    assert run("inputs", "f") == []
    assert run("show", "f")["schedule"] == "Runs when something new arrives"
    assert run("pause", "f", "--note", "why not")["status"] == "Stopped"
    assert run("resume", "f")["status"] == "Idle"
    assert "the flow was first deployed at" in run("explain", "f", "2020-01-01T00:00Z")["sentence"]
    for wrong in (
        ("resolve", "f", "retry"), ("run-now", "f"), ("skip", "f", "a", "b", "c"), ("show", "g"),
        ("publish", "f", "in", "x", "--payload", "{"),
    ):  # fmt: skip
        run(*wrong, status=2)
    for shown in (("list",), ("show", "f"), ("runs", "f"), ("events", "f"), ("inputs", "f")):
        ran = horae("flows", *shown, "--database", database)
        assert ran.returncode == 0, ran.stderr
    assert "m1" in horae("flows", "events", "f", "--database", database).stdout


@pytest.mark.contract("FLOW-01")
def test_the_flows_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "shop_flows.py").write_text(
        'from horae.flows import Flow\none, two = Flow("one"), Flow("two")\n'
    )
    (tmp_path / "no_flows.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert [flow.name for flow in load_flows("shop_flows")] == ["one", "two"]
    for wrong in ("no_flows", "absent_flows"):
        with pytest.raises(InvalidInputError, match="--flows"):
            load_flows(wrong)


@pytest.mark.contract("FLOW-01", "FLOW-21")
def test_a_service_owns_its_flows_and_repairs_them_from_a_folder(tmp_path: Path):
    server = Server(
        f"sqlite:///{tmp_path / 'horae.db'}", "--flows", "examples.flow_fixer", "--flow-owner", "alice",
        "--flow-fixes", "examples/flow_versions",
    )  # fmt: skip
    try:
        (flow,) = server.get("/flows")["items"]
        assert (flow["name"], flow["owner"]) == ("invoices", "alice")
        events = [{"topic": "mails", "message_id": "1", "payload": "12,50"}]
        assert server.ask("POST", "/flows/invoices/events", events).status_code < 300

        def is_consumed() -> bool:
            return [each["status"] for each in server.get("/flows/invoices/events")["items"]] == ["consumed"]

        wait_for(is_consumed)
        statuses = [run["status"] for run in server.get("/flows/invoices/runs")["items"]]
        assert "failed:logic" in statuses  # by the first version, which knows no commas
        runs = server.get("/flows/invoices/runs")["items"]
        assert len({run["revision"] for run in runs}) == 2
        failed = next(run["id"] for run in runs if run["status"] == "failed:logic")
        (line,) = server.get(f"/flows/invoices/runs/{failed}/logs")["items"]
        assert line["message"].endswith("ValueError: could not convert string to float: '12,50'")
        shown = horae("flows", "logs", "invoices", failed, "--url", server.url)
        assert "could not convert string to float" in shown.stdout, shown.stderr
        assert json.loads(
            horae("flows", "logs", "invoices", failed, "--url", server.url, "--json").stdout
        ) == [line]
    finally:
        server.end()


async def test_publishing_needs_no_host(tmp_path: Path):
    address = f"sqlite:///{tmp_path / 'f.db'}"
    async with App(address) as app:
        await app.flows.deploy(Script().flow)
    async with App(address) as other:
        await publish(other, "1")
        assert (await other.flows.show("f")).operator.hosted_here is False  # type: ignore[union-attr]
