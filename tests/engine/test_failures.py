"""Failures are heard: each failed attempt is one line of the log with its traceback, which is kept with the attempt."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from horae import App, Config, Context, Policies, RetryPolicy, Status
from horae.errors import NotStartedError
from horae.executor.tracebacks import MAX_TRACEBACK_LENGTH
from horae.model import Timeouts
from horae.testing import TimeMachine
from tests.support.nodes import step
from tests.support.process import environment
from tests.support.wait import wait_until

TWICE = Policies(retry=RetryPolicy(attempts=2, initial_delay="2s"))
PROGRAM = """
import asyncio
import horae

app = horae.App(":memory:")

@app.action("report")
{function} report(context):
    raise ConnectionError("the mail server is away")

async def main():
    async with app:
        await app.schedules.create("daily", "0 9 * * *", "report")
        run_id = await app.schedules.trigger("daily")
        serving = asyncio.create_task(app.serve())
        while (await app.runs.get(run_id)).status != "failed":
            await asyncio.sleep(0.01)
        serving.cancel()

asyncio.run(main())
"""


@pytest.mark.parametrize("function", ["def", "async def"])
def test_a_bare_program_that_configured_no_logging_shows_the_traceback(tmp_path: Path, function: str):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(function=function))
    ran = subprocess.run(
        [sys.executable, str(program)], env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    line, *trace = ran.stderr.splitlines()
    assert line.startswith('schedule "daily": attempt 1 of the run ')
    assert line.endswith(', action "report", failed: ConnectionError: the mail server is away; gave up')
    assert trace == [
        "Traceback (most recent call last):",
        f'  File "{program}", line 9, in report',
        '    raise ConnectionError("the mail server is away")',
        "ConnectionError: the mail server is away",
    ]


async def test_each_failed_attempt_is_one_line_that_says_what_follows(
    machine: TimeMachine, caplog: pytest.LogCaptureFixture
):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        raise ValueError(f"attempt {context.attempt}\nwent wrong")

    await machine.app.schedules.create("s", "0 * * * *", "work", policies=TWICE)
    await machine.advance(minutes=61)
    (run,) = await machine.app.runs.list("s")
    first, second = caplog.records
    assert (first.levelname, second.levelname) == ("WARNING", "ERROR")
    assert first.getMessage() == (
        f'schedule "s": attempt 1 of the run {run.id}, action "work", failed: ValueError: attempt 1…; retry in 2s'
    )
    assert second.getMessage().endswith("attempt 2…; gave up")
    assert first.__dict__.items() >= {
        "schedule": "s", "slot": "2026-03-01T01:00:00Z", "run": run.id, "attempt": 1, "action": "work",
        "status": "retrying", "reason": "failed", "follows": "retry in 2s",
    }.items()  # fmt: skip
    attempts = await machine.app.runs.attempts(run.id)
    assert [each.attempt for each in attempts] == [1, 2]
    for each, record in zip(attempts, caplog.records, strict=True):
        assert each.traceback is not None
        assert each.traceback.endswith(f"ValueError: attempt {each.attempt}\nwent wrong\n")
        assert each.traceback.strip() == logging.Formatter().formatException(record.exc_info)  # type: ignore[arg-type]
        assert 'raise ValueError(f"attempt {context.attempt}' in each.traceback
        assert "src/horae" not in each.traceback


async def test_what_succeeds_or_is_stopped_on_request_is_no_failure(
    machine: TimeMachine, caplog: pytest.LogCaptureFixture, written: list[str]
):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        await machine.sleep(seconds=30)

    await machine.app.schedules.create("s", "0 * * * *", "work")
    await machine.advance(minutes=61)
    assert "succeed" in written
    assert "insert_attempt" not in written  # what succeeds pays nothing
    await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    (stopped, *_) = await machine.app.runs.list("s")
    await machine.app.runs.cancel(stopped.id)
    await machine.advance(minutes=1)
    (attempt,) = await machine.app.runs.attempts(stopped.id)
    assert (attempt.reason, attempt.traceback) == ("cancelled", None)
    assert caplog.records == []


async def test_an_attempt_whose_time_is_up_shows_where_it_was(
    machine: TimeMachine, caplog: pytest.LogCaptureFixture
):
    async def wait_for_ever() -> None:
        await machine.sleep(days=1)

    @machine.app.action("work")
    async def work(context: Context) -> None:
        await wait_for_ever()

    policies = Policies(timeouts=Timeouts(run="1m"))
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=62)
    (run,) = await machine.app.runs.list("s")
    (attempt,) = await machine.app.runs.attempts(run.id)
    assert "in wait_for_ever" in (attempt.traceback or "")
    (record,) = caplog.records
    assert "timed out: run timeout; gave up" in record.getMessage()


async def test_a_refusal_to_begin_has_a_line_and_no_traceback(
    machine: TimeMachine, caplog: pytest.LogCaptureFixture
):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        raise NotStartedError("the printer is off")

    await machine.app.schedules.create("s", "0 * * * *", "work", policies=Policies(start_attempts=2))
    await machine.advance(minutes=61)
    assert [
        (each.levelname, each.getMessage().rpartition("; ")[2], each.exc_info) for each in caplog.records
    ] == [
        ("WARNING", "retry in 1s", None),
        ("ERROR", "gave up", None),
    ]


class Unspeakable(Exception):  # noqa: N818 - a name for a test
    def __str__(self) -> str:
        raise RuntimeError("no words")


def deep(levels: int) -> None:
    if levels == 0:
        raise ValueError("at the bottom")
    deeper(levels)


def deeper(levels: int) -> None:
    deep(levels - 1)


def chained() -> None:
    try:
        deep(1)
    except ValueError as error:
        raise RuntimeError("above") from error


def several() -> None:
    raise ExceptionGroup("several", [ValueError("one\x00\ud800"), TypeError("two")])


def raise_(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("work", "begins", "has", "ends"),
    [
        (lambda: deep(300), "… ", ", in deeper", "ValueError: at the bottom\n"),
        (lambda: raise_(ValueError("x" * 100_000)), "Traceback", ", in raise_", "xxx…\n"),
        (chained, "Traceback", "ValueError: at the bottom", "RuntimeError: above\n"),
        (several, "  + Exception Group Traceback", "| ValueError: one\\x00\\ud800", "+------------------------------------\n"),
        (lambda: raise_(Unspeakable()), "Traceback", ", in raise_", "Unspeakable: <exception str() failed>\n"),
        (lambda: raise_(SystemExit(3)), "Traceback", ", in raise_", "SystemExit: 3\n"),
    ],
    ids=["deep", "long", "chained", "group", "unspeakable", "exit"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_tracebacks_are_bounded_and_can_always_be_stored(
    work: Callable[[], None],
    begins: str,
    has: str,
    ends: str,
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(logging.getLogger("horae"), "propagate", False)  # pytest cannot hold lone surrogates
    database = request.getfixturevalue("postgres") if kind == "postgres" else ":memory:"
    async with App(database) as app:
        app.action("work")(work)
        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")

        async def has_failed() -> bool:
            await step(app)
            return (await app.runs.get(run_id)).status is Status.FAILED

        await wait_until(has_failed)
        (attempt,) = await app.runs.attempts(run_id)
    text = attempt.traceback or ""
    assert len(text.encode()) <= MAX_TRACEBACK_LENGTH + 100
    assert text.startswith(begins)
    assert has in text
    assert text.endswith(ends)


async def test_an_error_that_never_reached_the_action_has_no_traceback(machine: TimeMachine):
    machine.app.action("work")(lambda: 1j)  # no JSON
    await machine.app.schedules.create("s", "0 * * * *", "work")
    await machine.advance(minutes=61)
    (run,) = await machine.app.runs.list("s")
    (attempt,) = await machine.app.runs.attempts(run.id)
    assert (attempt.failure, attempt.traceback) == (run.failure, None)


async def test_the_latest_of_many_attempts_are_read(machine: TimeMachine):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        raise ValueError("again")

    policies = Policies(retry=RetryPolicy(attempts=None, initial_delay="1s", factor=1))
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=62, seconds=10)
    (run,) = await machine.app.runs.list("s")
    assert [each.attempt for each in await machine.app.runs.attempts(run.id)] == list(range(32, 132))
    assert [each.attempt for each in await machine.app.runs.attempts(run.id, 2)] == [130, 131]


async def test_a_failure_that_cannot_be_recorded_before_the_program_ends_is_logged(
    postgres: str, caplog: pytest.LogCaptureFixture
):
    async with App(postgres, config=Config(drain_ms=0)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            raise ValueError("nobody will know")

        await app.schedules.create("s", {}, "work")
        await app.schedules.trigger("s")
        await step(app)
        await wait_until(app.worker.ended)
        await app._store.close()
    (failed,) = [each for each in caplog.records if "attempt 1" in each.getMessage()]
    assert failed.getMessage().endswith(
        "nobody will know; its end could not be recorded, so it counts as crashed"
    )
    assert failed.exc_info


async def test_nothing_is_held_after_a_failure_is_recorded(monkeypatch: pytest.MonkeyPatch):
    """The error leads to the frames of the action, and so to everything that it held."""
    monkeypatch.setattr(logging.getLogger("horae"), "propagate", False)  # pytest keeps every record

    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    async with App(":memory:") as app:

        @app.action("work")
        async def work(context: Context) -> None:
            local = Held()
            held.append(weakref.ref(local))
            raise ValueError("no")

        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")

        async def has_failed() -> bool:
            await step(app)
            return (await app.runs.get(run_id)).status is Status.FAILED

        await wait_until(has_failed)
        gc.collect()
        assert held[0]() is None
