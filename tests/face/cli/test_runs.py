"""``horae runs`` across schedules: what became of slots and triggers, followed and repeated."""

from __future__ import annotations

import json
import subprocess
import uuid
from typing import Any

import pytest

from tests.face.cli.command import PLAIN, answered, horae, refused
from tests.support.process import fork_server
from tests.support.wait import wait_for

BOTH = pytest.mark.parametrize("target", ["url", "database"], indirect=True)


@pytest.fixture
def tag() -> str:
    """A tag, and a beginning of ids, that no other test has."""
    return f"t{uuid.uuid4().hex[:8]}"


def create(target: list[str], name: str, action: str, tag: str) -> None:
    options = ["--every", "10h", "--paused", "--tag", tag, "--tz", "Europe/Berlin"]
    answered("schedules", "create", name, "--action", action, *options, *target)


def triggered(target: list[str], name: str, *more: str) -> Any:
    """The run of a trigger once it has ended."""
    ran = horae("schedules", "trigger", name, "--wait", "--json", *more, *target)
    run = json.loads(ran.stdout)
    assert ran.returncode == (0 if run["status"] == "succeeded" else 1)
    return run


@BOTH
def test_runs_of_all_schedules_are_listed_with_the_slots_that_did_not_run(target: list[str], tag: str):
    good, bad, busy = f"{tag}/good", f"{tag}/bad", f"{tag}/busy"
    for name, action in ((good, "greet"), (bad, "fail"), (busy, "wait")):
        create(target, name, action, tag)
    done, failed = triggered(target, good), triggered(target, bad)
    assert (done["status"], failed["status"]) == ("succeeded", "failed")
    running = answered("schedules", "trigger", busy, *target)["run_id"]
    wait_for(lambda: answered("runs", "show", running, *target)["status"] == "running")
    skipped = triggered(target, busy, "--overlap", "skip")
    assert skipped["reason"] == "overlap"
    everything = answered("runs", "list", "--tag", tag, *target)
    assert [each["schedule_id"] for each in everything] == [busy, busy, bad, good]
    for options, expected in [
        (["--status", "failed", "--status", "succeeded"], [bad, good]),
        (["--reason", "overlap"], [busy]),
        (["--since", "tomorrow"], []),
        (["--since", "-1h", "--until", "in 1h", "-n", "1"], [busy]),
        (["--until", "yesterday 9:00", "--tz", "Asia/Tokyo"], []),
    ]:
        found = answered("runs", "list", "--tag", tag, *options, *target)
        assert [each["schedule_id"] for each in found] == expected
    assert [each["id"] for each in answered("runs", "list", good, *target)] == [done["id"]]
    shown = horae("runs", "list", "--tag", tag, "-n", "3", "--tz", "Europe/Berlin", *target).stdout
    assert shown.splitlines()[0].split()[:4] == ["schedule", "slot", "(Europe/Berlin)", "UTC"]
    assert "another run of the schedule was still running" in shown
    assert "These are the latest 3; --limit shows more." in shown
    assert horae("runs", "list", "--tag", f"{tag}-none", *target).stdout == "No runs.\n"
    answered("runs", "terminate", running, *target)


def test_a_run_is_repeated_and_waited_for(target: list[str], tag: str):
    create(target, tag, "greet", tag)
    first = triggered(target, tag, "--input", '"you"')
    ran = horae("runs", "rerun", first["id"], "--wait", "--json", "--note", "again", *target)
    again = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert (again["rerun_of"], again["result"], again["note"]) == (first["id"], {"hello": "you"}, "again")
    other = answered("runs", "rerun", again["id"], "--input", '"me"', *target)
    assert other["rerun_of"] == again["id"]
    assert f"repeats    {first['id']}" in horae("runs", "show", again["id"], *target).stdout
    assert refused("runs", "rerun", "none", *target)["details"]["code"] == "run_not_found"


@BOTH
def test_runs_are_followed_live(target: list[str], tag: str):
    create(target, tag, "fail", tag)
    since = ["--since", "-1h", "--tag", tag]
    run = triggered(target, tag)
    followed = horae("runs", "tail", *since, "--status", "failed", "-n", "1", *target).stdout
    assert run["id"] in followed
    assert "the [red]source[/red] is empty" in followed
    process = subprocess.Popen(
        [fork_server().python, "-m", "horae", "runs", "tail", tag, "-n", "2", "--json", *target],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PLAIN,
    )  # fmt: skip
    wait_for(lambda: triggered(target, tag) and process.poll() is not None)
    shown, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    lines = [json.loads(line) for line in shown.splitlines()]
    assert len(lines) == 2
    assert {each["schedule_id"] for each in lines} == {tag}
    assert all(each["id"] != run["id"] for each in lines)


def create_talking(target: list[str], name: str) -> None:
    """A schedule that only a trigger starts, and whose runs fail once."""
    create = ["schedules", "create", name, "--action", "talk", "--paused", "--every", "10h", "--retries", "1"]
    answered(*create, *target)


@BOTH
def test_what_a_run_logged_is_shown_by_attempt(target: list[str], tag: str):
    create_talking(target, tag)
    run_id = triggered(target, tag, "--input", "2")["id"]
    lines = answered("runs", "logs", run_id, *target)
    assert [(line["attempt"], line["number"], line["level"], line["logger"], line["message"]) for line in lines] == [
        each
        for attempt in (1, 2)
        for each in [
            (attempt, 1, "INFO", "talk", "counting to 2"),
            (attempt, 2, "WARNING", "jobs", "1 [bold]and\nmore[/bold]"),
            (attempt, 3, "WARNING", "jobs", "2 [bold]and\nmore[/bold]"),
        ]
    ]  # fmt: skip
    assert answered("runs", "logs", run_id, "--attempt", "2", *target) == lines[3:]
    shown = horae("runs", "logs", run_id, *target).stdout.splitlines()
    assert [shown[0], shown[6]] == ["attempt 1", "attempt 2"]
    assert shown[1].endswith("Z  INFO     talk  counting to 2") or shown[1].endswith(
        "  INFO     talk  counting to 2"
    )
    assert shown[2].endswith("  WARNING  jobs  1 [bold]and")
    assert shown[3] == "  more[/bold]"
    assert refused("runs", "logs", "none", *target)["details"]["code"] == "run_not_found"


def test_a_log_is_followed_until_the_run_has_ended(target: list[str], tag: str):
    create_talking(target, tag)
    run_id = answered("schedules", "trigger", tag, "--input", "300", *target)["run_id"]
    ran = horae("runs", "logs", run_id, "--follow", "--json", *target)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(line["attempt"], line["number"]) for line in lines] == [
        (attempt, number) for attempt in (1, 2) for number in range(1, 302)
    ]
    quiet = triggered(target, tag, "--input", '"no number"')["id"]
    assert horae("runs", "logs", quiet, "--attempt", "3", "--follow", *target).stderr.startswith("No lines")
