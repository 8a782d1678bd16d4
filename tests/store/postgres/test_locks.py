"""Row locks: what a transaction reads to change it is what it has locked."""

from __future__ import annotations

import asyncio

from horae.model import Action, Policies, Schedule, ScheduleKey, State
from horae.store.postgres import PostgresStore


async def test_a_schedule_created_anew_while_the_old_one_was_waited_for_is_not_read_unlocked(postgres: str):
    old = Schedule(
        id="s", generation=1, spec='{"crons":["* * * * *"]}', action=Action(name="a"), policies=Policies(),
        state=State(), version=1, cursor_ms=0, created_at_ms=1, updated_at_ms=1,
    )  # fmt: skip
    store = PostgresStore(postgres)
    await store.open(lambda: None)

    async def read() -> list[Schedule]:
        async with store.transaction() as transaction:
            return await transaction.schedules([ScheduleKey("s")])

    try:
        async with store.transaction() as transaction:
            await transaction.insert_schedules([(old, None)])
        async with store.transaction() as transaction:
            assert await transaction.schedules([ScheduleKey("s")]) == [old]
            waiting = asyncio.create_task(read())
            while not await transaction.execute("SELECT 1 FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
            await transaction.delete_schedules([ScheduleKey("s")])
            await transaction.insert_schedules([(old, None)])
        assert await waiting == []
        assert await read() == [old]
    finally:
        await store.close()
