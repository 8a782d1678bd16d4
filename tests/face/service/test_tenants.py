"""Callers see only what they own, on every route of the OpenAPI document, so that a new route is checked too."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from horae.face.service.examples import REQUESTS
from tests.support.process import Server
from tests.support.wait import wait_for

SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing
METHODS = ("get", "post", "put", "patch", "delete")
OPEN = {"/healthz", "/readyz", "/openapi.json"}
REPORT = re.compile(r"/runs/\{run_id\}/(started|heartbeat|succeeded|failed)$")
MOMENT = {"time": "2026-11-01T09:00:00Z"}
QUERIES = {"explainTime": MOMENT, "explainFlow": MOMENT}
HERS = "alices-own-schedule"
FLOW = "/api/v1/flows/{flow}"
"""The paths of a flow that the service hosts: it is the operator's, and alice has none."""
OWN = {"putCalendar", "deployWorkflow", "putWorkflow"}
"""What makes a thing of the caller's own under the same name."""
pytestmark = pytest.mark.contract("CRON-18", "GRNT-16")


def token(user: str, *scopes: str) -> str:
    return jwt.encode({"sub": user, "aud": "horae", "exp": 4_000_000_000, "scope": " ".join(scopes)}, SECRET)


class User:
    """A user with a token."""

    def __init__(self, server: Server, name: str, *scopes: str) -> None:
        headers = {"Authorization": f"Bearer {token(name, *scopes)}"}
        self.client = httpx.Client(base_url=server.url, headers=headers, timeout=30)

    def ask(self, method: str, path: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.client.request(method, f"/api/v1{path}", json=body, params=params or None)

    def get(self, path: str, **params: Any) -> Any:
        answer = self.ask("GET", path, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()


class World:
    """A service, its users, and what alice has. Tests add to what bob has: one that counts has a user of its own (``new_user``)."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.document = server.client.get("/openapi.json").json()
        self.alice, self.bob = User(server, "alice"), User(server, "bob")
        self.service, self.admin = User(server, "robot", "service"), User(server, "root", "admin")
        self.users = [self.alice, self.bob, self.service, self.admin]
        spec = {"crons": ["0 9 * * *"]}
        self.alice.ask("POST", "/schedules", {"id": HERS, "spec": spec, "action": "ping", "trigger": True})
        self.alice.ask("PATCH", f"/schedules/{HERS}", {"spec": {"crons": ["0 10 * * *"]}, "tags": ["t"]})
        self.alice.ask("PUT", "/calendars/her-days", {"dates": ["2099-01-01"]})
        span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T23:00:00Z"}
        backfill = self.alice.ask("POST", f"/schedules/{HERS}/backfills", span).json()["id"]
        wait_for(lambda: all(each["ended_at"] for each in self.runs()) and len(self.runs()) == 2)
        wait_for(lambda: self.alice.get(f"/backfills/{backfill}")["status"] == "done")
        graph = {
            "graph_id": "langgraph:poet",
            "cron": "0 9 * * *",
            "timezone": "UTC",
            "input": {"messages": ["her words"]},
        }
        made = self.alice.ask("POST", "/schedules", {"id": "alices-graph", "tags": ["her-tag"]} | graph)
        assert made.status_code == 201, made.text
        dag = {"nodes": [{"id": "start", "type": "trigger", "data": {"kind": "manual"}}], "edges": []}
        deployed = self.alice.ask("PUT", "/workflows/alices-dag/1", dag)
        assert deployed.status_code == 201, deployed.text
        self.hers = {
            "workflow_id": "alices-dag", "version": "1", "flow": "mail-to-sheet",
            "grant_id": made.json()["execution_grant_id"], "graph_id": "langgraph:poet",
            "schedule_id": HERS, "run_id": self.runs()[0]["id"], "backfill_id": backfill, "name": "her-days",
        }  # fmt: skip
        self.missing = {key: value[::-1] for key, value in self.hers.items()} | {
            "graph_id": "langgraph:none", "version": "1",
        }  # fmt: skip

    def new_user(self, name: str) -> User:
        """A user who has nothing yet."""
        self.users.append(User(self.server, name))
        assert self.users[-1].get("/bulk/count")["count"] == 0
        return self.users[-1]

    def runs(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.alice.get(f"/schedules/{HERS}/runs")["items"]
        return items

    def state(self) -> Any:
        """All that alice has."""
        paths = ["", "/runs", "/unstarted", "/versions", "/backfills"]
        graph = [
            self.alice.get("/schedules/alices-graph"),
            self.alice.get("/account"),
            self.alice.get("/usage"),
        ]
        return graph + [self.alice.get(f"/schedules/{HERS}{path}") for path in paths] + [
            self.alice.get("/grants"), self.alice.get("/calendars"), self.alice.get("/bulk/count"), self.alice.get("/schedules"),
        ]  # fmt: skip

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for path, item in self.document["paths"].items():
            unknown = set(re.findall(r"\{(\w+)\}", path)) - self.hers.keys()
            assert not unknown, f"{path} names {unknown}: say here which of these alice has"
            for method in METHODS:
                if method in item:
                    yield method.upper(), path, item[method]

    def send(
        self, client: httpx.Client, method: str, path: str, operation: dict[str, Any], ids: dict[str, str]
    ) -> httpx.Response:
        """Send the request of an operation, on the given ids."""
        for name, value in ids.items():
            path = path.replace(f"{{{name}}}", value)
        return client.request(
            method, path, json=_body(operation, ids), params=QUERIES.get(operation["operationId"])
        )


def _body(operation: dict[str, Any], ids: dict[str, str]) -> Any:
    """The example of a body, with the same ids."""
    if "requestBody" not in operation:
        return None
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    named = [schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())]
    name = next(each["$ref"] for each in named if "$ref" in each).rsplit("/", 1)[1]
    body = REQUESTS[name]
    return body | {"schedule_id": ids["schedule_id"]} if "schedule_id" in body else body


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    address = f"sqlite:///{tmp_path_factory.mktemp('tenants')}/horae.db"
    server = Server(
        address,
        "--flows",
        "examples.living_flow",
        interpreter=sys.executable,  # its command line is read below
        HORAE_JWT_SECRET=SECRET,
        HORAE_GRAPHS='{"poet": "tests.support.langgraphs:poet"}',
    )
    world = World(server)
    yield world
    for user in world.users:
        user.client.close()
    assert "Traceback" not in server.log
    assert SECRET not in server.log
    assert token("alice") not in server.log
    assert SECRET not in Path(f"/proc/{server.process.pid}/cmdline").read_text()
    server.end()


def essence(answer: httpx.Response, ids: dict[str, str]) -> tuple[int, list[tuple[str, str]], str]:
    """All of an answer but the ids that it was asked about and the time of day."""
    text = answer.text
    for name, value in sorted(ids.items(), key=lambda each: -len(each[1])):
        text = text.replace(value, name)
    return answer.status_code, sorted((k, v) for k, v in answer.headers.items() if k != "date"), text


def test_what_another_owner_has_answers_as_if_it_did_not_exist(world: World):
    before = world.state()
    seen = set()
    for method, path, operation in world.operations():
        named = "{" in path or "schedule_id" in (_body(operation, world.hers) or {})
        if not named or operation["operationId"] in OWN:
            continue
        seen.add(operation["operationId"])
        hers = world.send(world.bob.client, method, path, operation, world.hers)
        missing = world.send(world.bob.client, method, path, operation, world.missing)
        refused = 409 if REPORT.search(path) else 403 if path.startswith("/api/internal/") else 404
        assert hers.status_code == refused, (method, path, hers.text)
        assert essence(hers, world.hers) == essence(missing, world.missing), (method, path)
    assert len(seen) > 30
    assert world.state() == before


def test_owners_reach_what_they_own(world: World):
    """Else the test before would prove nothing: the same questions are answered to alice."""
    for method, path, operation in world.operations():
        if method != "GET" or "{" not in path or FLOW in path:
            continue
        answer = world.send(world.alice.client, method, path, operation, world.hers)
        assert answer.status_code == 200, (path, answer.text)


def test_a_calendar_of_the_same_name_is_another_one(world: World):
    before = world.state()
    put = world.bob.ask("PUT", "/calendars/her-days", {"dates": ["2099-12-31"]})
    assert (put.status_code, put.json()["owner"], put.json()["schedules"]) == (200, "bob", 0)
    assert world.bob.get("/calendars/her-days")["dates"] == ["2099-12-31"]
    assert world.state() == before
    assert world.bob.ask("DELETE", "/calendars/her-days").status_code == 204
    assert world.state() == before


def test_lists_counts_and_the_forecast_have_only_what_the_caller_owns(world: World):
    carol = world.new_user("carol")
    own = carol.ask("POST", "/schedules", {"spec": "* * * * *", "action": "ping", "tags": ["t"]})
    assert own.status_code == 201
    assert {each["owner"] for each in carol.get("/schedules")["items"]} == {"carol"}
    assert carol.get("/bulk/count")["count"] == 1
    assert carol.get("/bulk/count", tag="t", prefix="")["count"] == 1
    assert carol.get("/calendars")["items"] == []
    assert carol.get("/forecast", minutes=5)["schedules"] == 1
    for path, item in world.document["paths"].items():
        if "get" in item and "{" not in path:
            answer = carol.client.get(path)
            assert HERS not in answer.text, path
            assert "her-days" not in answer.text, path
            assert world.hers["grant_id"] not in answer.text, path
            assert "alice" not in answer.text.replace("alice@", "") or path in OPEN, path
            assert "her words" not in answer.text, path


def test_filters_find_nothing_of_others(world: World):
    """Every query parameter of every list, with a value that finds something of alice's, answers as with one that finds nothing."""
    hers = {
        "tag": "her-tag", "prefix": "alices", "schedule": HERS, "action": "graph:langgraph:poet", "search": "customer:42", "reason": "overlap",
        "status": "succeeded", "state": "running", "managed_by": "x", "since": "2026-01-01T00:00:00Z", "until": "2099-01-01T00:00:00Z",
    }  # fmt: skip
    nothing = hers | {
        "tag": "no-tag",
        "prefix": "nobody",
        "schedule": HERS[::-1],
        "action": "graph:no",
    }
    asked = 0
    for path, item in world.document["paths"].items():
        if "get" not in item or "{" in path or not path.startswith("/api/v1"):
            continue
        for parameter in {each["name"] for each in item["get"]["parameters"]} & set(hers):
            asked += 1
            answers = [
                world.bob.client.get(path, params={parameter: values[parameter]})
                for values in (hers, nothing)
            ]
            found, missing = (
                essence(answer, {"schedule": values["schedule"]})
                for answer, values in zip(answers, (hers, nothing), strict=True)
            )
            assert found == missing, (path, parameter)
    assert asked > 10


def test_bulk_changes_touch_only_what_the_caller_owns(world: World):
    before = world.state()
    dave = world.new_user("dave")
    assert dave.ask("POST", "/schedules", {"spec": "* * * * *", "action": "ping", "tags": ["t"]}).is_success
    assert dave.ask("POST", "/bulk/pause", {"filter": {}}).json() == {"changed": 1}
    assert dave.ask("POST", "/bulk/resume", {"filter": {"tag": "t"}}).json() == {"changed": 1}
    assert dave.ask("POST", "/bulk/pause", {"filter": {"prefix": HERS}}).json() == {"changed": 0}
    assert world.state() == before


def test_an_id_that_another_owner_has_is_free_and_leads_to_nothing_of_theirs(world: World):
    """With every way to create it, and every way to read it: bob gets the answers of an id that no one else has."""
    same = "of-alice-and-bob"
    path, body = f"/schedules/{same}", {"spec": "0 11 * * *", "action": "ping"}
    made = world.alice.ask("POST", "/schedules", body | {"id": same, "trigger": True, "request_id": "r"})
    assert made.status_code == 201
    world.alice.ask("PATCH", path, {"spec": "0 12 * * *"})

    def hers() -> list[Any]:
        return [
            world.alice.get(path + part) for part in ("", "/runs", "/versions", "/unstarted", "/backfills")
        ]

    wait_for(lambda: all(each["ended_at"] for each in hers()[1]["items"]))
    before = hers()
    url, always = f"/api/v1{path}", {"If-None-Match": "*"}
    ways: tuple[Callable[[], httpx.Response], ...] = (
        lambda: world.bob.ask("POST", "/schedules", body | {"id": same, "request_id": "r"}),
        lambda: world.bob.ask("POST", "/bulk/schedules", {"schedules": [body | {"id": same}]}),
        lambda: world.bob.ask("PUT", path, body),
        lambda: world.bob.client.put(url, json=body, headers=always),
    )
    for generation, way in enumerate(ways, 1):
        assert world.bob.client.put(url, json=body, headers={"If-Match": '"1"'}).status_code == 412
        assert way().status_code == 201
        assert world.bob.client.put(url, json=body, headers=always).status_code == 412
        assert world.bob.ask("POST", "/schedules", body | {"id": same}).json()["code"] == "schedule_exists"
        mine = world.bob.get(path)
        assert (mine["owner"], mine["version"], mine["info"]["recent_runs"]) == ("bob", 1, [])
        assert mine["info"]["started"] == 0
        for part in ("/runs", "/unstarted", "/backfills"):
            assert world.bob.get(path + part)["items"] == []
        assert len(world.bob.get(f"{path}/versions")["items"]) == generation - 1  # bob's own, deleted
        assert world.bob.get("/runs", schedule=same)["items"] == []
        assert world.bob.get(f"{path}/explain", time="2026-01-01T10:00:00Z")["verdict"] == "before_creation"
        assert world.bob.ask("DELETE", path).status_code == 204
        assert world.bob.ask("GET", path).status_code == 404
    assert hers() == before


def test_who_sees_all_names_the_owner_of_an_id_that_several_have(world: World):
    same = "of-several"
    path = f"/schedules/{same}"
    for user in (world.alice, world.bob):
        assert user.ask("PUT", path, {"spec": "0 11 * * *", "action": "ping"}).status_code == 201
    for method, part in (("GET", ""), ("GET", "/runs"), ("POST", "/pause"), ("DELETE", "")):
        answer = world.admin.ask(method, path + part)
        assert (answer.status_code, answer.json()["code"]) == (409, "schedule_ambiguous"), answer.text
        assert answer.json()["details"]["owners"] == ["alice", "bob"]
    assert world.admin.get(path, owner="alice")["owner"] == "alice"
    assert {each["owner"] for each in world.admin.get("/schedules", prefix=same)["items"]} == {"alice", "bob"}
    for user, named, status in ((world.service, "", 403), (world.bob, "", 403), (world.admin, "", 404)):
        assert user.ask("GET", path, owner=named).status_code == status
    assert world.admin.ask("DELETE", path, owner="bob").status_code == 204
    assert world.admin.get(path)["owner"] == "alice"
    assert world.admin.ask("DELETE", path).status_code == 204


def test_plain_users_cannot_name_another_user(world: World):
    before = world.state()
    named = 0
    for method, path, operation in world.operations():
        whose = {each["name"] for each in operation["parameters"]} & {"owner", "user_id"}
        if not whose:
            continue
        named += 1
        params = {**QUERIES.get(operation["operationId"], {}), **dict.fromkeys(whose, "alice")}
        full = path
        for name, value in world.hers.items():
            full = full.replace(f"{{{name}}}", value)
        answer = world.bob.client.request(method, full, params=params, json=_body(operation, world.hers))
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), (method, path)
        if method == "GET" and FLOW not in path:
            for other in (world.service, world.admin):
                answer = other.client.get(full, params=params)
                assert answer.status_code == 200, (path, answer.text)
    assert named > 30
    answer = world.bob.client.post("/schedules/upsert", json=REQUESTS["ScheduleInput"])
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert world.state() == before


def test_the_scope_service_may_act_for_another_and_sees_only_its_own_otherwise(world: World):
    assert world.service.get("/schedules")["items"] == []
    assert world.service.ask("GET", f"/schedules/{HERS}").status_code == 404
    assert world.service.get(f"/schedules/{HERS}", owner="alice")["owner"] == "alice"
    made = world.service.client.post(
        "/api/v1/schedules", params={"owner": "erin"}, json={"spec": "* * * * *", "action": "ping"}
    )
    assert (made.status_code, made.json()["owner"]) == (201, "erin")
    path = f"/schedules/{made.json()['id']}"
    assert world.alice.ask("GET", path).status_code == 404
    assert world.service.ask("DELETE", path, owner="alice").status_code == 404
    assert world.service.ask("DELETE", path, owner="erin").status_code == 204


def test_the_scope_admin_sees_everything(world: World):
    owners = {each["owner"] for each in world.admin.get("/schedules")["items"]}
    assert "alice" in owners
    for method, path, operation in world.operations():
        if method == "GET" and "{" in path and not path.startswith(("/api/v1/calendars", f"{FLOW}/runs/")):
            answer = world.send(world.admin.client, method, path, operation, world.hers)
            assert answer.status_code == 200, (path, answer.text)
    assert world.admin.get("/schedules", owner="nobody")["items"] == []


def test_the_scope_read_reads_everything_and_changes_nothing(world: World):
    """On every route of the document, also for an admin: the scope only takes away."""
    before, refused, asked = world.state(), set(), set()
    for scopes in (["read"], ["admin", "service", "read"]):
        reader = User(world.server, "alice", *scopes)
        for method, path, operation in world.operations():
            if path in OPEN or REPORT.search(path) or path.startswith("/api/internal"):
                continue  # they take no token of a user
            answer = world.send(reader.client, method, path, operation, world.hers)
            if method == "GET":  # who sees all has no calendar of alice's
                assert answer.status_code == 200 or "admin" in scopes or FLOW in path, (path, answer.text)
                assert answer.status_code != 403, (path, answer.text)
            elif answer.status_code == 200:
                asked.add(operation["operationId"])
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), (
                    method,
                    path,
                )
                assert "change nothing" in answer.json()["detail"]
                refused.add(operation["operationId"])
        reader.client.close()
    assert asked == {"previewChange", "previewSpec"}  # questions with a body
    assert len(refused) > 25
    assert world.state() == before


def test_nothing_is_answered_to_strangers(world: World):
    before = world.state()
    tokens = ["", "Bearer", "Bearer x.y.z", "Basic YTpi", f"Bearer {token('alice')}x"]
    tokens.append("Bearer " + jwt.encode({"sub": "alice", "aud": "horae", "exp": 1}, SECRET))
    tokens.append("Bearer " + jwt.encode({"sub": "alice", "aud": "x", "exp": 4_000_000_000}, SECRET))
    forged = jwt.encode(
        {"sub": "alice", "aud": "horae", "exp": 4_000_000_000, "scope": "admin"}, SECRET[::-1]
    )
    unsigned = jwt.encode({"sub": "alice", "aud": "horae", "exp": 4_000_000_000}, "", "none")
    tokens += [f"Bearer {forged}", f"Bearer {unsigned}"]
    for given in tokens:
        headers = {"Authorization": given} if given else {}
        with httpx.Client(base_url=world.server.url, headers=headers) as client:
            for method, path, operation in world.operations():
                answer = world.send(client, method, path, operation, world.hers)
                if path in OPEN:
                    assert answer.status_code == 200, path
                    continue
                if REPORT.search(path) and len(given) > len("Bearer") and given.startswith("Bearer"):
                    assert (answer.status_code, answer.json()["code"]) == (409, "report_refused"), path
                    continue
                assert (answer.status_code, answer.json()["code"]) == (401, "authentication"), (path, given)
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert not given or given.partition(" ")[2] not in answer.text or " " not in given
    assert world.server.client.get("/openapi.json").status_code == 200
    assert world.state() == before


def test_a_run_is_reported_on_with_its_own_token_only(world: World):
    """Not even by its owner, or by an admin: their tokens are for everything else."""
    for method, path, operation in world.operations():
        if REPORT.search(path):
            for user in (world.alice, world.admin):
                answer = world.send(user.client, method, path, operation, world.hers)
                assert (answer.status_code, answer.json()["code"]) == (409, "report_refused"), path


def test_an_id_that_another_owner_had_shows_nothing_of_theirs(world: World):
    """The ledger outlives a schedule; another owner who uses the id later does not see it."""
    body = {"id": "passed-on", "spec": "0 9 * * *", "action": {"name": "ping", "input": "secret"}}
    assert world.alice.ask("POST", "/schedules", body).status_code == 201
    world.alice.ask("PATCH", "/schedules/passed-on", {"spec": "0 10 * * *"})
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T23:00:00Z"}
    backfill = world.alice.ask("POST", "/schedules/passed-on/backfills", span).json()["id"]
    run = world.alice.ask("POST", "/schedules/passed-on/trigger").json()["run_id"]
    wait_for(lambda: world.alice.get(f"/runs/{run}")["status"] == "succeeded")
    assert world.alice.ask("DELETE", "/schedules/passed-on").status_code == 204
    assert world.bob.ask("POST", "/schedules", body | {"action": "ping"}).status_code == 201
    for path in ("", "/runs", "/unstarted", "/versions", "/backfills"):
        answer = world.bob.ask("GET", f"/schedules/passed-on{path}")
        assert answer.status_code == 200
        assert "secret" not in answer.text, path
        assert answer.json().get("items", []) == [], path
    for path in (f"/runs/{run}", f"/backfills/{backfill}"):
        assert world.bob.ask("GET", path).status_code == 404, path
    for path in (f"/runs/{run}/cancel", f"/backfills/{backfill}/cancel"):
        assert world.bob.ask("POST", path).status_code == 404, path
