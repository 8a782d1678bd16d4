"""Descriptions of schedules, several at a time: a schedule with its counts, its latest runs and its next fire times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec

from horae.app.fire_times import times_ahead
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_views import Description
from horae.model import LastOutcome, Schedule, Status
from horae.store.port import Transaction

RECENT = 10
MAX_WAITING = 100_000


async def read_descriptions(scope: OwnerScope, schedule_ids: Sequence[str]) -> list[Description | None]:
    """The descriptions of several schedules, as of one moment; ``None`` for each that does not exist."""
    now = scope.now()
    async with scope.store.reading() as transaction:
        keys = [await scope.key(transaction, each) for each in schedule_ids]
        schedules = await transaction.read_schedules(list(dict.fromkeys(keys)))
        found = [each.key for each in schedules]
        if not found:
            return [None] * len(keys)
        counts = await transaction.counts_of(found)
        open_runs = Counter(await transaction.open_counts(found))
        recent = await transaction.recent_runs(found, RECENT)
        last = await transaction.last_outcomes(found)
        waiting = {each.key: await waiting_starts(transaction, each) for each in schedules}
    descriptions = {}
    for each in schedules:
        key = each.key
        ahead = await scope.evaluate(partial(times_ahead, each, now, RECENT, waiting[key]))
        before = last.get(key, LastOutcome(key))
        descriptions[key] = Description(
            schedule=each, counts=counts[key], pending=open_runs[key, Status.PENDING],
            retrying=open_runs[key, Status.RETRYING],
            running=open_runs[key, Status.STARTING] + open_runs[key, Status.RUNNING],
            recent_runs=tuple(run for run in recent[key] if run.generation == each.generation), next_times=ahead,
            last_result=None if before.result is None else msgspec.json.decode(before.result), last_failure=before.failure,
        )  # fmt: skip
    return [descriptions.get(key) for key in keys]


async def waiting_starts(transaction: Transaction, schedule: Schedule) -> int:
    """The number of waiting automatic starts that will use up a schedule's limit, counted up to the limit."""
    left = schedule.state.remaining_actions
    return await transaction.count_waiting(schedule.key, min(left, MAX_WAITING)) if left else 0
