"""What people start by hand: triggers, and backfills of a range. The parts that happen within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from horae.app.evaluation import Answers
from horae.errors import BackfillLimitError, InvalidInputError, LimitExceededError, NaiveTimeError
from horae.json_bounds import MAX_DEPTH, JsonTooLargeError, check_json
from horae.model import Backfill, Origin, OriginKind, Overlap, Run, Schedule
from horae.policy.due import Slot
from horae.policy.ledger import new_run
from horae.spec import Spec
from horae.store.port import Transaction

MAX_INPUT_LENGTH = 1024 * 1024
MAX_TEXT_LENGTH = 10_000
COUNTED_TOGETHER = 32 * 86400
"""Seconds whose slots are counted in one question: each question about a spec has a bound."""
_replace = msgspec.structs.replace


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """A start that somebody asks for; what is not said is the schedule's own."""

    overlap: Overlap | str | None = None
    input: Any = msgspec.UNSET
    author: str = ""
    note: str = ""


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A range of nominal times, both ends included, that somebody asks to be made up."""

    first: datetime
    last: datetime
    overlap: Overlap | str | None = None
    input: Any = None
    author: str = ""
    note: str = ""


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
    ranges = [(schedule.spec, *seconds_of(each.first, each.last), most) for schedule, each in wanted]
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
    begin, end = seconds_of(request.first, request.last)
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


def own_overlap(schedule: Schedule, overlap: Overlap | str | None) -> Overlap:
    """The overlap policy that a start was given, or else the schedule's."""
    if overlap is None:
        return schedule.policies.overlap
    try:
        return Overlap(overlap)
    except ValueError:
        known = ", ".join(Overlap)
        raise InvalidInputError("overlap", f"is none of {known}: {overlap!r}") from None


def check_input(value: object, field: str = "input") -> None:
    """An input, or another value of the user's, must be JSON, and not too large."""
    if value is None:
        return
    try:
        text = msgspec.json.encode(value)
    except RecursionError:
        raise InvalidInputError(
            field, f"has values more than {MAX_DEPTH} deep within each other, or itself within it"
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(field, f"is no JSON: {error}") from None
    if len(text) > MAX_INPUT_LENGTH:
        raise InvalidInputError(field, f"has {len(text)} bytes, and {MAX_INPUT_LENGTH} are taken at most")
    try:
        check_json(text)
    except JsonTooLargeError as error:
        raise InvalidInputError(field, str(error)) from None


def check_text(field: str, text: str) -> None:
    """A text must be one that every database takes, and not too long."""
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidInputError(field, f"has {len(text)} characters, and {MAX_TEXT_LENGTH} are taken at most")
    if "\x00" in text or (not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)):
        raise InvalidInputError(field, "has a character that no text has")


def seconds_of(first: datetime, last: datetime) -> tuple[int, int]:
    """The whole seconds of a range with both ends."""
    for moment in (first, last):
        if moment.utcoffset() is None:
            raise NaiveTimeError(moment)
    if last < first:
        raise InvalidInputError("last", f"is before first: {last} < {first}")
    # A nominal time is a whole second: from half past one on, that second is over.
    begin = first.timestamp()
    return int(begin) + (begin > int(begin)), int(last.timestamp())


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
