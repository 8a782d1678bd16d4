"""Which slots are due, and which of them are made up: the catch-up policy.

Every nominal time between the old cursor and the new one is either selected or in exactly one unstarted range, so started,
waiting, skipped, missed and dropped slots always add up to the slots found.

Counting a long range may exceed the budget of one decision. The decision then covers the first part of the range and moves the
cursor to its end; the next decision follows at once and continues from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import assert_never

import msgspec

from horae.model import CatchUp, CatchUpPolicy, Limits, Reason
from horae.policy.slot_times import (
    all_but,
    count_slots,
    count_slots_within_budget,
    next_slot_ms,
    previous_slot_ms,
    slots_ms,
)
from horae.policy.undecided_spec import UndecidedSpec
from horae.spec import Spec
from horae.spec.duration import milliseconds

_LIMITS = Limits()


class Slot(msgspec.Struct, frozen=True, gc=False):
    """A nominal time, when it fires (jitter), and when it may start at the earliest (spread)."""

    nominal_ms: int
    fire_ms: int
    start_at_ms: int


class Unstarted(msgspec.Struct, frozen=True, gc=False):
    """Consecutive nominal times that will not run, for one reason: a range with both ends included."""

    start_ms: int
    end_ms: int
    count: int
    reason: Reason


class Due(msgspec.Struct, frozen=True, gc=False):
    """Due slots, ranges that do not start, the cursor after them, and when the next slot fires."""

    slots: tuple[Slot, ...]
    unstarted: tuple[Unstarted, ...]
    cursor_ms: int
    next_fire: int | None


def find_due(
    spec: Spec,
    schedule_id: str,
    cursor_ms: int,
    now: int,
    policy: CatchUpPolicy,
    *,
    limit: int = _LIMITS.catch_up_per_pass,
    consent: int | None = None,
) -> Due:
    """The slots after the cursor whose fire time has come, chosen by the catch-up policy.

    ``consent`` is the maximum number of late slots to make up; the latest ones are chosen.
    """
    first = next_slot_ms(spec, cursor_ms)
    if first is None:
        return Due((), (), cursor_ms, None)
    fires = fire_instant(spec, first, schedule_id)
    if fires > now:
        return Due((), (), cursor_ms, fires)
    next_fire = next_fire_ms(spec, first, schedule_id)
    if now - fires <= milliseconds(policy.grace) and (next_fire is None or next_fire > now):
        # The usual case, and the one that must be fast: one slot, on time.
        return Due((Slot(first, fires, fires),), (), first, next_fire)
    unstarted, complete = _find_unstarted(spec, schedule_id, cursor_ms, now, policy=policy, consent=consent)
    start = unstarted[-1].end_ms if unstarted else cursor_ms
    if not complete:
        return Due((), tuple(unstarted), start, now)
    last = last_fired(spec, schedule_id, now) or first
    nominals_ms = slots_ms(spec, start, last, limit)
    if nominals_ms:
        start = nominals_ms[-1]
    fired = [(each, fire_instant(spec, each, schedule_id)) for each in nominals_ms]
    slots = _spread([Slot(nominal_ms, fire_ms, fire_ms) for nominal_ms, fire_ms in fired], now, policy)
    return Due(tuple(slots), tuple(unstarted), start, next_fire_ms(spec, start, schedule_id))


def window_ms_of(policy: CatchUpPolicy) -> int | None:
    """How late a slot may start, in milliseconds; ``None`` is for ever."""
    grace_ms = milliseconds(policy.grace)
    match policy.mode:
        case CatchUp.NONE:
            return grace_ms
        case CatchUp.ALL | CatchUp.LATEST | CatchUp.SPREAD:
            window_ms = milliseconds(policy.window)
            return None if window_ms is None else max(window_ms, grace_ms)
        case _:
            assert_never(policy.mode)


def _find_unstarted(
    spec: Spec,
    schedule_id: str,
    cursor_ms: int,
    now: int,
    *,
    policy: CatchUpPolicy,
    consent: int | None,
) -> tuple[list[Unstarted], bool]:
    """Find consecutive unstarted ranges: slots that are too late, then superseded ones, then those without consent.

    The flag is false if the budget ran out before the end; another decision then finds the rest.
    """
    unstarted: list[Unstarted] = []

    def start() -> int:
        return unstarted[-1].end_ms if unstarted else cursor_ms

    def leave_until(last: int | None, reason: Reason) -> bool:
        """Leave the slots up to ``last`` unstarted; return whether the budget reached it."""
        if last is None or last <= start() or not (found := ranges(spec, start(), last, reason)):
            return True
        unstarted.extend(found)
        return found[-1].end_ms == last

    def late() -> Iterator[tuple[int | None, Reason]]:
        if (window_ms := window_ms_of(policy)) is not None:
            # A slot is missed if it is later than the window; within the grace it counts as on time.
            yield _last_before(spec, schedule_id, now - window_ms), Reason.LATE
        yield _last_superseded(spec, schedule_id, now, policy.mode), Reason.SUPERSEDED
        if consent is not None:
            late = _last_before(spec, schedule_id, now - milliseconds(policy.grace))
            if consent and late is not None:
                late = all_but(spec, start(), late, consent)
            yield late, Reason.NO_CONSENT

    return unstarted, all(leave_until(last, reason) for last, reason in late())


def _last_superseded(spec: Spec, schedule_id: str, now: int, mode: CatchUp) -> int | None:
    """The last due slot that the latest one supersedes."""
    match mode:
        case CatchUp.LATEST:
            last = last_fired(spec, schedule_id, now)
            return None if last is None else previous_slot_ms(spec, last - 1)
        case CatchUp.ALL | CatchUp.SPREAD | CatchUp.NONE:
            return None
        case _:
            assert_never(mode)


def skip_due(spec: Spec, schedule_id: str, cursor_ms: int, now: int, reason: Reason) -> Due:
    """Skip all due slots for one reason, such as a pause that skips or a limit that was reached."""
    last = last_fired(spec, schedule_id, now)
    unstarted: list[Unstarted] = []
    if last is not None and last > cursor_ms:
        unstarted = ranges(spec, cursor_ms, last, reason)
        cursor_ms = unstarted[-1].end_ms if unstarted else cursor_ms
    return Due((), tuple(unstarted), cursor_ms, next_fire_ms(spec, cursor_ms, schedule_id))


def last_fired(spec: Spec, schedule_id: str, now: int) -> int | None:
    """The last nominal time whose fire time has come."""
    return _last_before(spec, schedule_id, now + 1)


def leave_behind(spec: Spec, after: int, until: int, reason: Reason) -> list[Unstarted]:
    """The undecided slots after ``after`` and up to ``until``, as ranges that never start."""
    carried, after = _carried(spec, after, until, reason)
    last, first = previous_slot_ms(spec, until), next_slot_ms(spec, after)
    if last is None or first is None or last < first:
        return carried
    return [*carried, Unstarted(first, last, count_slots(spec, after, last), reason)]


def fire_instant(spec: Spec, nominal_ms: int, schedule_id: str) -> int:
    """When a slot fires, in milliseconds."""
    fires = nominal_ms
    if spec.elements.jitter is not None:
        fires = round(
            spec.fire_time(datetime.fromtimestamp(nominal_ms // 1000, UTC), schedule_id).timestamp() * 1000
        )
    return max(fires, spec.not_before_ms(nominal_ms, fires)) if isinstance(spec, UndecidedSpec) else fires


def next_fire_ms(spec: Spec, after_ms: int, schedule_id: str) -> int | None:
    """When the first slot after a moment fires, in milliseconds; ``None`` if there is none."""
    following = next_slot_ms(spec, after_ms)
    return None if following is None else fire_instant(spec, following, schedule_id)


def _last_before(spec: Spec, schedule_id: str, instant: int) -> int | None:
    """The last nominal time that fires strictly before an instant; jitter keeps the order."""
    # Jitter never reaches the neighbouring slot: of the slots after the instant, only the first can fire before it.
    nominal_ms = next_slot_ms(spec, instant) or previous_slot_ms(spec, instant)
    while nominal_ms is not None and fire_instant(spec, nominal_ms, schedule_id) >= instant:
        nominal_ms = previous_slot_ms(spec, nominal_ms - 1)
    return nominal_ms


def ranges(spec: Spec, after: int, last: int, reason: Reason) -> list[Unstarted]:
    """The slots up to ``last`` as unstarted ranges; only the first of them if the budget of a decision runs out."""
    carried, after = _carried(spec, after, last, reason)
    found = _range(spec, after, last, reason)
    return carried if found is None else [*carried, found]


def _carried(spec: Spec, after: int, last: int, reason: Reason) -> tuple[list[Unstarted], int]:
    """The slots that an edit left due, one by one, and the time after which the others begin.

    They do not form a range: either spec may have slots between them.
    """
    found = spec.carried_ms(after, last) if isinstance(spec, UndecidedSpec) else []
    return [Unstarted(each, each, 1, reason) for each in found], found[-1] if found else after


def _range(spec: Spec, after: int, last: int, reason: Reason) -> Unstarted | None:
    """The slots up to ``last`` as one counted range; only the first of them if the budget of a decision runs out."""
    first = next_slot_ms(spec, after)
    if first is None or first > last:
        return None
    count, reached = count_slots_within_budget(spec, first - 1, last)
    if reached < last:
        last = previous_slot_ms(spec, reached) or first
    return Unstarted(first, last, count, reason)


def _spread(slots: list[Slot], now: int, policy: CatchUpPolicy) -> list[Slot]:
    """Under ``spread``, distribute the late slots evenly over the time ahead; those on time start now."""
    match policy.mode:
        case CatchUp.SPREAD:
            grace_ms, spread_ms = milliseconds(policy.grace), milliseconds(policy.spread)
            late = [slot for slot in slots if now - slot.fire_ms > grace_ms]
            starts = {slot: now + spread_ms * n // len(late) for n, slot in enumerate(late)}
            return [Slot(slot.nominal_ms, slot.fire_ms, starts.get(slot, slot.fire_ms)) for slot in slots]
        case CatchUp.ALL | CatchUp.LATEST | CatchUp.NONE:
            return slots
        case _:
            assert_never(policy.mode)
