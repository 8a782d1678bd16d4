"""The service as a process: it starts, refuses to, is asked to end, is killed, and loses nothing."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.face.cli.command import horae
from tests.face.service.requests import create, ended_runs
from tests.support.process import ROOT, Server, StartServer, environment, fork_server
from tests.support.wait import PATIENCE, wait_for


def refused(*arguments: str, **settings: str) -> str:
    """What a service says that does not start."""
    command = ["-m", "horae", "serve", *arguments]
    process, written = fork_server().start_piped(
        command, Path.cwd(), environment(**{"COLUMNS": "200"} | settings)
    )
    with written:
        said = written.read()
    assert process.wait(PATIENCE) == 2, said
    assert "Traceback" not in said
    return said


@pytest.mark.contract("CRON-18")
def test_without_authentication_it_says_so_and_every_caller_is_local(service: Server):
    assert "without authentication it serves this machine only, as the user local" in service.log
    assert create(service)["owner"] == "local"
    wait_for(lambda: f"The console, for people, is at {service.url}/console" in service.log)


@pytest.mark.contract("CRON-15", "CRON-19")
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("HORAE_LOOKAHEAD_MS", "3600001"),
        ("HORAE_TICK_MS", "-1"),
        ("HORAE_PORT", "many"),
        ("HORAE_BODY_LIMIT", "0"),
    ],
)
def test_a_setting_that_cannot_be_keeps_it_from_starting(tmp_path: Path, setting: str, value: str):
    settings: dict[str, Any] = {setting: value}
    ran = horae("serve", "--database", f"sqlite:///{tmp_path}/horae.db", **settings)
    assert ran.returncode == 2
    assert setting in ran.stderr


@pytest.mark.contract("CRON-18")
def test_what_cannot_be_listened_on_imported_or_opened_is_said(tmp_path: Path):
    database = f"sqlite:///{tmp_path}/horae.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--port", str(taken.getsockname()[1]), "--database", database)
    assert "another program, perhaps another horae serve, listens there" in said
    assert "hint: choose another port with --port or HORAE_PORT; 0 is any free one" in said
    said = refused("--host", "192.0.2.1", "--database", database, HORAE_JWT_SECRET="x" * 32)
    assert "Cannot listen on 192.0.2.1:8420: this machine has no such address" in said
    said = refused("--host", "0.0.0.0", "--database", database)  # noqa: S104 - that is what is refused
    assert "error: --host must be a loopback address" in said
    assert "The setting HORAE_HOST must be" in refused("--database", database, HORAE_HOST="192.0.2.1")
    assert "cannot be imported" in refused("--port", "0", "--database", database, "--app", "no.such.module")
    assert "has no App called app" in refused("--port", "0", "--database", database, "--app", "json")
    assert "HORAE_COMMANDS" in refused(
        "--port", "0", "--database", database, HORAE_COMMANDS=str(tmp_path / "none.json")
    )
    assert "hint" in refused("--port", "0", "--database", "mysql://x")
    (tmp_path / "letter.txt").write_text("Dear database, " * 100)
    assert "not a database" in refused("--port", "0", "--database", f"sqlite:///{tmp_path}/letter.txt")


def test_make_run_says_that_its_port_is_taken(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = subprocess.run(
            [sys.executable, "-m", "examples.living"], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
            env=environment(HORAE_PORT=str(taken.getsockname()[1]), HORAE_DATABASE_URL=f"sqlite:///{tmp_path}/horae.db"),
        )  # fmt: skip
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert [each.partition(":")[0] for each in ran.stderr.splitlines()] == ["error", "hint"]
    assert "another program" in ran.stderr
    assert ran.stderr.endswith("hint: PORT=8421 make run\n")


def test_a_module_that_runs_itself_is_not_served(tmp_path: Path):
    """Imported, it would keep time and never return; where its ``run`` belongs is said instead."""
    (tmp_path / "jobs.py").write_text("import horae\napp = horae.App(':memory:')\napp.run()\n")
    folders = os.pathsep.join([str(ROOT), str(tmp_path)])
    database = f"sqlite:///{tmp_path}/horae.db"
    said = refused("--port", "0", "--database", database, "--app", "jobs", PYTHONPATH=folders)
    assert said.splitlines() == [
        "error: app.run() is called when its module is imported",
        'hint: call it below: if __name__ == "__main__":',
    ]
    assert not (tmp_path / "horae.db").exists()


def test_asked_to_end_it_waits_for_what_runs_and_records_it(start: StartServer):
    server = start(interpreter=sys.executable)
    created = create(server, action="nap", trigger=True)
    wait_for(lambda: server.get(f"/schedules/{created['id']}")["info"]["running"])
    assert server.end(signal.SIGTERM) == 0
    assert "Traceback" not in server.log
    again = start()
    (run,) = ended_runs(again, created["id"])
    assert (run["status"], run["result"], run["attempt"]) == ("succeeded", "rested", 1)


def accounted(server: Server, schedule_id: str) -> list[str]:
    """Every second of a schedule that runs every second: once, whatever became of it."""
    runs = server.get(f"/schedules/{schedule_id}/runs", params={"limit": 1000})["items"]
    found = [run["nominal"] for run in runs if run["origin"]["kind"] == "automatic"]
    for each in server.get(f"/schedules/{schedule_id}/unstarted", params={"limit": 1000})["items"]:
        moment, last = (datetime.fromisoformat(each[end]) for end in ("first", "last"))
        while moment <= last:
            found.append(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
            moment += timedelta(seconds=1)
    return sorted(found)


def how_many(server: Server, schedule_id: str) -> int:
    return len(server.get(f"/schedules/{schedule_id}/runs", params={"limit": 1000})["items"])


@pytest.mark.contract("CRON-06")
@pytest.mark.long
def test_killed_again_and_again_it_loses_and_repeats_nothing(start: StartServer, database: str):
    settings = {"HORAE_LEASE_MS": "2000", "HORAE_HOUSEKEEPING_MS": "200"}
    server = start(database, **settings)
    created = create(server, spec="* * * * * *", policies={"overlap": "allow_all"})

    def has_gone_on(server: Server, before: int) -> bool:
        return how_many(server, created["id"]) > before + 1

    for _ in range(3):
        wait_for(partial(has_gone_on, server, how_many(server, created["id"])))
        server.end(signal.SIGKILL)
        server = start(database, **settings)
    server.ask("POST", f"/schedules/{created['id']}/pause")
    wait_for(lambda: not server.get(f"/schedules/{created['id']}")["info"]["running"])
    found = accounted(server, created["id"])
    first = datetime.fromisoformat(found[0])
    assert found == [(first + timedelta(seconds=n)).strftime("%Y-%m-%dT%H:%M:%SZ") for n in range(len(found))]
    info = server.get(f"/schedules/{created['id']}")["info"]
    assert info["started"] + sum(info["unstarted"].values()) == len(found)
    server.end()


@pytest.mark.contract("SCHD-21")
def test_a_request_that_was_answered_survives_a_kill_right_after(start: StartServer, tmp_path: Path):
    database = f"sqlite:///{tmp_path}/horae.db"
    server = start(database)
    for number in range(3):
        created = create(server, id=f"kept-{number}", spec="0 9 * * *")
        server.end(signal.SIGKILL)
        server = start(database)
        assert server.get(f"/schedules/{created['id']}")["version"] == 1


def test_it_is_ready_when_it_can_work_and_says_what_is_wrong_when_not(
    start: StartServer, fragile_server: Any
):
    server = start(fragile_server.address, HORAE_LEASE_MS="2000", HORAE_HOUSEKEEPING_MS="300")
    assert server.client.get("/healthz").json() == {"status": "ok"}
    ready = server.client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert abs(ready.json()["clock_off_ms"]) < 1000
    fragile_server.stop()
    away = wait_for(lambda: (answer := server.client.get("/readyz")).status_code == 503 and answer)
    assert "does not answer" in away.json()["status"]
    assert server.client.get("/healthz").status_code == 200
    refused = server.ask("GET", "/schedules")
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
    assert refused.headers["Retry-After"]
    fragile_server.start()
    wait_for(lambda: server.client.get("/readyz").status_code == 200)
    created = create(server, trigger=True)
    wait_for(lambda: ended_runs(server, created["id"]))
    assert server.end() == 0


def test_two_services_share_one_database(start: StartServer, postgres: str):
    one, two = start(postgres), start(postgres)
    created = create(one, spec="* * * * * *")
    assert two.get(f"/schedules/{created['id']}")["id"] == created["id"]
    assert len(two.get("/nodes")["items"]) == 2
    two.ask("POST", f"/schedules/{created['id']}/pause", {"note": "by the other"})
    assert one.get(f"/schedules/{created['id']}")["note"] == "by the other"
    run_id = two.ask("POST", f"/schedules/{created['id']}/trigger", {}).json()["run_id"]
    wait_for(lambda: one.get(f"/runs/{run_id}")["ended_at"])
    for server in (one, two):
        assert server.end() == 0


def test_asked_twice_it_waits_for_nothing(start: StartServer, tmp_path: Path):
    server = start()
    created = create(server, action="slow", trigger=True)
    wait_for(lambda: server.get(f"/schedules/{created['id']}")["info"]["running"])
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: "ends when 1 attempt has ended (slow)" in server.log)
    assert server.end(signal.SIGINT) == 0
    assert "Traceback" not in server.log
    again = start()
    wait_for(lambda: again.get(f"/schedules/{created['id']}/runs")["items"][0]["attempt"] == 2)


@pytest.mark.parametrize("action", ["swallow", "thread", "pool"])
def test_it_exits_whatever_actions_do_and_says_what_it_left_behind(start: StartServer, action: str):
    server = start(interpreter=sys.executable, HORAE_DRAIN_MS="100", HORAE_TERMINATE_MS="100")
    created = create(server, action=action, trigger=True)
    wait_for(lambda: server.get(f"/schedules/{created['id']}")["info"]["running"])
    assert server.end() == 3
    assert created["id"] in server.log or action == "pool"
    assert ("left behind" if action != "pool" else "without waiting any longer") in server.log
    assert "Traceback" not in server.log


@pytest.mark.long
def test_it_exits_although_an_action_blocks_its_event_loop(start: StartServer):
    server = start(interpreter=sys.executable, HORAE_DRAIN_MS="100", HORAE_TERMINATE_MS="100")
    with contextlib.suppress(httpx.HTTPError):  # it may block before the answer is sent
        server.client.timeout = 2
        create(server, action="block", trigger=True)
    wait_for(lambda: not answers(server))
    assert server.end() == 3
    assert "without waiting any longer" in server.log


def answers(server: Server) -> bool:
    try:
        return server.client.get("/healthz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


PROGRAM = """
import asyncio, sys
from horae import App, Config

app = App(":memory:", config=Config(drain_ms=100, terminate_ms=100))

@app.action("swallow")
async def swallow(context):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def main():
    async with app:
        await app.schedules.create("s", "0 0 1 1 *", "swallow")
        await app.schedules.trigger("s")
        running = asyncio.create_task(app.serve())
        while not app.worker.tasks:
            await asyncio.sleep(0.01)
        running.cancel()

asyncio.run(main())
print(*app.left_behind)
"""


def test_a_program_with_an_app_exits_although_a_coroutine_does_not_stop():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("s-")
    assert "left behind" in ran.stderr
