"""On a terminal: colours, a question before something is lost, and a progress bar. A real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from tests.face.cli.command import PLAIN, answered
from tests.support.wait import wait_for


def on_terminal(*arguments: str, answer: str = "", columns: int = 80) -> tuple[int, str]:
    """Run the command on its own terminal; its exit status, and what the terminal showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in PLAIN.items() if key not in {"NO_COLOR", "COLUMNS"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "horae", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the terminal is gone with the process
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    return process.wait(60), shown.decode()


def test_colours_and_a_table_that_fits(target: list[str]):
    spec = ["--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--action", "greet"]
    answered("schedules", "create", "lit", *spec, *target)
    status, shown = on_terminal("schedules", "list", "--prefix", "lit", *target)
    assert status == 0
    assert "\x1b[36mrunning" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert all(len(line) <= 80 for line in plain.splitlines())
    assert re.search(r"\d{4}-\d\d-\d\d 09:00:00 \+09:00", plain)


def test_a_question_before_something_is_lost(target: list[str]):
    answered("schedules", "create", "dear", "--every", "1h", "--action", "greet", *target)
    status, shown = on_terminal("schedules", "delete", "dear", *target, answer="n\n")
    assert status == 1
    assert "Delete the schedule dear?" in shown
    assert answered("schedules", "describe", "dear", *target)["id"] == "dear"
    status, shown = on_terminal("schedules", "delete", "dear", *target, answer="y\n")
    assert status == 0
    assert "Deleted dear." in shown


@pytest.mark.contract("SCHD-19")
def test_a_progress_bar_for_backfills(target: list[str]):
    answered("schedules", "create", "many", "--cron", "* * * * *", "--paused", "--action", "greet", *target)
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T02:00:00Z"]
    status, shown = on_terminal(
        "schedules", "backfill", "many", *span, "--overlap", "buffer_all", "--wait", *target, columns=160
    )
    assert status == 0
    assert "backfill of many" in shown
    assert re.search(r"\d+/121", shown)
    assert "done" in shown
    wait_for(lambda: answered("schedules", "describe", "many", *target)["info"]["started"] == 121)
