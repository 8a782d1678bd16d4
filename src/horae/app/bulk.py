"""Changes of many schedules: in batches, one transaction each, so that other work proceeds between them.

After a crash between two batches each schedule is either unchanged or fully changed; repeating the request completes the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import fitting
from horae.app.schedule_edits import next_version, record_unstarted, standing
from horae.errors import SpecError
from horae.model import Schedule, ScheduleKey, UnstartedRange
from horae.store.port import BEGINNING, Filter

BATCH = 200
"""The most schedules that one transaction changes; it bounds how long others wait."""

Change = Callable[[Schedule, int], tuple[Schedule, tuple[UnstartedRange, ...]]]


async def batches(scope: OwnerScope, only: Filter) -> AsyncIterator[list[ScheduleKey]]:
    """The keys of the schedules that match a filter, in batches that are neither long nor large."""
    after = BEGINNING
    while True:
        async with scope.store.reading() as transaction:
            sizes = await transaction.schedule_sizes(scope.only(only), after, BATCH)
        number, more = fitting([size for _, size in sizes], BATCH)
        if number:
            yield [key for key, _ in sizes[:number]]
            after = sizes[number - 1][0]
        if not more:
            return
        await asyncio.sleep(0)  # let other tasks run


async def change_all(scope: OwnerScope, only: Filter, change: Change) -> int:
    """Change all schedules that match a filter; return how many matched. A schedule without a difference is not written."""
    number = 0
    async for keys in batches(scope, only):
        number += await change_batch(scope, keys, change)
    return number


async def change_batch(scope: OwnerScope, keys: Sequence[ScheduleKey], change: Change) -> int:
    """Change the given schedules in one transaction; return how many could be changed."""
    return await scope.change(partial(_change_batch, keys, change))


async def _change_batch(keys: Sequence[ScheduleKey], change: Change, work: UnitOfWork) -> int:
    now = work.now
    locked = await work.transaction.schedules(keys)
    changes = work.answers.ask_all(
        [(standing(each), partial(_changed, change, each, now)) for each in locked]
    )
    possible = [(old, found) for old, found in zip(locked, changes, strict=True) if found is not None]
    changed = [(new, unstarted) for old, (new, unstarted) in possible if unstarted or new != old]
    await work.transaction.update_schedules((next_version(new, now), now) for new, _ in changed)
    for new, unstarted in changed:
        await record_unstarted(work, new, unstarted)
    if changed:
        await work.transaction.notify()
    return len(possible)


def _changed(
    change: Change, schedule: Schedule, now: int
) -> tuple[Schedule, tuple[UnstartedRange, ...]] | None:
    """The changed schedule; ``None`` if it cannot be read or its spec cannot be evaluated: the others must still be changed."""
    if schedule.unreadable:
        return None
    try:
        return change(schedule, now)
    except SpecError:
        return None
