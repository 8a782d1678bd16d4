"""The clock that nodes share: this machine's, corrected by the database's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from horae.app.engine_driver import SharedClock
from horae.testing import VirtualClock

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead_ms", "sent_s", "back_s", "off_ms"),
    [
        (0, 0, 0, 0), (700, 0, 0, 0), (-700, 0, 0, 0),  # an answer at once is taken as it is
        (0, 3, 0, 0), (0, 0, 3, 0), (0, 2, 2, 0),  # one that was long on its way says nothing new
        (60_000, 0, 3, -3000), (-60_000, 3, 0, 3000),  # unless it is off by more; the way may count for it
    ],
)  # fmt: skip
async def test_it_takes_the_databases_time_as_exactly_as_the_answer_is(
    ahead_ms: int, sent_s: float, back_s: float, off_ms: int
):
    clock = VirtualClock(START)

    class Database:
        async def time(self) -> int:
            await clock.advance(seconds=sent_s)
            read = here() + ahead_ms
            await clock.advance(seconds=back_s)
            return read

    def here() -> int:
        return int(clock.now().timestamp() * 1000)

    store: Any = Database()
    shared = SharedClock(clock, store)
    await shared.set()
    assert shared.now() == here() + ahead_ms + off_ms
