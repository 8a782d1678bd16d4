"""Descriptions of schedules, several at a time: a schedule with its counts, its latest runs and its next fire times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from horae.app.fire_times import times_ahead
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_views import Description
from horae.model import Counts, LastOutcome, Run, Schedule, ScheduleKey, Status
from horae.store.port import Transaction

RECENT = 10
MAX_WAITING = 100_000


class _Facts(msgspec.Struct, frozen=True):
    """What a description is made of, as the database had it at one moment."""

    schedule: Schedule
    counts: Counts
    open_runs: Mapping[tuple[ScheduleKey, Status], int]
    recent: Sequence[Run]
    waiting: int
    last: LastOutcome


async def read_descriptions(scope: OwnerScope, schedule_ids: Sequence[str]) -> list[Description | None]:
    """The descriptions of some schedules, as they were at one moment; ``None`` for one that is not there."""
    now = scope.now()
    async with scope.store.reading() as transaction:
        keys = [await scope.key(transaction, each) for each in schedule_ids]
        found = await _facts(transaction, keys)
    made = {}
    for key, facts in found.items():
        ahead = await scope.evaluate(partial(times_ahead, facts.schedule, now, RECENT, facts.waiting))
        made[key] = _description(facts, ahead)
    return [made.get(key) for key in keys]


async def _facts(transaction: Transaction, keys: Sequence[ScheduleKey]) -> dict[ScheduleKey, _Facts]:
    schedules = await transaction.read_schedules(list(dict.fromkeys(keys)))
    there = [each.key for each in schedules]
    if not there:
        return {}
    counts = await transaction.counts_of(there)
    open_runs = await transaction.open_counts(there)
    recent = await transaction.recent_runs(there, RECENT)
    last = await transaction.last_outcomes(there)
    waiting = [await waiting_starts(transaction, each) for each in schedules]
    return {
        each.key: _Facts(each, counts[each.key], open_runs, recent[each.key], number, last.get(each.key, LastOutcome(each.key)))
        for each, number in zip(schedules, waiting, strict=True)
    }  # fmt: skip


def _description(facts: _Facts, ahead: tuple[datetime, ...]) -> Description:
    schedule, last = facts.schedule, facts.last

    def number(status: Status) -> int:
        return facts.open_runs.get((schedule.key, status), 0)

    return Description(
        schedule=schedule, counts=facts.counts, pending=number(Status.PENDING), retrying=number(Status.RETRYING),
        running=number(Status.STARTING) + number(Status.RUNNING),
        recent_runs=tuple(run for run in facts.recent if run.generation == schedule.generation),
        next_times=ahead,
        last_result=None if last.result is None else msgspec.json.decode(last.result), last_failure=last.failure,
    )  # fmt: skip


async def waiting_starts(transaction: Transaction, schedule: Schedule) -> int:
    """The number of waiting automatic starts that will use up a schedule's limit, counted up to the limit."""
    left = schedule.state.remaining_actions
    return await transaction.count_waiting(schedule.key, min(left, MAX_WAITING)) if left else 0
