"""What a problem says to the caller, and what only the log has."""

from __future__ import annotations

import io
from pathlib import Path

import httpx

from horae.app import App
from horae.config import Config
from horae.errors import DatabaseVersionError, StoreUnavailableError
from horae.face.service.log import Log
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
    assert (error.reason, error.__notes__) == ("/srv/horae.db: disk I/O error", [error.reason])


def test_a_problem_does_not_name_the_database():
    answered = on_horae_error(None, DatabaseVersionError("/srv/horae.db", 9, 8))  # type: ignore[arg-type]
    assert answered.status_code == 503
    assert b"/srv" not in answered.content
