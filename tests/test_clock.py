"""The clock of the machine."""

from __future__ import annotations

import asyncio

import pytest

from horae.clock import SystemClock


async def test_it_waits_for_an_event_or_as_long_as_it_is_told():
    event = asyncio.Event()
    await SystemClock().wait(event, 0.001)
    event.set()
    async with asyncio.timeout(5):
        await SystemClock().wait(event, 60)


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancelled_wait_raises_whenever_its_event_is_set(turns: int):
    event = asyncio.Event()

    async def work() -> None:
        await SystemClock().wait(event, 60)
        await asyncio.sleep(60)

    working = asyncio.create_task(work())
    for _ in range(3):
        await asyncio.sleep(0)
    event.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    working.cancel()
    done, _ = await asyncio.wait([working], timeout=5)
    assert done, "the cancellation was lost"
    assert working.cancelled()
