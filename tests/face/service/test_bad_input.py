"""Bad input is refused with a clear 4xx: nothing is stored, no secret is logged, and the service keeps running."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from horae.app.page import cursor_of
from tests.support.process import Server, StartServer
from tests.support.wait import wait_for

HUGE = 2**70
DEEP = "[" * 10_000 + "]" * 10_000
MANY = 10_000
GOOD: dict[str, Any] = {"spec": "0 9 * * *", "action": "ping"}
CANARY = "canary-7f3a91"
"""In every body: it must not be found in the log."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with one schedule, `there`, on each kind of database: what one refuses, both do."""
    address = f"sqlite:///{tmp_path_factory.mktemp('bad')}/horae.db"
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        name = f"t{uuid.uuid4().hex}"
        postgres.psql(f"CREATE DATABASE {name};")
        address = postgres.get_uri(database=name)
    server = Server(address, HORAE_PREVIEW_LIMIT="1000")
    made = server.ask("POST", "/schedules", {**GOOD, "id": "there", "paused": True})
    assert made.status_code == 201, made.text
    assert server.ask("PUT", "/calendars/there", {"dates": ["2099-01-01"]}).status_code == 200
    yield server
    assert "Traceback" not in server.log
    assert CANARY not in server.log
    server.end()


def created(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "id": CANARY, **changes}


def edited(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


POLICIES: list[tuple[dict[str, Any], int, str]] = [
    ({"overlap": "sometimes"}, 400, "invalid_request"),
    ({"unknown": 1}, 400, "invalid_request"),
    ({"max_concurrent": 0}, 422, "invalid_input"),
    ({"max_concurrent": "1"}, 400, "invalid_request"),
    ({"coalesce": "true"}, 400, "invalid_request"),
    ({"max_concurrent": 1.5}, 400, "invalid_request"),
    ({"max_buffer_size": HUGE}, 422, "invalid_input"),
    ({"backfill_limit": -1}, 422, "invalid_input"),
    ({"start_attempts": 0}, 422, "invalid_input"),
    ({"finished_ttl": -HUGE}, 422, "invalid_input"),
    ({"finished_ttl": "a week"}, 422, "invalid_input"),
    ({"retry": {"attempts": 0}}, 422, "invalid_input"),
    ({"retry": {"factor": 0.5}}, 422, "invalid_input"),
    ({"retry": {"initial_delay": "366d1ms"}}, 422, "invalid_input"),
    ({"retry": {"max_delay": "9999999999999w"}}, 422, "invalid_input"),
    ({"catch_up": {"window": "-1s"}}, 422, "invalid_input"),
    ({"catch_up": {"mode": "some"}}, 400, "invalid_request"),
    ({"timeouts": {"run": "0s"}}, 422, "invalid_input"),
    ({"timeouts": {"run": 30_000}}, 422, "invalid_input"),
    ({"retention": {"age": "0s"}}, 422, "invalid_input"),
    ({"retention": []}, 400, "invalid_request"),
]  # fmt: skip

CREATIONS: list[tuple[str, Any, int, str]] = [
    ("a number", 7, 400, "invalid_request"),
    ("a list", [], 400, "invalid_request"),
    ("null", None, 400, "invalid_request"),
    ("nothing in it", {}, 400, "invalid_request"),
    ("no action", {"spec": "* * * * *"}, 400, "invalid_request"),
    ("an unknown field", created(colour="red"), 400, "invalid_request"),
    ("id is a number", created(id=7), 400, "invalid_request"),
    ("id is empty", created(id=""), 422, "invalid_input"),
    ("id is too long", created(id="x" * 501), 422, "invalid_input"),
    ("id has a newline", created(id="a\nb"), 422, "invalid_input"),
    ("id has NUL", created(id="a\0b"), 422, "invalid_input"),
    ("id is taken", created(id="there"), 409, "schedule_exists"),
    ("cron of too few fields", created(spec="* *"), 422, "invalid_cron_expression"),
    ("cron that is no cron", created(spec="at noon"), 422, "invalid_cron_expression"),
    ("impossible minute", created(spec="61 * * * *"), 422, "invalid_cron_expression"),
    ("impossible cron in a document", created(spec={"crons": ["* * 32 * *"]}), 422, "invalid_spec"),
    ("cron of a megabyte's tenth", created(spec="*" * 100_000), 422, "invalid_cron_expression"),
    ("unknown zone", created(spec={"crons": ["0 9 * * *"], "timezone": "Mars/Olympus"}), 422, "invalid_spec"),
    ("zone is a path", created(spec={"crons": ["0 9 * * *"], "timezone": "../../etc/passwd"}), 422, "invalid_spec"),
    ("zone is a number", created(spec={"crons": ["0 9 * * *"], "timezone": 7}), 422, "invalid_spec"),
    ("unknown key in the spec", created(spec={"cron": ["0 9 * * *"]}), 422, "invalid_spec"),
    ("spec is a list", created(spec=["0 9 * * *"]), 400, "invalid_request"),
    ("interval of nothing", created(spec={"intervals": [{"every": "0s"}]}), 422, "invalid_spec"),
    ("interval too long", created(spec={"intervals": [{"every": HUGE}]}), 422, "invalid_input"),
    ("time out of range", created(spec={"times": ["0001-01-01T00:00:00Z"]}), 422, "invalid_spec"),
    ("time far out of range", created(spec={"times": ["99999-01-01T00:00:00Z"]}), 422, "invalid_spec"),
    ("impossible rrule", created(spec={"rrules": ["FREQ=SOMETIMES"]}), 422, "invalid_spec"),
    ("unknown calendar", created(spec={"crons": ["0 9 * * *"], "exclude": [{"calendar": "none"}]}), 422, "unknown_calendar"),
    ("unknown action", created(action="nobody-knows"), 422, "unknown_action"),
    ("action has NUL", created(action="a\0b"), 422, "invalid_input"),
    ("action without a name", created(action={}), 422, "unknown_action"),
    ("http without a request", created(action="http"), 422, "invalid_input"),
    ("options of a function", created(action={"name": "ping", "options": {"url": "https://example.org"}}), 422, "invalid_input"),
    ("options of no kind", created(action={"kind": "nothing", "options": {}}), 422, "unknown_action"),
    ("an option that is not there", created(action={"kind": "http", "options": {"uri": "https://example.org"}}), 422, "invalid_input"),
    ("an option of another type", created(action={"kind": "http", "options": {"url": 7}}), 422, "invalid_input"),
    ("a request to nowhere", created(action={"kind": "http", "options": {"url": "nowhere"}}), 422, "invalid_input"),
    ("a request to this machine", created(action={"kind": "http", "options": {"url": "http://127.0.0.1/"}}), 422, "invalid_input"),
    ("a request to metadata", created(action={"kind": "http", "options": {"url": "http://169.254.169.254/"}}), 422, "invalid_input"),
    ("input has NUL", created(action={"name": "ping", "input": {"a": ["\0"]}}), 422, "invalid_input"),
    ("a key of the input has NUL", created(action={"name": "ping", "input": {"\0": 1}}), 422, "invalid_input"),
    ("input has a huge integer", created(action={"name": "ping", "input": [HUGE]}), 422, "invalid_input"),
    ("input is too deep", created(action={"name": "ping", "input": json.loads("[" * 150 + "]" * 150)}), 422, "invalid_input"),
    ("memo has NUL", created(memo={"a": "\0"}), 422, "invalid_input"),
    ("memo is too long", created(memo={"a": "x" * 70_000}), 422, "invalid_input"),
    ("memo is a list", created(memo=[]), 400, "invalid_request"),
    ("search attribute has NUL", created(search_attributes={"a": "\0"}), 422, "invalid_input"),
    ("search attribute is huge", created(search_attributes={"a": HUGE}), 422, "invalid_input"),
    ("search attribute is null", created(search_attributes={"a": None}), 400, "invalid_request"),
    ("too many search attributes", created(search_attributes={str(n): n for n in range(101)}), 422, "invalid_input"),
    ("tag has NUL", created(tags=["\0"]), 422, "invalid_input"),
    ("tag is empty", created(tags=[""]), 422, "invalid_input"),
    ("tag is too long", created(tags=["x" * 201]), 422, "invalid_input"),
    ("too many tags", created(tags=[str(n) for n in range(101)]), 422, "invalid_input"),
    ("note has NUL", created(note="\0"), 422, "invalid_input"),
    ("note is too long", created(note="x" * 10_001), 422, "invalid_input"),
    ("note is a number", created(note=7), 400, "invalid_request"),
    ("paused is a text", created(paused="yes"), 400, "invalid_request"),
    ("limited to less than none", created(remaining_actions=-1), 422, "invalid_input"),
    ("limited to a huge number", created(remaining_actions=HUGE), 422, "invalid_input"),
    ("request_id has NUL", created(request_id="\0"), 422, "invalid_input"),
    ("trigger is a number", created(trigger=7), 400, "invalid_request"),
    ("trigger with an unknown overlap", created(trigger={"overlap": "x"}), 400, "invalid_request"),
    ("backfill without an offset", created(backfills=[{"start": "2026-01-01T00:00:00", "end": "2026-01-02T00:00:00"}]), 422, "naive_time"),
    ("backfill of no time", created(backfills=[{"start": "yesterday", "end": "today"}]), 422, "invalid_input"),
    ("backfill backwards", created(backfills=[{"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}]), 422, "invalid_input"),
    ("backfill from year 1", created(backfills=[{"start": "0001-01-01T00:00:00+14:00", "end": "2026-01-01T00:00:00Z"}]), 422, "invalid_input"),
    ("backfill until year 9999", created(backfills=[{"start": "2026-01-01T00:00:00Z", "end": "9999-12-31T23:59:59-14:00"}]), 422, "invalid_input"),
    *((f"policies {json.dumps(given)[:60]}", created(policies=given), status, code) for given, status, code in POLICIES),
]  # fmt: skip

EDITS: list[tuple[str, str, Any, int, str]] = [
    ("PUT", "/schedules/there", {}, 400, "invalid_request"),
    ("PUT", "/schedules/there", edited(spec="61 * * * *"), 422, "invalid_cron_expression"),
    ("PUT", "/schedules/there", edited(action="nobody-knows"), 422, "unknown_action"),
    ("PUT", "/schedules/there", edited(id="there"), 400, "invalid_request"),
    ("PUT", "/schedules/there", edited(version=99), 409, "conflict_token_mismatch"),
    ("PUT", "/schedules/there", edited(version=HUGE), 422, "invalid_input"),
    ("PUT", "/schedules/there", edited(note="\0"), 422, "invalid_input"),
    ("PUT", "/schedules/none", edited(version=1), 404, "schedule_not_found"),
    ("PATCH", "/schedules/there", {"policies": {"overlap": "sometimes"}}, 422, "invalid_input"),
    ("PATCH", "/schedules/there", {"policies": {"retry": {"attempts": 0}}}, 422, "invalid_input"),
    ("PATCH", "/schedules/there", {"policies": {"unknown": 7}}, 422, "invalid_input"),
    ("PATCH", "/schedules/there", {"policies": 7}, 400, "invalid_request"),
    ("PATCH", "/schedules/there", {"memo": {"a": "\0"}}, 422, "invalid_input"),
    ("PATCH", "/schedules/there", {"tags": None}, 400, "invalid_request"),
    ("PATCH", "/schedules/there", {"remaining_actions": -1}, 422, "invalid_input"),
    ("PATCH", "/schedules/there", {"note": "x" * 10_001}, 422, "invalid_input"),
    ("PATCH", "/schedules/there", {"spec": {"timezone": "Mars/Olympus", "crons": ["0 9 * * *"]}}, 422, "invalid_spec"),
    ("PATCH", "/schedules/there", {"version": 99, "note": "x"}, 409, "conflict_token_mismatch"),
    ("PATCH", "/schedules/none", {"note": "x"}, 404, "schedule_not_found"),
    ("DELETE", "/schedules/none", None, 404, "schedule_not_found"),
    ("POST", "/schedules/there/trigger", {"overlap": "x"}, 400, "invalid_request"),
    ("POST", "/schedules/there/trigger", {"input": {"a": "\0"}}, 422, "invalid_input"),
    ("POST", "/schedules/there/trigger", {"input": HUGE}, 422, "invalid_input"),
    ("POST", "/schedules/there/trigger", {"note": 7}, 400, "invalid_request"),
    ("POST", "/schedules/none/trigger", {}, 404, "schedule_not_found"),
    ("POST", "/schedules/there/pause", {"until": "soon"}, 422, "invalid_input"),
    ("POST", "/schedules/there/pause", {"until": "2027-01-01T00:00:00"}, 422, "naive_time"),
    ("POST", "/schedules/there/pause", {"until": "9999-12-31T23:59:59-23:59"}, 422, "invalid_input"),
    ("POST", "/schedules/there/pause", {"note": "\0"}, 422, "invalid_input"),
    ("POST", "/schedules/there/resume", {"note": "x" * 10_001}, 422, "invalid_input"),
    ("POST", "/schedules/there/skip", {"number": -1}, 422, "invalid_input"),
    ("POST", "/schedules/there/skip", {"number": 1_000_001}, 422, "invalid_input"),
    ("POST", "/schedules/there/skip", {"number": HUGE}, 422, "invalid_input"),
    ("POST", "/schedules/there/skip", {"number": 1.5}, 400, "invalid_request"),
    ("POST", "/schedules/there/patch", {"pause": "a", "resume": "b"}, 422, "invalid_input"),
    ("POST", "/schedules/there/patch", {"pause": "a\0"}, 422, "invalid_input"),
    ("POST", "/schedules/there/patch", {"resume": "x" * 10_001}, 422, "invalid_input"),
    ("POST", "/schedules/there/patch", {"trigger": {}, "version": 99}, 409, "conflict_token_mismatch"),
    ("POST", "/schedules/there/patch", {"trigger": {}, "backfills": [{"start": "x", "end": "y"}]}, 422, "invalid_input"),
    ("POST", "/schedules/there/backfills", {"start": "2026-01-01T00:00:00Z"}, 400, "invalid_request"),
    ("POST", "/schedules/there/backfills", {"start": 0, "end": 1}, 422, "invalid_input"),
    ("POST", "/schedules/there/backfills", {"start": "x", "end": "y", "dry_run": True}, 422, "invalid_input"),
    ("POST", "/schedules/there/preview", {"spec": "x"}, 422, "invalid_cron_expression"),
    ("POST", "/schedules/there/preview", {"spec": "* * * * *", "days": 0}, 422, "invalid_input"),
    ("POST", "/schedules/there/preview", {"spec": "* * * * *", "days": HUGE}, 422, "invalid_input"),
    ("POST", "/preview", {"spec": "x"}, 422, "invalid_cron_expression"),
    ("POST", "/preview", {"spec": {"exclude": [{"calendar": "\0"}]}}, 422, "invalid_input"),
    ("POST", "/preview", {"spec": {"exclude": [{"calendar": "none"}]}}, 422, "unknown_calendar"),
    ("POST", "/bulk/schedules", {"schedules": 7}, 400, "invalid_request"),
    ("POST", "/bulk/schedules", {"schedules": [created(), created()]}, 409, "schedule_exists"),
    ("POST", "/bulk/schedules", {"schedules": [created(), created(id="other", spec="x")]}, 422, "invalid_cron_expression"),
    ("POST", "/bulk/schedules", {"schedules": [created(), created(id="there")]}, 409, "schedule_exists"),
    ("POST", "/bulk/pause", {}, 400, "invalid_request"),
    ("POST", "/bulk/pause", {"filter": {"state": "asleep"}}, 400, "invalid_request"),
    ("POST", "/bulk/pause", {"filter": {"search": "novalue"}}, 422, "invalid_input"),
    ("POST", "/bulk/pause", {"filter": {"tag": "\0"}}, 422, "invalid_input"),
    ("POST", "/bulk/resume", {"filter": {}, "note": "x" * 10_001}, 422, "invalid_input"),
    ("PUT", "/calendars/new", {"dates": ["2099-02-30"]}, 422, "invalid_spec"),
    ("PUT", "/calendars/new", {"dates": "2099-02-03"}, 400, "invalid_request"),
    ("PUT", "/calendars/new", {"days": []}, 400, "invalid_request"),
    ("PUT", "/calendars/new", {"calendars": [{"hour": "25"}]}, 422, "invalid_spec"),
    ("PUT", "/calendars/new", {"calendars": [{"comment": "\0"}]}, 422, "invalid_input"),
    ("PUT", f"/calendars/{'x' * 501}", {"dates": []}, 422, "invalid_input"),
    ("PUT", "/calendars/a%0Ab", {"dates": []}, 422, "invalid_input"),
    ("DELETE", "/calendars/none", None, 404, "calendar_not_found"),
    ("POST", "/runs/none/cancel", None, 404, "run_not_found"),
    ("POST", "/runs/none/terminate", None, 404, "run_not_found"),
    ("POST", "/runs/none/started", None, 401, "authentication"),
    ("POST", "/runs/none/failed", {"failure": 7}, 401, "authentication"),
    ("POST", "/runs/none/succeeded", {"result": "\0"}, 401, "authentication"),
    ("POST", "/backfills/none/cancel", None, 404, "backfill_not_found"),
]  # fmt: skip

PAGED = (
    "/schedules?", "/calendars?", "/runs?", "/schedules/there/runs?", "/schedules/there/backfills?",
    "/schedules/there/versions?", "/schedules/there/unstarted?",
)  # fmt: skip
CURSORS = {
    "/schedules?": cursor_of("s", "o"), "/calendars?": cursor_of("s", "o"), "/runs?": cursor_of(1, 2, 3),
    "/schedules/there/versions?": cursor_of(1, 2), "": cursor_of(-1), "deep": cursor_of("\0"), "long": cursor_of(2**64),
}  # fmt: skip
"""Cursors of some lists, which the others refuse, and of none."""
UNKNOWN = (
    "/schedules?stat=paused", "/schedules?owner_id=x", "/schedules/there?verbose=1", "/runs?from=2026-01-01T00:00:00Z",
    "/schedules/there/runs?status=failed", "/nodes?alive=true", "/bulk/count?limit=7", "/calendars/none?x",
)  # fmt: skip

QUESTIONS: list[tuple[str, int, str]] = [
    ("/schedules?limit=0", 400, "invalid_request"),
    ("/schedules?limit=1001", 400, "invalid_request"),
    ("/schedules?limit=many", 400, "invalid_request"),
    (f"/schedules?limit={HUGE}", 400, "invalid_request"),
    ("/schedules?limit=1&limit=2", 422, "invalid_input"),
    ("/schedules?state=asleep", 422, "invalid_input"),
    ("/schedules?attention=perhaps", 422, "invalid_input"),
    ("/schedules?search=novalue", 422, "invalid_input"),
    ("/schedules?search=%00:1", 422, "invalid_input"),
    ("/schedules?prefix=%00", 422, "invalid_input"),
    ("/schedules?tag=%ED%A0%80", 422, "invalid_input"),
    ("/schedules?action=%FF", 422, "invalid_input"),
    ("/schedules?owner=%0A", 422, "invalid_input"),
    (f"/schedules?owner={'x' * 201}", 422, "invalid_input"),
    ("/schedules/none", 404, "schedule_not_found"),
    ("/schedules/%00", 422, "invalid_input"),
    ("/schedules/%FF", 422, "invalid_input"),
    ("/schedules/%ED%A0%80", 422, "invalid_input"),
    ("/schedules/%zz", 404, "schedule_not_found"),
    ("/schedules/%", 404, "schedule_not_found"),
    (f"/schedules/{'x' * 10_000}", 404, "schedule_not_found"),
    ("/schedules/there/nothing", 404, "not_found"),
    ("/nothing", 404, "not_found"),
    ("/schedules/there/times?limit=0", 422, "limit_exceeded"),
    (f"/schedules/there/times?limit={HUGE}", 422, "limit_exceeded"),
    ("/schedules/there/times?limit=x", 400, "invalid_request"),
    ("/schedules/there/times?start=2026-01-01T00:00:00", 422, "naive_time"),
    ("/schedules/there/times?start=0001-01-01T00:00:00Z", 422, "invalid_input"),
    ("/schedules/there/times?end=9999-12-31T23:59:59Z", 422, "invalid_input"),
    ("/schedules/there/times?start=soon", 422, "invalid_input"),
    ("/schedules/there/times?start=2026-03-01T00:00:00Z&end=2026-02-01T00:00:00Z", 422, "invalid_input"),
    ("/schedules/there/runs?limit=0", 400, "invalid_request"),
    ("/schedules/none/runs", 404, "schedule_not_found"),
    ("/schedules/none/unstarted", 404, "schedule_not_found"),
    ("/schedules/none/versions", 404, "schedule_not_found"),
    ("/schedules/none/backfills", 404, "schedule_not_found"),
    ("/schedules/none/times", 404, "schedule_not_found"),
    ("/schedules/there/explain", 400, "invalid_request"),
    ("/schedules/there/explain?time=soon", 422, "invalid_input"),
    ("/schedules/there/explain?time=0001-01-01T00:00:00%2B14:00", 422, "invalid_input"),
    ("/schedules/there/explain?time=9999-12-31T23:59:59-14:00", 422, "invalid_input"),
    ("/schedules/there/explain?time=%00", 422, "invalid_input"),
    ("/schedules/none/explain?time=2026-01-01T00:00:00Z", 404, "schedule_not_found"),
    ("/forecast?minutes=0", 422, "invalid_input"),
    (f"/forecast?minutes={HUGE}", 422, "invalid_input"),
    ("/forecast?minutes=x", 400, "invalid_request"),
    ("/forecast?jitter=25h", 422, "invalid_input"),
    ("/forecast?jitter=soon", 422, "invalid_input"),
    ("/forecast?jitter=30", 422, "invalid_input"),
    ("/runs/none", 404, "run_not_found"),
    ("/runs/%00", 422, "invalid_input"),
    ("/backfills/none", 404, "backfill_not_found"),
    ("/backfills/there:%F0%9F%92%A9", 404, "backfill_not_found"),
    ("/calendars/none", 404, "calendar_not_found"),
    ("/calendars/%00", 422, "invalid_input"),
    ("/calendars?limit=0", 400, "invalid_request"),
    ("/calendars?cursor=%1F%1F", 422, "invalid_input"),
    *((f"{path}cursor={cursor}", 422, "invalid_input") for path in PAGED for cursor in ("x", "%00", *CURSORS.values())
        if cursor != CURSORS.get(path)),
    *((path, 422, "invalid_input") for path in UNKNOWN),
    ("/bulk/count?state=asleep", 422, "invalid_input"),
    ("/bulk/count?search=:", 422, "invalid_input"),
]  # fmt: skip

RAW: list[tuple[str, bytes, str, int, str]] = [
    ("malformed", b'{"spec": ', "application/json", 400, "invalid_request"),
    ("two values", b"{} {}", "application/json", 400, "invalid_request"),
    ("NaN", b'{"spec": "* * * * *", "action": {"name": "ping", "input": NaN}}', "application/json", 400, "invalid_request"),
    ("infinity", b'{"spec": "* * * * *", "action": {"name": "ping", "input": 1e999}}', "application/json", 400, "invalid_request"),
    ("a long integer", b'{"spec": "* * * * *", "remaining_actions": 1' + b"0" * 5000 + b"}", "application/json", 400, "invalid_request"),
    ("no UTF-8", b'{"spec": "\xff"}', "application/json", 400, "invalid_request"),
    ("UTF-16", '{"spec": "* * * * *"}'.encode("utf-16"), "application/json", 400, "invalid_request"),
    ("half of a pair", b'{"spec": "* * * * *", "action": "ping", "note": "\\ud800"}', "application/json", 400, "invalid_request"),
    ("half of a pair in the input", b'{"spec": "* * * * *", "action": {"name": "ping", "input": ["\\udc00x"]}}', "application/json", 400, "invalid_request"),
    ("half of a pair in bytes", b'{"spec": "* * * * *", "action": "ping", "note": "\xed\xa0\x80"}', "application/json", 400, "invalid_request"),
    ("deep", DEEP.encode(), "application/json", 422, "invalid_input"),
    ("deep in the input", b'{"spec": "* * * * *", "action": {"name": "ping", "input": ' + DEEP.encode() + b"}}", "application/json", 422, "invalid_input"),
    ("a text", json.dumps(created()).encode(), "text/plain", 415, "unsupported_media_type"),
    ("a form", b"spec=x", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    ("a form of JSON", json.dumps(created()).encode(), "multipart/form-data; boundary=x", 415, "unsupported_media_type"),
    ("nothing said", json.dumps(created()).encode(), "", 415, "unsupported_media_type"),
    ("msgpack", b"\x80", "application/x-msgpack", 415, "unsupported_media_type"),
]  # fmt: skip


def stored(server: Server) -> Any:
    """Everything that a bad request could have changed."""
    return (
        server.get("/bulk/count")["count"], server.get("/schedules/there"), server.get("/schedules/there/runs"),
        server.get("/schedules/there/backfills"), server.get("/schedules/there/versions"), server.get("/calendars"),
    )  # fmt: skip


def assert_refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    if not code:
        return {}
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem["code"]) == (status, code), problem
    assert problem["detail"]
    assert "Traceback" not in answer.text
    return problem


def test_schedules_that_cannot_be(server: Server):
    before = stored(server)
    for what, body, status, code in CREATIONS:
        answer = server.client.post(
            "/api/v1/schedules", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json().get("code")) == (status, code), (what, answer.text)
        assert_refused(answer, status, code)
    assert stored(server) == before


def test_changes_that_cannot_be(server: Server):
    before = stored(server)
    for method, path, body, status, code in EDITS:
        answer = server.ask(method, path, body)
        assert (answer.status_code, answer.json().get("code")) == (status, code), (
            method,
            path,
            body,
            answer.text,
        )
        assert_refused(answer, status, code)
    assert stored(server) == before


def test_questions_that_cannot_be(server: Server):
    for path, status, code in QUESTIONS:
        answer = server.ask("GET", path)
        assert answer.status_code == status, (path, answer.text)
        assert_refused(answer, status, code)
    for path, hint in (
        ("/schedules?lmit=1", "did you mean limit?"),
        ("/nothing", "/openapi.json lists every path"),
    ):
        assert server.ask("GET", path).json()["hint"] == hint


def test_bodies_that_cannot_be_read(server: Server):
    before = stored(server)
    for what, body, media_type, status, code in RAW:
        headers = {"Content-Type": media_type} if media_type else {}
        answer = server.client.post("/api/v1/schedules", content=body, headers=headers)
        assert answer.status_code == status, (what, answer.text)
        assert_refused(answer, status, code)
    assert stored(server) == before


def test_stale_versions(server: Server):
    before = stored(server)
    for if_match in ('"99"', 'W/"99"', "99"):
        answer = server.ask("PUT", "/schedules/there", edited(), headers={"If-Match": if_match})
        assert_refused(answer, 412, "conflict_token_mismatch")
        answer = server.ask("DELETE", "/schedules/there", headers={"If-Match": if_match})
        assert_refused(answer, 412, "conflict_token_mismatch")
    for if_match in ('"x"', "", str(HUGE), "١"):
        answer = server.ask(
            "PATCH", "/schedules/there", {"note": "x"}, headers={"If-Match": if_match.encode()}
        )
        assert_refused(answer, 422, "invalid_input")
    assert stored(server) == before


DURATIONS = [
    ({"spec": {"intervals": [{"every": 90}]}}, "spec.intervals[0].every"),
    ({"spec": {"crons": ["* * * * *"], "jitter": 90}}, "spec.jitter"),
    ({"policies": {"finished_ttl": 90}}, "policies.finished_ttl"),
    ({"policies": {"timeouts": {"run": 90}}}, "policies.timeouts.run"),
    ({"policies": {"timeouts": {"run": "90"}}}, "policies.timeouts.run"),
    ({"policies": {"catch_up": {"window": 90.0}}}, "policies.catch_up.window"),
    ({"action": {"kind": "http", "options": {"url": "https://example.com", "timeout": 90}}}, "action.options.timeout"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "path"), DURATIONS)
def test_a_duration_has_a_unit(server: Server, change: dict[str, Any], path: str):
    """A number is refused in whichever way a schedule is written, with its place and how to write it."""
    for method, where, body in (
        ("POST", "/schedules", created(**change)),
        ("POST", "/bulk/schedules", {"schedules": [created(**change)]}),
        ("PUT", "/schedules/there", {"spec": GOOD["spec"], "action": GOOD["action"], **change}),
        ("PATCH", "/schedules/there", change),
    ):
        problem = assert_refused(
            server.ask(method, where, body), 422, "invalid_spec" if "spec" in change else "invalid_input"
        )
        assert problem["errors"][0]["path"].removeprefix("schedules[0].") == path
        assert problem["hint"] == 'write "90s", "90m" or "90ms"'


def test_a_duration_is_shown_in_its_short_form(server: Server):
    body = created(
        id="durations", spec={"intervals": [{"every": "PT90M"}], "jitter": "90s"},
        policies={"timeouts": {"run": "PT1H30M", "cancel": "1500ms"}, "retry": {"initial_delay": "0s"}},
    )  # fmt: skip
    assert server.ask("POST", "/schedules", body).status_code == 201
    shown = server.get("/schedules/durations")
    assert shown["spec"] == {"intervals": [{"every": "1h30m"}], "jitter": "1m30s"}
    assert shown["policies"]["timeouts"] == {
        "start": None, "run": "1h30m", "heartbeat": None, "cancel": "1s500ms",
    }  # fmt: skip
    assert (shown["policies"]["retry"]["initial_delay"], shown["policies"]["finished_ttl"]) == ("0s", "7d")
    assert server.ask("DELETE", "/schedules/durations").status_code == 204


def test_the_largest_and_smallest_that_can_be_are_kept(server: Server):
    """Values at the edge are taken by both databases, decided on, and read again as they were sent."""
    most, century = 2**53 - 1, "36600d"
    policies = {
        "overlap": "allow_all", "max_concurrent": most, "max_buffer_size": most, "backfill_limit": most,
        "start_attempts": most, "finished_ttl": century, "retention": {"age": century, "count": most},
        "timeouts": {"start": century, "run": century, "heartbeat": century, "cancel": century},
        "catch_up": {"mode": "spread", "window": century, "grace": century, "spread": century}, "retry": {"attempts": most},
    }  # fmt: skip
    body = {
        "id": "\U0001f4a9/edge ü", "spec": "* * * * * *", "policies": policies, "remaining_actions": most,
        "action": {"name": "ping", "input": [most, -most, 1e308, 5e-324, "\U0001f4a9\u2028\x7f\x01"]},
        "memo": {"": [[]]}, "search_attributes": {"a": most, "b": 1e308, "c": "", "d": True}, "trigger": True,
    }  # fmt: skip
    answer = server.ask("POST", "/schedules", body)
    assert answer.status_code == 201, answer.text
    path = answer.headers["Location"].removeprefix("/api/v1")
    wait_for(lambda: server.get(f"{path}/runs")["items"][-1]["status"] == "succeeded")
    described = server.get(path)
    assert described["action"]["input"] == body["action"]["input"]  # type: ignore[index]
    assert described["policies"]["timeouts"]["run"] == century
    assert server.get("/schedules", params={"search": f"a:{most}"})["items"][0]["id"] == body["id"]
    assert server.ask("DELETE", path).status_code == 204


def test_a_whole_number_may_be_written_with_a_point(server: Server):
    """As JSON Schema has it."""
    answer = server.ask("POST", "/schedules/there/skip", {"number": 0.0})
    assert (answer.status_code, answer.json()["skip_next"]) == (200, 0)


def test_methods_that_are_not_there(server: Server):
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "FROB"):
        answer = server.ask(method, "/schedules")
        assert answer.status_code == 405, method
        assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST", "OPTIONS"}
    answer = server.ask("OPTIONS", "/schedules/there")
    assert answer.status_code == 204
    assert answer.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"
    assert "access-control-allow-origin" not in answer.headers


def test_the_head_of_every_answer_can_be_asked_for(server: Server):
    paths = (
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/api/v1/schedules",
        "/api/v1/schedules/nothing",
        "/console",
    )
    for path in paths:
        head, whole = server.client.head(path), server.client.get(path)
        assert head.content == b""
        assert (head.status_code, head.headers["content-type"]) == (
            whole.status_code,
            whole.headers["content-type"],
        )
    endless = server.client.head("/console", headers={"Accept": "text/event-stream"})
    assert (endless.headers["content-type"], endless.content) == ("text/event-stream; charset=utf-8", b"")
    assert server.client.head("/api/v1/runs/x/cancel").status_code == 405


@pytest.mark.contract("CRON-19")
def test_a_body_has_so_many_bytes_at_most(server: Server):
    before = stored(server)
    long = json.dumps(created(note="x" * (1024 * 1024))).encode()
    headers = {"Content-Type": "application/json"}
    answer = server.client.post("/api/v1/schedules", content=long, headers=headers)
    assert assert_refused(answer, 413, "limit_exceeded")["details"]["limit"] == "body_limit"

    def pieces() -> Iterator[bytes]:
        for begin in range(0, len(long), 65_536):
            yield long[begin : begin + 65_536]

    answer = server.client.post("/api/v1/schedules", content=pieces(), headers=headers)
    assert assert_refused(answer, 413, "limit_exceeded")["details"]["limit"] == "body_limit"
    assert stored(server) == before


@pytest.mark.contract("CRON-19")
def test_a_request_creates_so_many_schedules_at_most(server: Server):
    before = stored(server)
    many = {"schedules": [{"id": f"{n}", "spec": "* * * * *", "action": "ping"} for n in range(MANY)]}
    problem = assert_refused(server.ask("POST", "/bulk/schedules", many), 422, "limit_exceeded")
    assert problem["details"] == {"limit": "batch_limit", "most": 1000}
    assert "HORAE_BATCH_LIMIT" in problem["hint"]
    assert stored(server) == before


@pytest.mark.contract("CRON-19")
def test_jitter_and_previews_are_limited(server: Server):
    before = stored(server)
    spec = {"crons": ["0 9 * * *"], "jitter": "86401s"}
    for answer in (
        server.ask("POST", "/schedules", created(spec=spec)),
        server.ask("PATCH", "/schedules/there", {"spec": spec}),
        server.ask("POST", "/preview", {"spec": spec}),
    ):
        assert answer.status_code == 422, answer.text
        assert answer.json()["code"] in {"limit_exceeded", "invalid_spec"}
        assert "jitter" in answer.text
    for answer in (
        server.ask("GET", "/schedules/there/times?limit=1001"),
        server.ask("POST", "/preview", {"spec": "* * * * *", "limit": 1001}),
    ):
        assert assert_refused(answer, 422, "limit_exceeded")["details"]["limit"] == "preview_limit"
    assert stored(server) == before


@pytest.mark.contract("CRON-19")
def test_a_user_has_so_many_schedules_at_most(start: StartServer):
    server = start(HORAE_SCHEDULES_PER_USER="2", HORAE_JITTER_LIMIT_MS="1000")
    for _ in range(2):
        assert server.ask("POST", "/schedules", GOOD).status_code == 201
    problem = assert_refused(server.ask("POST", "/schedules", GOOD), 422, "limit_exceeded")
    assert problem["details"] == {"limit": "schedules_per_user", "most": 2}
    assert server.get("/bulk/count")["count"] == 2
    spec = {"crons": ["0 9 * * *"], "jitter": "2s"}
    problem = assert_refused(server.ask("POST", "/schedules", created(spec=spec)), 422, "limit_exceeded")
    assert problem["details"]["limit"] == "jitter_limit_ms"


@pytest.mark.contract("CRON-19")
def test_a_user_asks_so_often_at_most(start: StartServer):
    server = start(HORAE_REQUESTS_PER_SECOND="2")
    answers = [server.ask("GET", "/actions") for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert refused
    for answer in refused:
        assert assert_refused(answer, 429, "limit_exceeded")["details"]["limit"] == "requests_per_second"
        assert int(answer.headers["retry-after"]) >= 1
    assert server.client.get("/healthz").status_code == 200


def connected(server: Server) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)


def test_clients_that_go_away(server: Server):
    before = stored(server)
    body = json.dumps(created()).encode()
    head = b"POST /api/v1/schedules HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    unfinished = [
        b"POST /api/v1/sched",
        head,
        head + b"Content-Length: 1000\r\n\r\n" + body[:20],
        head + b"Transfer-Encoding: chunked\r\n\r\n400\r\n" + body[:20],
        head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"GET /api/v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",  # whole, but the client does not wait for the answer
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the beginning of TLS
    ]
    for sent in unfinished:
        for _ in range(3):
            with connected(server) as connection:
                connection.sendall(sent)
    assert stored(server) == before
    assert server.client.get("/readyz").status_code == 200
    assert "Traceback" not in server.log
