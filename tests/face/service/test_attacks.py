"""Attacks on a real service: what one tenant, or a caller without a token, can do to the others.

What is withstood is a plain test. A defect that is known is an expected failure with its reason; the change that fixes it removes the mark.
"""

from __future__ import annotations

import contextlib
import json
import random  # noqa: TID251 - what clients do in a storm; each has a seed
import resource
import signal
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.process import Server, StartServer
from tests.support.tokens import SECRET, bearer
from tests.support.wait import wait_for

NEVER = "0 0 29 2 *"
LONG_AGO = {"start": "2020-01-01T00:00:00Z", "end": "2024-03-01T00:00:00Z"}
GUARDED = {
    "HORAE_JWT_SECRET": SECRET,
    "HORAE_SECRET_KEY": "what headers are sealed with",
    "HORAE_HTTP_PRIVATE": "127.0.0.0/8",
}
Body = dict[str, Any]


class Tenant:
    """A tenant with their own token."""

    def __init__(self, server: Server, user: str, *scopes: str) -> None:
        self.server, self.user, self.headers = server, user, bearer(user, *scopes)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.server.ask(method, path, body, headers=self.headers | more.pop("headers", {}), **more)

    def get(self, path: str) -> Any:
        return self.server.get(path, headers=self.headers)

    def create(self, schedule_id: str, action: Any = "ping", spec: Any = NEVER, **more: Any) -> None:
        answer = self.ask("POST", "/schedules", {"id": schedule_id, "spec": spec, "action": action, **more})
        assert answer.status_code == 201, answer.text

    def trigger(self, schedule_id: str, **more: Any) -> str:
        answer = self.ask("POST", f"/schedules/{quote(schedule_id, safe='')}/trigger", more)
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["run_id"]
        return run_id

    def status(self, run_id: str) -> str:
        status: str = self.get(f"/runs/{run_id}")["status"]
        return status

    def wait_for_status(self, run_id: str, *statuses: str) -> None:
        wait_for(lambda: self.status(run_id) in statuses)


class Receiver:
    """A receiver of HTTP actions: it keeps what it is sent, and answers what it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.answer: Callable[[Any], tuple[int, bytes]] = lambda _: (202, b"{}")
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
                receiver.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status, answer = receiver.answer(body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.send_header("Location", f"{receiver.address}/elsewhere")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def report_of(self, run_id: str) -> tuple[str, dict[str, str]]:
        """Where a run is reported on, and the header that it takes, from the latest request for it."""
        wait_for(lambda: any(body["run_id"] == run_id for _, _, body in self.got))
        report = next(body["report"] for _, _, body in reversed(self.got) if body["run_id"] == run_id)
        return report["url"], {"Authorization": f"Bearer {report['token']}"}

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.end()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that wants tokens, for tests that leave it as it is for others."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('attacks')}/horae.db", **GUARDED)
    yield server
    server.end(signal.SIGKILL)


@pytest.fixture
def alice(guarded: Server) -> Tenant:
    return Tenant(guarded, "alice")


@pytest.fixture
def bob(guarded: Server) -> Tenant:
    return Tenant(guarded, "bob")


@pytest.fixture
def admin(guarded: Server) -> Tenant:
    return Tenant(guarded, "root", "admin")


# Tenants among themselves


def test_what_another_tenant_has_answers_as_if_it_did_not_exist(alice: Tenant, bob: Tenant) -> None:
    alice.create("private", {"name": "ping", "input": "alice's input"}, tags=["theirs"])
    run = alice.trigger("private")
    backfill = alice.ask("POST", "/schedules/private/backfills", LONG_AGO).json()["id"]
    alice.ask("PUT", "/calendars/holidays", {"dates": ["2030-01-01"]})
    spec = {"crons": ["* * * * *"], "exclude": [{"calendar": "holidays"}]}
    asked: list[tuple[str, str, Any]] = [
        ("GET", "/schedules/private", None),
        ("PUT", "/schedules/private", {"spec": NEVER, "action": "ping", "version": 1}),
        ("PATCH", "/schedules/private", {"note": "mine"}),
        ("DELETE", "/schedules/private", None),
        *[("POST", f"/schedules/private/{verb}", {}) for verb in ("trigger", "pause", "resume", "skip", "patch")],
        ("POST", "/schedules/private/backfills", LONG_AGO),
        ("POST", "/schedules/private/backfills", LONG_AGO | {"dry_run": True}),
        ("POST", "/schedules/private/preview", {"spec": NEVER}),
        *[("GET", f"/schedules/private/{what}", None) for what in ("times", "runs", "unstarted", "versions", "backfills")],
        ("GET", "/schedules/private/explain?time=2026-01-01T00:00:00Z", None),
        ("GET", f"/runs/{run}", None),
        *[("POST", f"/runs/{run}/{verb}", None) for verb in ("cancel", "terminate")],
        ("GET", f"/backfills/{backfill}", None),
        ("POST", f"/backfills/{backfill}/cancel", None),
        ("GET", "/calendars/holidays", None),
        ("DELETE", "/calendars/holidays", None),
    ]  # fmt: skip
    for method, path, body in asked:
        answer = bob.ask(method, path, body)
        assert answer.status_code == 404, (method, path, answer.text)
        assert "alice" not in answer.text
        named = f"{path}{'&' if '?' in path else '?'}owner=alice"
        assert bob.ask(method, named, body).status_code == 403, (method, path)
    assert bob.ask("POST", "/preview", {"spec": spec}).json()["code"] == "unknown_calendar"
    assert bob.ask("POST", "/bulk/pause", {"filter": {"prefix": "private"}}).json() == {"changed": 0}
    assert bob.get("/bulk/count?tag=theirs") == {"count": 0}
    assert bob.get("/schedules?prefix=private")["items"] == []
    # A cursor that names another's run or schedule shows nothing of it.
    bob.create("bobs own")
    assert bob.ask("GET", f"/schedules/bobs%20own/runs?cursor={run}").status_code == 422
    same = {"id": "private", "spec": NEVER, "action": "ping", "paused": True}
    assert (
        bob.ask("POST", "/schedules", same).status_code == 201
    )  # another schedule, which happens to have the same id
    assert bob.get("/schedules/private")["state"] == "paused"
    assert alice.get("/schedules/private")["state"] == "running"


def test_a_request_id_gives_no_access_to_another_owners_schedule(alice: Tenant, bob: Tenant) -> None:
    wanted = {
        "id": "once",
        "spec": NEVER,
        "action": {"name": "ping", "input": "alice's"},
        "request_id": "guessed",
    }
    assert alice.ask("POST", "/schedules", wanted).status_code == 201
    assert alice.ask("POST", "/schedules", wanted).status_code == 200
    own = wanted | {"action": {"name": "ping", "input": "bob's"}}
    answer = bob.ask("POST", "/schedules", own)
    assert answer.status_code == 201, answer.text  # not a repetition of alice's request
    assert "alice" not in answer.text
    assert bob.get("/schedules/once")["action"]["input"] == "bob's"
    both = {"schedules": [own, own | {"id": "another"}]}
    assert bob.ask("POST", "/bulk/schedules", both).json()["code"] == "schedule_exists"
    assert bob.ask("GET", "/schedules/another").status_code == 404
    assert alice.get("/schedules/once")["action"]["input"] == "alice's"


def test_the_registrar_holds_to_owners_too(guarded: Server, alice: Tenant, bob: Tenant) -> None:
    client = guarded.client
    given = {
        "workflow_id": "ping",
        "version": 1,
        "user_id": "alice",
        "cron_expr": "0 9 * * *",
        "timezone": "UTC",
    }
    assert client.post("/schedules/upsert", json=given, headers=bob.headers).status_code == 403
    made = client.post("/schedules/upsert", json=given | {"schedule_id": "tick"}, headers=alice.headers)
    assert made.status_code == 200, made.text
    body = {"schedule_id": "tick", "paused": True}
    assert client.post("/schedules/pause", json=body, headers=bob.headers).status_code == 404
    for path in ("/schedules/tick", "/schedules/tick/runs"):
        assert client.get(path, headers=bob.headers).status_code == 404
        assert client.get(f"{path}?user_id=alice", headers=bob.headers).status_code == 403
    assert client.delete("/schedules/tick", headers=bob.headers).status_code == 404
    same = given | {"user_id": "bob", "schedule_id": "tick"}
    assert client.post("/schedules/upsert", json=same, headers=bob.headers).status_code == 200  # bob's own
    assert client.delete("/schedules/tick", headers=bob.headers).status_code == 204
    # What its own user does through the one face, the other shows.
    assert client.post("/schedules/pause", json=body, headers=alice.headers).status_code == 204
    assert alice.get("/schedules/tick")["state"] == "paused"
    assert alice.ask("PATCH", "/schedules/tick", {"spec": "30 9 * * *", "paused": False}).status_code == 200
    assert client.get("/schedules/tick", headers=alice.headers).json()["cron_expr"] == "30 9 * * *"


def test_a_memo_spoils_no_page_of_the_registrar(guarded: Server, alice: Tenant) -> None:
    alice.create("odd memo", memo={"cron_expr": "whenever"})
    assert guarded.client.get("/schedules/odd%20memo", headers=alice.headers).status_code == 200


INHERITED = [
    "/schedules/{id}/runs", "/runs/{run}", "/schedules/{id}/backfills", "/backfills/{backfill}", "/schedules/{id}/versions",
]  # fmt: skip


@pytest.mark.parametrize("path", INHERITED)
def test_an_id_that_is_free_again_does_not_show_its_earlier_owners_ledger(
    alice: Tenant, bob: Tenant, path: str
) -> None:
    schedule_id = f"heirloom{INHERITED.index(path)}"
    alice.create(schedule_id, {"name": "ping", "input": "alice's input"})
    run = alice.trigger(schedule_id)
    alice.wait_for_status(run, "succeeded")
    made = alice.ask(
        "POST", f"/schedules/{schedule_id}/backfills", LONG_AGO | {"note": "alice's note"}
    ).json()
    alice.ask("PATCH", f"/schedules/{schedule_id}", {"spec": {"crons": [NEVER], "timezone": "Asia/Tokyo"}})
    alice.ask("DELETE", f"/schedules/{schedule_id}")
    bob.create(schedule_id)
    answer = bob.ask("GET", path.format(id=schedule_id, run=run, backfill=made["id"]))
    assert answer.status_code == 404 or answer.json()["items"] == [], answer.text


def test_an_id_that_is_free_again_does_not_let_its_earlier_owners_runs_be_stopped(
    alice: Tenant, bob: Tenant, admin: Tenant
) -> None:
    alice.create("passed on", "slow")
    run = alice.trigger("passed on")
    alice.wait_for_status(run, "running")
    alice.ask("DELETE", "/schedules/passed%20on")
    bob.create("passed on")
    bob.ask("POST", f"/runs/{run}/terminate")
    assert admin.get(f"/runs/{run}")["stop"] == ""


def test_an_id_that_is_free_again_inherits_no_result(alice: Tenant, bob: Tenant, admin: Tenant) -> None:
    alice.create("bequest", "nap")
    run = alice.trigger("bequest")
    alice.wait_for_status(run, "running")
    alice.ask("DELETE", "/schedules/bequest")
    bob.create("bequest")
    admin.wait_for_status(run, "succeeded")
    assert bob.get("/schedules/bequest")["info"]["last_result"] is None


@pytest.mark.parametrize(
    "schedule_id",
    [
        "upsert",
        "pause",
        ".",
        "..",
        "%",
        "%2F",
        "a/../b",
        "//",
        "?",
        "#x",
        "x" * 500,
        "⏰" * 500,
        "a b+c",
        "runs",
        "'; --",
    ],
)
def test_ids_at_the_edge(alice: Tenant, schedule_id: str) -> None:
    path = f"/schedules/{quote(schedule_id, safe='').replace('.', '%2E')}"
    alice.create(schedule_id)
    assert alice.get(path)["id"] == schedule_id
    run = (
        alice.trigger(schedule_id)
        if "." not in schedule_id
        else alice.ask("POST", f"{path}/trigger").json()["run_id"]
    )
    alice.wait_for_status(run, "succeeded")
    backfill = alice.ask("POST", f"{path}/backfills", LONG_AGO).json()["id"]
    assert (
        alice.get(f"/backfills/{quote(backfill, safe='').replace('.', '%2E')}")["schedule_id"] == schedule_id
    )
    assert alice.ask("DELETE", path).status_code == 204
    assert alice.ask("GET", path).status_code == 404


# Who is not known


def test_without_a_token_nothing_is_told(guarded: Server) -> None:
    paths = [
        "/api/v1/schedules",
        "/api/v1/forecast",
        "/api/v1/nodes",
        "/api/v1/actions",
        "/metrics",
        "/schedules/x",
    ]
    for path in paths:
        assert guarded.client.get(path).status_code == 401, path
    for query in ("?owner=alice", "?user_id=alice", "?token=x", "?access_token=x"):
        assert guarded.client.get(f"/schedules/x{query}").status_code == 401


def test_a_page_of_another_site_changes_nothing(service: Server) -> None:
    assert (
        service.ask("POST", "/schedules", {"id": "aim", "spec": NEVER, "action": "ping"}).status_code == 201
    )
    own = service.url.removeprefix("http://")
    forged: list[dict[str, str]] = [
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://{own}.evil.example"},
        {"Host": "evil.example"}, {"Host": f"evil.example:{own.rpartition(':')[2]}"}, {"Host": f"{own}@evil.example"},
    ]  # fmt: skip
    for headers in forged:
        for path in ("/trigger", "/pause"):
            assert service.ask("POST", f"/schedules/aim{path}", headers=headers).status_code == 403, headers
        assert service.ask("GET", "/schedules", headers=headers).status_code == 403, headers
    form = service.client.post(
        "/api/v1/schedules/aim/pause", content='{"note":""}', headers={"Content-Type": "text/plain"}
    )
    assert form.status_code == 415
    assert service.get("/schedules/aim")["info"]["started"] == 0


def test_a_body_of_an_unknown_caller_is_not_even_read(guarded: Server) -> None:
    assert guarded.ask("POST", "/schedules", {"nonsense": True}).status_code == 401


def peak_of(server: Server) -> int:
    """The most memory that a process has had, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) // 1024


def test_a_small_body_takes_no_large_memory(start: StartServer) -> None:
    server = start(**GUARDED)
    before = peak_of(server)
    # 80 kB become 400 MB, without a token; 1 MiB, which the limit lets through, would become 125 GB.
    server.ask("POST", "/schedules", {"k" * 20_000: [1] * 20_000})
    assert peak_of(server) < before + 50


def test_reports_without_a_valid_token_are_slowed_down_too(start: StartServer) -> None:
    server = start(**GUARDED, HORAE_REQUESTS_PER_SECOND="5")
    junk = {"Authorization": "Bearer junk"}
    statuses = {server.ask("POST", "/runs/x/heartbeat", headers=junk).status_code for _ in range(50)}
    assert 429 in statuses


def test_a_stranger_who_names_another_run_each_time_is_slowed_down_and_no_other_caller(
    start: StartServer, receiver: Receiver
) -> None:
    server = start(**GUARDED, HORAE_REQUESTS_PER_SECOND="10")
    alice = Tenant(server, "alice")
    alice.create("outside", http(receiver.address, reports=True), spec="0 0 * * *")
    month = {"start": "2024-01-01T00:00:00Z", "end": "2024-01-30T00:00:00Z", "overlap": "allow_all"}
    assert alice.ask("POST", "/schedules/outside/backfills", month).status_code == 202
    wait_for(lambda: len(receiver.got) == 30)
    for _, _, body in receiver.got:  # a worker on many runs may report on all of them
        url, token = receiver.report_of(body["run_id"])
        assert httpx.post(f"{url}/started", headers=token).status_code == 200

    junk = {"Authorization": "Bearer junk"}
    strange: list[dict[str, Any]] = [{"headers": junk}, {}, {"headers": junk, "json": ["no report"]}]
    for more in strange:
        asked = [server.client.post(f"/api/v1/runs/{number}/failed", **more) for number in range(60)]
        assert 429 in {answer.status_code for answer in asked}, more
    with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2")) as elsewhere:
        answer = elsewhere.post(f"{server.url}/api/v1/runs/x/started", headers=junk)
        assert answer.json()["code"] == "report_refused"
    assert alice.ask("GET", "/actions").status_code == 200


def test_silent_connections_keep_no_other_client_out(start: StartServer) -> None:
    server = start(**GUARDED)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (100, 100))
    host, _, port = server.url.removeprefix("http://").partition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(120)]
    try:
        for each in silent:
            each.sendall(b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n")
        assert httpx.get(f"{server.url}/healthz", timeout=5).status_code == 200
    finally:
        for each in silent:
            each.close()


# One tenant against the time of all


def answers_meanwhile(server: Server, method: str, path: str, body: Any) -> bool:
    """Whether a service still answers other callers after a costly request; it is killed in the end."""
    asked = threading.Event()

    def ask() -> None:
        asked.set()
        with contextlib.suppress(httpx.HTTPError):  # whether it is answered in time or not
            httpx.request(
                method, f"{server.url}/api/v1{path}", json=body, headers=bearer("mallory"), timeout=60
            )

    asking = threading.Thread(target=ask)
    asking.start()
    asked.wait()
    time.sleep(0.5)
    try:
        return httpx.get(f"{server.url}/healthz", timeout=5).status_code == 200
    except httpx.TimeoutException:
        return False
    finally:
        server.end(signal.SIGKILL)
        asking.join()


def test_counting_a_backfill_of_centuries_blocks_no_other_request(start: StartServer) -> None:
    server = start(**GUARDED)
    mallory = Tenant(server, "mallory")
    spec = {"intervals": [{"every": "1s"}, {"every": "7s"}], "exclude": [{"hour": "3", "second": "0"}]}
    mallory.create("walk", spec=spec, paused=True)
    body = {"start": "1900-01-01T00:00:00Z", "end": "2199-01-01T00:00:00Z", "dry_run": True}
    assert answers_meanwhile(server, "POST", "/schedules/walk/backfills", body)


def test_recurrences_that_count_positions_block_no_other_request(start: StartServer) -> None:
    server = start(**GUARDED)
    every = ";".join(
        f"{part}={','.join(map(str, range(top)))}"
        for part, top in (("BYHOUR", 24), ("BYMINUTE", 60), ("BYSECOND", 60))
    )
    rules = [f"FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;{every};BYSETPOS=-{place}" for place in range(1, 21)]
    assert answers_meanwhile(server, "POST", "/preview", {"spec": {"rrules": rules}, "limit": 1000})


@pytest.mark.parametrize(
    "spec",
    [
        {"crons": ["* * * * *"], "exclude": [{"month": str(month % 12 + 1)} for month in range(12_000)]},
        {"times": [f"2030-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z" for n in range(38_000)]},
        {"rrules": ["FREQ=DAILY"] * 10_000},
        {"intervals": [{"every": f"{n}s"} for n in range(1, 20_000)]},
        {"crons": [f"{n % 60} {n % 24} * * *" for n in range(10_000)]},
    ],
)  # fmt: skip
def test_enormous_specs_are_refused(alice: Tenant, spec: Body) -> None:
    assert alice.ask("POST", "/preview", {"spec": spec}).json()["code"] == "invalid_spec"


def test_ids_of_runs_have_an_end(alice: Tenant) -> None:
    action = {"name": "ping", "id": "x" * 1000, "id_format": "{id}" * 1000}
    answer = alice.ask("POST", "/schedules", {"id": "long ids", "spec": NEVER, "action": action})
    assert (
        answer.status_code == 422
        or len(alice.get(f"/runs/{alice.trigger('long ids')}")["action_id"]) < 20_000
    )


def test_runs_always_have_an_id(alice: Tenant) -> None:
    action = {"name": "ping", "id_format": "{id}-%999999999Y"}
    answer = alice.ask("POST", "/schedules", {"id": "no ids", "spec": NEVER, "action": action})
    assert answer.status_code == 422 or alice.get(f"/runs/{alice.trigger('no ids')}")["action_id"]


def test_a_request_starts_so_many_backfills_at_most(alice: Tenant) -> None:
    body = {"id": "ranges", "spec": NEVER, "action": "ping", "backfills": [LONG_AGO] * 5000, "paused": True}
    assert alice.ask("POST", "/schedules", body).status_code == 422


# What HTTP actions carry, and where to


def http(url: str, **more: Any) -> Body:
    return {"kind": "http", "options": {"url": url, **more}}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://169.254.169.254/latest/", "http://0.0.0.0/", "http://[::]/",
        "http://user:pass@example.org/", "http://example.org\\@127.0.0.1/", "file:///etc/passwd", "http://[::1%25lo]/",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused_at_once(service: Server, url: str) -> None:
    answer = service.ask("POST", "/schedules", {"id": "inside", "spec": NEVER, "action": http(url)})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text


def test_names_and_numbers_that_mean_this_machine_are_refused_when_they_are_looked_up(
    service: Server, receiver: Receiver
) -> None:
    port = receiver.address.rpartition(":")[2]
    for number, host in enumerate(("localhost", "localhost.", "127.1", "2130706433", "0x7f000001", "0")):
        body = {
            "id": f"name{number}",
            "spec": NEVER,
            "action": http(f"http://{host}:{port}/"),
            "trigger": True,
        }
        assert service.ask("POST", "/schedules", body).status_code == 201, host
        path = f"/schedules/name{number}"
        wait_for(lambda path=path: service.get(path)["info"]["recent_runs"][0]["ended_at"])  # type: ignore[misc]
        assert "private" in service.get(path)["info"]["recent_runs"][0]["failure"], host
    assert receiver.got == []


def test_a_redirect_is_an_answer_and_not_followed(alice: Tenant, receiver: Receiver) -> None:
    receiver.answer = lambda _: (302, b"")
    alice.create("moved", http(f"{receiver.address}/here"))
    alice.wait_for_status(alice.trigger("moved"), "failed")
    assert {path for path, _, _ in receiver.got} == {"/here"}


def test_a_sealed_value_goes_nowhere_else(guarded: Server, alice: Tenant, receiver: Receiver) -> None:
    thief = Receiver()
    kept = {"X-Key": "very secret value"}
    receiver.answer = lambda _: (200, json.dumps({"echo": "very secret value"}).encode())
    alice.create("sealed", http(f"{receiver.address}/a", headers=kept, secret="signing secret"))  # noqa: S106
    hidden = {"headers": {"X-Key": "***"}, "secret": "***"}
    port = thief.address.rpartition(":")[2]
    for url in (
        thief.address,
        f"http://127.0.0.2:{port}",
        f"{receiver.address}.evil.example/",
        f"https{receiver.address[4:]}",
    ):
        for method, more in (("PATCH", {}), ("PUT", {"spec": NEVER})):
            answer = alice.ask(method, "/schedules/sealed", {"action": http(url, **hidden), **more})
            assert answer.status_code == 422, (url, answer.text)
    for headers in ({"X-Other": "***"}, {"X-Key": "***", "x-key": "***"}, {"Host": "***"}):
        assert (
            alice.ask(
                "PATCH", "/schedules/sealed", {"action": http(receiver.address, headers=headers)}
            ).status_code
            == 422
        )
    # Only what is left out is lost: the address alone brings no secret with it.
    assert (
        alice.ask(
            "POST", "/schedules", {"id": "copy", "spec": NEVER, "action": http(thief.address, **hidden)}
        ).status_code
        == 422
    )
    run = alice.trigger("sealed")
    alice.wait_for_status(run, "succeeded")
    assert receiver.got[0][1]["x-key"] == "very secret value"
    assert alice.ask("PATCH", "/schedules/sealed", {"action": http(thief.address)}).status_code == 200
    alice.wait_for_status(alice.trigger("sealed"), "succeeded")
    assert "x-key" not in thief.got[0][1]
    assert "horae-signature" not in thief.got[0][1]
    thief.end()
    shown = [
        alice.ask("GET", path).text
        for path in ("/schedules/sealed", "/schedules", "/schedules/sealed/versions", f"/runs/{run}", "/schedules/sealed/runs")
    ]  # fmt: skip
    shown += [guarded.log, guarded.client.get("/metrics", headers=alice.headers).text]
    assert not any("secret value" in text or "signing secret" in text or "sealed:" in text for text in shown)


# Work of others


@pytest.fixture
def handed(alice: Tenant, receiver: Receiver) -> Iterator[Callable[..., tuple[str, str, dict[str, str]]]]:
    """Hand a run to the receiver: its id, where it is reported on, and with what."""
    made: list[str] = []

    def hand(schedule_id: str, **more: Any) -> tuple[str, str, dict[str, str]]:
        alice.create(schedule_id, http(receiver.address, reports=True), **more)
        made.append(schedule_id)
        run = alice.trigger(schedule_id)
        return run, *receiver.report_of(run)

    yield hand
    for schedule_id in made:
        alice.ask("DELETE", f"/schedules/{schedule_id}")


def test_a_token_is_good_for_its_run_and_nothing_else(
    alice: Tenant, handed: Callable[..., tuple[str, str, dict[str, str]]]
) -> None:
    one, url, token = handed("one")
    other, other_url, other_token = handed("other")
    assert httpx.post(f"{url}/succeeded", headers=other_token).status_code == 409
    assert httpx.post(f"{url}/succeeded", headers=alice.headers).status_code == 409
    assert httpx.post(f"{url}/succeeded").status_code == 401
    assert alice.server.ask("GET", f"/runs/{one}", headers=token).status_code == 401
    assert alice.server.ask("POST", f"/runs/{one}/cancel", headers=token).status_code == 401
    assert alice.status(one) == "running"
    assert httpx.post(f"{url}/succeeded", headers=token, json={"result": 1}).json() == {
        "status": "succeeded",
        "stop": "",
    }
    assert httpx.post(f"{url}/succeeded", headers=token, json={"result": 2}).status_code == 200
    assert httpx.post(f"{url}/failed", headers=token).status_code == 409
    assert alice.get(f"/runs/{one}")["result"] == 1
    assert alice.status(other) == "running"
    httpx.post(f"{other_url}/succeeded", headers=other_token)
    assert not any(each["Authorization"][7:] in alice.server.log for each in (token, other_token))


def test_a_report_before_the_acceptance_counts(alice: Tenant, receiver: Receiver) -> None:
    def report(body: Any) -> tuple[int, bytes]:
        token = {"Authorization": f"Bearer {body['report']['token']}"}
        assert (
            httpx.post(
                f"{body['report']['url']}/succeeded", headers=token, json={"result": "early"}
            ).status_code
            == 200
        )
        return 202, b""

    receiver.answer = report
    alice.create("eager", http(receiver.address, reports=True))
    run = alice.trigger("eager")
    alice.wait_for_status(run, "succeeded")
    assert alice.get(f"/runs/{run}")["result"] == "early"


def test_reports_after_cancel_terminate_and_deletion(
    alice: Tenant, admin: Tenant, handed: Callable[..., tuple[str, str, dict[str, str]]]
) -> None:
    cancelled, url, token = handed("to cancel")
    wait_for(lambda: alice.status(cancelled) == "running")
    alice.ask("POST", f"/runs/{cancelled}/cancel")
    assert httpx.post(f"{url}/heartbeat", headers=token).json()["stop"] == "cancel"
    assert httpx.post(f"{url}/failed", headers=token, json={"failure": "stopped"}).status_code == 200
    assert alice.status(cancelled) == "cancelled"
    terminated, url, token = handed("to terminate")
    wait_for(lambda: alice.ask("POST", f"/runs/{terminated}/terminate").json()["status"] == "terminated")
    assert httpx.post(f"{url}/succeeded", headers=token).status_code == 409
    gone, url, token = handed("to delete")
    assert alice.ask("DELETE", "/schedules/to%20delete").status_code == 204
    assert httpx.post(f"{url}/heartbeat", headers=token).status_code == 200
    assert httpx.post(f"{url}/succeeded", headers=token).status_code == 200
    assert admin.status(gone) == "succeeded"


def test_the_token_of_an_attempt_that_failed_is_no_token_of_the_next(
    alice: Tenant, receiver: Receiver, handed: Callable[..., tuple[str, str, dict[str, str]]]
) -> None:
    run, url, old = handed("again", policies={"retry": {"attempts": 3, "initial_delay": "1ms"}})
    assert httpx.post(f"{url}/failed", headers=old).status_code == 200
    wait_for(lambda: sum(body["run_id"] == run for _, _, body in receiver.got) == 2)
    assert httpx.post(f"{url}/succeeded", headers=old).status_code == 409
    _, new = receiver.report_of(run)
    assert httpx.post(f"{url}/succeeded", headers=new).status_code == 200


def test_a_failure_may_be_reported_twice_also_if_another_attempt_follows(
    handed: Callable[..., tuple[str, str, dict[str, str]]],
) -> None:
    _, url, token = handed(
        "twice", policies={"retry": {"attempts": 3, "initial_delay": "10m", "max_delay": "10m"}}
    )
    assert httpx.post(f"{url}/failed", headers=token, json={"failure": "no"}).status_code == 200
    again = httpx.post(
        f"{url}/failed", headers=token, json={"failure": "no"}
    )  # the first answer was lost, say
    assert again.status_code == 200, again.text


def test_external_work_outlives_the_service(start: StartServer, receiver: Receiver, tmp_path: Path) -> None:
    settings = GUARDED | {"HORAE_PUBLIC_URL": "http://wherever"}
    server = start(**settings)
    alice = Tenant(server, "alice")
    alice.create("outlives", http(receiver.address, reports=True))
    run = alice.trigger("outlives")
    _, token = receiver.report_of(run)
    wait_for(lambda: alice.status(run) == "running")
    assert server.end() == 0
    alice = Tenant(start(**settings), "alice")
    assert alice.status(run) == "running"
    assert alice.server.ask("POST", f"/runs/{run}/succeeded", headers=token).status_code == 200
    assert alice.status(run) == "succeeded"
    assert len(receiver.got) == 1


# Many at once


Act = Callable[[httpx.Client, random.Random], None]


def storm(server: Server, times: int, act: Act, clients: int = 8) -> None:
    """Let many clients act at the same time, each so many times."""

    def client(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 - no secret
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=30, headers=bearer("alice")) as each:
            for _ in range(times):
                act(each, chance)

    with ThreadPoolExecutor(clients) as pool:
        for _ in pool.map(client, range(clients)):
            pass


@pytest.mark.contract("SCHD-22")
def test_of_many_who_change_what_they_have_seen_one_does(start: StartServer, database: str) -> None:
    server = start(database, **GUARDED)
    alice = Tenant(server, "alice")
    alice.create("seen")
    done: list[int] = []

    def act(client: httpx.Client, chance: random.Random) -> None:
        token = client.get("/schedules/seen").json()["version"]
        change = {"note": str(chance.random())}
        answer = client.patch("/schedules/seen", json=change, headers={"If-Match": f'"{token}"'})
        assert answer.status_code in {200, 412}, answer.text
        if answer.status_code == 200:
            done.append(token)

    storm(server, 8, act)
    assert len(set(done)) == len(done)
    assert alice.get("/schedules/seen")["version"] == len(done) + 1


@pytest.mark.contract("SCHD-22")
def test_many_changes_have_many_versions(start: StartServer, database: str) -> None:
    server = start(database, **GUARDED)
    alice = Tenant(server, "alice")
    alice.create("changing")
    tokens: list[int] = []

    def act(client: httpx.Client, chance: random.Random) -> None:
        verb = chance.choice(["pause", "resume", "skip", "patch"])
        if verb == "patch":
            change = {"memo": {"change": chance.random()}, "spec": f"0 {chance.randrange(24)} * * *"}
            answer = client.patch("/schedules/changing", json=change)
        else:
            answer = client.post(f"/schedules/changing/{verb}")
        assert answer.status_code == 200, answer.text
        tokens.append(answer.json()["version"])

    storm(server, 8, act)
    assert sorted(tokens) == list(range(2, len(tokens) + 2))
    assert alice.get("/schedules/changing")["version"] == len(tokens) + 1


def test_a_storm_on_one_schedule(start: StartServer, database: str) -> None:
    server = start(database, **GUARDED)
    answers: list[tuple[str, int]] = []
    tokens: dict[float, list[int]] = defaultdict(list)
    runs: list[str] = []
    whole = {
        "id": "eye",
        "spec": {"intervals": [{"every": "1s"}]},
        "action": "ping",
        "policies": {"overlap": "allow_all"},
    }
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/schedules", whole), ("POST", "/schedules", whole), ("POST", "/schedules/eye/trigger", {}),
        ("POST", "/schedules/eye/trigger", {"overlap": "buffer_all"}), ("POST", "/schedules/eye/pause", {}),
        ("POST", "/schedules/eye/resume", {}), ("PATCH", "/schedules/eye", {"spec": "* * * * * *"}),
        ("PATCH", "/schedules/eye", {"spec": whole["spec"]}), ("POST", "/schedules/eye/skip", {"number": 2}),
        ("POST", "/schedules/eye/backfills", LONG_AGO | {"end": "2020-01-01T00:00:09Z"}), ("GET", "/schedules/eye", None),
        ("POST", "/schedules/eye/patch", {"trigger": {}, "pause": "both"}), ("POST", "/bulk/pause", {"filter": {}}),
        ("POST", "/bulk/resume", {"filter": {"prefix": "e"}}), ("DELETE", "/schedules/eye", None),
    ]  # fmt: skip

    def act(client: httpx.Client, chance: random.Random) -> None:
        method, path, body = chance.choice(requests)
        if body is whole:  # each creation is told apart: two may carry the same instant
            body = whole | {"memo": {"life": chance.random()}}
        if method == "PATCH":  # an edit that changes nothing keeps the version
            body = body | {"description": str(chance.random())}
        answer = client.request(method, path, json=body)
        answers.append(
            (f"{method} {path} {answer.text if answer.status_code >= 500 else ''}", answer.status_code)
        )
        if answer.status_code < 300 and answer.content and method != "GET":
            said = answer.json()
            if said.get("run_id"):
                runs.append(said["run_id"])
            if "version" in said:
                tokens[said["memo"]["life"]].append(said["version"])

    storm(server, 20, act)
    assert {status for _, status in answers} <= {200, 201, 202, 204, 404, 409}, {
        a for a in answers if a[1] >= 500
    }
    assert all(len(set(each)) == len(each) for each in tokens.values()), "a token was given twice"
    created, deleted = (
        sum(request.startswith(method) and status in {201, 204} for request, status in answers)
        for method in ("POST /schedules ", "DELETE")
    )
    assert created - deleted in {0, 1}, "an id was given twice"
    admin = Tenant(server, "root", "admin")
    ended = {"succeeded", "dropped", "cancelled", "skipped"}
    wait_for(lambda: all(admin.status(run) in ended for run in runs))
    # Nothing of what is there now is lost: each start it counts is in the ledger.
    alice = Tenant(server, "alice")
    if alice.ask("GET", "/schedules/eye").status_code == 404:
        alice.create("eye", "ping")
    alice.ask("POST", "/schedules/eye/pause")
    wait_for(
        lambda: (
            alice.get("/schedules/eye")["info"]["running"] + alice.get("/schedules/eye")["info"]["pending"]
            == 0
        )
    )
    now = alice.get("/schedules/eye")
    begun = [
        run
        for run in alice.get("/schedules/eye/runs?limit=1000")["items"]
        if run["attempt"] and run["fire"] >= now["created_at"]
    ]
    assert len(begun) >= now["info"]["started"]
    assert "Traceback" not in server.log


def test_calendars_and_the_schedules_that_exclude_them_change_at_once(
    start: StartServer, postgres: str
) -> None:
    server = start(postgres, **GUARDED)
    alice = Tenant(server, "alice")
    alice.ask("PUT", "/calendars/days", {"dates": ["2030-01-01"]})
    specs = [
        {"crons": ["0 9 * * *"], "exclude": [{"calendar": "days"}, {"month": str(month)}]} for month in (1, 2)
    ]
    for number in range(20):
        alice.create(f"s{number:02}", spec=specs[0])
    wrong: list[str] = []

    def act(client: httpx.Client, chance: random.Random) -> None:
        if wrong:
            return
        if chance.random() < 0.3:
            answer = client.put("/calendars/days", json={"dates": [f"2030-01-{chance.randint(1, 28):02}"]})
        else:
            answer = client.patch(
                f"/schedules/s{chance.randrange(20):02}", json={"spec": chance.choice(specs)}
            )
        if answer.status_code != 200:
            wrong.append(f"{answer.status_code} {answer.text}")

    storm(server, 10, act)
    assert wrong == []


def test_many_are_created_at_once_in_any_order(start: StartServer, postgres: str) -> None:
    server = start(postgres, **GUARDED)
    statuses: list[int] = []

    def act(client: httpx.Client, chance: random.Random) -> None:
        ids = [f"{chance.randrange(10)}-{number}" for number in range(30)]
        chance.shuffle(ids)
        wanted = [{"id": each, "spec": NEVER, "action": "ping"} for each in ids]
        statuses.append(client.post("/bulk/schedules", json={"schedules": wanted}).status_code)
        statuses.append(client.post("/bulk/pause", json={"filter": {"prefix": ids[0][0]}}).status_code)
        statuses.extend(client.delete(f"/schedules/{each}").status_code for each in ids[:10])

    storm(server, 6, act)
    assert set(statuses) <= {200, 201, 204, 404, 409}, set(statuses)


class Heard:
    """What one client did to its own schedule, and the answers it got, until the service was gone."""

    def __init__(self, schedule_id: str) -> None:
        self.id = schedule_id
        self.sure = True
        """Whether the last request was answered: else it may or may not have happened."""
        self.there = False
        self.seen: tuple[int, str] = (0, "")
        self.runs: list[str] = []

    def act(self, client: httpx.Client, chance: random.Random) -> None:
        verb = chance.choice(["create", "trigger", "trigger", "pause", "resume"] * 2 + ["delete"])
        self.sure = False
        if verb == "create":
            answer = client.post("/schedules", json={"id": self.id, "spec": NEVER, "action": "ping"})
        elif verb == "delete":
            answer = client.delete(f"/schedules/{self.id}")
        else:
            answer = client.post(f"/schedules/{self.id}/{verb}")
        self.sure = True
        if answer.status_code >= 300:
            return
        self.there = verb != "delete"
        if verb == "trigger":
            self.runs.append(answer.json()["run_id"])
        elif verb != "delete":
            self.seen = answer.json()["version"], answer.json()["state"]

    def go_on(self, server: Server) -> None:
        chance = random.Random(self.id)  # noqa: S311 - no secret
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=30, headers=bearer("alice")) as client:
            while True:
                try:
                    self.act(client, chance)
                except httpx.HTTPError:
                    return


def test_what_was_answered_is_true_after_a_kill(start: StartServer, database: str) -> None:
    server = start(database, **GUARDED)
    heard = [Heard(f"client{number}") for number in range(8)]
    with ThreadPoolExecutor(len(heard)) as pool:
        clients = [pool.submit(each.go_on, server) for each in heard]
        try:
            wait_for(lambda: sum(len(each.runs) for each in heard) >= 20)
        finally:
            server.end(signal.SIGKILL)
        for client in clients:
            client.result()
    admin = Tenant(start(database, **GUARDED), "root", "admin")
    for each in heard:
        answer = admin.ask("GET", f"/schedules/{each.id}")
        if each.sure:
            assert (answer.status_code == 200) == each.there
        if each.sure and each.there:
            assert (answer.json()["version"], answer.json()["state"]) == each.seen
        for run in each.runs:
            assert admin.ask("GET", f"/runs/{run}").status_code == 200
