"""Requests and commands as schedules of a running app, on both stores: what is stored, and how they are stopped."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horae import App, Config, Overlap, Policies, RetryPolicy, Timeouts
from horae.errors import InvalidInputError
from horae.model import Run, Status
from horae.policy.lifecycle import ENDED
from tests.executor.harness import TREE, Asked, gone, is_alive, say, serving
from tests.support.nodes import running
from tests.support.wait import PATIENCE, wait_until

pytestmark = pytest.mark.contract("SCHD-17")

WORDS = ("hunter2-hunter2", "whsec-987654321")


@asynccontextmanager
async def offering(database: str, **more: Any) -> AsyncIterator[App]:
    quick: dict[str, Any] = {
        "lease_ms": 60_000, "housekeeping_ms": 200, "tick_ms": 100, "terminate_ms": 1000, "drain_ms": 500,
        "secret_key": "a key", "http_private": ("127.0.0.0/8",),
    }  # fmt: skip
    app = App(database, config=Config(**(quick | more)))
    app.use_builtin("https://horae.example")
    async with running(app):
        yield app


def http(url: str, **more: Any) -> dict[str, Any]:
    return {"kind": "http", "options": {"url": url, **more}}


async def ended(app: App, run_id: str) -> Run:
    async def is_over() -> bool:
        return (await app.runs.get(run_id)).status in ENDED

    await wait_until(is_over)
    return await app.runs.get(run_id)


async def all_that_is_stored(database: str, folder: Path) -> bytes:
    """Every byte of a file and of its log, or every row of every table."""
    if database.startswith("sqlite"):
        return b"".join(file.read_bytes() for file in folder.glob("horae.db*"))
    connection = await asyncpg.connect(database)
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'horae'")
    rows = [await connection.fetch(f"SELECT t::text FROM {name} AS t") for (name,) in tables]  # noqa: S608
    await connection.close()
    return "\n".join(row[0] for table in rows for row in table).encode()


async def test_what_is_secret_of_a_request_is_nowhere_in_the_database(database: str, tmp_path: Path):
    async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await say(
            writer, "200 OK" if len(server.asked) > 1 else "500 Oops", json.dumps(asked.headers).encode()
        )

    async with serving(echo) as server, offering(database) as app:
        request = http(server.url, headers={"Authorization": f"Bearer {WORDS[0]}"}, secret=WORDS[1])
        policies = Policies(retry=RetryPolicy(attempts=2, initial_delay="1ms"))
        await app.schedules.create("s", {}, request, policies=policies)
        run = await ended(app, await app.schedules.trigger("s"))
        *_, attempt = await app.runs.attempts(run.id)
        assert run.status is Status.SUCCEEDED
        assert (attempt.failure or "").startswith("HttpStatusError: The answer had the status 500")
        stored = await all_that_is_stored(database, tmp_path)
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {WORDS[0]}"] * 2
    assert b"HttpStatusError" in stored
    assert b"sealed:" in stored
    for word in WORDS:
        assert word.encode() not in stored


async def test_a_request_that_may_not_be_is_not_stored(database: str):
    async with offering(database, http_private=(), http_allow=("*.example.com",)) as app:
        for url in ("http://127.0.0.1/", "https://example.org/", "https://10.0.0.1/"):
            with pytest.raises(InvalidInputError, match=r"action.options.url"):
                await app.schedules.create("s", {}, http(url))


@pytest.mark.contract("CRON-13")
@pytest.mark.parametrize("hasty", [False, True])
async def test_work_that_a_request_handed_over_reports_its_end(database: str, hasty: bool):
    reported = asyncio.Event()

    async def accept(asked: Asked, writer: asyncio.StreamWriter) -> None:
        body = json.loads(asked.body)
        if not hasty:
            await say(writer, "202 Accepted")
        await app.runs.report(body["run_id"], body["report"]["token"], "started")
        await app.runs.report(body["run_id"], body["report"]["token"], "succeeded", result={"n": 1})
        if hasty:  # the end is reported before the acceptance is recorded
            await say(writer, "202 Accepted")
        reported.set()

    async with serving(accept) as server, offering(database) as app:
        await app.schedules.create("s", {}, http(server.url, reports=True))
        run_id = await app.schedules.trigger("s")
        await asyncio.wait_for(reported.wait(), PATIENCE)
        await wait_until(lambda: not app.worker.known("schedules"))
        run = await app.runs.get(run_id)
    assert (run.status, run.result, run.attempt) == ("succeeded", {"n": 1}, 1)


# Commands


def commands(folder: Path) -> str:
    (folder / "tree.py").write_text(TREE)
    argv = [sys.executable, "-S", "-c", TREE, str(folder), "stubborn", "2"]
    (folder / "commands.json").write_text(
        json.dumps({"tree": {"argv": argv}, "hello": {"argv": ["echo", "hi"]}})
    )
    return str(folder / "commands.json")


def pids(folder: Path) -> list[int]:
    return [int(file.stem) for file in folder.glob("*.pid")]


async def begun(app: App, folder: Path, **policies: Any) -> tuple[str, int]:
    """A run of a command that starts others and does not stop by itself, and the leader of its group."""
    await app.schedules.create("s", {}, "command:tree", policies=Policies(**policies))
    run_id = await app.schedules.trigger("s")
    await wait_until(lambda: len(pids(folder)) == 7)
    return run_id, os.getpgid(pids(folder)[0])


@pytest.mark.parametrize("how", ["cancel", "terminate", "timeout", "replaced"])
async def test_a_command_that_was_stopped_is_gone_when_the_ledger_says_so(
    database: str, tmp_path: Path, how: str
):
    async with offering(database, commands=commands(tmp_path)) as app:
        timeouts = Timeouts(cancel="300ms", run="4s" if how == "timeout" else None)
        run_id, leader = await begun(app, tmp_path, timeouts=timeouts)
        if how == "cancel":
            await app.runs.cancel(run_id)
        elif how == "terminate":
            await app.runs.terminate(run_id)
        elif how == "replaced":
            await app.schedules.trigger("s", overlap=Overlap.TERMINATE_OTHER)
        run = await ended(app, run_id)
        assert not is_alive(leader)
        wanted = {
            "cancel": "terminated",
            "terminate": "terminated",
            "timeout": "timed_out",
            "replaced": "terminated",
        }
        assert run.status == wanted[how]
    await gone(*pids(tmp_path))


async def test_a_command_ends_with_the_program_and_is_attempted_again(database: str, tmp_path: Path):
    async with offering(database, commands=commands(tmp_path)) as app:
        run_id, leader = await begun(app, tmp_path)
    assert not is_alive(leader)
    await gone(*pids(tmp_path))
    app = App(database)
    await app.open()
    run = await app.runs.get(run_id)
    await app.close()
    assert (run.status, run.reason) == ("retrying", "shutdown")


async def test_a_command_is_a_schedule_like_any_other(database: str, tmp_path: Path):
    async with offering(database, commands=commands(tmp_path)) as app:
        await app.schedules.create("s", {}, "command:hello", input={"x": 1})
        run = await ended(app, await app.schedules.trigger("s"))
    assert run.result == {"exit": 0, "stdout": "hi\n", "stderr": "", "truncated": 0}
