"""``horae schedules``, ``runs``, ``explain``, ``forecast``, ``calendars`` and ``nodes``: on a server, and on its database."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.face.cli.command import answered, horae, refused
from tests.support.process import Server
from tests.support.wait import wait_for

BOTH = pytest.mark.parametrize("target", ["url", "database"], indirect=True)


@pytest.fixture
def name() -> str:
    """An id that no other test has, with characters that are no part of a path."""
    return f"t/{uuid.uuid4().hex[:8]} ä?"


def create(target: list[str], name: str, *more: str, **given: Any) -> Any:
    options = [] if {"--action", "--file", "--http"} & set(more) else ["--action", "greet"]
    return answered("schedules", "create", name, *options, *more, *target, **given)


def ended(target: list[str], run_id: str) -> Any:
    found: list[Any] = []

    def has_ended() -> bool:
        found[:] = [answered("runs", "show", run_id, *target)]
        return found[0]["ended_at"] is not None

    wait_for(has_ended)
    return found[0]


@BOTH
@pytest.mark.contract("SCHD-21", "SCHD-24")
def test_a_schedule_is_created_described_listed_and_deleted(target: list[str], name: str):
    made = create(
        target, name, "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--input", '{"rows": 10}', "--tag", "red", "--tag", name,
        "--overlap", "buffer_one", "--catch-up", "latest", "--jitter", "30s", "--note", "why not", "--retries", "3",
        "--timeout", "10m", "--gap", "shift", "--fold", "last",
    )  # fmt: skip
    assert made["id"] == name
    assert made["version"] == 1
    assert made["timezone"] == "Europe/Berlin"
    assert made["action"]["input"] == {"rows": 10}
    assert made["policies"]["overlap"] == "buffer_one"
    assert made["policies"]["catch_up"]["mode"] == "latest"
    assert made["policies"]["retry"]["attempts"] == 4
    assert made["policies"]["timeouts"]["run"] == "10m"
    assert (made["spec"]["jitter"], made["spec"]["gap"], made["spec"]["fold"]) == ("30s", "shift", "last")
    described = answered("schedules", "describe", name, *target)
    assert len(described["info"]["next_times"]) == 10
    assert described["info"]["started"] == 0
    assert [each["id"] for each in answered("schedules", "list", "--tag", name, *target)] == [name]
    assert answered("schedules", "list", "--tag", name, "--state", "paused", *target) == []
    problem = refused("schedules", "create", name, "--every", "1h", "--action", "greet", *target)
    assert problem["error"] == "ServerError"
    assert problem["details"]["code"] == "schedule_exists"
    assert answered("schedules", "delete", name, "--yes", *target) == {"deleted": name}
    problem = refused("schedules", "describe", name, *target)
    assert problem["details"]["code"] == "schedule_not_found"
    assert problem["hint"].endswith("horae schedules list shows what exists")


@BOTH
@pytest.mark.parametrize("dots", [".", "..", "a/../b"])
def test_an_id_of_dots_is_no_way_to_other_pages(target: list[str], dots: str):
    create(target, dots, "--every", "1h")
    assert answered("schedules", "describe", dots, *target)["id"] == dots
    assert answered("schedules", "delete", dots, "--yes", *target) == {"deleted": dots}


def test_people_read_a_panel_with_local_times_and_utc(target: list[str], name: str):
    create(target, name, "--cron", "0 9 * * *", "--tz", "Asia/Kolkata", "--description", "for the board")
    ran = horae("schedules", "describe", name, *target)
    assert ran.returncode == 0
    assert "for the board" in ran.stdout
    changed = answered("schedules", "update", name, "--description", "for the team", *target)
    assert changed["description"] == "for the team"
    assert "At 09:00 every day, Asia/Kolkata time." in ran.stdout
    assert "next times (Asia/Kolkata)" in ran.stdout
    assert "09:00:00 +05:30" in ran.stdout
    assert "03:30:00Z" in ran.stdout
    assert "\x1b" not in ran.stdout
    listed = horae("schedules", "list", "--prefix", name, *target).stdout
    assert listed.splitlines()[0].split() == ["id", "when", "state", "next", "time", "UTC", "action"]
    assert "09:00:00 +05:30  2" in listed
    coloured = horae("schedules", "describe", name, *target, FORCE_COLOR="1", NO_COLOR="")
    assert "\x1b[" in coloured.stdout
    assert horae("schedules", "delete", name, *target).returncode == 2  # there is no terminal to ask on


def test_lists_are_followed_over_pages_and_cut_where_asked(target: list[str], name: str):
    for number in range(3):
        create(target, f"{name}-{number}", "--every", "1h", "--paused")
    listed = answered("schedules", "list", "--prefix", name, *target)
    assert [each["state"] for each in listed] == ["paused"] * 3
    assert len(answered("schedules", "list", "--prefix", name, "-n", "2", *target)) == 2
    ran = horae("schedules", "list", "--prefix", name, "-n", "2", *target)
    assert "These are the first 2; --limit shows more." in ran.stdout
    assert "--limit shows more" not in horae("schedules", "list", "--prefix", name, "-n", "3", *target).stdout
    for number in range(2):
        answered("calendars", "put", f"{name}-{number}", "--date", "2026-12-25", *target)
    assert (
        "These are the first 1; --limit shows more." in horae("calendars", "list", "-n", "1", *target).stdout
    )


def test_more_than_a_page(server: Server, name: str):
    for half in range(2):
        bodies = [
            {"id": f"{name}-{half}-{number:03}", "spec": "0 9 * * *", "action": "greet"}
            for number in range(600)
        ]
        httpx.post(
            f"{server.url}/api/v1/bulk/schedules", json={"schedules": bodies}, timeout=60
        ).raise_for_status()
    target = ["--prefix", name, "--url", server.url]
    listed = [each["id"] for each in answered("schedules", "list", "-n", "5000", *target)]
    assert listed == [f"{name}-{half}-{number:03}" for half in range(2) for number in range(600)]
    assert len(answered("schedules", "list", "-n", "1000", *target)) == 1000
    assert (
        "These are the first 1000; --limit shows more."
        in horae("schedules", "list", "-n", "1000", *target).stdout
    )


@BOTH
@pytest.mark.contract("SCHD-22")
def test_an_update_changes_what_is_named_unless_the_version_moved(target: list[str], name: str):
    create(
        target,
        name,
        "--cron",
        "0 9 * * *",
        "--tz",
        "Europe/Berlin",
        "--jitter",
        "10s",
        "--overlap",
        "allow_all",
    )
    changed = answered("schedules", "update", name, "--cron", "0 10 * * *", *target)
    assert changed["version"] == 2
    assert changed["sentence"].startswith("At 10:00 every day, Europe/Berlin time")
    assert changed["spec"]["jitter"] == "10s"
    assert changed["policies"]["overlap"] == "allow_all"
    changed = answered("schedules", "update", name, "--tz", "Asia/Tokyo", *target)
    assert "10:00" in changed["sentence"]
    assert changed["timezone"] == "Asia/Tokyo"
    changed = answered("schedules", "update", name, "--every", "1h", *target)
    assert changed["spec"] == {"intervals": [{"every": "1h"}], "timezone": "Asia/Tokyo", "jitter": "10s"}
    changed = answered(
        "schedules", "update", name, "--spec", "-", *target, stdin='{"rrules": ["FREQ=DAILY"]}'
    )
    assert "intervals" not in changed["spec"]
    changed = answered(
        "schedules", "update", name, "--file", "-", *target, stdin="spec: {crons: ['0 9 * * *']}"
    )
    assert changed["spec"] == {"crons": ["0 9 * * *"]}
    changed = answered("schedules", "update", name, "--overlap", "skip", "--if-version", "6", *target)
    assert (changed["version"], changed["policies"]["overlap"]) == (7, "skip")
    problem = refused("schedules", "update", name, "--overlap", "skip", "--if-version", "6", *target)
    assert problem["details"]["code"] == "conflict_token_mismatch"
    assert refused("schedules", "update", name, *target)["message"] == "the change is missing"


@pytest.mark.contract("SCHD-13")
def test_pause_resume_and_skip(target: list[str], name: str):
    create(target, name, "--every", "1h")
    paused = answered(
        "schedules", "pause", name, "--note", "moving", "--until", "2099-01-01T00:00:00+01:00", *target
    )
    assert (paused["state"], paused["note"], paused["paused_until"]) == (
        "paused",
        "moving",
        "2098-12-31T23:00:00Z",
    )
    again = horae("schedules", "pause", name, "--until", "2099-01-01T00:00:00Z", "--note", "moving", *target)
    assert "paused until: Thu 2099-01-01 00:00:00 +00:00" in again.stdout
    assert "moving until" in horae("schedules", "describe", name, *target).stdout
    would = horae("schedules", "resume", name, "--on-resume", "skip", "--dry-run", *target).stdout
    assert f"Would resume {name}" in would
    assert "No slot fell due in the pause." in would
    assert answered("schedules", "resume", name, *target)["state"] == "running"
    assert answered("schedules", "skip", name, "2", *target)["skip_next"] == 2
    assert answered("schedules", "skip", name, "0", *target)["skip_next"] == 0


@BOTH
@pytest.mark.contract("SCHD-18")
def test_a_trigger_runs_and_its_run_is_shown(target: list[str], name: str):
    create(target, name, "--every", "10h", "--paused")
    accepted = answered("schedules", "trigger", name, "--input", '"you"', "--note", "by hand", *target)
    run = ended(target, accepted["run_id"])
    assert (run["status"], run["result"], run["note"]) == ("succeeded", {"hello": "you"}, "by hand")
    assert [each["id"] for each in answered("runs", "list", name, *target)] == [run["id"]]
    assert "succeeded" in horae("runs", "list", name, *target).stdout
    panel = horae("runs", "show", run["id"], *target).stdout
    assert '{"hello":"you"}' in panel
    assert "by hand" in panel
    ran = horae("schedules", "trigger", name, *target)
    assert ran.stdout.startswith(f"Triggered {name}: the run is ")


def test_failures_are_shown_as_they_are(target: list[str], name: str):
    create(target, name, "--every", "10h", "--action", "fail")
    run = ended(target, answered("schedules", "trigger", name, *target)["run_id"])
    assert run["status"] == "failed"
    assert "the [red]source[/red] is empty" in horae("runs", "show", run["id"], *target).stdout
    described = horae("schedules", "describe", name, *target).stdout
    assert "failed" in described
    assert "the [red]source[/red] is empty" in described


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize(("verb", "status"), [("cancel", "cancelled"), ("terminate", "terminated")])
def test_a_run_is_stopped(target: list[str], name: str, verb: str, status: str):
    create(target, name, "--every", "10h", "--action", "wait")
    run_id = answered("schedules", "trigger", name, *target)["run_id"]
    wait_for(lambda: answered("runs", "show", run_id, *target)["status"] == "running")
    assert answered("runs", verb, run_id, *target)["id"] == run_id
    assert ended(target, run_id)["status"] == status


@BOTH
@pytest.mark.contract("SCHD-19")
def test_a_backfill_is_counted_made_and_watched(target: list[str], name: str):
    create(target, name, "--cron", "0 * * * *", "--paused", "--tz", "Europe/Berlin")
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T01:00:00+00:00"]
    would = answered("schedules", "backfill", name, *span, "--dry-run", *target)
    assert would == {"slots": 2, "first": "2026-01-01T00:00:00Z", "last": "2026-01-01T01:00:00Z"}
    shown = horae("schedules", "backfill", name, *span, "--dry-run", *target).stdout
    assert "2 slots would run" in shown
    assert "Thu 2026-01-01 01:00:00 +01:00  2026-01-01 00:00:00Z" in shown
    done = answered("schedules", "backfill", name, *span, "--wait", "--overlap", "allow_all", *target)
    assert (done["status"], done["total"], done["made"]) == ("done", 2, 2)
    assert [each["id"] for each in answered("schedules", "backfills", name, *target)] == [done["id"]]
    assert "done" in horae("schedules", "backfills", name, *target).stdout
    wait_for(
        lambda: [each["status"] for each in answered("runs", "list", name, *target)] == ["succeeded"] * 2
    )


def test_matching_times(target: list[str], name: str):
    create(target, name, "--cron", "30 9 * * *", "--tz", "Europe/Berlin", "--paused")
    span = ["--from", "2026-03-28T08:30:00Z", "--to", "2026-03-30T07:30:00Z"]
    found = answered("schedules", "times", name, *span, *target)
    assert [each["nominal"] for each in found["items"]] == ["2026-03-29T07:30:00Z", "2026-03-30T07:30:00Z"]
    shown = horae("schedules", "times", name, *span, *target).stdout
    assert "Sun 2026-03-29 09:30:00 +02:00  2026-03-29 07:30:00Z" in shown


@BOTH
@pytest.mark.contract("SCHD-28")
def test_explain_says_why(target: list[str], name: str):
    create(target, name, "--cron", "30 2 * * *", "--tz", "Europe/Berlin")
    found = answered("explain", name, "2099-03-29T02:30", *target)
    assert found["schedule_id"] == name
    assert found["timezone"] == "Europe/Berlin"
    shown = horae("explain", name, "2099-03-29T02:30", *target)
    assert found["sentence"] in " ".join(shown.stdout.split())
    assert answered("explain", name, "2099-01-01T01:30:00Z", *target)["nominal"] == "2099-01-01T01:30:00Z"
    ran = horae("explain", name, "2099-01-01T01:30:00Z", *target)
    assert "2099-01-01 02:30:00 +01:00  2099-01-01 01:30:00Z" in ran.stdout


@BOTH
@pytest.mark.contract("SCHD-28")
def test_a_day_is_explained_slot_by_slot(target: list[str], name: str):
    answered("calendars", "put", "closed", "--date", "2099-12-25", *target)
    spec = {"crons": ["0 9,18 * * *"], "timezone": "Europe/Berlin", "exclude": [{"calendar": "closed"}]}
    create(target, name, "--spec", "-", stdin=json.dumps(spec))
    day = answered("explain", name, "2099-12-24", *target)
    assert [each["nominal"] for each in day["items"]] == ["2099-12-24T08:00:00Z", "2099-12-24T17:00:00Z"]
    closed = answered("explain", name, "2099-12-25", *target)
    assert [each["verdict"] for each in closed["items"]] == ["excluded"] * 2
    shown = horae("explain", name, "2099-12-25", *target).stdout
    assert "Fri 2099-12-25 09:00:00 +01:00" in shown
    assert "closed" in shown
    answered("schedules", "update", name, "--cron", "0 9 * * 1", *target)
    assert "There is no slot on 2099-12-24." in horae("explain", name, "2099-12-24", *target).stdout


@BOTH
@pytest.mark.contract("SCHD-28")
def test_a_day_on_which_the_schedule_did_not_exist_yet_is_explained_by_that(target: list[str], name: str):
    create(target, name, "--cron", "0 * * * *")
    shown = horae("explain", name, "yesterday", *target).stdout
    assert "is before the schedule was created" in " ".join(shown.split())
    assert "the one before" not in shown
    days = [answered("explain", name, day, *target) for day in ("today", "tomorrow")]
    assert "before_creation" not in {each["verdict"] for day in days for each in day["items"]}
    assert sum(days[0][key] for key in ("slots", "before_creation")) == 24
    assert (days[1]["slots"], days[1]["before_creation"]) == (24, 0)


def test_times_are_taken_as_people_say_them(target: list[str], name: str):
    create(
        target, name, "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--at", "tomorrow 10:30", "--at", "in 400d"
    )
    times = answered("schedules", "describe", name, *target)["spec"]["times"]
    assert [each[10:] for each in times if not each.endswith("Z")] == ["T10:30:00"]
    assert answered("explain", name, "tomorrow 9:00", *target)["local"][10:19] == "T09:00:00"
    assert answered("explain", name, "-1h", *target)["nominal"].endswith("Z")
    assert answered("explain", name, "today", *target)["timezone"] == "Asia/Tokyo"
    tomorrow = answered("schedules", "times", name, "--from", "tomorrow", "-n", "1", *target)["items"]
    assert tomorrow[0]["local"][10:16] == "T09:00"
    paused = answered("schedules", "pause", name, "--until", "tomorrow 12:00", *target)
    assert paused["paused_until"][10:] == "T03:00:00Z"


@pytest.mark.contract("SCHD-29")
def test_a_change_is_previewed_and_the_load_is_counted(target: list[str], name: str):
    create(target, name, "--cron", "0 9 * * *", "--tz", "Europe/Berlin")
    found = answered("schedules", "preview", name, "--cron", "0 9,10 * * *", "--days", "2", *target)
    assert (found["adds"], found["removes"], found["kept"]) == (2, 0, 2)
    shown = horae("schedules", "preview", name, "--cron", "0 10 * * *", "--days", "1", *target).stdout
    assert "1 added, 1 removed, 0 kept" in shown
    assert answered("schedules", "describe", name, *target)["version"] == 1
    new = answered("schedules", "preview", "--every", "90m", "-n", "3", *target)
    assert len(new["times"]) == 3
    assert "Every 1h30m" in horae("schedules", "preview", "--every", "90m", *target).stdout
    create(target, f"{name}-often", "--every", "1m", "--paused")
    forecast = answered("forecast", "--minutes", "1440", "--jitter", "30m", *target)
    assert forecast["total"] >= 1
    assert "starts of" in horae("forecast", "--minutes", "1440", "--jitter", "30m", *target).stdout


def test_calendars(target: list[str], name: str, tmp_path: Path):
    calendar = name.replace("/", "-")
    made = answered("calendars", "put", calendar, "--date", "2026-12-25", *target)
    assert made["dates"] == ["2026-12-25"]
    spec = {"crons": ["0 9 * * *"], "exclude": [{"calendar": calendar}]}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    create(target, name, "--spec", str(tmp_path / "spec.json"))
    times = answered("schedules", "times", name, "--from", "2026-12-24T12:00:00Z", "-n", "1", *target)
    assert times["items"][0]["nominal"] == "2026-12-26T09:00:00Z"
    (tmp_path / "calendar.json").write_text('{"dates": ["2026-12-26"]}')
    assert answered("calendars", "put", calendar, str(tmp_path / "calendar.json"), *target)["schedules"] == 1
    assert answered("calendars", "show", calendar, *target)["dates"] == ["2026-12-26"]
    assert calendar in [each["name"] for each in answered("calendars", "list", *target)]
    assert "2026-12-26" in horae("calendars", "show", calendar, *target).stdout
    problem = refused("calendars", "delete", calendar, "--yes", *target)
    assert problem["details"]["code"] == "calendar_in_use"
    answered("schedules", "delete", name, "--yes", *target)
    assert answered("calendars", "delete", calendar, "--yes", *target) == {"deleted": calendar}
    assert refused("calendars", "show", calendar, *target)["details"]["code"] == "calendar_not_found"


def test_nodes_and_what_they_can_run(target: list[str]):
    (node,) = answered("nodes", *target)
    assert node["alive"] is True
    assert {"fail", "greet", "wait"} <= set(node["actions"])
    assert "alive" in horae("nodes", *target).stdout


def test_a_whole_document_and_options_before_it(target: list[str], name: str, tmp_path: Path):
    document = {
        "id": "other",
        "spec": "0 9 * * *",
        "action": "greet",
        "policies": {"max_concurrent": 3},
        "paused": True,
    }
    (tmp_path / "schedule.json").write_text(json.dumps(document))
    made = create(
        target,
        name,
        "--file",
        str(tmp_path / "schedule.json"),
        "--overlap",
        "allow_all",
        "--tz",
        "Asia/Tokyo",
    )
    assert (made["id"], made["state"], made["timezone"]) == (name, "paused", "Asia/Tokyo")
    assert (made["policies"]["max_concurrent"], made["policies"]["overlap"]) == (3, "allow_all")
    changed = answered("schedules", "update", name, "--retries", "0", "--timeout", "1m", *target)["policies"]
    assert (changed["max_concurrent"], changed["retry"]["attempts"], changed["timeouts"]["run"]) == (
        3,
        1,
        "1m",
    )


def test_an_exported_schedule_makes_another_and_changes_back(target: list[str], name: str, tmp_path: Path):
    create(
        target, name, "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--retries", "2", "--tag", name, "--input", '{"rows": [1, null]}',
        "--description", "it's: \"quoted\" – ✓", "--paused", "--note", "on",
    )  # fmt: skip
    ran = horae("export", name, *target)
    (tmp_path / "one.yaml").write_text(ran.stdout)
    assert ran.stdout.splitlines()[:6] == [
        f"id: {name}", "spec:", "  crons:", "  - 0 9 * * 1-5", "  timezone: Europe/Berlin", "action:",
    ]  # fmt: skip
    assert answered("export", name, *target)["policies"] == {"retry": {"attempts": 3}}
    create(target, f"{name}-2", "--file", str(tmp_path / "one.yaml"))
    assert answered("export", f"{name}-2", *target) == answered("export", name, *target) | {"id": f"{name}-2"}
    answered("schedules", "update", name, "--description", "other", "--retries", "5", "--tag", "red", *target)
    answered("schedules", "update", name, "--file", str(tmp_path / "one.yaml"), *target)
    assert answered("export", name, *target) == answered("export", f"{name}-2", *target) | {"id": name}
    many = answered("export", "--prefix", name, "--no-calendars", *target)
    assert [each["id"] for each in many["schedules"]] == [name, f"{name}-2"]


def test_json_is_asked_for_before_the_command_or_after_it(target: list[str]):
    for arguments in (
        ["--json", "nodes", *target],
        ["nodes", *target, "--json"],
        ["--json", "next", "0 9 * * *"],
    ):
        ran = horae(*arguments)
        assert isinstance(json.loads(ran.stdout), list)
    ran = horae("--json", "runs", "show", "none", *target)
    assert json.loads(ran.stderr)["details"]["code"] == "run_not_found"


def test_an_owner_is_named_before_the_command_or_after_it(target: list[str], name: str):
    create(target, name, "--every", "1h", "--owner", "ada")
    assert answered("schedules", "describe", name, *target, "--owner", "ada")["owner"] == "ada"
    assert answered("--owner", "bob", "schedules", "list", "--prefix", name, *target) == []
    assert answered("schedules", "times", name, "-n", "1", "--owner", "ada", *target)["items"]
    problem = refused("--owner", "bob", "explain", name, "2099-01-01", *target)
    assert problem["details"]["code"] == "schedule_not_found"


def test_the_target_is_given_before_the_command_after_it_or_in_the_environment(
    server: Server, database: str, tmp_path: Path
):
    for arguments, environment in [
        (["--url", server.url, "nodes"], {}),
        (["--database", database, "nodes"], {}),
        (["nodes"], {"HORAE_URL": server.url}),
        (["nodes"], {"HORAE_DATABASE_URL": database}),
        (["nodes", "--database", database], {"HORAE_URL": "http://127.0.0.1:1"}),
        (["--url", "http://127.0.0.1:1", "nodes", "--url", server.url], {}),
        (["--url", "http://127.0.0.1:1", "nodes", "--database", database], {}),
    ]:
        assert len(answered(*arguments, folder=tmp_path, **environment)) == 1
    assert "exclude each other" in refused("nodes", "--url", server.url, "--database", database)["message"]


def test_an_id_that_several_owners_have_needs_the_owner(target: list[str], name: str):
    for owner in ("ada", "bob"):
        create(target, name, "--every", "1h", "--owner", owner)
    run = answered("schedules", "trigger", name, *target, "--owner", "ada")["run_id"]
    for arguments in (
        ["schedules", "describe", name],
        ["runs", "list", name],
        ["explain", name, "2099-01-01"],
    ):
        problem = refused(*arguments, *target)
        assert problem["details"]["code"] == "schedule_ambiguous"
        assert '"ada", "bob"' in problem["message"]
        assert "name the owner" in problem["hint"]
    assert horae("runs", "show", run, *target).returncode == 0  # a run says whose it is
    shown = horae("schedules", "list", "--prefix", name, *target).stdout
    assert shown.count(name) == 2
    assert "ada" in shown
    assert "bob" in shown
    assert answered("schedules", "list", "--prefix", name, *target, "--owner", "") == []
    assert answered("schedules", "delete", name, "--yes", *target, "--owner", "bob") == {"deleted": name}
    assert answered("schedules", "describe", name, *target)["owner"] == "ada"
