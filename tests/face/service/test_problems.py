"""What a problem says to the caller, and what only the log has."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import pytest

from horae.app import App
from horae.config import Config
from horae.errors import DatabaseVersionError, StoreUnavailableError
from horae.face.service.logging_setup import Log
from horae.face.service.problems import on_horae_error
from tests.support.loggers import loggers_as_before
from tests.support.service import client_of

PATHS = ("/api/v1/schedules", "/api/v1/nodes", "/api/v1/runs/x", "/readyz", "/metrics", "/schedules/x")


async def answers(app: App) -> list[httpx.Response]:
    async with client_of(app) as client:
        created = {"id": "x", "spec": "0 9 * * *", "action": "ping"}
        return [
            *[await client.get(path) for path in PATHS],
            await client.post("/api/v1/schedules", json=created),
        ]


async def test_neither_the_path_of_the_database_nor_the_words_of_its_driver_leave_the_log(
    tmp_path: Path,
):
    path, log = tmp_path / "hidden-name.db", io.StringIO()
    async with App(f"sqlite:///{path}") as app:
        await app.engine.step(app.now())
        path.with_name(f"{path.name}-wal").write_bytes(b"")
        path.write_bytes(b"no database at all " * 10_000)
        with loggers_as_before():
            Log(Config(log_format="json"), log)
            found = await answers(app)
        for each in found:
            assert "hidden-name" not in each.text
            assert "malformed" not in each.text
            assert "not a database" not in each.text
        problem = found[0].json()
        assert found[0].status_code == 503
        assert (problem["code"], problem["detail"]) == ("store_unavailable", "The database cannot be reached")
        assert "details" not in problem
    assert "hidden-name" in log.getvalue()


def test_the_operator_sees_the_reason_in_tracebacks_and_programs_have_it():
    error = StoreUnavailableError("/srv/horae.db: disk I/O error")
    assert str(error) == "The database cannot be reached"
    assert error.reason == "/srv/horae.db: disk I/O error"
    assert error.__notes__ == [f"hint: {error.hint}", error.reason]


def test_a_problem_does_not_name_the_database():
    answered = on_horae_error(DatabaseVersionError("/srv/horae.db", 9, 8))
    assert answered.status_code == 503
    assert b"/srv" not in answered.content


_JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("request_", "status", "detail", "hint"),
    [
        (("POST", "/schedules", ""), 400, "The body is missing", "send a JSON object"),
        (("POST", "/schedules", "{"), 400, "The body is not valid JSON: Input data was truncated", None),
        (("POST", "/schedules", "[]"), 400, "body must be a mapping, not a list", None),
        (("DELETE", "/schedules", ""), 405, "/api/v1/schedules does not take DELETE", "it takes GET, HEAD, OPTIONS, POST"),
        (("GET", "/schedules/x/explain", ""), 400, "time is missing", None),
        (("GET", "/schedules?state=runing", ""), 422, 'state is "runing", and must be one of completed, paused, running', "did you mean running?"),
        (("GET", "/schedules?attention=1", ""), 422, 'attention is "1", and must be one of true, false', None),
        (("GET", "/runs?since=soon", ""), 422, 'since is "soon", which is no time', "ISO 8601 with an offset, such as 2026-03-08T09:00:00Z"),
        (("GET", "/runs?since=2026-01-01T00:00:00", ""), 422, 'since is "2026-01-01T00:00:00", which has no offset', "write it with its offset from UTC, such as 2026-03-08T09:00:00Z or 2026-03-08T10:00:00+01:00"),
        (("POST", "/schedules", '{"spec": "@daily", "action": "pong"}'), 422, 'There is no action "pong"', "did you mean ping? registered are: ping, workflow; a program that registers it must be running"),
        (("POST", "/schedules", '{"spec": {"cron": "@daily"}, "action": "ping"}'), 422, "cron is unknown", "did you mean crons?"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_said_in_a_sentence_without_words_of_python(
    request_: tuple[str, str, str], status: int, detail: str, hint: str | None
):
    async with App(":memory:") as app:
        app.action("ping")(lambda: None)
        async with client_of(app) as client:
            method, path, body = request_
            answer = await client.request(
                method, f"/api/v1{path}", content=body, headers=_JSON if body else {}
            )
    problem = answer.json()
    assert (answer.status_code, problem["detail"], problem.get("hint")) == (status, detail, hint)
    for word in ("datetime", "@app", "Error", "None", "'data'", "Expected"):
        assert word not in answer.text
