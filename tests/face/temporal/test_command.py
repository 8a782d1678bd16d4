"""Temporal's own command says of Horae's schedules what it says of Temporal's: the same commands, given to both."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.support.postgres import new_postgres_database
from tests.support.process import Server
from tests.support.temporal import temporal_address
from tests.support.temporal_cluster import QUEUE, TemporalCluster, TemporalCommand
from tests.support.wait import wait_for

WORKFLOW = ("--workflow-id", "wf", "--task-queue", QUEUE, "--type", "ping")
LATER = ("--start-time", "2040-01-01T00:00:00Z")
"""Schedules of a time to come have next times that do not depend on the day of the test."""
SCHEDULES = {
    "cli-cron": ["--cron", "0 9 * * MON # office", "--cron", "@daily", "--input", '{"a": [1, "x"]}'],
    "cli-interval": ["--interval", "90m/15m", "--interval", "1h", "--catchup-window", "1s", "--overlap-policy", "BufferAll"],
    "cli-calendar": ["--calendar", '{"dayOfWeek": "Fri", "hour": "17", "minute": "5", "comment": "late"}', "--overlap-policy", "CancelOther",
                     "--calendar", '{"month": "Jan-Mar", "dayOfMonth": "1,15", "year": "2040-2050/2"}', "--time-zone", "America/New_York"],
    "cli-all": ["--cron", "30 12 * * Fri", "--interval", "6h/5h", "--end-time", "2046-01-01T00:00:00Z", "--jitter", "30s",
                "--time-zone", "Europe/Berlin", "--overlap-policy", "BufferOne", "--catchup-window", "3h", "--pause-on-failure",
                "--remaining-actions", "5", "--paused", "--notes", "all of it", "--memo", 'k="v"', "--schedule-memo", 's={"a":1}',
                "--schedule-search-attribute", 'Team="x"', "--schedule-search-attribute", "Size=3", "--search-attribute", 'Team="y"',
                "--schedule-search-attribute", 'Tags=["a","b"]', "--input", '{"a":1}', "--input", '"two"', "--run-timeout", "1h",
                "--execution-timeout", "2h", "--task-timeout", "9s", "--static-summary", "what", "--static-details", "at length",
                "--priority-key", "2", "--fairness-key", "f", "--fairness-weight", "2"],
    "cli-bytes": ["--interval", "1h", "--input", "AAH/", "--input-base64", "--input-meta", "encoding=binary/plain",
                  "--overlap-policy", "TerminateOther"],
    "cli-none": ["--overlap-policy", "AllowAll"],
}  # fmt: skip
"""Schedules with every option of ``temporal schedule create``."""
QUERIES = {
    "ScheduleId STARTS_WITH 'cli-'": sorted(SCHEDULES),
    "TemporalSchedulePaused = true AND ScheduleId STARTS_WITH 'cli-'": ["cli-all"],
    "Team = 'x' AND Size > 2": ["cli-all"],
    "ScheduleId = 'cli-none' OR ScheduleId IN ('cli-cron', 'cli-other')": ["cli-cron", "cli-none"],
}
REFUSED: dict[str, tuple[str, ...]] = {
    "an id that is taken": ("create", "-s", "cli-none", *WORKFLOW),
    "an unknown schedule described": ("describe", "-s", "cli-unknown"),
    "updated": ("update", "-s", "cli-unknown", "--interval", "1h", *WORKFLOW),
    "paused": ("toggle", "-s", "cli-unknown", "--pause"),
    "triggered": ("trigger", "-s", "cli-unknown"),
    "backfilled": ("backfill", "-s", "cli-unknown", "--start-time", "2026-01-01T00:00:00Z", "--end-time", "2026-01-02T00:00:00Z"),
    "deleted": ("delete", "-s", "cli-unknown"),
}  # fmt: skip
INVALID: dict[str, tuple[str, ...]] = {
    "an hour that no day has": ("create", "-s", "cli-new", "--cron", "0 99 * * *", *WORKFLOW),
    "no zone": ("create", "-s", "cli-new", "--interval", "1h", "--time-zone", "Nowhere/Land", *WORKFLOW),
    "two zones": ("create", "-s", "cli-new", "--cron", "CRON_TZ=Asia/Tokyo 0 9 * * *", "--time-zone", "UTC", *WORKFLOW),
    "a phase of more than an interval": ("create", "-s", "cli-new", "--interval", "1h/2h", *WORKFLOW),
    "a query without a value": ("list", "-q", "Team ="),
}  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ours(
    store: str, tmp_path_factory: pytest.TempPathFactory, postgres_server: Any
) -> Iterator[TemporalCommand]:
    """The command, with the service in a process of its own."""
    folder = tmp_path_factory.mktemp("command")
    database = f"sqlite:///{folder}/horae.db"
    if store == "postgresql":
        database = new_postgres_database(postgres_server)
    server = Server(database, "--temporal-port", "0")
    yield TemporalCommand(temporal_address(server), folder)
    server.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def theirs(temporal_cluster: TemporalCluster) -> dict[str, Any]:
    """What the command says of Temporal's own schedules."""
    return dict(told(temporal_cluster.command))


@pytest.mark.contract("SCHD-30")
def test_the_command_says_of_horaes_schedules_what_it_says_of_temporals(
    theirs: dict[str, Any], ours: TemporalCommand, store: str
):
    for name, said in told(ours, whole=store == "sqlite"):
        assert (name, said) == (name, theirs[name])


def told(temporal: TemporalCommand, *, whole: bool = True) -> Iterator[tuple[str, Any]]:
    """What a user sees who gives all the commands, but for what differs from one time to the next.

    Not ``whole``: only what depends on the store, not how the command shows the same answers otherwise, nor which input is invalid.
    """
    yield "health", temporal("operator", "cluster", "health")
    for name, options in SCHEDULES.items():
        temporal("schedule", "create", "-s", name, *WORKFLOW, *LATER, *options)
    for name in SCHEDULES:
        yield f"{name} in JSON", described(temporal, name)
        if whole:
            yield f"{name} for people", for_people(temporal, name)
    yield from lists(temporal)
    if whole:
        yield from tables(temporal)
    yield from refusals(temporal, REFUSED | INVALID if whole else REFUSED)
    yield from changes(temporal)
    yield from runs(temporal)
    for name in SCHEDULES:
        assert temporal("schedule", "delete", "-s", name) == "Schedule deleted\n"
    yield "a deleted schedule", temporal.tried("schedule", "describe", "-s", "cli-all").returncode


def lists(temporal: TemporalCommand) -> Iterator[tuple[str, Any]]:
    for query, names in QUERIES.items():
        entries = wait_for(partial(listed, temporal, query, names))  # Temporal's lists come later
        yield query, without_times(entries)


def tables(temporal: TemporalCommand) -> Iterator[tuple[str, Any]]:
    for width in ("--long", "--really-long"):
        rows = temporal("schedule", "list", width, "-q", "ScheduleId STARTS_WITH 'cli-'").splitlines()
        yield width, [re.sub(" +", " ", rows[0]), *sorted(re.sub(" +", " ", each) for each in rows[1:])]


def listed(temporal: TemporalCommand, query: str, names: list[str]) -> Any:
    entries = json.loads(temporal("schedule", "list", "-q", query, "-o", "json"))
    entries.sort(key=lambda each: each["scheduleId"])
    return entries if [each["scheduleId"] for each in entries] == names else None


def refusals(temporal: TemporalCommand, refused: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, Any]]:
    for name, arguments in refused.items():
        done = temporal.tried("schedule", *arguments)
        yield f"refused: {name}", (done.returncode, done.stdout)
        assert "level=ERROR" in done.stderr
        if name == "an id that is taken":
            yield f"why: {name}", done.stderr.partition("msg=")[2]


def changes(temporal: TemporalCommand) -> Iterator[tuple[str, Any]]:
    for name, how in {
        "paused": ("--pause", "--reason", "until Monday"), "paused again": ("--pause", "--reason", "until May"),
        "resumed": ("--unpause", "--reason", "it is May"), "without a reason": ("--pause",),
    }.items():  # fmt: skip
        temporal("schedule", "toggle", "-s", "cli-cron", *how)
        yield name, described(temporal, "cli-cron")["schedule"]["state"]
    for name in (
        "cli-calendar",
        "cli-all",
    ):  # what the command does not name falls back, memo and search attributes stay
        change = (
            "--interval",
            "2h",
            "--cron",
            "0 3 * * *",
            "--notes",
            "new",
            "--remaining-actions",
            "2",
            *LATER,
        )
        temporal("schedule", "update", "-s", name, *WORKFLOW, *change)
        yield f"{name}, updated", described(temporal, name)


def runs(temporal: TemporalCommand) -> Iterator[tuple[str, Any]]:
    """A trigger while paused, and two backfills, one of them with an overlap policy."""
    temporal(
        "schedule", "create", "-s", "cli-runs", "--interval", "12h", "--paused", "--input", "1", *WORKFLOW
    )
    for first, last, *policy in (
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "--overlap-policy", "BufferAll"),
        ("2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z"),
    ):
        backfill = ("schedule", "backfill", "-s", "cli-runs", "--start-time", first, "--end-time", last)
        yield f"backfill from {first}", temporal(*backfill, *policy)
        count = 3 if policy else 4
        found = wait_for(partial(ended, temporal, "cli-runs", count))
        yield f"backfilled from {first}", without_times(found)
    # Temporal does not follow what AllowAll starts to its end.
    yield "trigger", temporal("schedule", "trigger", "-s", "cli-runs", "--overlap-policy", "BufferOne")
    found = wait_for(lambda: ended(temporal, "cli-runs", 5))
    last = found["info"]["recentActions"][-1]
    assert re.fullmatch(r"wf-20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", last["startWorkflowResult"]["workflowId"])
    yield "triggered", (last["startWorkflowStatus"], found["info"]["actionCount"])
    temporal("schedule", "delete", "-s", "cli-runs")


def ended(temporal: TemporalCommand, name: str, count: int) -> Any:
    """The description of a schedule once so many of its actions have ended."""
    found = json.loads(temporal("schedule", "describe", "-s", name, "-o", "json"))
    actions = found["info"].get("recentActions", [])
    statuses = [each["startWorkflowStatus"] for each in actions]
    return found if statuses == ["WORKFLOW_EXECUTION_STATUS_COMPLETED"] * count else None


def described(temporal: TemporalCommand, name: str) -> Any:
    return without_times(json.loads(temporal("schedule", "describe", "-s", name, "-o", "json")))


VARYING = {"conflictToken", "createTime", "updateTime", "actualTime", "runId"}


def without_times(said: Any) -> Any:
    """An answer without what no two servers have alike; next times to the minute, because of jitter."""
    if isinstance(said, list):
        return [without_times(each) for each in said]
    if not isinstance(said, dict):
        return said
    kept = {name: without_times(value) for name, value in said.items() if name not in VARYING}
    if "futureActionTimes" in kept:
        kept["futureActionTimes"] = [each[:16] for each in kept["futureActionTimes"]]
    return kept


def for_people(temporal: TemporalCommand, name: str) -> list[str]:
    done = temporal.tried("schedule", "describe", "-s", name)
    assert (done.returncode, done.stderr) == (0, "")
    return [
        each
        for each in done.stdout.splitlines()
        if not each.strip().startswith(("CreatedAt", "LastUpdateAt"))
    ]
