"""The registrar over HTTP: a real service in its own process, and users with tokens."""

import signal
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.face.registrar.inputs import FAULTS, GOOD
from tests.support.process import Server
from tests.support.tokens import SECRET, bearer
from tests.support.wait import wait_for

HOURLY = GOOD | {"cron_expr": "0 * * * *", "timezone": "UTC"}

ADMIN = bearer("root", "admin")
ALICE, BOB = bearer("alice"), bearer("bob")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    database = f"sqlite:///{tmp_path_factory.mktemp('registrar')}/horae.db"
    server = Server(database, HORAE_JWT_SECRET=SECRET, HORAE_JITTER_LIMIT_MS="60000")
    yield server
    server.end(signal.SIGKILL)


class Client:
    """Asks as an admin, unless told otherwise."""

    def __init__(self, server: Server) -> None:
        self.ask = server.client.request

    def post(self, path: str, body: Any, headers: dict[str, str] = ADMIN, **more: Any) -> httpx.Response:
        return self.ask("POST", f"/schedules/{path}", json=body, headers=headers, **more)

    def get(self, path: str, headers: dict[str, str] = ADMIN, **params: str) -> httpx.Response:
        return self.ask("GET", f"/schedules/{path}", headers=headers, params=params)

    def delete(self, path: str, headers: dict[str, str] = ADMIN, **params: str) -> httpx.Response:
        return self.ask("DELETE", f"/schedules/{path}", headers=headers, params=params)


@pytest.fixture
def client(service: Server) -> Client:
    return Client(service)


@pytest.mark.contract("CRON-01", "CRON-17")
def test_the_calls(client: Client):
    upserted = client.post("upsert", HOURLY | {"schedule_id": "calls"})
    assert upserted.status_code == 200
    assert set(upserted.json()) == {"schedule_id", "next_run_at"}
    found = client.get("calls")
    assert found.status_code == 200
    assert {key: found.json()[key] for key in HOURLY} == HOURLY
    assert set(found.json()) == {
        "schedule_id", "workflow_id", "version", "user_id", "cron_expr", "timezone", "start_at", "end_at", "jitter_ms",
        "overlap_policy", "catchup_policy", "paused", "next_run_at", "updated_at", "preview",
    }  # fmt: skip
    assert found.json()["next_run_at"] == upserted.json()["next_run_at"] == found.json()["preview"][0]
    assert found.json()["next_run_at"].endswith(":00:00Z")
    assert len(found.json()["preview"]) == 5

    paused = client.post("pause", {"schedule_id": "calls", "paused": True})
    assert (paused.status_code, paused.content) == (204, b"")
    assert (client.get("calls").json()["paused"], client.get("calls").json()["next_run_at"]) == (True, None)
    client.post("pause", {"schedule_id": "calls", "paused": False})
    assert client.get("calls").json()["paused"] is False

    runs = client.get("calls/runs", limit="5")
    assert (runs.status_code, runs.json()) == (200, [])
    deleted = client.delete("calls")
    assert (deleted.status_code, deleted.content) == (204, b"")
    for again in (
        client.get("calls"),
        client.get("calls/runs"),
        client.delete("calls"),
        client.post("pause", {"schedule_id": "calls", "paused": True}),
    ):
        assert (again.status_code, again.json()["code"]) == (404, "schedule_not_found")


@pytest.mark.contract("CRON-01")
def test_it_is_the_same_schedule_in_every_face(service: Server, client: Client):
    client.post("upsert", HOURLY | {"schedule_id": "same"})
    other = service.get("/schedules/same", headers=ADMIN)
    assert (other["owner"], other["tags"], other["action"]["kind"]) == ("alice", ["registrar"], "workflow")
    assert other["action"]["input"] == {"workflow_id": "report", "version": 3, "user_id": "alice"}
    body = {"id": "theirs", "spec": "30 6 * * 1", "action": "ping"}
    assert service.ask("POST", "/schedules", body, headers=BOB).status_code == 201
    theirs = client.get("theirs").json()
    assert (theirs["cron_expr"], theirs["user_id"], theirs["workflow_id"]) == ("30 6 * * 1", "bob", None)


@pytest.mark.contract("CRON-13", "CRON-17", "CRON-06")
def test_slots_become_rows(client: Client):
    every_second = HOURLY | {"schedule_id": "ticks", "workflow_id": "ping", "cron_expr": "* * * * * *"}
    client.post("upsert", every_second)
    client.post("upsert", every_second | {"schedule_id": "fails", "workflow_id": "fail"})
    client.post("upsert", every_second | {"schedule_id": "missing", "workflow_id": "nothing"})
    client.post("upsert", every_second | {"schedule_id": "slow", "workflow_id": "slow"})
    for schedule, status, reason in (
        ("ticks", "SUCCESS", None),
        ("fails", "FAILED", "failed: ValueError"),
        ("missing", "FAILED", "not_started: "),
        ("slow", "SKIPPED", "overlap: "),
    ):

        def shows(schedule: str = schedule, status: str = status) -> bool:
            return status in [row["status"] for row in client.get(f"{schedule}/runs").json()]

        wait_for(shows)
        row = next(row for row in client.get(f"{schedule}/runs").json() if row["status"] == status)
        assert set(row) == {
            "idempotency_key", "schedule_id", "run_at", "status", "run_id", "reason", "created_at", "updated_at",
        }  # fmt: skip
        assert (row["reason"] or "").startswith(reason or "")
        assert (row["reason"] is None) == (reason is None)
    slow = client.get("slow/runs").json()
    assert slow[-1]["status"] == "STARTED"
    assert all(later["run_at"] > earlier["run_at"] for later, earlier in pairwise(slow))
    assert len(client.get("slow/runs", limit="1").json()) == 1
    for schedule in ("ticks", "fails", "missing", "slow"):
        assert client.delete(schedule).status_code == 204
    assert client.get("slow/runs").json()[-1] == slow[-1]  # the ledger outlives it


@pytest.mark.parametrize("schedule_id", ["a/b", "a b", "ü-1", "50%", "a?b#c", "runs", "a%2Fb", "☃", ".."])
@pytest.mark.contract("CRON-01")
def test_ids_of_all_kinds(client: Client, schedule_id: str):
    client.post("upsert", HOURLY | {"schedule_id": schedule_id})
    path = quote(schedule_id, safe="").replace(".", "%2E")
    assert client.get(path).json()["schedule_id"] == schedule_id
    assert client.get(f"{path}/runs").json() == []
    assert client.delete(path).status_code == 204


@pytest.mark.contract("CRON-01")
def test_an_id_that_is_no_text(client: Client):
    answer = client.get("%FF")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "schedule_id")


@pytest.mark.parametrize(("field", "value"), [each for each in FAULTS if each[1] != "\ud800"])
@pytest.mark.contract("CRON-02", "CRON-19")
def test_a_fault_is_named(client: Client, field: str, value: Any):
    answer = client.post("upsert", HOURLY | {"schedule_id": "faulty", field: value})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["errors"][0]["path"]) == ("invalid_input", field)
    assert client.get("faulty").status_code == 404


@pytest.mark.contract("CRON-19")
def test_a_limit_is_named(client: Client):
    answer = client.post("upsert", HOURLY | {"schedule_id": "faulty", "jitter_ms": 60_001})
    assert (answer.status_code, answer.json()["code"]) == (422, "limit_exceeded")
    assert answer.json()["details"] == {"limit": "jitter_limit_ms", "most": 60_000}
    assert client.get("faulty").status_code == 404


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"schedule_id": '])
@pytest.mark.contract("CRON-02")
def test_what_is_no_object(client: Client, body: bytes):
    headers = ADMIN | {"content-type": "application/json"}
    for path in ("/schedules/upsert", "/schedules/pause"):
        answer = client.ask("POST", path, content=body, headers=headers)
        assert 400 <= answer.status_code < 500


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "schedule_id"),
        ({"schedule_id": "s"}, "paused"),
        ({"schedule_id": "s", "paused": "yes"}, "paused"),
        ({"schedule_id": 5, "paused": True}, "schedule_id"),
        ({"schedule_id": "s", "paused": True, "until": "never"}, "until"),
    ],
)
@pytest.mark.contract("CRON-01", "CRON-02")
def test_a_pause_says_which_and_what(client: Client, body: dict[str, Any], field: str):
    answer = client.post("pause", body)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, field)


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "many", "1.5"])
@pytest.mark.contract("CRON-17", "CRON-19")
def test_a_limit_has_limits(client: Client, limit: str):
    client.post("upsert", HOURLY | {"schedule_id": "limited"})
    answer = client.get("limited/runs", limit=limit)
    assert answer.status_code in {400, 422}
    assert answer.json()["errors"][0]["path"] == "limit"


@pytest.mark.contract("CRON-18")
def test_users_act_as_themselves(client: Client):
    given = HOURLY | {"schedule_id": "own"}
    denied = client.post("upsert", given, BOB)
    assert (denied.status_code, denied.json()["code"]) == (403, "permission_denied")
    assert client.post("upsert", given, ALICE).status_code == 200
    for path in ("own", "own/runs"):
        assert client.get(path, ALICE).status_code == 200
        assert client.get(path, BOB).status_code == 404
        assert client.get(path, BOB, user_id="alice").status_code == 403
    pause = {"schedule_id": "own", "paused": True}
    assert client.post("pause", pause, BOB).status_code == 404
    assert client.delete("own", BOB).status_code == 404
    assert client.post("pause", pause, ALICE).status_code == 204
    assert client.get("own", ALICE).json()["paused"] is True
    assert client.post("upsert", given | {"user_id": "bob"}, BOB).status_code == 200  # an id is its user's
    assert client.get("own", BOB).json()["paused"] is False
    assert client.get("own", {}).status_code == 401


@pytest.mark.contract("CRON-18")
def test_a_service_names_the_user_and_an_admin_sees_all(client: Client):
    service = bearer("deployer", "service")
    assert client.post("upsert", HOURLY | {"schedule_id": "named"}, service).status_code == 200
    assert client.get("named", service).status_code == 404
    assert client.get("named", service, user_id="alice").json()["user_id"] == "alice"
    assert client.get("named").status_code == 200
    assert client.delete("named", user_id="bob").status_code == 404
    pause = {"schedule_id": "named", "paused": True}
    assert client.post("pause", pause, service, params={"user_id": "alice"}).status_code == 204
    assert client.delete("named").status_code == 204


@pytest.mark.contract("CRON-01", "CRON-02")
def test_the_shape_of_the_input_is_in_the_openapi_document(service: Server):
    document = service.client.get("/openapi.json").json()
    paths, schema = document["paths"], document["components"]["schemas"]["ScheduleInput"]
    body = paths["/schedules/upsert"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"] == {"$ref": "#/components/schemas/ScheduleInput"}
    assert set(schema["properties"]) == {*GOOD, "schedule_id", "start_at", "end_at", "jitter_ms", "overlap_policy", "catchup_policy"}  # fmt: skip
    assert set(schema["required"]) == set(GOOD)
    assert {"/schedules/pause", "/schedules/{schedule_id}", "/schedules/{schedule_id}/runs"} <= set(paths)
