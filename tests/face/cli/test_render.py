"""What the API answers, as people read it."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from rich.console import Console

from horae import Policies, RetryPolicy
from horae.app.schedule_views import description_view
from horae.app.views import RunHistory, history_view
from horae.executor.attempt_context import Context
from horae.face.cli.render import run_panel, schedule_panel
from horae.testing import TimeMachine


@pytest.mark.contract("SCHD-24")
async def test_what_never_started_is_shown_by_its_reason():
    async with TimeMachine(datetime(2026, 3, 1, tzinfo=UTC)) as machine:

        @machine.app.action("slow")
        async def slow(context: Context) -> None:
            await machine.sleep(seconds=90)

        await machine.app.schedules.create("s", "* * * * *", "slow", remaining_actions=3)
        await machine.advance(minutes=1)
        await machine.app.schedules.skip_next("s", 3)
        await machine.advance(minutes=9)
        described = description_view(await machine.app.schedules.describe("s"))
        unstarted = {"limit_reached": 3, "overlap": 1, "skip_next": 3}
        info = described.info
        assert (info.started, info.skipped, info.missed, info.dropped) == (3, 1, 0, 0)
        assert info.unstarted == unstarted
        console = Console(width=120)
        with console.capture() as printed:
            console.print(schedule_panel(msgspec.json.decode(msgspec.json.encode(described))))
        assert "3 started, 1 skipped, 0 missed, 0 dropped" in printed.get()
        assert "3 limit reached, 1 overlap, 3 skip next" in printed.get()


async def test_a_run_is_shown_with_the_keys_of_what_it_saved_and_no_value(machine: TimeMachine):
    @machine.app.action("steps")
    async def steps(context: Context) -> None:
        await context.checkpoint("charged", "a secret")

    await machine.app.schedules.create("s", "* * * * *", "steps")
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    checkpoints = await machine.app.runs.checkpoints(run.id)
    shown = msgspec.json.encode(history_view(RunHistory(run, [], checkpoints)))
    console = Console(width=120)
    with console.capture() as printed:
        console.print(run_panel(msgspec.json.decode(shown), "UTC"))
    assert b'"checkpoints":[{"key":"charged","attempt":1,"saved_at":"2026-' in shown
    assert "charged" in printed.get()
    assert "a secret" not in shown.decode() + printed.get()


async def test_a_run_is_shown_with_its_tracebacks_the_same_one_once(machine: TimeMachine):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        raise ValueError("first" if context.attempt == 1 else "later")

    policies = Policies(retry=RetryPolicy(attempts=3, initial_delay="1s"))
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=policies)
    await machine.advance(minutes=61)
    (run,) = await machine.app.runs.list("s")
    shown = msgspec.json.encode(history_view(await machine.app.runs.history(run.id)))
    console = Console(width=200)
    with console.capture() as printed:
        console.print(run_panel(msgspec.json.decode(shown), "UTC"))
    text = printed.get()
    assert text.count("Traceback (most recent call last):\n") == 2
    assert "\nattempt 1\nTraceback" in text
    assert "\nattempts 2, 3\nTraceback" in text
    assert text.endswith("\nValueError: later\n")
