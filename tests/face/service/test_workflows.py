"""Workflows over HTTP and on the command line: a real service, a named request and a command, tenants, and a server that is killed."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.face.cli.command import horae
from tests.support.process import Server, StartServer
from tests.support.tokens import SECRET, bearer
from tests.support.wait import wait_for

ADMIN, ALICE, BOB = bearer("root", "admin"), bearer("alice"), bearer("bob")


class Mailbox(BaseHTTPRequestHandler):
    received: list[dict[str, Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.received.append(body | {"key": self.headers["Idempotency-Key"]})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"sent": true}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("workflows")
    mailbox = HTTPServer(("127.0.0.1", 0), Mailbox)
    Thread(target=mailbox.serve_forever, daemon=True).start()
    requests = {"mail": {"url": f"http://127.0.0.1:{mailbox.server_port}/send"}}
    (folder / "requests.json").write_text(json.dumps(requests))
    (folder / "commands.json").write_text('{"count": {"argv": ["wc", "-c"]}}')
    server = Server(
        f"sqlite:///{folder}/horae.db", HORAE_JWT_SECRET=SECRET, HORAE_REQUESTS=str(folder / "requests.json"),
        HORAE_COMMANDS=str(folder / "commands.json"), HORAE_HTTP_PRIVATE="127.0.0.0/8",
    )  # fmt: skip
    yield server
    server.end(signal.SIGKILL)
    mailbox.shutdown()
    mailbox.server_close()


def node(name: str, action: str, **data: Any) -> dict[str, Any]:
    return {"id": name, "type": "action", "data": {"action": action, **data}}


START = {"id": "start", "type": "trigger", "data": {"kind": "manual"}}
END = {"id": "end", "type": "end", "data": {"output": {"x": "nodes.a.output"}}}


def chain(*nodes: dict[str, Any]) -> dict[str, Any]:
    names = [each["id"] for each in nodes]
    edges = [{"source": a, "target": b} for a, b in pairwise(names)]
    return {"nodes": list(nodes), "edges": edges}


def ended(service: Server, run_id: str, headers: dict[str, str] = ALICE) -> dict[str, Any]:
    def run() -> dict[str, Any] | None:
        found = service.get(f"/runs/{run_id}", headers=headers)
        return None if found["status"] in {"pending", "starting", "running", "retrying"} else dict(found)

    found: dict[str, Any] = wait_for(run)
    return found


def put(service: Server, where: str, document: dict[str, Any], headers: dict[str, str] = ALICE) -> Any:
    return service.client.put(f"/workflows/{where}", json=document, headers=headers)


@pytest.mark.contract("CRON-05", "CRON-24")
def test_deploy_read_and_refuse(service: Server):
    schedule = {"cron_expr": "0 9 * * *", "timezone": "UTC"}
    trigger = {"id": "daily", "type": "trigger", "data": {"kind": "schedule_based", "schedule": schedule}}
    document = chain(trigger, node("a", "ping"))
    answer = put(service, "report/1", document)
    assert answer.status_code == 201, answer.text
    (schedule_id,) = answer.json()["schedules"]
    shown = service.client.get(f"/schedules/{schedule_id}", headers=ALICE).json()
    assert (shown["workflow_id"], shown["version"], shown["user_id"]) == ("report", 1, "alice")
    assert put(service, "report/1", document).status_code == 200
    changed = put(service, "report/1", chain(trigger, node("b", "ping")))
    assert (changed.status_code, changed.json()["code"]) == (409, "workflow_conflict")
    assert service.get("/workflows/report", headers=ALICE)["document"]["nodes"][0]["id"] == "daily"
    assert service.ask("GET", "/workflows/report/1", headers=BOB).status_code == 404
    listed = service.get("/workflows", headers=ALICE)["items"]
    assert [each["version"] for each in listed if each["workflow_id"] == "report"] == [1]
    assert service.get("/workflow-schema", headers=ALICE)["title"] == "A workflow of Horae"
    wrong = put(service, "report/2", chain(START, node("a", "gone"), node("b", "http")))
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_workflow")
    assert {each["where"] for each in wrong.json()["details"]["faults"]} == {"node a", "node b"}
    for where, body, status in (
        ("report/x", document, 422), ("report/3", document | {"version": 4}, 422), ("report/3", [1], 400), ("report/-1", document, 422),
    ):  # fmt: skip
        assert put(service, where, body).status_code == status, (where, put(service, where, body).text)  # type: ignore[arg-type]
    big = put(service, "report/3", {"nodes": [START, *(node(f"n{n}", "ping") for n in range(501))]})
    assert (big.status_code, big.json()["details"]["limit"]) == (422, "workflow_nodes")


@pytest.mark.contract("CRON-14", "CRON-20", "CRON-23")
def test_functions_requests_and_commands_run_and_every_node_is_shown(service: Server):
    document = chain(
        START, node("a", "ping", input={"n": "input.n + 1"}), node("mail", "request:mail", input={"text": "nodes.a.output"}),
        node("count", "command:count", input={"x": "1"}), {**END, "data": {"output": {"out": "nodes.count.output.stdout", "mail": "nodes.mail.output.body.sent"}}},
    )  # fmt: skip
    assert put(service, "steps/1", document).status_code == 201
    answer = service.ask("POST", "/workflows/steps/runs", {"input": {"n": 4}}, headers=ALICE)
    assert answer.status_code == 202, answer.text
    run = ended(service, answer.json()["id"])
    assert (run["status"], run["result"]["mail"], run["result"]["out"].strip()) == ("succeeded", True, "7")
    items = {each["place"]: each for each in service.get(f"/runs/{run['id']}/nodes", headers=ALICE)["items"]}
    assert [each["state"] for each in items.values()] == ["succeeded"] * 5
    assert (items["a"]["input"], items["a"]["attempts"]) == ({"n": 5}, 1)
    assert items["a"]["output"]["pong"] == {"n": 5}
    assert items["mail"]["started_at"] <= items["mail"]["ended_at"]
    (mail,) = Mailbox.received
    assert mail["input"]["text"] == items["a"]["output"]
    assert mail["key"] != items["a"]["output"]["key"]
    assert service.ask("GET", f"/runs/{run['id']}/nodes", headers=BOB).status_code == 404


@pytest.mark.contract("CRON-11", "CRON-13")
def test_the_launcher_starts_once_per_key_and_a_missing_workflow_is_false(service: Server):
    put(service, "launched/1", chain(START, node("a", "ping"), END))
    wanted = {
        "workflow_id": "launched", "version": 1, "user_id": "alice", "scheduled_for": "2026-11-17T09:00:00Z", "idempotency_key": "k-1",
    }  # fmt: skip

    def start(body: dict[str, Any], headers: dict[str, str] = ALICE) -> Any:
        return service.client.post("/run-launcher/start", json=body, headers=headers)

    assert [start(wanted).json() for _ in range(3)] == [{"started": True}] * 3
    assert start(wanted | {"version": 9, "idempotency_key": "k-2"}).json() == {"started": False}
    assert start(wanted | {"workflow_id": "none"}).json() == {"started": False}
    assert start(wanted, BOB).status_code == 403
    assert start(wanted, bearer("cron", "service")).json() == {"started": True}
    for fault in (
        {"version": "x"},
        {"idempotency_key": ""},
        {"scheduled_for": "2026-11-17T09:00:00"},
        {"more": 1},
    ):
        assert start(wanted | fault).status_code == 422, fault
    runs = service.get("/runs", headers=ALICE, params={"tag": "workflow"})["items"]
    (run,) = [each for each in runs if each["input"]["workflow_id"] == "launched"]
    assert run["nominal"] == "2026-11-17T09:00:00Z"
    assert ended(service, run["id"])["status"] == "succeeded"
    ledger = service.client.get(f"/schedules/{run['schedule_id']}/runs", headers=ALICE).json()
    assert [each["status"] for each in ledger] == ["SUCCESS"]


def test_a_failure_says_which_node(service: Server):
    put(
        service,
        "failing/1",
        chain(START, node("a", "fail", retry={"attempts": 2, "delay": "1ms"}), node("b", "ping")),
    )
    run = ended(service, service.ask("POST", "/workflows/failing/runs", {}, headers=ALICE).json()["id"])
    assert (run["status"], run["failure"]) == (
        "failed", 'NodeFailedError: node "a" failed: ValueError: attempt 2 went wrong',
    )  # fmt: skip
    items = {each["place"]: each for each in service.get(f"/runs/{run['id']}/nodes", headers=ALICE)["items"]}
    assert {place: (each["state"], each["attempts"]) for place, each in items.items()} == {
        "start": ("succeeded", 0), "a": ("failed", 2), "b": ("skipped", 0),
    }  # fmt: skip


def test_the_command_deploys_runs_and_draws(service: Server, tmp_path: Path):
    def command(*arguments: str) -> str:
        token = ALICE["Authorization"].removeprefix("Bearer ")
        ran = horae("workflows", *arguments, HORAE_URL=service.url, HORAE_TOKEN=token)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    document = {"workflow_id": "drawn", "version": 1} | chain(START, node("a", "ping"), END)
    file = tmp_path / "drawn.json"
    file.write_text(json.dumps(document))
    assert "is valid: 3 nodes, 2 edges" in command("validate", str(file))
    assert "Deployed drawn, version 1." in command("deploy", str(file))
    assert "Already deployed" in command("deploy", str(file))
    assert "drawn" in command("list")
    assert "└→ a" in command("show", "drawn")
    ran = json.loads(command("run", "drawn", "--input", '{"x": 1}', "--key", "k", "--wait", "--json"))
    assert ran["status"] == "succeeded"
    assert "● a  action ping  succeeded" in command("draw", "drawn", "--run", ran["id"])
    diagram = command("draw", "drawn", "--run", ran["id"], "--mermaid")
    assert diagram.startswith("flowchart TD\n")
    assert "class n0,n1,n2 succeeded" in diagram
    assert "succeeded" in command("nodes", ran["id"])
    file.write_text("{}")
    bad = horae(
        "workflows", "validate", str(file), HORAE_URL=service.url, HORAE_TOKEN=ALICE["Authorization"][7:]
    )
    assert bad.returncode == 2
    assert "nodes are none" in bad.stderr


def launch(
    service: Server, name: str, nodes: list[dict[str, Any]], edges: list[dict[str, Any]], given: Any = None
) -> str:
    """Deploy a workflow, and run it; the id of the run."""
    answer = put(service, f"{name}/1", {"nodes": nodes, "edges": edges})
    assert answer.status_code == 201, answer.text
    started = service.ask("POST", f"/workflows/{name}/runs", {"input": given}, headers=ALICE)
    return str(started.json()["id"])


def states_of(service: Server, run_id: str) -> dict[str, str]:
    items = service.get(f"/runs/{run_id}/nodes", headers=ALICE)["items"]
    return {each["place"]: each["state"] for each in items}


@pytest.mark.contract("CRON-14", "CRON-20", "CRON-21")
def test_every_kind_of_node_runs(service: Server):
    kinds = {
        "start": "trigger", "gate": "gateway_if", "switch": "gateway_switch", "fan": "parallel", "all": "join", "any": "join",
        "most": "join", "each": "loop_foreach", "until": "loop_while", "end": "end",
    }  # fmt: skip
    data: dict[str, dict[str, Any]] = {
        "start": {"kind": "manual"}, "any": {"mode": "any"}, "most": {"mode": "quorum", "quorum": 2}, "all": {"mode": "all"},
        "each": {"items": "input.list", "concurrency": 2}, "until": {"condition": "index < 2"},
        "end": {"output": {"each": "nodes.each.output.map(x, x.pong.n)", "late": "nodes.late.error", "rounds": "size(nodes.until.output)"}},
    }  # fmt: skip
    nodes = [{"id": name, "type": kind, "data": data.get(name, {})} for name, kind in kinds.items()]
    nodes += [node(name, "ping") for name in ("other", "a", "b", "mend", "then", "step")]
    nodes += [
        node("body", "ping", input={"n": "item + index"}), node("fails", "fail", retry={"attempts": 2, "delay": "1ms"}),
        node("late", "slow", timeout="20ms"), node("loses", "slow"),
    ]  # fmt: skip
    links = (
        "start>gate gate>switch:input.yes gate>other switch>fan:input.list.size()>1 switch>other fan>a fan>b fan>fails fan>late "
        "fails!mend late!then fan>loses loses>any mend>any a>most b>most then>all any>all most>all all>each each>body body>each "
        "each>until until>step step>until until>end"
    )  # fmt: skip
    edges = []
    for link in links.split():
        path, _, condition = link.partition(":")
        source, mark, target = path.partition("!") if "!" in path else path.partition(">")
        edge = {"source": source, "target": target, "when": "error" if mark == "!" else "success"}
        edges.append(edge | ({"condition": condition} if condition else {}))
    run = ended(service, launch(service, "every", nodes, edges, {"yes": True, "list": [5, 6]}))
    assert (run["status"], run["result"]["each"], run["result"]["rounds"]) == ("succeeded", [5, 7], 2), run
    assert "took longer than its timeout, 20 ms" in run["result"]["late"]
    states = states_of(service, run["id"])
    assert {name for name, state in states.items() if state == "failed"} == {"fails", "late"}
    assert (states["other"], states["loses"], states["each/1/body"]) == ("skipped", "cancelled", "succeeded")


@pytest.mark.contract("CRON-05", "CRON-11", "CRON-12", "CRON-13")
def test_ticks_start_a_workflow_until_its_trigger_is_gone(service: Server):
    every = {"cron_expr": "* * * * * *", "timezone": "UTC"}
    trigger = {"id": "often", "type": "trigger", "data": {"kind": "schedule_based", "schedule": every}}
    (schedule_id,) = put(service, "ticking/1", chain(trigger, node("a", "ping"))).json()["schedules"]
    missing = {"workflow_id": "none", "version": 7, "user_id": "alice", **every}
    upserted = service.client.post("/schedules/upsert", json=missing, headers=ALICE).json()["schedule_id"]

    def latest(wanted: str, status: str) -> dict[str, Any] | None:
        rows = service.client.get(f"/schedules/{wanted}/runs", headers=ALICE).json()
        return next((each for each in rows if each["status"] == status), None)

    ran = wait_for(lambda: latest(schedule_id, "SUCCESS"))
    at = int(datetime.fromisoformat(ran["run_at"]).timestamp())
    assert ran["idempotency_key"] == hashlib.sha256(f"{schedule_id}:{at}".encode()).hexdigest()
    failed = wait_for(lambda: latest(upserted, "FAILED"))
    assert 'there is no workflow "none" of version 7' in failed["reason"]
    assert put(service, "ticking/2", chain(START, node("a", "ping"))).json()["schedules"] == []
    assert service.client.get(f"/schedules/{schedule_id}", headers=ALICE).status_code == 404
    assert service.client.delete(f"/schedules/{upserted}", headers=ALICE).status_code == 204


@pytest.mark.parametrize("how", ["cancel", "terminate"])
def test_stopping_a_run_stops_its_nodes(service: Server, how: str):
    run_id = launch(
        service, f"stopped-{how}", [START, node("a", "slow")], [{"source": "start", "target": "a"}]
    )
    wait_for(lambda: states_of(service, run_id)["a"] == "running")
    assert service.ask("POST", f"/runs/{run_id}/{how}", headers=ALICE).status_code < 300
    assert ended(service, run_id)["status"] == {"cancel": "cancelled", "terminate": "terminated"}[how]
    assert states_of(service, run_id) == {"start": "succeeded", "a": "cancelled"}


@pytest.mark.contract("CRON-12")
def test_what_cannot_be_launched_gets_three_attempts_and_then_fails_with_its_reason(service: Server):
    yearly = {"cron_expr": "0 0 1 1 *", "timezone": "UTC"}
    workflow = {"workflow_id": "none", "version": 7, "user_id": "alice", **yearly}
    upserted = service.client.post("/schedules/upsert", json=workflow, headers=ALICE).json()["schedule_id"]
    policies = service.get(f"/schedules/{upserted}", headers=ALICE)["policies"]
    schedule = {"id": "unreachable", "spec": {}, "action": "unreachable", "policies": policies}
    assert service.ask("POST", "/schedules", schedule, headers=ALICE).status_code == 201
    run_id = service.ask("POST", "/schedules/unreachable/trigger", {}, headers=ALICE).json()["run_id"]
    run = ended(service, run_id)
    assert (run["reason"], run["attempt"]) == ("not_started", 3)
    (row,) = service.client.get("/schedules/unreachable/runs", headers=ALICE).json()
    assert (row["status"], row["reason"]) == ("FAILED", "not_started: NotStartedError: the broker is away")
    ends = [*(each["ended_at"] for each in run["attempts"]), run["ended_at"]][:3]
    first, second, third = map(datetime.fromisoformat, ends)
    assert ((second - first).total_seconds() >= 1, (third - second).total_seconds() >= 2) == (True, True)
    assert service.client.delete(f"/schedules/{upserted}", headers=ALICE).status_code == 204


@pytest.mark.contract("CRON-13")
def test_the_timeout_of_a_run_stops_its_nodes(service: Server):
    yearly = {"kind": "schedule_based", "schedule": {"cron_expr": "0 0 1 1 *", "timezone": "UTC"}}
    trigger = {"id": "yearly", "type": "trigger", "data": yearly}
    (schedule_id,) = put(service, "timed/1", chain(trigger, node("a", "slow"))).json()["schedules"]
    change = {"policies": {"timeouts": {"run": "500ms", "cancel": "500ms"}}}
    assert service.ask("PATCH", f"/schedules/{schedule_id}", change, headers=ALICE).status_code == 200
    run_id = service.ask("POST", f"/schedules/{schedule_id}/trigger", {}, headers=ALICE).json()["run_id"]
    assert ended(service, run_id)["status"] == "timed_out"
    assert states_of(service, run_id)["a"] == "cancelled"


@pytest.mark.contract("CRON-20", "CRON-23", "CRON-24")
def test_hostile_documents_are_refused_with_the_node(service: Server):
    call = {"source": "start", "target": "a"}
    for number, (bad, edges, reason) in enumerate(
        [
            ([], [], "nodes are none"),
            ([START, node("a", "ping"), node("b", "ping")], [call, {"source": "a", "target": "b"}, {"source": "b", "target": "a"}], "is in a cycle"),
            ([START, node("a", "ping", input={"x": "__import__('os').system('id')"})], [call], "undeclared reference"),
            ([START, node("a", "ping", input={"x": "input.x'); drop"})], [call], "Syntax error"),
            ([START, node("a", "ping", input={"x": "(" * 200 + "1" + ")" * 200})], [call], "recursion"),
            ([START, node("a", "ping", input={"x": "'" + "x" * 3000 + "'"})], [call], "expression_length"),
            ([START, node("a", "request:http://169.254.169.254/")], [call], "unknown action"),
            ([START, node("a", "http", url="http://127.0.0.1/")], [call], "node a"),
            ([START, node("a", "command:sh")], [call], "unknown action"),
            ([START, node("a", "no-such-action")], [call], "unknown action"),
        ]
    ):  # fmt: skip
        answer = put(service, f"hostile-{number}/1", {"nodes": bad, "edges": edges})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_workflow"), answer.text
        assert reason in answer.text, (number, answer.text)
        assert service.ask("GET", f"/workflows/hostile-{number}", headers=ALICE).status_code == 404


ENDLESS = "true"
for name in "abcdefg":
    ENDLESS = f"[0,1,2,3,4,5,6,7,8,9].all({name}, {ENDLESS})"
TENFOLD = (
    f"[{','.join('0' * 90)}].map(a, [{','.join('0' * 90)}].map(b, input.s + input.s + input.s)).size() > 0"
)


@pytest.mark.contract("CRON-20")
def test_expressions_without_end_memory_or_measure_fail_their_node_and_nothing_else(service: Server):
    cases = {"endless": ENDLESS, "bomb": TENFOLD, "large": "input.s + input.s + input.s"}
    edges = [{"source": "start", "target": "a"}]
    runs = {
        name: launch(
            service, name, [START, node("a", "ping", input={"x": text})], edges, {"s": "x" * 100_000}
        )
        for name, text in cases.items()
    }
    assert service.client.get("/healthz").status_code == 200
    reasons = {"endless": "budget", "bomb": "memory|expression_ms", "large": "the limit is 262144"}
    for name, run_id in runs.items():
        run = ended(service, run_id)
        assert run["status"] == "failed"
        assert re.search(f'node "a" failed: .*({reasons[name]})', run["failure"]), run["failure"]
    after = launch(service, "sound", [START, node("a", "ping", input={"x": "[1].map(x, x + 1)"})], edges)
    assert ended(service, after)["status"] == "succeeded"


@pytest.mark.contract("CRON-05", "CRON-22")
def test_a_run_outlives_its_version_and_its_server(start: StartServer):
    service = start(HORAE_JWT_SECRET=SECRET)
    nodes = [START, node("a", "ping"), node("b", "nap"), END]
    edges = [{"source": a["id"], "target": b["id"]} for a, b in pairwise(nodes)]
    run_id = launch(service, "lasting", nodes, edges)
    wait_for(lambda: states_of(service, run_id)["a"] == "succeeded")
    assert put(service, "lasting/2", chain(START, node("c", "ping"))).status_code == 201
    before = service.get(f"/runs/{run_id}/nodes", headers=ALICE)["items"][1]
    service.end(signal.SIGKILL)
    again = start(service.database, HORAE_JWT_SECRET=SECRET)
    run = ended(again, run_id)
    assert (run["status"], run["input"]["version"], run["result"]["x"]["pong"]) == ("succeeded", 1, None)
    assert again.get(f"/runs/{run_id}/nodes", headers=ALICE)["items"][1] == before  # it was not repeated
    newest = again.ask("POST", "/workflows/lasting/runs", {}, headers=ALICE).json()["id"]
    assert ended(again, newest)["input"]["version"] == 2
