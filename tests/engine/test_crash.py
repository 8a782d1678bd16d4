"""Real processes, killed: nothing committed is lost, no slot is decided twice."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = Path(__file__).parent / "program.py"


def start(tmp_path: Path, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path / "horae.db"), str(tmp_path / "log"), str(seconds)]
    )


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def log(tmp_path: Path) -> list[list[str]]:
    file = tmp_path / "log"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def statuses(tmp_path: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(tmp_path / "horae.db") as connection:
        return connection.execute("SELECT status, attempt FROM run ORDER BY number").fetchall()


def test_a_killed_run_is_attempted_again_under_the_same_key(tmp_path: Path):
    process = start(tmp_path, 60)
    wait_for(lambda: len(log(tmp_path)) == 1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert statuses(tmp_path) == [("running", 1)]
    process = start(tmp_path, 0.01)
    wait_for(lambda: len(log(tmp_path)) >= 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lines = log(tmp_path)
    (key, first), (again, second), (done, word) = lines[:3]
    assert key == again == done
    assert (first, second, word) == ("1", "2", "done")
    assert statuses(tmp_path)[0] == ("succeeded", 2)


def test_every_slot_is_in_the_ledger_once_whatever_is_killed(tmp_path: Path):
    for _ in range(4):
        process = start(tmp_path, 0.3)
        before = len(log(tmp_path))
        wait_for(lambda before=before: len(log(tmp_path)) > before + 1)  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.wait()
    with sqlite3.connect(tmp_path / "horae.db") as connection:
        runs = [n for (n,) in connection.execute("SELECT nominal FROM run ORDER BY nominal")]
        passed = connection.execute("SELECT first, last, count FROM passed").fetchall()
        ((cursor,),) = connection.execute("SELECT cursor FROM due").fetchall()
        ((created,),) = connection.execute("SELECT created_at / 1000 FROM schedule").fetchall()
    slots = runs + [n for first, last, _ in passed for n in range(first, last + 1)]
    assert sorted(slots) == list(range(created + 1, cursor + 1))
    assert all(count == last - first + 1 for first, last, count in passed)


def test_two_processes_share_a_file_and_start_nothing_twice(tmp_path: Path):
    processes = [start(tmp_path, 0.01), start(tmp_path, 0.01)]
    wait_for(lambda: len(log(tmp_path)) >= 8)
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()
    begun = [key for key, word in log(tmp_path) if word == "1"]
    assert len(begun) == len(set(begun))
