"""Manual starts: triggers, and backfills of a range. The parts that run within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

import msgspec

from horae.app.field_checks import check_text, range_ms, stored_json
from horae.app.owner_scope import UnitOfWork
from horae.app.schedule_fields import BackfillBody, Moment, TriggerBody
from horae.errors import BackfillLimitError, LimitExceededError
from horae.model import (
    Backfill,
    BackfillStatus,
    Origin,
    OriginKind,
    Overlap,
    Reason,
    Run,
    Schedule,
    Status,
    instant,
)
from horae.policies import OverlapName
from horae.policy.catch_up import Slot
from horae.policy.ledger_changes import new_run
from horae.policy.rerun import run_again
from horae.policy.slot_times import count_slots, next_slot_ms, previous_slot_ms
from horae.spec import Spec

COUNTED_TOGETHER_MS = 32 * 86_400_000
"""The span in milliseconds whose slots are counted in one question: each question about a spec has a bound."""
_replace = msgspec.structs.replace


class TriggerFields(TypedDict, total=False):
    """The fields of a :class:`Trigger`, as they may be given."""

    overlap: Overlap | OverlapName | None
    input: Any
    note: str
    author: str


class Trigger(TriggerBody, frozen=True, kw_only=True):
    """A manual start; unset fields take the schedule's values."""

    author: str = ""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[TriggerFields]) -> None: ...


class BackfillFields(TriggerFields, total=False):
    """The fields of a :class:`BackfillRequest`, as they may be given."""

    start: Required[Moment]
    end: Required[Moment]


class BackfillRequest(BackfillBody, frozen=True, kw_only=True):
    """A range of nominal times to backfill, both ends included."""

    author: str = ""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[BackfillFields]) -> None: ...


class BackfillPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a backfill: how many slots, from when to when."""

    slots: int
    first: datetime | None
    last: datetime | None


def count_in_parts(spec: str, start_ms: int, end_ms: int, most: int) -> int:
    """How many slots a range of a spec has, both ends included; beyond ``most`` the exact number does not matter."""
    read, after_ms, total = Spec.parse(spec), start_ms - 1, 0
    while after_ms < end_ms and total <= most:
        until_ms = min(after_ms + COUNTED_TOGETHER_MS, end_ms)
        total += count_slots(read, after_ms, until_ms, most - total)
        after_ms = until_ms
    return total


def slots_of(work: UnitOfWork, wanted: Sequence[tuple[Schedule, BackfillRequest]]) -> list[int]:
    """The number of slots of each backfill, by the specs of the locked schedules; refuse too many."""
    most = work.scope.config.backfill_slots
    ranges = [(schedule.spec, *range_ms(each.start, each.end), most) for schedule, each in wanted]
    found = work.answers.ask_all([(("slots", *each), partial(count_in_parts, *each)) for each in ranges])
    for (schedule, _), slots in zip(wanted, found, strict=True):
        limit = schedule.policies.backfill_limit
        if limit is not None and slots > limit:
            raise BackfillLimitError(schedule.id, slots, limit)
        check_slots(slots, most)
    return found


def check_slots(slots: int, most: int) -> None:
    """Refuse a backfill of more than ``most`` slots."""
    if slots > most:
        raise LimitExceededError("backfill_slots", most, "the range has too many slots")


async def start_trigger(
    work: UnitOfWork, schedule: Schedule, trigger: Trigger, *, rerun: Run | None = None
) -> Run:
    """Create a run of a locked schedule, whatever its spec says; refuse it while too many manual starts wait.

    With ``rerun``, it is of that run's slot, with its input if the trigger has none.
    """
    transaction, now, most_waiting = work.transaction, work.now, work.scope.config.max_buffer_size
    work.scope.check_start(schedule, other_input=trigger.input is not msgspec.UNSET)
    own = None if trigger.input is msgspec.UNSET else stored_json(trigger.input)
    check_text("note", trigger.note)
    # Automatic starts and slots of backfills have separate limits, and do not count against triggers.
    if await transaction.count_triggers(schedule.key, most_waiting) >= most_waiting:
        reason = f'too many manual starts of the schedule "{schedule.id}" wait'
        raise LimitExceededError("max_buffer_size", most_waiting, reason)
    overlap, number = trigger.overlap or schedule.policies.overlap, await transaction.next_number()
    if rerun is None:
        slot = Slot(now // 1000 * 1000, now, now)
        run = new_run(schedule, slot, Origin(OriginKind.TRIGGER, str(number)), overlap, now)
    else:
        run = run_again(rerun, schedule, number, overlap, now)
    own = run.input if trigger.input is msgspec.UNSET else own
    run = _replace(run, input=own, author=trigger.author, note=trigger.note)
    await transaction.insert_runs([run])
    await transaction.mark_due([schedule.key], now)
    await transaction.notify()
    return run


async def start_backfills(
    work: UnitOfWork, schedule: Schedule, requests: Sequence[BackfillRequest]
) -> list[Backfill]:
    """Create backfills of a locked schedule, which nodes work through."""
    slots = slots_of(work, [(schedule, each) for each in requests])
    return [
        await _start_backfill(work, schedule, each, number)
        for each, number in zip(requests, slots, strict=True)
    ]


async def _start_backfill(
    work: UnitOfWork, schedule: Schedule, request: BackfillRequest, slots: int
) -> Backfill:
    """Create a backfill; refuse it while too many others are open, because each decision about the schedule reads them all."""
    transaction, now, most_open = work.transaction, work.now, work.scope.config.open_backfills
    work.scope.check_start(schedule, other_input=request.input is not None)
    own = stored_json(request.input)
    check_text("note", request.note)
    if await transaction.count_open_backfills(schedule.key, most_open) >= most_open:
        reason = f'too many backfills of the schedule "{schedule.id}" are open; wait until one is done, or cancel one'
        raise LimitExceededError("open_backfills", most_open, reason)
    start_ms, end_ms = range_ms(request.start, request.end)
    backfill = Backfill(
        id=f"{schedule.id}:{await transaction.next_number()}", schedule_key=schedule.key,
        generation=schedule.generation, start_ms=start_ms, end_ms=end_ms, overlap=request.overlap or schedule.policies.overlap,
        cursor_ms=start_ms - 1000, total=slots, created_at_ms=now, author=request.author, note=request.note,
        input=own,
    )  # fmt: skip
    await transaction.insert_backfills([backfill])
    await transaction.mark_due([schedule.key], now)
    await transaction.notify()
    return backfill


def preview_of(spec: Spec, start_ms: int, end_ms: int, most: int) -> BackfillPreview:
    """The effect of a backfill of a range, both ends included."""
    first_ms = next_slot_ms(spec, start_ms - 1)
    if first_ms is None or first_ms > end_ms:
        return BackfillPreview(slots=0, first=None, last=None)
    last_ms = previous_slot_ms(spec, end_ms)
    slots = count_in_parts(spec.text, start_ms, end_ms, most)
    check_slots(slots, most)
    last = None if last_ms is None else instant(last_ms)
    return BackfillPreview(slots=slots, first=instant(first_ms), last=last)


def given_up(runs: Iterable[Run], reason: Reason, now: int) -> list[Run]:
    """The given open runs that end now because their cause is gone: running ones continue, the others never start, or never
    again.
    """
    return [
        _replace(run, status=Status.CANCELLED if run.attempt else Status.DROPPED, reason=reason, ended_at_ms=now)
        for run in runs
        if run.status is not Status.RUNNING
    ]  # fmt: skip


def cancelled_backfill(backfill: Backfill, now: int) -> Backfill:
    """A cancelled backfill: no more of its slots become runs."""
    return _replace(backfill, status=BackfillStatus.CANCELLED, ended_at_ms=now)
