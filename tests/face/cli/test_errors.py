"""What goes wrong, as a sentence with a suggestion: on standard error, with the exit status 2, and never as a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jwt
import pytest

from horae.face.cli.command_base import until_ended
from tests.face.cli.command import PLAIN, answered, horae, horae_process, refused
from tests.support.nodes import fetch
from tests.support.process import Server
from tests.support.wait import wait_for

SECRET = "a secret of the tests, longer than it must be"  # noqa: S105


def test_no_server():
    ran = horae("schedules", "list", "--url", "http://127.0.0.1:1")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [
        "error: The server http://127.0.0.1:1 cannot be reached: All connection attempts failed",
        "hint: start it with horae serve, look at --url, or work on a database with --database",
    ]


@pytest.mark.parametrize(
    "url", ["localhost:8420", "ftp://x", "http://", "http://[::1", "http://a b/", "http://x:99999"]
)
def test_an_address_that_is_none(url: str):
    problem = refused("nodes", "--url", url)
    assert problem["hint"]


def test_an_id_that_is_empty(tmp_path: Path):
    target = ("--database", f"sqlite:///{tmp_path / 'horae.db'}")
    horae("migrate", *target)
    for words in ("schedules describe", "schedules pause", "runs show", "calendars show"):
        assert refused(*words.split(), "", *target)["message"] == "id is empty", words


@pytest.fixture
def other_server() -> Iterator[str]:
    """A server that speaks HTTP, and is not Horae."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if "schedules" in self.path else 200)
            self.end_headers()
            self.wfile.write(b"<h1>Welcome</h1>")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_what_answers_is_no_horae(other_server: str):
    for command in (["nodes"], ["schedules", "list"]):
        problem = refused(*command, "--url", other_server)
        assert "is not Horae" in problem["message"]


def test_what_said_where_to_work_is_blamed(tmp_path: Path):
    assert refused("nodes", "--url", "x")["message"] == '--url is "x", which is no address'
    assert refused("nodes", HORAE_URL="x")["message"] == 'HORAE_URL is "x", which is no address'
    here: dict[str, str] = {"HORAE_URL": "http://127.0.0.1:1"}
    assert "look at HORAE_URL, or" in refused("nodes", **here)["hint"]
    here["HORAE_TOKEN"] = "\u00f6"  # noqa: S105 - none
    assert refused("nodes", **here)["message"].startswith("HORAE_TOKEN has characters")
    folder = f"sqlite:///{tmp_path}"
    problem = refused("nodes", "--database", folder)
    assert problem["message"] == (
        f"The database cannot be reached: {tmp_path}: is a folder, and a database is a file"
    )
    assert problem["hint"] == "look at --database; horae check says more"
    assert refused("nodes", HORAE_DATABASE_URL=folder)["hint"].startswith("look at HORAE_DATABASE_URL;")
    (tmp_path / "horae.db").mkdir()
    assert refused("nodes", folder=tmp_path)["hint"].startswith("look at the file horae.db of this folder")
    problem = refused("nodes", "--database", "postgresql://127.0.0.1:1/x")
    assert problem["message"] == "The database cannot be reached: nothing answers at 127.0.0.1:1"


COMMANDS = (
    ["schedules", "list"],
    ["nodes"],
    ["schedules", "create", "x", "--cron", "@daily", "--action", "a"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_that_is_not_there_is_not_made(command: list[str], tmp_path: Path):
    problem = refused(*command, folder=tmp_path)
    assert problem["message"] == "There is no Horae database at horae.db"
    assert "horae migrate" in problem["hint"]
    assert "horae serve" in problem["hint"]
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_something_else_is_not_touched(tmp_path: Path, empty_postgres: str):
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE schedule (id TEXT)")
    before = file.read_bytes()
    problem = refused("schedules", "list", "--database", f"sqlite:///{file}")
    assert "There is no Horae database at" in problem["message"]
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (before, [file])
    problem = refused("schedules", "list", "--database", empty_postgres)
    assert problem["message"].endswith(", schema horae")
    assert "horae migrate" in problem["hint"]
    found = asyncio.run(fetch(empty_postgres, "SELECT nspname FROM pg_namespace WHERE nspname = 'horae'"))
    assert found == []


def test_a_server_that_has_no_such_database_or_role_is_told_as_such(postgres: str):
    for there, instead in ((r"/t\w+", "/none"), ("//postgres:", "//stranger:")):
        problem = refused("schedules", "list", "--database", re.sub(there, instead, postgres))
        assert "does not exist" in problem["message"]


@pytest.mark.contract("SCHD-09")
def test_a_bad_expression_is_pointed_at(target: list[str]):
    ran = horae("schedules", "create", "x", "--cron", "0 9 * * fri-sun", "--action", "greet", *target)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[1:] == [
        "  0 9 * * fri-sun",
        "          ^^^^^^^",
        "hint: Sunday at the end of a range is 7: 5-7",
    ]


@pytest.mark.parametrize(
    ("arguments", "words", "hint"),
    [
        (["schedules", "create", "x", "--every", "1h"], "the action is missing", "--http URL"),
        (["schedules", "create", "x", "--action", "greet"], "the times are missing", "--cron"),
        (["schedules", "create", "x", "--every", "1h", "--action", "none"], 'no action "none"', "greet"),
        (["schedules", "create", "x", "--every", "soon", "--action", "greet"], "--every is", "1h30m"),
        (["schedules", "create", "x", "--every", "90", "--action", "greet"], "is 90, a number without a unit", 'write "90s"'),
        (["schedules", "create", "x", "--every", "1h/15", "--action", "greet"], "phase", 'write "15s"'),
        (["schedules", "create", "x", "--every", "1h", "--jitter", "10", "--action", "greet"], "jitter", 'write "10s"'),
        (["forecast", "--jitter", "10"], "jitter is 10, a number without a unit", 'write "10s"'),
        (["schedules", "create", "x", "--every", "1h", "--tz", "Europe/Berlln", "--action", "greet"], "Europe/Berlln", "Europe/Berlin"),
        (["schedules", "create", "x", "--every", "1h", "--action", "greet", "--input", "{"], "--input is no JSON", "@file.json"),
        (["schedules", "create", "x", "--every", "1h", "--action", "greet", "--input", "@/none"], "--input", ""),
        (["schedules", "create", "x", "--every", "1h", "--action", "a", "--http", "http://x"], "exclude each other", "give one"),
        (["schedules", "create", "x", "--every", "1h", "--method", "GET", "--action", "a"], "need --http", "--http URL"),
        (["schedules", "create", "x", "--every", "1h", "--http", "http://x", "--header", "nothing"], "--header", "X-Team"),
        (["schedules", "create", "x", "--every", "1h", "--input", "1"], "needs an action", "--action"),
        (["schedules", "create", "x", "--spec", "/none", "--action", "greet"], "--spec", ""),
        (["schedules", "create", "x", "--spec", "-", "--cron", "* * * * *", "--action", "greet"], "--spec excludes", ""),
        (["schedules", "create", "x" * 600, "--every", "1h", "--action", "greet"], "id", ""),
        (["schedules", "create", "", "--every", "1h", "--action", "greet"], "id", ""),
        (["schedules", "describe", "none"], 'no schedule "none"', "horae schedules list"),
        (["schedules", "update", "none", "--overlap", "skip"], 'no schedule "none"', ""),
        (["schedules", "times", "none"], 'no schedule "none"', ""),
        (["schedules", "times", "none", "--from", "2026-03-08"], 'no schedule "none"', ""),
        (["schedules", "times", "none", "--from", "soon"], '--from is "soon", which is no time', "tomorrow 9:00"),
        (["schedules", "pause", "none", "--until", "in 2"], '--until is "in 2", which is no time', "in 2h"),
        (["schedules", "create", "x", "--at", "9 o'clock", "--action", "greet"], "--at", "tomorrow 9:00"),
        (["schedules", "delete", "none"], "needs a confirmation", "--yes"),
        (["schedules", "delete", "none", "--yes"], 'no schedule "none"', ""),
        (["schedules", "preview"], "the times are missing", "--cron"),
        (["schedules", "list", "--search", "nocolon"], "search", "customer:42"),
        (["runs", "list", "none"], 'no schedule "none"', ""),
        (["runs", "show", "none"], 'no run "none"', ""),
        (["runs", "cancel", "none"], 'no run "none"', ""),
        (["explain", "none", "2026-03-08T09:00"], 'no schedule "none"', ""),
        (["calendars", "show", "none"], 'no calendar "none"', "horae calendars list"),
        (["calendars", "put", "x"], "needs a FILE or --date", ""),
        (["calendars", "put", "x", "--date", "soon"], "soon", ""),
        (["forecast", "--jitter", "soon"], "jitter", ""),
    ],
)  # fmt: skip
def test_bad_input_is_answered_with_what_would_be_right(
    server: Server, arguments: list[str], words: str, hint: str
):
    problem = refused(*arguments, "--url", server.url)
    assert words in problem["message"]
    assert hint in (problem["hint"] or "")


def test_a_number_without_a_unit_in_a_file(target: list[str], tmp_path: Path):
    file = tmp_path / "x.json"
    file.write_text('{"spec": "0 9 * * *", "action": "greet", "policies": {"timeouts": {"run": 30000}}}')
    problem = refused("schedules", "create", "x", "--file", str(file), *target)
    assert problem["message"] == "policies.timeouts.run is 30000, a number without a unit"
    assert problem["hint"] == 'write "30000s", "30000m" or "30000ms"'


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["schedules", "list", "--state", "runing"], '--state is "runing", and must be one of running, paused, completed', "did you mean running?"),
        (["schedules", "skip", "x", "-1"], "the command has no option -1", "see horae schedules skip --help"),
        (["forecast", "--minutes", "0"], "--minutes must be at least 1", "see horae forecast --help"),
        (["next", "@daily", "-n", "many"], "-n must be a whole number", "see horae next --help"),
        (["serve", "--port", "99999"], "--port must be at most 65535", "see horae serve --help"),
        (["schedulse"], '"schedulse" is no command', "did you mean schedules?"),
        (["frobnicate"], '"frobnicate" is no command', "see horae --help"),
        (["nodes", "--owner", "x"], "the command has no option --owner", "see horae nodes --help"),
        (["nodes", "--ulr", "x"], "the command has no option --ulr", "did you mean --url?"),
        (["schedules", "create", "x", "--paused=yes"], "--paused takes no value", "see horae"),
        (["schedules", "create", "x", "0", "9", "*"], '"0 9 *" is more than the command takes', "quote arguments that contain spaces"),
        (["schedules", "backfill", "x", "--from"], "--from needs a value", "see horae"),
        (["schedules", "backfill", "x", "--from", "now"], "--to is missing", "see horae schedules backfill --help"),
        (["explain", "x"], "TIME is missing", "see horae explain --help"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(arguments: list[str], message: str, hint: str):
    ran, for_programs = horae(*arguments), horae("--json", *arguments)
    assert (ran.returncode, ran.stdout) == (for_programs.returncode, for_programs.stdout) == (2, "")
    problem = json.loads(for_programs.stderr)
    assert problem["message"] == message
    assert problem["hint"].startswith(hint)
    assert ran.stderr.splitlines() == [f"error: {message}", f"hint: {problem['hint']}"]


def test_a_process_says_what_it_says_in_the_process_of_a_test(target: list[str]):
    for arguments, stdin in (
        (["next", "--spec", "-", "--from", "2026-01-01T00:00:00Z"], '{"crons": ["0 9 * * *"]}'),
        (["schedules", "create", "x", "--spec", "-", *target, "--action", "ü", "--json"], "{"),
        (["nodes", *target], ""),
        (["schedulse", "--json"], ""),
    ):
        here, there = horae(*arguments, stdin=stdin), horae_process(*arguments, stdin=stdin, forks=True)
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_an_interruption_is_no_traceback(server: Server):
    answered("schedules", "create", "long", "--every", "1m", "--action", "wait", "--url", server.url)
    # The first of them never ends, and no more than some wait behind it: the backfill stays open.
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-03T00:00:00Z", "--overlap", "buffer_all"]
    process = subprocess.Popen(
        [sys.executable, "-m", "horae", "schedules", "backfill", "long", *span, "--wait", "--url", server.url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PLAIN,
    )  # fmt: skip
    wait_for(lambda: answered("schedules", "backfills", "long", "--url", server.url) != [])
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, shown, errors) == (130, "", "")


def test_waiting_for_a_run_says_that_no_node_is_alive(tmp_path: Path):
    target = ["--database", f"sqlite:///{tmp_path}/still.db"]
    assert horae("migrate", *target).returncode == 0
    answered("schedules", "create", "report", "--every", "1h", "--http", "https://example.org/", *target)
    process = subprocess.Popen(
        [sys.executable, "-m", "horae", "schedules", "trigger", "report", "--wait", *target],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PLAIN,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline().startswith("No node is alive, so the run waits.")
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, shown, errors) == (130, "", "")


async def test_an_interruption_ends_work_that_misses_one():
    async def misses_one() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    running = asyncio.create_task(until_ended(misses_one()))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)


def test_a_reader_who_leaves_is_no_error(server: Server):
    process = subprocess.Popen(
        [sys.executable, "-m", "horae", "nodes", "--json", "--url", server.url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PLAIN,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that requires authentication."""
    database = f"sqlite:///{tmp_path_factory.mktemp('guarded') / 'horae.db'}"
    server = Server(database, app="tests.face.cli.actions", HORAE_DRAIN_MS="0", HORAE_JWT_SECRET=SECRET)
    yield server
    server.end()


def token(user: str, **claims: object) -> str:
    now = int(time.time())  # noqa: TID251 - a token is of the real time
    return jwt.encode({"sub": user, "aud": "horae", "exp": now + 600, **claims}, SECRET, algorithm="HS256")


@pytest.mark.contract("CRON-18")
def test_tokens_are_made_for_the_secret_of_the_settings(guarded: Server):
    settings: dict[str, Any] = {"HORAE_JWT_SECRET": SECRET, "HORAE_URL": guarded.url}
    made = horae("token", "create", "ada", "--expires", "in 10m", COLUMNS="20", **settings).stdout
    assert made.count("\n") == 1
    assert (
        answered(
            "schedules", "create", "hers", "--every", "1h", "--action", "greet", "--token", made, **settings
        )["owner"]
        == "ada"
    )
    admin = answered("token", "create", "ops", "--scope", "admin", "--scope", "service", **settings)
    assert admin["scopes"] == ["admin", "service"]
    found = answered("schedules", "list", "--owner", "ada", "--token", admin["token"], **settings)
    assert [each["id"] for each in found] == ["hers"]
    answered("schedules", "delete", "hers", "--yes", "--token", made, **settings)
    for arguments, environment, words in [
        (["ada"], {}, "HORAE_JWT_SECRET is not set"),
        (["ada"], {"HORAE_JWT_SECRET": "short"}, "32 characters"),
        (["ada", "--expires", "-1h"], settings, "has expired"),
        (["a\nb"], settings, "would be refused"),
    ]:
        assert words in refused("token", "create", *arguments, **environment)["message"]


@pytest.mark.contract("CRON-18")
def test_tokens(guarded: Server):
    target = ["--url", guarded.url]
    problem = refused("schedules", "list", *target)
    assert problem["details"]["code"] == "authentication"
    assert problem["hint"] == "give a token with --token, or set HORAE_TOKEN"
    assert refused("schedules", "list", *target, "--token", "wrong")["details"]["code"] == "authentication"
    assert refused("schedules", "list", *target, "--token", "wr\u00f6ng\n")["hint"]
    answered(
        "schedules",
        "create",
        "mine",
        "--every",
        "1h",
        "--action",
        "greet",
        *target,
        "--token",
        token("alice"),
    )
    assert len(answered("schedules", "list", *target, HORAE_TOKEN=token("alice"))) == 1
    assert answered("--token", token("bob"), "schedules", "list", *target) == []
    settings = {"HORAE_JWT_SECRET": SECRET}
    reader = answered("token", "create", "alice", "--scope", "read", **settings)["token"]
    assert len(answered("schedules", "list", *target, "--token", reader)) == 1
    denied = refused("schedules", "pause", "mine", *target, "--token", reader)
    assert denied["details"]["code"] == "permission_denied"
    assert "change nothing" in denied["message"]
    assert (
        refused("schedules", "describe", "mine", *target, "--token", token("bob"))["details"]["code"]
        == "schedule_not_found"
    )
    assert (
        refused("schedules", "list", "--owner", "alice", *target, "--token", token("bob"))["details"]["code"]
        == "permission_denied"
    )
