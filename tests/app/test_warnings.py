"""What is stored although it may not do what was meant is told: by Python's warnings, in the answer, on standard error."""

from __future__ import annotations

import asyncio
import json
import runpy
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import horae
from horae.testing import TimeMachine
from tests.face.cli.command import answered
from tests.face.cli.command import horae as command
from tests.support.process import Server
from tests.support.service import client_of

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
NEVER: list[tuple[dict[str, Any] | str, str]] = [
    ({"times": ["2020-01-01T00:00:00Z"]}, "it never fires again: no such date comes any more"),
    ("0 9 31 2 *", "it never fires: no such date comes any more"),
    ({}, "it never fires: the spec is empty: it has no crons, calendars, intervals, rrules or times"),
    ({"crons": ["@daily"], "end_at": "2026-01-01T00:00:00Z"}, "it never fires again: its end_at, 2026-01-01T00:00:00Z, has passed"),
    ({"crons": ["@yearly"], "start_at": "2027-02-01T00:00:00Z", "end_at": "2027-03-01T00:00:00Z"}, "it never fires: its next time, 2028-01-01T00:00:00Z, is after its end_at"),
    ({"crons": ["0 9 * * 1"], "exclude": [{"day_of_week": "mon", "hour": "*"}]}, "it never fires: all its times are excluded, the first of them 2026-11-09T09:00:00Z"),
    ({"times": ["2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"]}, "of its times, these are over: 2020-01-01T00:00:00Z"),
    ({"crons": ["0 9 * * *"], "timezone": "EST"}, "EST has no summer time; name a place to follow its clocks, such as America/New_York"),
]  # fmt: skip


@pytest.fixture
def app(machine: TimeMachine) -> horae.App:
    machine.app.action("greet")(lambda: None)
    return machine.app


@pytest.mark.parametrize(("spec", "sentence"), NEVER)
async def test_a_program_is_warned(app: horae.App, spec: Any, sentence: str):
    with pytest.warns(horae.ScheduleWarning) as told:
        await app.schedules.create("s", spec, "greet")
    assert [str(each.message) for each in told] == [f'The schedule "s": {sentence}']
    with pytest.warns(horae.ScheduleWarning):
        await app.schedules.update("s", spec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await app.schedules.update("s", "0 9 * * *")
        await app.schedules.create("usual", {"intervals": [{"every": "1h"}], "timezone": "CET"}, "greet")
    with pytest.warns(horae.ScheduleWarning, match="remaining_actions is 0"):
        await app.schedules.update("s", remaining_actions=0)


DEFINING = """\
import horae
app = horae.{kind}("sqlite:///{database}")

@app.schedule("0 0 31 2 *")
def never():
    pass
"""


async def adopted(app: horae.App) -> None:
    other = horae.App(app.database)
    other.adopt(app)
    async with other:
        pass


@pytest.mark.parametrize("kind", ["App", "SyncApp"])
async def test_a_warning_about_a_definition_names_its_line(kind: str, tmp_path: Path):
    file = tmp_path / "program.py"
    file.write_text(DEFINING.format(kind=kind, database=tmp_path / "horae.db"))
    app = runpy.run_path(str(file))["app"]
    with pytest.warns(horae.ScheduleWarning, match="it never fires") as told:
        await (adopted(app) if kind == "App" else asyncio.to_thread(app.start))
    if kind == "SyncApp":
        app.close()
    assert [(each.filename, each.lineno) for each in told] == [(str(file), 4)]


@pytest.mark.parametrize(("spec", "sentence"), NEVER)
async def test_answers_have_warnings(app: horae.App, spec: Any, sentence: str):
    body = {"spec": spec, "action": "greet"}
    async with client_of(app) as client:
        created = await client.post("/api/v1/schedules", json={"id": "s", **body})
        tried = await client.put("/api/v1/schedules/s", json={"dry_run": True, **body})
        fixed = await client.patch("/api/v1/schedules/s", json={"spec": "0 9 * * *"})
        replaced = await client.put("/api/v1/schedules/s", json=body)
        many = await client.post("/api/v1/bulk/schedules", json={"schedules": [{"id": "t", **body}]})
    assert [each.json()["warnings"] for each in (created, tried, fixed, replaced)] == [
        [sentence],
        [sentence],
        [],
        [sentence],
    ]
    assert many.json()["items"][0]["warnings"] == [sentence]


async def test_answers_warn_of_an_input_that_does_not_fit(machine: TimeMachine):
    @machine.app.action
    def count(rows: int) -> None: ...

    told = ["its input.rows must be a whole number, not a text"]
    wrong, right = ({"name": "count", "input": {"rows": each}} for each in ("x", 1))
    async with client_of(machine.app) as client:

        async def warnings_of(method: str, path: str, **body: Any) -> Any:
            answer = await client.request(method, f"/api/v1{path}", json=body)
            assert answer.is_success, answer.text
            return answer.json()["warnings"]

        assert await warnings_of("POST", "/schedules", id="s", spec="@daily", action=wrong) == told
        assert await warnings_of("PUT", "/schedules/s", spec="@daily", action=right) == []
        assert await warnings_of("PUT", "/schedules/s", spec="@daily", action=wrong) == told
        assert await warnings_of("PATCH", "/schedules/s", action=right) == []
        assert await warnings_of("POST", "/schedules/s/trigger", input={"rows": "x"}) == told
        assert await warnings_of("POST", "/schedules/s/trigger", input={"rows": 1}) == []
        assert await warnings_of("POST", "/schedules/s/trigger") == []
        assert await warnings_of("POST", "/schedules/s/patch", trigger={"input": {"rows": "x"}}) == told
        assert await warnings_of("POST", "/once", action="count", **{"in": "1h"}) == [
            'its input has no "rows", which the action needs; give it by name: input={"rows": …}'
        ]
        many = {"schedules": [{"id": "t", "spec": "@daily", "action": wrong}]}
        created = await client.post("/api/v1/bulk/schedules", json=many)
        assert created.json()["items"][0]["warnings"] == told


def test_the_command_warns_of_an_input_that_does_not_fit(tmp_path: Path):
    server = Server(f"sqlite:///{tmp_path}/horae.db", app="tests.app.typed_actions", HORAE_DRAIN_MS="0")
    try:
        for typed in (
            ["schedules", "create", "s", "--every", "1h", "--action", "count", "--input", '{"rows": "x"}'],
            ["schedules", "trigger", "s", "--input", '{"rows": "x"}'],
            ["once", "count", "--in", "1h", "--input", '{"rows": "x"}'],
        ):
            ran = command(*typed, "--url", server.url, folder=tmp_path)
            assert (ran.returncode, ran.stderr) == (
                0,
                "warning: its input.rows must be a whole number, not a text\n",
            )
    finally:
        server.end()


def test_the_command_warns_and_does_it(tmp_path: Path):
    http = ["--http", "https://example.org"]
    command("migrate", folder=tmp_path)
    made = command("schedules", "create", "x", "--at", "2020-01-01T00:00", *http, folder=tmp_path)
    assert made.returncode == 0
    assert made.stdout == "Created x: Once at 2020-01-01T00:00:00, UTC time.\n"
    assert made.stderr == "warning: it never fires again: no such date comes any more\n"
    changed = command("schedules", "update", "x", "--cron", "0 0 30 2 *", folder=tmp_path)
    assert changed.stderr == "warning: it never fires: no such date comes any more\n"
    found = answered("schedules", "create", "y", "--at", "2020-01-01", *http, folder=tmp_path)
    assert found["warnings"] == ["it never fires again: no such date comes any more"]
    document = {
        "id": "z",
        "spec": "0 0 30 2 *",
        "action": {"kind": "http", "options": {"url": "https://example.org"}},
    }
    (tmp_path / "s.json").write_text(json.dumps(document))
    applied = command("apply", "-f", "s.json", folder=tmp_path)
    assert applied.stderr == 'warning: schedule "z": it never fires: no such date comes any more\n'
    assert applied.returncode == 0
