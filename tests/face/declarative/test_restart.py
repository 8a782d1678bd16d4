"""Real processes, killed in the middle of a callback, and what the next start makes of it."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import fetch
from tests.support.process import Process, Programs, kill
from tests.support.wait import wait_for

PROGRAM = Path(__file__).parent / "program.py"
ALWAYS, NEVER = "* * * * *", "0 0 29 2 *"
LONG, SHORT = 600.0, 0.01
Task = tuple[str, str, float]


class Processes(Programs):
    """Processes of the program on one database."""

    def start(self, *tasks: Task, **config: int) -> Process:
        return self.launch(self.database, str(self.file), json.dumps(tasks), json.dumps(config))

    def lines(self, process: Process | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.text().splitlines()]
        return [line for line in found if process is None or line["pid"] == process.pid]

    def tasks(self, what: str, process: Process) -> list[str]:
        """The tasks that something happened to in a process, in order."""
        return [line["task"] for line in self.lines(process) if line["what"] == what]

    def wait(self, process: Process, what: str, *tasks: str) -> None:
        """Until something has happened to some tasks in a process."""
        wait_for(lambda: set(tasks or [None]) <= set(self.tasks(what, process)))

    def completed(self, process: Process) -> dict[str, Any]:
        wait_for(lambda: self.tasks("SchedulerInitializationCompleted", process))
        (line,) = [each for each in self.lines(process) if each["what"] == "SchedulerInitializationCompleted"]
        return line

    def counts(self, process: Process) -> dict[str, int]:
        """What a process found of its tasks."""
        counts: dict[str, int] = self.completed(process)["details"]
        return counts


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path, PROGRAM)
    yield processes
    processes.end()


def sql(processes: Processes, statement: str) -> list[Any]:
    connection = sqlite3.connect(processes.database.removeprefix("sqlite:///"))
    try:
        with connection:
            return connection.execute(statement).fetchall()
    finally:
        connection.close()


def killed_in_mid_callback(processes: Processes, *names: str) -> None:
    process = processes.start(*((name, ALWAYS, LONG) for name in names))
    processes.wait(process, "begin", *names)
    kill(process)


@pytest.mark.contract("DECL-36", "DECL-19", "DECL-40")
def test_a_killed_callback_is_called_again_at_once_whatever_its_new_expression_says(processes: Processes):
    killed_in_mid_callback(processes, "same", "changed", "removed")
    assert sql(processes, "SELECT DISTINCT status, attempt FROM run") == [("running", 1)]
    again = processes.start(("same", ALWAYS, SHORT), ("changed", NEVER, SHORT), ("new", NEVER, SHORT))
    processes.wait(again, "done", "same", "changed")
    assert processes.counts(again) == {"orphaned": 2, "forgotten": 1, "new": 1}
    again.send_signal(signal.SIGTERM)
    assert again.wait(30) == 0
    assert processes.tasks("begin", again).count("changed") == 1
    assert {"removed", "new"}.isdisjoint(processes.tasks("begin", again))
    last = processes.start(("changed", NEVER, SHORT), ("same", NEVER, SHORT))
    assert processes.counts(last).keys() & {"orphaned"} == set()


@pytest.mark.contract("DECL-34", "DECL-36")
def test_an_orphan_with_an_unreadable_record_is_reported_and_restarts_when_it_is_repaired(
    processes: Processes,
):
    killed_in_mid_callback(processes, "spoiled", "other")
    where = "WHERE json_extract(action, '$.input.task') = 'spoiled'"
    sql(processes, f"UPDATE schedule SET action = json_set(action, '$.input.retryDelayMs', 'soon') {where}")  # noqa: S608
    before = sql(processes, "SELECT * FROM run ORDER BY id")
    tasks = [("spoiled", NEVER, SHORT), ("other", NEVER, SHORT)]
    refused = processes.start(*tasks)
    assert refused.wait(30) == 3
    assert processes.tasks("TaskInvalidTypeError", refused) == ["spoiled"]
    assert processes.tasks("begin", refused) == []
    assert sql(processes, "SELECT * FROM run ORDER BY id") == before
    sql(processes, f"UPDATE schedule SET action = json_set(action, '$.input.retryDelayMs', 86400000) {where}")  # noqa: S608
    again = processes.start(*tasks)
    processes.wait(again, "done", "spoiled", "other")
    assert processes.counts(again) == {"orphaned": 2}


@pytest.mark.contract("DECL-34", "DECL-36")
def test_leaving_an_unreadable_orphan_out_lets_the_others_restart(processes: Processes):
    killed_in_mid_callback(processes, "spoiled", "other")
    sql(processes, "UPDATE schedule SET state = 'x' WHERE json_extract(action, '$.input.task') = 'spoiled'")
    again = processes.start(("other", NEVER, SHORT))
    processes.wait(again, "done", "other")
    assert processes.counts(again) == {"orphaned": 1, "forgotten": 1}


@pytest.mark.contract("DECL-14", "DECL-15")
def test_a_program_that_is_asked_to_end_lets_its_callbacks_end_and_leaves_no_orphan(processes: Processes):
    process = processes.start(("a", ALWAYS, 1), ("b", ALWAYS, SHORT))
    processes.wait(process, "begin", "a", "b")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert processes.tasks("begin", process).count("a") == processes.tasks("done", process).count("a")
    assert processes.lines(process)[-1]["what"] == "SchedulerStopped"
    again = processes.start(("a", NEVER, SHORT), ("b", NEVER, SHORT))
    assert processes.counts(again) == {"overridden": 2}


@pytest.mark.contract("DECL-40", "DECL-36", "DECL-19")
def test_killed_at_any_time_the_next_start_calls_again_what_had_begun(processes: Processes):
    tasks = [(f"{number}", ALWAYS, LONG) for number in range(20)]
    begun: set[str] = set()
    for seen in (1, 0, 7, 20):
        process = processes.start(*tasks)
        wait_for(lambda: len(processes.tasks("begin", process)) >= seen)  # noqa: B023 - called here
        kill(process)
        again = set(processes.tasks("begin", process))
        if seen == 20:
            assert begun <= again
        begun |= again
    last = processes.start(*((name, NEVER, SHORT) for name, *_ in tasks))
    processes.wait(last, "done", *begun)
    assert processes.counts(last) == {"orphaned": 20}
    assert sorted(processes.tasks("begin", last)) == sorted(begun)


@pytest.mark.contract("DECL-36", "DECL-37")
def test_a_live_process_on_the_same_file_keeps_its_task_and_loses_it_when_killed(processes: Processes):
    first = processes.start(("a", ALWAYS, LONG))
    processes.wait(first, "begin", "a")
    second = processes.start(("a", NEVER, LONG))
    assert processes.counts(second) == {"overridden": 1}
    assert processes.tasks("begin", second) == []
    kill(first)
    processes.wait(second, "begin", "a")  # its death is known at once, and noticed with the next round


@pytest.mark.contract("DECL-36", "DECL-37")
def test_on_postgresql_a_killed_instances_task_is_no_orphan_until_its_lease_ends(
    postgres: str, processes: Processes
):
    processes.database = postgres
    lease = {"lease_ms": 3000, "housekeeping_ms": 500}
    first = processes.start(("a", ALWAYS, LONG), **lease)
    processes.wait(first, "begin", "a")
    second = processes.start(("a", NEVER, LONG), **lease)
    assert processes.counts(second) == {"overridden": 1}
    kill(first)
    (claim,) = asyncio.run(fetch(postgres, f"SELECT deadline FROM node WHERE name LIKE '%:{first.pid}:%'"))  # noqa: S608
    third = processes.start(("a", NEVER, LONG), **lease)
    found = processes.completed(third)
    wait_for(lambda: processes.tasks("begin", second) + processes.tasks("begin", third))
    # The slot of the next minute may wait behind the first run.
    ((started, attempt),) = asyncio.run(
        fetch(
            postgres, "SELECT to_timestamp(started_at_ms / 1000.0), attempt FROM run ORDER BY number LIMIT 1"
        )
    )
    assert attempt == 2
    assert started >= claim["deadline"]
    if "orphaned" in found["details"]:  # it took its time to start
        assert found["time"] >= claim["deadline"].timestamp()
    processes.end()
    assert len(processes.tasks("begin", second) + processes.tasks("begin", third)) == 1
