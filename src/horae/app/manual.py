"""What people start by hand: triggers, and backfills of a range. The parts that happen within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from horae.app.evaluation import Answers
from horae.app.fields import BackfillBody, TriggerBody
from horae.app.validate import check_input, check_text, own_overlap, seconds_of
from horae.errors import BackfillLimitError, LimitExceededError
from horae.model import Backfill, Origin, OriginKind, Run, Schedule
from horae.policy.due import Slot
from horae.policy.ledger import new_run
from horae.spec import Spec
from horae.store.port import Transaction

COUNTED_TOGETHER = 32 * 86400
"""Seconds whose slots are counted in one question: each question about a spec has a bound."""
_replace = msgspec.structs.replace


class Trigger(TriggerBody, frozen=True, kw_only=True):
    """A start that was asked for; what is not said is the schedule's own."""

    author: str = ""


class BackfillRequest(BackfillBody, frozen=True, kw_only=True):
    """A range of nominal times, both ends included, that is to be made up."""

    author: str = ""


class BackfillPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a backfill would do: how many slots, from when to when."""

    slots: int
    first: datetime | None
    last: datetime | None


def count_slots(spec: str, begin: int, end: int, most: int) -> int:
    """How many slots a range of a spec has, both ends included; beyond ``most`` the exact number does not matter."""
    read, after, total = Spec.parse(spec), begin - 1, 0
    while after < end and total <= most:
        last = min(after + COUNTED_TOGETHER, end)
        total += read.count(after, last, most - total)
        after = last
    return total


def slots_of(wanted: Sequence[tuple[Schedule, BackfillRequest]], answers: Answers, most: int) -> list[int]:
    """How many slots backfills have, by specs as they stand under the lock; more than there may be are refused."""
    ranges = [(schedule.spec, *seconds_of(each.start, each.end), most) for schedule, each in wanted]
    found = answers.ask_all([(("slots", *each), partial(count_slots, *each)) for each in ranges])
    for (schedule, _), slots in zip(wanted, found, strict=True):
        limit = schedule.policies.backfill_limit
        if limit is not None and slots > limit:
            raise BackfillLimitError(schedule.id, slots, limit)
        check_slots(slots, most)
    return found


def check_slots(slots: int, most: int) -> None:
    """A backfill has so many slots at most."""
    if slots > most:
        raise LimitExceededError("backfill_slots", most, "the range has too many slots")


async def start_trigger(
    transaction: Transaction, schedule: Schedule, trigger: Trigger, most_waiting: int, now: int
) -> Run:
    """A run of a schedule that is locked, whatever its spec says; refused while ``most_waiting`` others wait."""
    if trigger.input is not msgspec.UNSET:
        check_input(trigger.input)
    check_text("note", trigger.note)
    # Automatic starts and slots of backfills have a limit of their own, and take no room from what people ask for.
    if await transaction.count_triggers(schedule.id, most_waiting) >= most_waiting:
        reason = f'too many manual starts of the schedule "{schedule.id}" wait'
        raise LimitExceededError("max_buffer_size", most_waiting, reason)
    origin = Origin(OriginKind.TRIGGER, str(await transaction.next_number()))
    run = new_run(schedule, Slot(now // 1000, now, now), origin, own_overlap(schedule, trigger.overlap))
    own = run.input if trigger.input is msgspec.UNSET else trigger.input
    run = _replace(run, input=own, author=trigger.author, note=trigger.note)
    await transaction.insert_runs([run])
    await transaction.mark_due([schedule.id], now)
    await transaction.notify()
    return run


async def start_backfill(
    transaction: Transaction,
    schedule: Schedule,
    request: BackfillRequest,
    slots: int,
    *,
    most_open: int,
    now: int,
) -> Backfill:
    """A backfill of so many slots, which goes on by itself until its range is made up; refused while ``most_open`` others go on.

    Each decision about the schedule reads all of them.
    """
    check_input(request.input)
    check_text("note", request.note)
    if await transaction.count_open_backfills(schedule.id, most_open) >= most_open:
        reason = f'too many backfills of the schedule "{schedule.id}" are open; wait until one is done, or cancel one'
        raise LimitExceededError("open_backfills", most_open, reason)
    begin, end = seconds_of(request.start, request.end)
    backfill = Backfill(
        id=f"{schedule.id}:{await transaction.next_number()}", schedule_id=schedule.id,
        generation=schedule.generation, first=begin, last=end, overlap=own_overlap(schedule, request.overlap),
        cursor=begin - 1, total=slots, created_at=now, author=request.author, note=request.note,
        input=request.input,
    )  # fmt: skip
    await transaction.insert_backfills([backfill])
    await transaction.mark_due([schedule.id], now)
    await transaction.notify()
    return backfill


def preview_of(spec: Spec, begin: int, end: int, most: int) -> BackfillPreview:
    """What a backfill of a range, both ends included, would do."""
    first = spec.next_instant(begin - 1)
    if first is None or first > end:
        return BackfillPreview(slots=0, first=None, last=None)
    last = spec.previous_instant(end)
    slots = count_slots(spec.text, begin, end, most)
    check_slots(slots, most)
    return BackfillPreview(
        slots=slots,
        first=datetime.fromtimestamp(first, UTC),
        last=None if last is None else datetime.fromtimestamp(last, UTC),
    )
