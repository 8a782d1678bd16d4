"""Where several rules meet, what the pages on runs and on testing say is what happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horae import App, CatchUp, CatchUpPolicy, Config, Context, Overlap, Policies, RetryPolicy, WhenFull
from horae.testing import TimeMachine, VirtualClock
from tests.support.nodes import running

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = 3_600_000


@pytest.fixture
async def machine() -> AsyncIterator[TimeMachine]:
    async with TimeMachine(START) as machine:

        @machine.app.action("quick")
        async def quick(context: Context) -> None:
            """Takes no time."""

        @machine.app.action("long")
        async def long(context: Context) -> None:
            await machine.sleep(seconds=10 * 3600)

        @machine.app.action("broken")
        async def broken(context: Context) -> None:
            raise RuntimeError("no")

        yield machine


async def create(
    machine: TimeMachine, action: str = "quick", more: int | None = None, **policies: Any
) -> None:
    """A schedule that fires at every full hour, the first time at 01:00."""
    await machine.app.schedules.create(
        "s", "0 * * * *", action, policies=Policies(**policies), remaining_actions=more
    )


async def told(machine: TimeMachine, hour: int) -> str:
    """The reason why a slot did not run, or else what became of it."""
    found = await machine.app.why.explain("s", START + timedelta(hours=hour))
    return str(found.reason or found.verdict)


async def test_moving_the_clock_of_the_machine_is_a_downtime(machine: TimeMachine):
    await create(machine, overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(window="2h"))
    machine.clock.move_to(START + timedelta(hours=5, minutes=30))
    assert [await told(machine, hour) for hour in range(1, 6)] == ["undecided"] * 5
    await machine.advance(seconds=1)
    assert [await told(machine, hour) for hour in range(1, 6)] == ["late"] * 3 + ["fired"] * 2


@pytest.mark.parametrize(("tick_ms", "least", "most"), [(60_000, 60, 100), (86_400_000, 1, 30)])
async def test_an_app_on_a_virtual_clock_wakes_at_least_once_every_tick_ms(
    monkeypatch: pytest.MonkeyPatch, tick_ms: int, least: int, most: int
):
    clock = VirtualClock(START)
    app = App(":memory:", clock=clock, config=Config(tick_ms=tick_ms))
    step, steps = app.engine.step, 0

    async def counted(*given: Any) -> int | None:
        nonlocal steps
        steps += 1
        return await step(*given)

    monkeypatch.setattr(app.engine, "step", counted)
    async with running(app):
        await clock.advance(hours=1)
    assert least <= steps <= most


async def test_late_slots_that_are_made_up_use_up_what_is_to_be_skipped(machine: TimeMachine):
    await create(machine, overlap=Overlap.BUFFER_ALL)
    await machine.app.schedules.skip_next("s", 2)
    machine.clock.move_to(START + timedelta(hours=4, minutes=30))
    await machine.advance(seconds=1)
    assert [await told(machine, hour) for hour in range(1, 5)] == ["skip_next"] * 2 + ["fired"] * 2


async def test_late_slots_that_are_not_made_up_do_not(machine: TimeMachine):
    await create(machine, overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(window="2h"))
    await machine.app.schedules.skip_next("s", 2)
    machine.clock.move_to(START + timedelta(hours=4, minutes=30))
    await machine.advance(hours=1)
    said = [await told(machine, hour) for hour in range(1, 6)]
    assert said == ["late", "late", "skip_next", "skip_next", "fired"]


@pytest.mark.parametrize("waiting", ["retry", "trigger"])
async def test_all_that_waits_takes_a_place(machine: TimeMachine, waiting: str):
    retry = RetryPolicy(attempts=2, initial_delay="1d6h", max_delay="1d6h")
    action = "broken" if waiting == "retry" else "long"
    await create(machine, action, overlap=Overlap.BUFFER_ALL, max_buffer_size=1, retry=retry)
    await machine.advance(hours=1, minutes=30)
    if waiting == "trigger":
        await machine.app.schedules.trigger("s", overlap=Overlap.BUFFER_ALL)
    await machine.advance(hours=1)
    assert await told(machine, 2) == "buffer_full"


WINNERS = ["limit_reached", "late", "superseded", "no_consent", "skip_next", "buffer_full", "overlap"]


@pytest.mark.parametrize("winner", WINNERS)
async def test_which_reason_wins(machine: TimeMachine, winner: str):
    """All rules that come after the winner would keep the slot from running as well."""
    holds = set(WINNERS[WINNERS.index(winner) :])
    window = "1h" if "late" in holds else None
    mode = CatchUp.LATEST if "superseded" in holds else CatchUp.ALL
    await create(
        machine, "long", more=1 if "limit_reached" in holds else None, overlap=Overlap.SKIP,
        catch_up=CatchUpPolicy(mode=mode, window=window), backfill_limit=0 if "no_consent" in holds else None,
        max_buffer_size=1 if "buffer_full" in holds else None,
    )  # fmt: skip
    await machine.advance(hours=1, minutes=1)  # the slot of 01:00 runs until 11:00
    await machine.app.schedules.trigger("s", overlap=Overlap.BUFFER_ALL)  # and this waits for it
    await machine.advance(seconds=1)
    if "skip_next" in holds:
        await machine.app.schedules.skip_next("s", 9)
    machine.clock.move_to(START + timedelta(hours=6, minutes=30))
    await machine.advance(seconds=1)
    assert await told(machine, 2) == winner


async def test_undecided_lasts_as_long_as_there_is_no_room(machine: TimeMachine):
    await create(
        machine, "long", overlap=Overlap.BUFFER_ALL, max_buffer_size=1, when_full=WhenFull.WAIT, expire_waiting=False,
        catch_up=CatchUpPolicy(window="1h"), backfill_limit=0,
    )  # fmt: skip
    await machine.advance(hours=10, minutes=30)
    assert [await told(machine, hour) for hour in (1, 2, 3, 10)] == [
        "running",
        "waiting",
        "undecided",
        "undecided",
    ]
    await machine.advance(hours=10)  # the first one ended at 11:00
    assert [await told(machine, hour) for hour in (1, 2, 4)] == ["fired", "running", "undecided"]
    await machine.advance(hours=80)
    assert [await told(machine, hour) for hour in (3, 4, 10)] == ["fired", "fired", "running"]
