"""The command ``horae next``, as a user runs it; where that matters, a real process."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from horae.spec import TZDATA_VERSION
from tests.face.cli.command import horae


def instants(*arguments: str, stdin: str = "") -> list[str]:
    ran = horae("next", *arguments, "--json", stdin=stdin)
    assert ran.returncode == 0, ran.stderr
    found: list[str] = json.loads(ran.stdout)
    return found


@pytest.mark.contract("SCHD-06")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07T12:00:00Z", "-n", "2"],
         ["2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z"]),
        (["30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07T12:00:00Z", "-n", "1", "--gap", "shift"],
         ["2026-03-08T07:00:00Z"]),
        (["30 1 * * *", "--tz", "Europe/London", "--from", "2026-10-25", "-n", "2", "--fold", "last"],
         ["2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]),
        (["30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28T12:00:00+01:00", "-n", "1", "--clock-change", "debian"],
         ["2026-03-29T01:00:00Z"]),
        (["0 0 13 * 5", "--dialect", "temporal", "--from", "2026-03-01T00:00:00Z", "-n", "1"], ["2026-03-13T00:00:00Z"]),
        (["0 9 * * 1", "0 17 * * 5", "--from", "2026-03-01T00:00:00Z", "-n", "2"],
         ["2026-03-02T09:00:00Z", "2026-03-06T17:00:00Z"]),
        (["0", "9", "*", "*", "1", "--from", "2026-03-01T00:00:00Z", "-n", "1"], ["2026-03-02T09:00:00Z"]),
        (["0 0 31 2 *"], []),
    ],
)  # fmt: skip
def test_json_is_a_list_of_utc_instants(arguments: list[str], expected: list[str]):
    assert instants(*arguments) == expected


def test_a_spec_comes_from_a_file_or_standard_input(tmp_path: Path):
    spec: dict[str, Any] = {"intervals": [{"every": "6h"}], "exclude": [{"calendar": "sundays"}]}
    calendars = {
        "sundays": {"calendars": [{"second": "*", "minute": "*", "hour": "*", "day_of_week": "sun"}]}
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    (tmp_path / "calendars.json").write_text(json.dumps(calendars))
    more = ["--calendars", str(tmp_path / "calendars.json"), "--from", "2026-02-28T12:00:00Z", "-n", "2"]
    expected = ["2026-02-28T18:00:00Z", "2026-03-02T00:00:00Z"]
    assert instants("--spec", str(tmp_path / "spec.json"), *more) == expected
    assert instants("--spec", "-", *more, stdin=json.dumps(spec)) == expected


def test_options_go_before_what_the_spec_says():
    spec = json.dumps({"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"})
    assert instants("--spec", "-", "--from", "2026-01-01T00:00:00Z", "-n", "1", stdin=spec) == [
        "2026-01-01T08:00:00Z"
    ]
    found = instants(
        "--spec", "-", "--tz", "Asia/Tokyo", "--from", "2026-01-01T00:30:00Z", "-n", "1", stdin=spec
    )
    assert found == ["2026-01-02T00:00:00Z"]


def test_the_table_shows_local_time_utc_the_gap_and_clock_changes():
    ran = horae("next", "30 1 * * *", "--tz", "Europe/London", "--from", "2026-10-24T12:00:00Z", "-n", "3")
    lines = [line.strip() for line in ran.stdout.splitlines()]
    assert lines[0] == "At 01:30 every day, Europe/London time."
    assert lines[2].split("  ") == [
        "1", "Sun 2026-10-25 01:30:00 +01:00", "2026-10-25 00:30:00Z", "12h 30m", "first of two",
    ]  # fmt: skip
    assert "2026-10-25 01:30:00Z" in lines[3]
    assert "clocks went back 1h, second of two" in lines[3]
    assert "2026-10-26 01:30:00Z" in lines[4]
    assert TZDATA_VERSION in lines[5]


@pytest.mark.contract("SCHD-08")
def test_never_has_a_reason():
    ran = horae("next", "0 0 31 2 *")
    assert ran.returncode == 0
    assert "Never: no such date comes any more." in ran.stdout
    spec = json.dumps({"times": ["2026-05-01T00:00:00Z"]})
    ran = horae("next", "--spec", "-", "--from", "2026-01-01T00:00:00Z", stdin=spec)
    assert "2026-05-01 00:00:00Z" in ran.stdout
    assert "No more times: no such date comes any more." in ran.stdout


@pytest.mark.contract("SCHD-09")
def test_an_error_points_at_the_character_and_gives_a_hint():
    ran = horae("next", "0 9 * * fri-sun")
    assert ran.returncode == 2
    assert ran.stdout == ""
    fault = 'weekday field has the range "fri-sun", whose end is before its start'
    assert ran.stderr.splitlines() == [
        f'error: Invalid cron expression "0 9 * * fri-sun": {fault}',
        "  0 9 * * fri-sun",
        "          ^^^^^^^",
        "hint: Sunday at the end of a range is 7: 5-7",
    ]


def test_an_error_is_json_too():
    ran = horae("next", "61 * * * *", "--dialect", "posix", "--json")
    assert ran.returncode == 2
    problem = json.loads(ran.stderr)
    assert problem["error"] == "InvalidCronExpressionError"
    assert problem["details"]["field"] == "minute"
    assert problem["hint"] == "allowed are 0-59"


def test_intervals_and_single_times_are_united_with_expressions():
    ran = horae(
        "next",
        "0 12 * * *",
        "--every",
        "12h/1h",
        "--at",
        "2026-03-01T00:30",
        "--from",
        "2026-03-01",
        "-n",
        "4",
        "--json",
    )
    assert json.loads(ran.stdout) == [
        "2026-03-01T00:30:00Z", "2026-03-01T01:00:00Z", "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        ([], "", "give a cron expression"),
        (["0 9 * * *", "--spec", "-"], "{}", "one or the other"),
        (["--spec", "/nowhere/spec.json"], "", "cannot be read"),
        (["--spec", "-"], "{", "no JSON"),
        (["--spec", "-"], '"\\ud800"', "no JSON"),
        (["--spec", "-"], "[1]", "JSON object"),
        (["--spec", "-", "--calendars", "/nowhere"], "{}", "cannot be read"),
        (["0 9 * * *", "--tz", "+24:00"], "", "Unknown time zone"),
        (["0 9 * * *", "--tz", ""], "", "Unknown time zone"),
        (["--spec", "-"], '{"calendars": [{"hours": "9"}]}', "calendars[0].hours is unknown"),
        (["--spec", "-"], '{"calendars": [{"hour": 24}]}', "calendars[0].hour"),
        (["--spec", "-"], '{"exclude": [{"calendar": "x"}]}', 'Unknown calendar "x"'),
        (["0 9 * * *", "--tz", "Berlin"], "", "Europe/Berlin"),
        (["0 9 * * *", "--from", "last week"], "", "tomorrow 9:00"),
        (["0 9 * * *", "-n", "1001"], "", "1000"),
        (["0 9 * * *", "-n", "0"], "", "1"),
        (["0 9 * * *", "--gap", "jump"], "", "skip"),
        (["0 9 * * *", "--gap", "shift", "--clock-change", "debian"], "", "debian decides"),
        (["0 9 * * *", "extra"], "", "extra"),
        (["[bold]9[/bold] * * * *"], "", "[bold]9[/bold]"),
        (["\x1b[31m * * * *"], "", "minute field"),
    ],
)
def test_bad_input_gets_a_sentence_and_no_traceback(arguments: list[str], stdin: str, said: str):
    ran = horae("next", *arguments, stdin=stdin)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_help_teaches():
    ran = horae("next", "--help")
    assert ran.returncode == 0
    for option in (
        "--dialect",
        "--spec",
        "--tz",
        "--from",
        "-n",
        "--gap",
        "--fold",
        "--clock-change",
        "--json",
    ):
        assert option in ran.stdout
    assert 'horae next "0 9 * * 1-5" --tz America/New_York' in ran.stdout
    assert "default: unix" in ran.stdout


def test_the_version_names_the_time_zone_database():
    ran = horae("--version")
    assert TZDATA_VERSION in ran.stdout


def test_a_closed_pipe_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m horae next '* * * * *' -n 1000 | head -n 1"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ran.stderr


def test_bytes_that_are_no_text_are_refused_with_a_sentence():
    for arguments, stdin in ((["--spec", "-"], b"\xff"), ([b"\xff * * * *", "--json"], b"")):
        command = [sys.executable, "-m", "horae", "next", *arguments]
        ran = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        assert ran.returncode == 2
        assert b"Traceback" not in ran.stderr
    closed = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m horae next --spec - <&-"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert closed.returncode == 2
    assert b"Traceback" not in closed.stderr


def test_errors_are_json_whatever_is_wrong():
    for arguments, error in (
        (["--spec", "/nowhere"], "InvalidSpecError"),
        ([], "InvalidSpecError"),
        (["0 9 * * *", "--from", "x"], "InvalidInputError"),
    ):
        ran = horae("next", *arguments, "--json")
        assert ran.returncode == 2
        assert json.loads(ran.stderr)["error"] == error


def test_from_a_time_that_clocks_skip_or_that_has_an_offset():
    gap = ["0 3 * * *", "--tz", "America/New_York", "--from", "2026-03-08T02:30", "-n", "1"]
    assert instants(*gap) == ["2026-03-08T07:00:00Z"]
    ran = horae("next", "0 9 * * *", "--from", "2026-03-07T12:00:00+05:00", "-n", "1")
    assert "after 2026-03-07 07:00:00Z" in ran.stdout


def test_a_terminal_gets_no_control_characters():
    ran = horae("next", "\x1b[31m9 * * * *")
    assert "\x1b" not in ran.stderr
