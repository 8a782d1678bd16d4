"""``horae import crontab``: a real crontab, a real server, and commands that really run."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.face.cli.command import answered, horae, refused
from tests.support.process import Server
from tests.support.wait import wait_for

CRONTAB = r"""GREETING="good  morning"
MAILTO=me@example.org

# the greeting
0 9 * * 1-5 echo "$GREETING"; pwd; cat
30 2 * * * tr a-z A-Z%fifty \%%of it
@reboot start
0 ~ * * * sometimes
61 * * * * never
0 0 31 2 * no such day
"""


def test_a_dry_run_stores_nothing(tmp_path: Path):
    (tmp_path / "crontab").write_text(CRONTAB)
    ran = horae("import", "crontab", "crontab", "--dry-run", "--tz", "Europe/Berlin", folder=tmp_path)
    assert ran.returncode == 0
    assert "   5  cron-echo-" in ran.stdout
    assert "At 09:00 on Monday to Friday" in ran.stdout
    assert "@reboot is no time" in ran.stdout
    assert "Horae sends no mail" in ran.stdout
    assert "never" in ran.stdout
    assert ran.stdout.splitlines()[-1] == (
        "Carried over: 3. Not carried over: 3. This was a dry run: nothing was stored."
    )
    assert [file.name for file in tmp_path.iterdir()] == ["crontab"]
    found = answered("import", "crontab", "-", "--dry-run", "--tz", "UTC", stdin=CRONTAB, folder=tmp_path)
    assert [each["line"] for each in found["schedules"]] == [5, 6, 10]
    assert [each["next_time"] is None for each in found["schedules"]] == [False, False, True]
    assert {(each["line"], each["text"]) for each in found["left_out"]} == {
        (7, "@reboot start"), (8, "0 ~ * * * sometimes"), (9, "61 * * * * never"),
    }  # fmt: skip
    assert set(found["definitions"]) == {each["id"] for each in found["schedules"]}


def test_without_a_file_for_commands_nothing_is_imported(tmp_path: Path):
    problem = refused("import", "crontab", "-", stdin=CRONTAB, folder=tmp_path)
    assert problem["message"].startswith("--commands is missing")
    assert refused("import", "crontab", "none", folder=tmp_path)["message"].startswith("FILE cannot be read")
    (tmp_path / "c.json").write_text("[1, 2]")
    problem = refused("import", "crontab", "-", "--commands", "c.json", stdin=CRONTAB, folder=tmp_path)
    assert "c.json cannot be used" in problem["message"]
    problem = refused("import", "crontab", "-", "--tz", "Mars/Base", "--dry-run", stdin=CRONTAB)
    assert problem["error"] == "UnknownTimezoneError"


def import_into(database: str, folder: Path) -> Any:
    return answered(
        "import", "crontab", "-", "--commands", "commands.json", "--tz", "UTC", "--database", database,
        stdin=f"HOME={folder}\n{CRONTAB}", folder=folder,  # the user who runs the tests may have none
    )  # fmt: skip


def test_imported_lines_run_and_are_imported_once(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    answered("migrate", "--database", database)
    (tmp_path / "commands.json").write_text('{"mine": {"argv": ["/bin/true"]}}')
    first, second = import_into(database, tmp_path), import_into(database, tmp_path)
    assert [each["outcome"] for each in first["schedules"]] == ["new"] * 3
    assert [each["outcome"] for each in second["schedules"]] == ["there already"] * 3
    commands = json.loads((tmp_path / "commands.json").read_text())
    assert set(commands) == {"mine", *(each["id"] for each in first["schedules"])}
    server = Server(
        database,
        app="tests.face.cli.actions",
        HORAE_DRAIN_MS="0",
        HORAE_COMMANDS=str(tmp_path / "commands.json"),
    )
    try:
        greeting, shout = (each["id"] for each in first["schedules"][:2])
        assert output(server, greeting) == "good  morning\n" + commands[greeting]["folder"] + "\n"
        assert output(server, shout) == "FIFTY %\nOF IT\n"
        listed = answered("schedules", "list", "--tag", "crontab", "--url", server.url)
        assert {each["id"] for each in listed} == {each["id"] for each in first["schedules"]}
        described = answered("schedules", "describe", greeting, "--url", server.url)
        assert described["memo"]["comment"] == "the greeting"
        assert described["spec"]["clock_change"] == "debian"
        assert (described["policies"]["overlap"], described["policies"]["catch_up"]["mode"]) == (
            "allow_all",
            "none",
        )
        more = answered(
            "import", "crontab", "-", "--commands", "commands.json", "--tz", "UTC", "--url", server.url,
            stdin=CRONTAB, folder=tmp_path,
        )  # fmt: skip
        assert [each["outcome"] for each in more["schedules"]] == ["there already"] * 3
    finally:
        server.end()


def output(server: Server, schedule_id: str) -> str:
    run_id = answered("schedules", "trigger", schedule_id, "--url", server.url)["run_id"]
    wait_for(lambda: answered("runs", "show", run_id, "--url", server.url)["ended_at"] is not None)
    run = answered("runs", "show", run_id, "--url", server.url)
    assert run["status"] == "succeeded", run
    found: str = run["result"]["stdout"]
    return found


def test_a_server_that_does_not_know_the_commands_yet(server: Server, tmp_path: Path):
    problem = refused(
        "import", "crontab", "-", "--commands", "c.json", "--url", server.url, stdin=CRONTAB, folder=tmp_path
    )
    assert problem["details"]["code"] == "unknown_action"
    assert problem["hint"].startswith("start the service with HORAE_COMMANDS=c.json, and import again")
    assert stat.S_IMODE((tmp_path / "c.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("arguments", [["--system"], ["--user"]])
def test_the_column_for_the_user(arguments: list[str]):
    found = answered(
        "import", "crontab", "-", "--dry-run", *arguments, "--tz", "UTC", stdin="@daily root x\n"
    )
    (command,) = found["definitions"].values()
    assert command["argv"][-1] == ("x" if arguments == ["--system"] else "root x")
    assert len(found["remarks"]) == 1
