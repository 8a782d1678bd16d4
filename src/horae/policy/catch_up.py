"""Which slots are due, and which of them are made up: the catch-up policy.

Started, waiting, skipped, missed and dropped slots add up to those found, always: every nominal time
between the old cursor and the new one is either selected or in exactly one unstarted range.

Counting a long range may cost more than one decision may. Then a part of it is decided, the cursor stands where that ends, and the
next decision goes on from there, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import assert_never

import msgspec

from horae.model import CatchUp, CatchUpPolicy, Limits, Reason
from horae.policy.times import (
    all_but,
    count_slots,
    count_slots_within_budget,
    next_slot_ms,
    previous_slot_ms,
    slots_ms,
)
from horae.policy.undecided import UndecidedSpec
from horae.spec import Spec
from horae.spec.duration import milliseconds

_LIMITS = Limits()


class Slot(msgspec.Struct, frozen=True, gc=False):
    """A nominal time, when it fires (jitter), and when it may start at the earliest (spread)."""

    nominal_ms: int
    fire_at: int
    start_at: int


class Unstarted(msgspec.Struct, frozen=True, gc=False):
    """Consecutive nominal times that will not run, for one reason, as a range with both ends."""

    start_ms: int
    end_ms: int
    count: int
    reason: Reason


class Due(msgspec.Struct, frozen=True, gc=False):
    """What is due: slots, ranges that do not start, the cursor after them, and when the next slot fires."""

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

    ``consent`` is how many late ones may be made up at most; the latest are.
    """

    def fire(nominal_ms: int) -> int:
        return fire_instant(spec, nominal_ms, schedule_id)

    first = next_slot_ms(spec, cursor_ms)
    if first is None:
        return Due((), (), cursor_ms, None)
    fires = fire(first)
    if fires > now:
        return Due((), (), cursor_ms, fires)
    following = next_slot_ms(spec, first)
    if now - fires <= milliseconds(policy.grace) and (following is None or fire(following) > now):
        # The usual case, and the one that must be fast: one slot, on time.
        slot = Slot(first, fires, fires)
        return Due((slot,), (), first, None if following is None else fire(following))
    unstarted, complete = _find_unstarted(spec, fire, cursor_ms, now, policy=policy, consent=consent)
    start = unstarted[-1].end_ms if unstarted else cursor_ms
    if not complete:
        return Due((), tuple(unstarted), start, now)
    last = _last_before(spec, fire, now + 1) or first
    nominals_ms = slots_ms(spec, start, last, limit)
    if nominals_ms:
        start = nominals_ms[-1]
    slots = _spread([Slot(n, at, at) for n in nominals_ms for at in [fire(n)]], now, policy)
    following = next_slot_ms(spec, start)
    return Due(tuple(slots), tuple(unstarted), start, None if following is None else fire(following))


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
    fire: Callable[[int], int],
    cursor_ms: int,
    now: int,
    *,
    policy: CatchUpPolicy,
    consent: int | None,
) -> tuple[list[Unstarted], bool]:
    """What is too late, then what a later slot stands for, then what was not agreed to: ranges one after the other.

    Also whether that is all; else the rest must wait for another decision.
    """
    unstarted: list[Unstarted] = []

    def start() -> int:
        return unstarted[-1].end_ms if unstarted else cursor_ms

    def leave_until(last: int | None, reason: Reason) -> bool:
        """Leave the slots up to one unstarted. Whether it came to that one."""
        if last is None or last <= start() or not (found := ranges(spec, start(), last, reason)):
            return True
        unstarted.extend(found)
        return found[-1].end_ms == last

    def late() -> Iterator[tuple[int | None, Reason]]:
        if (window_ms := window_ms_of(policy)) is not None:
            # Strictly later than the window is missed; what is late within the grace is on time.
            yield _last_before(spec, fire, now - window_ms), Reason.LATE
        yield _last_superseded(spec, fire, now, policy.mode), Reason.SUPERSEDED
        if consent is not None:
            late = _last_before(spec, fire, now - milliseconds(policy.grace))
            if consent and late is not None:
                late = all_but(spec, start(), late, consent)
            yield late, Reason.NO_CONSENT

    return unstarted, all(leave_until(last, reason) for last, reason in late())


def _last_superseded(spec: Spec, fire: Callable[[int], int], now: int, mode: CatchUp) -> int | None:
    """The last of the due slots that the latest one stands for."""
    match mode:
        case CatchUp.LATEST:
            last = _last_before(spec, fire, now + 1)
            return None if last is None else previous_slot_ms(spec, last - 1)
        case CatchUp.ALL | CatchUp.SPREAD | CatchUp.NONE:
            return None
        case _:
            assert_never(mode)


def skip_due(spec: Spec, schedule_id: str, cursor_ms: int, now: int, reason: Reason) -> Due:
    """Skip all due slots, for one reason: a pause that skips, a limit that was reached."""

    def fire(nominal_ms: int) -> int:
        return fire_instant(spec, nominal_ms, schedule_id)

    last = _last_before(spec, fire, now + 1)
    unstarted: list[Unstarted] = []
    if last is not None and last > cursor_ms:
        unstarted = ranges(spec, cursor_ms, last, reason)
        cursor_ms = unstarted[-1].end_ms if unstarted else cursor_ms
    following = next_slot_ms(spec, cursor_ms)
    return Due((), tuple(unstarted), cursor_ms, None if following is None else fire(following))


def last_fired(spec: Spec, schedule_id: str, now: int) -> int | None:
    """The last nominal time whose fire time has come."""
    return _last_before(spec, lambda nominal_ms: fire_instant(spec, nominal_ms, schedule_id), now + 1)


def leave_behind(spec: Spec, after: int, until: int, reason: Reason) -> list[Unstarted]:
    """The slots whose nominal time has come and that were not decided, when they never will be."""
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


def _last_before(spec: Spec, fire: Callable[[int], int], instant: int) -> int | None:
    """The last nominal time that fires strictly before an instant; jitter keeps the order."""
    # Jitter ends before the neighbouring time: of those after the instant, only the first can fire before it.
    nominal_ms = next_slot_ms(spec, instant) or previous_slot_ms(spec, instant)
    while nominal_ms is not None and fire(nominal_ms) >= instant:
        nominal_ms = previous_slot_ms(spec, nominal_ms - 1)
    return nominal_ms


def ranges(spec: Spec, after: int, last: int, reason: Reason) -> list[Unstarted]:
    """The slots up to one, as unstarted ranges; or the first of them, as far as the budget of a decision goes."""
    carried, after = _carried(spec, after, last, reason)
    found = _range(spec, after, last, reason)
    return carried if found is None else [*carried, found]


def _carried(spec: Spec, after: int, last: int, reason: Reason) -> tuple[list[Unstarted], int]:
    """What an edit left due, and where the others begin. It is no range: there may be slots between, of either spec."""
    found = spec.carried_ms(after, last) if isinstance(spec, UndecidedSpec) else []
    return [Unstarted(each, each, 1, reason) for each in found], found[-1] if found else after


def _range(spec: Spec, after: int, last: int, reason: Reason) -> Unstarted | None:
    """The nominal times up to one, counted; or the first of them, as far as the budget of a decision goes."""
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
            late = [slot for slot in slots if now - slot.fire_at > grace_ms]
            starts = {slot: now + spread_ms * n // len(late) for n, slot in enumerate(late)}
            return [Slot(slot.nominal_ms, slot.fire_at, starts.get(slot, slot.fire_at)) for slot in slots]
        case CatchUp.ALL | CatchUp.LATEST | CatchUp.NONE:
            return slots
        case _:
            assert_never(policy.mode)
