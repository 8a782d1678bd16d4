"""Real processes, killed: nothing committed is lost, no slot is decided twice."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

PROGRAM = Path(__file__).parent / "program.py"


def start(
    tmp_path: Path, seconds: float, database: str | None = None, schedules: int = 1
) -> subprocess.Popen[bytes]:
    database = database or f"sqlite:///{tmp_path / 'horae.db'}"
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), database, str(tmp_path / "log"), str(seconds), str(schedules)]
    )


def kill(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def log(tmp_path: Path) -> list[list[str]]:
    file = tmp_path / "log"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def grown(tmp_path: Path, beyond: int) -> bool:
    return len(log(tmp_path)) > beyond


def statuses(tmp_path: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(tmp_path / "horae.db") as connection:
        return connection.execute("SELECT status, attempt FROM run ORDER BY number").fetchall()


def test_a_killed_run_is_attempted_again_under_the_same_key(tmp_path: Path):
    process = start(tmp_path, 60)
    wait_for(lambda: len(log(tmp_path)) == 1)
    kill(process)
    assert statuses(tmp_path) == [("running", 1)]
    process = start(tmp_path, 0.01)
    wait_for(lambda: len(log(tmp_path)) >= 5)
    kill(process)
    lines = log(tmp_path)
    (key, first, _), (again, second, _), (done, word, _) = lines[:3]
    assert key == again == done
    assert (first, second, word) == ("1", "2", "done")
    assert statuses(tmp_path)[0] == ("succeeded", 2)


def test_every_slot_is_in_the_ledger_once_whatever_is_killed(tmp_path: Path):
    for _ in range(4):
        process = start(tmp_path, 0.3)
        before = len(log(tmp_path))
        wait_for(partial(grown, tmp_path, before + 1))
        kill(process)
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
    begun = [key for key, word, _ in log(tmp_path) if word == "1"]
    assert len(begun) == len(set(begun))


@pytest.mark.contract("CRON-16")
def test_three_nodes_on_postgresql_share_the_work_and_take_over_from_the_dead(tmp_path: Path, postgres: str):
    nodes = [start(tmp_path, 0.01, postgres, 10) for _ in range(3)]
    wait_for(lambda: len({pid for _, _, pid in log(tmp_path)}) == 3)
    hanging = start(tmp_path, 600, postgres, 10)  # a node whose runs never end
    wait_for(lambda: any(pid == str(hanging.pid) for _, _, pid in log(tmp_path)))
    kill(hanging)
    stuck = {key for key, _, pid in log(tmp_path) if pid == str(hanging.pid)}
    wait_for(lambda: stuck <= {key for key, word, _ in log(tmp_path) if word == "done"}, 15 + 5)
    kill(*nodes)
    begun = [key for key, word, _ in log(tmp_path) if word == "1"]
    assert len(begun) == len(set(begun))
    again = {key for key, word, _ in log(tmp_path) if word == "2"}
    assert again == stuck  # only what the dead node held was attempted again


@pytest.mark.contract("CRON-16")
def test_connections_that_are_cut_lose_no_slot(tmp_path: Path, postgres: str, postgres_server: Any):
    node = start(tmp_path, 0.01, postgres, 3)
    wait_for(lambda: len(log(tmp_path)) > 6)
    postgres_server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 't%' AND pid <> pg_backend_pid();"
    )
    before = len(log(tmp_path))
    wait_for(lambda: len(log(tmp_path)) > before + 12)
    kill(node)
    rows = asyncio.run(ledger(postgres))
    for schedule, first, last, runs, passed in rows:
        assert runs + passed == last - first, schedule


async def ledger(database: str) -> list[Any]:
    """Each schedule with its first and last decided second, its runs, and the slots that were passed over."""
    connection = await asyncpg.connect(database)
    rows: list[Any] = await connection.fetch(
        """
        SELECT d.schedule_id, s.created_at / 1000, d.cursor,
            (SELECT count(*) FROM run AS r WHERE r.schedule_id = d.schedule_id),
            (SELECT coalesce(sum(count), 0) FROM passed AS p WHERE p.schedule_id = d.schedule_id)
        FROM due AS d JOIN schedule AS s ON s.id = d.schedule_id
        """
    )
    await connection.close()
    return rows
