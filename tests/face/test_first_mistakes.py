"""The mistakes that people make first, as one table: each is answered with one clear sentence, and a hint where one helps.

The same mistake is made on a database, on a server, and where it applies by a request; the sentence is the same.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest

import horae.errors
from tests.face.cli.command import horae as command
from tests.face.cli.command import horae_process
from tests.support.process import Server

SECRET = "a secret of the tests, longer than it must be"  # noqa: S105
GREET = ("--action", "greet")
ON_ADDRESS = ("--http", "https://example.org")


class Mistake(msgspec.Struct, frozen=True):
    """What was typed, the sentence that answers it, a part of the hint; the same as a request, with its status."""

    typed: tuple[str, ...]
    sentence: str
    hint: str = ""
    request: tuple[str, str, Any] | None = None
    status: int = 422


def create(*options: str) -> tuple[str, ...]:
    return ("schedules", "create", "first", *options, *ON_ADDRESS)


def body(spec: Any, **more: Any) -> tuple[str, str, Any]:
    action = {"kind": "http", "options": {"url": "https://example.org"}}
    return "POST", "/schedules", {"id": "first", "spec": spec, "action": action} | more


def cron(expression: str, reason: str, hint: str = "") -> Mistake:
    sentence = f'Invalid cron expression "{expression}": {reason}'
    return Mistake(create("--cron", expression), sentence, hint, body({"crons": [expression]}))


def zone(name: str, hint: str) -> Mistake:
    spec = {"crons": ["0 9 * * *"], "timezone": name}
    return Mistake(
        create("--cron", "0 9 * * *", "--tz", name), f'Unknown time zone "{name}"', hint, body(spec)
    )


def every(span: str, reason: str, hint: str = "") -> Mistake:
    spec = {"intervals": [{"every": span}]}
    return Mistake(create("--every", span), f"every {reason}", hint, body(spec))


COUNT = "it needs 5 (minute hour day month weekday), or 6 with seconds first"
INTERVAL = 'is it an interval? every="5m" in @app.schedule, --every 5m in commands, {"intervals": [{"every": "5m"}]} in a spec'
ABBREVIATION = "is an abbreviation: it says an offset, and not whose clocks to follow when they change"
OVERLAPS = "skip, buffer_one, buffer_all, cancel_other, terminate_other, allow_all"
MISTAKES = [
    cron("0 9 * *", f"expression field has 4 fields; {COUNT}"),
    cron("0 0 9 * * * *", f"expression field has 7 fields; {COUNT}", "seven fields (seconds first, year last) need the dialect temporal"),
    cron("0 9 * * 8", "weekday field has 8, which is not in the range 0-7", "allowed are 0-7"),
    cron("60 9 * * *", "minute field has 60, which is not in the range 0-59", "allowed are 0-59"),
    cron("0 9 * * mon-fry", 'weekday field has "fry", which is not in the range 0-7', "sun-sat"),
    cron("every 5 minutes", f"expression field has 3 fields; {COUNT}", INTERVAL),
    cron("5m", f"expression field has 1 field; {COUNT}", INTERVAL),
    Mistake(("next", "5m"), f"expression field has 1 field; {COUNT}", INTERVAL),
    Mistake(("schedules", "show", "there"), '"show" is no command', "did you mean describe?"),
    Mistake(("schedules", "rm", "there"), '"rm" is no command', "did you mean delete?"),
    Mistake(("runs", "describe", "x"), '"describe" is no command', "did you mean show?"),
    Mistake(("schedules", "create", "first", "--every", "5m", "--command", "echo hi"), 'There is no action "command:echo hi"', "the operator names commands in the file of HORAE_COMMANDS"),
    zone("Europe/Berlni", "did you mean Europe/Berlin?"),
    zone("CEST", f"CEST {ABBREVIATION}; name the place: Europe/Berlin"),
    zone("IST", "IST is an abbreviation, and means several: name the place, Asia/Kolkata, Europe/Dublin or Asia/Jerusalem"),
    zone("UTC+2", "write +02:00, or Etc/GMT-2, whose sign is the other way round"),
    every("0s", "is shorter than 1s"),
    every("-5m", 'is "-5m", which is not a duration', "such as"),
    every("90", "is 90, a number without a unit", 'write "90s", "90m" or "90ms"'),
    every("99999999h", "must be from 0s to 36600d, which is a hundred years"),
    Mistake(create("--every", "5m", "--timeout", "30"), "policies.timeouts.run is 30, a number without a unit", 'write "30s"', body("@daily", policies={"timeouts": {"run": 30}})),
    Mistake(create("--every", "5m", "--retries", "-1"), "--retries must be at least 0", "see horae schedules create --help"),
    Mistake(create("--every", "5m", "--overlap", "skp"), f'--overlap is "skp", and must be one of {OVERLAPS}', "did you mean skip?"),
    Mistake(("schedules", "create", "first", "--every", "5m", "--action", "gret"), 'There is no action "gret"', "registered are: ", ("POST", "/schedules", {"spec": "@daily", "action": "gret"})),
    Mistake(("schedules", "create", "first", "--every", "5m", "--http", "example.org"), "action.options.url must be an address such as https://example.com/path", "", ("POST", "/schedules", {"spec": "@daily", "action": {"kind": "http", "options": {"url": "example.org"}}})),
    Mistake(("schedules", "create", "first", "--every", "5m", *ON_ADDRESS, "--input", "{rows: 1}"), "--input is no JSON: JSON is malformed: ", "such as '{\"rows\": 10}'"),
    Mistake(("schedules", "create", "first", "--cron", "0 9 * * *"), "the action is missing", "--action NAME"),
    Mistake(("schedules", "create", "first", *GREET), "the times are missing", "--cron"),
    Mistake(("schedules", "create", "first", "--file", "nowhere.yaml"), "--file cannot be read: nowhere.yaml: No such file or directory"),
    Mistake(("schedules", "describe", "frist"), 'There is no schedule "frist"', "horae schedules list", ("GET", "/schedules/frist", None), 404),
    Mistake(("schedules", "times", "there", "--from", "2026-03-02T00:00:00Z", "--to", "2026-03-01T00:00:00Z"), "end is before start", "", ("GET", "/schedules/there/times?start=2026-03-02T00:00:00Z&end=2026-03-01T00:00:00Z", None)),
    Mistake(("schedules", "pause", "there", "--until", "2020-01-01T00:00:00Z"), "until must be in the future, and is 2020-01-01T00:00:00", "", ("POST", "/schedules/there/pause", {"until": "2020-01-01T00:00:00Z"})),
    Mistake(("schedules", "create", "there", "--every", "5m", *ON_ADDRESS), 'There is a schedule "there" already', "choose another id", ("POST", "/schedules", {"id": "there", "spec": "@daily", "action": {"kind": "http", "options": {"url": "https://example.org"}}}), 409),
    Mistake(("schedules", "create", "first", "--spec", "end.json", *ON_ADDRESS), "end_at is before start_at", "", body({"crons": ["@daily"], "start_at": "2027-01-01", "end_at": "2026-01-01"})),
    Mistake(("once", "http", "--at", "2020-01-01"), "--at is in the past: 2020-01-01", "give a future time"),
    Mistake(("schedulse", "list"), '"schedulse" is no command', "did you mean schedules?"),
    Mistake(("schedules", "list", "--stat", "paused"), "the command has no option --stat", "did you mean --state?"),
    Mistake(("next", "0 9 * * *", "--from", "2026-13-01"), '--from is "2026-13-01", which is no time', "2026-03-08T07:30:00Z"),
    Mistake(("apply", "-f", "wrong.yaml"), 'wrong.yaml: schedule "x": spec is missing'),
]  # fmt: skip
GREETING = {"spec": "@daily", "action": "greet"}
MISPLACED = [
    ({"input": {"n": 1}}, "input belongs in the action", '"action": {"name": "greet", "input": {…}}'),
    ({"input": {"n": 1}, "action": {"name": "greet"}}, "input belongs in the action", '"action": {"name": "greet", "input": {…}}'),
    ({"timezone": "Europe/Berlin"}, "timezone belongs in the spec", '"spec": {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}'),
    ({"cron": "0 9 * * *"}, "cron belongs in the spec", '"spec": "0 9 * * *"'),
    ({"enabled": False}, "enabled is only for schedules of graphs", "paused"),
    ({"concurrency_policy": "Forbid"}, "concurrency_policy is only for schedules of graphs", "policies"),
]  # fmt: skip
"""Fields of a schedule of a graph, given to one of an action: the sentence, and a part of the hint."""
HERE_ONLY = {"next"}
"""The commands that ask neither a database nor a server."""
CLASSES = [name for name in vars(horae.errors) if name.endswith("Error")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("mistakes")
    (folder / "end.json").write_text(
        '{"crons": ["@daily"], "start_at": "2027-01-01", "end_at": "2026-01-01"}'
    )
    (folder / "wrong.yaml").write_text("id: x\naction: greet\n")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    server = Server(f"sqlite:///{folder}/horae.db", app="tests.face.cli.actions", HORAE_DRAIN_MS="0")
    assert server.ask("POST", "/schedules", {"id": "there", "spec": "@daily", "action": "greet"}).is_success
    yield server
    server.end()


def check(said: str, sentence: str, hint: str) -> None:
    """One sentence, a hint, and nothing of the inside of Horae."""
    lines = said.splitlines()
    assert lines[0].startswith("error: ")
    assert sentence in lines[0]
    if hint:
        assert lines[-1].startswith("hint: ")
        assert hint in lines[-1]
    for word in ("Traceback", 'File "', "object at 0x", *CLASSES):
        assert word not in said


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: " ".join(each.typed)[:60])
def test_a_first_mistake(mistake: Mistake, server: Server, folder: Path):
    targets = [["--database", f"sqlite:///{folder}/horae.db"], ["--url", server.url]]
    for target in [[]] if mistake.typed[0] in HERE_ONLY else targets:
        ran = command(*mistake.typed, *target, folder=folder)
        assert (ran.returncode, ran.stdout) == (2, "")
        check(ran.stderr, mistake.sentence, mistake.hint)
    if mistake.request is not None:
        method, path, content = mistake.request
        answer = server.ask(method, path, content)
        problem = answer.json()
        assert answer.status_code == mistake.status, problem
        assert mistake.sentence in problem["detail"]
        if "horae " not in mistake.hint:  # a hint for the terminal
            assert mistake.hint in problem.get("hint", "")
        assert not [word for word in CLASSES if word in answer.text]
    assert [each["id"] for each in server.get("/schedules")["items"]] == ["there"]


@pytest.mark.parametrize(("fields", "sentence", "hint"), MISPLACED)
def test_a_field_in_the_wrong_place(server: Server, fields: dict[str, Any], sentence: str, hint: str):
    for method, path, content in (
        ("POST", "/schedules", {"id": "first", **GREETING, **fields}),
        ("PATCH", "/schedules/there", fields),
    ):
        answer = server.ask(method, path, content)
        problem = answer.json()
        assert answer.status_code in {400, 422}
        assert sentence in problem["detail"]
        assert hint in problem["hint"]
    assert [each["id"] for each in server.get("/schedules")["items"]] == ["there"]


def refused(folder: Path, sentence: str, hint: str, *typed: str, **environment: str) -> None:
    if "another program" in sentence:  # a service ends its process
        ran = horae_process(*typed, folder=folder, forks=True, **environment)
    else:
        ran = command(*typed, folder=folder, **environment)
    assert (ran.returncode, ran.stdout) == (2, "")
    check(ran.stderr, sentence, hint)


def test_there_is_nothing_to_work_on(tmp_path: Path):
    """No database, a folder, another database, no PostgreSQL, no server, an address that is none."""
    for sentence, hint, *target in (
        ("There is no Horae database at horae.db", "is this the folder of your program? If not, go there, or name its database with --database. horae migrate sets up a new one"),
        ("is a folder, and a database is a file", "look at --database", "--database", f"sqlite:///{tmp_path}"),
        ('Cannot read the database address "mysql://x/y"', "postgresql://", "--database", "mysql://x/y"),
        ("The database cannot be reached: nothing answers at 127.0.0.1:1", "horae check", "--database", "postgresql://127.0.0.1:1/x"),
        ("The server http://127.0.0.1:1 cannot be reached", "start it with horae serve", "--url", "http://127.0.0.1:1"),
        ('--url is "localhost:8420", which is no address', "http://127.0.0.1:8420", "--url", "localhost:8420"),
    ):  # fmt: skip
        refused(tmp_path, sentence, hint, "schedules", "list", *target)
    sentence = 'HORAE_URL is "localhost", which is no address'
    refused(tmp_path, sentence, "", "schedules", "list", HORAE_URL="localhost")
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_and_one_that_is_none(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = f"Cannot listen on 127.0.0.1:{port}: another program"
        refused(tmp_path, sentence, "--port or HORAE_PORT", "serve", "--port", port)
        refused(tmp_path, sentence, "--port or HORAE_PORT", "serve", HORAE_PORT=port)
    refused(tmp_path, "--port must be at most 65535", "", "serve", "--port", "99999")
    refused(tmp_path, "The setting HORAE_PORT must be at most 65535", "", "serve", HORAE_PORT="99999")
    refused(tmp_path, "--port must be a whole number", "", "serve", "--port", "http")


def test_tokens_that_are_expired_or_forged(tmp_path: Path):
    server = Server(f"sqlite:///{tmp_path}/horae.db", app="tests.face.cli.actions", HORAE_JWT_SECRET=SECRET)
    try:
        claims: dict[str, Any] = {"sub": "ada", "aud": "horae", "exp": int(time.time()) - 60}  # noqa: TID251 - a token is of the real time
        tokens = {
            "expired": jwt.encode(claims, SECRET, algorithm="HS256"),
            "signature": jwt.encode(claims | {"exp": claims["exp"] + 999}, SECRET[::-1], algorithm="HS256"),
            "token": "",
        }  # fmt: skip
        for word, token in tokens.items():
            ran = command("schedules", "list", "--url", server.url, *(["--token", token] if token else []))
            assert ran.returncode == 2
            assert re.search(word, ran.stderr.splitlines()[0], re.IGNORECASE)
            check(ran.stderr, "", "give a token with --token, or set HORAE_TOKEN")
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            problem = server.ask("GET", "/schedules", headers=headers)
            assert problem.status_code == 401
            assert problem.json()["detail"] in ran.stderr
    finally:
        server.end()
