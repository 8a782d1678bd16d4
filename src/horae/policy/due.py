"""Which slots are due, and which of them are made up: the catch-up policy.

Started, waiting, skipped, missed and dropped slots add up to those found, always: every nominal time
between the old cursor and the new one is either selected or in exactly one range that was passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from horae.model import CatchUp, CatchUpPolicy, Reason
from horae.spec import Spec

MOST_PER_PASS = 100
"""How many late slots of one schedule are selected at once; the others follow, taking turns."""


class Slot(msgspec.Struct, frozen=True):
    """A nominal second, when it fires (jitter), and when it may start at the earliest (spread)."""

    nominal: int
    fire_at: int
    start_at: int


class Passed(msgspec.Struct, frozen=True):
    """Consecutive nominal times that will not run, for one reason, as a range with both ends."""

    first: int
    last: int
    count: int
    reason: Reason


class Due(msgspec.Struct, frozen=True):
    """What a look at the clock found: the cursor after it, and when to look again."""

    slots: tuple[Slot, ...]
    passed: tuple[Passed, ...]
    cursor: int
    next_fire: int | None


def find_due(
    spec: Spec,
    schedule_id: str,
    cursor: int,
    now: int,
    policy: CatchUpPolicy,
    *,
    limit: int = MOST_PER_PASS,
) -> Due:
    """The slots after the cursor whose fire time has come, chosen by the catch-up policy."""

    def fire(nominal: int) -> int:
        return fire_instant(spec, nominal, schedule_id)

    first = spec.next_instant(cursor)
    if first is None:
        return Due((), (), cursor, None)
    if fire(first) > now:
        return Due((), (), cursor, fire(first))
    last = _last_before(spec, fire, now + 1) or first
    window = policy.grace if policy.mode is CatchUp.NONE else policy.window
    passed: list[Passed] = []
    start = cursor
    if window is not None:
        # Strictly later than the window is missed; what is late within the grace is on time.
        expired = _last_before(spec, fire, now - max(window, policy.grace))
        if expired is not None and expired >= first:
            passed.append(_range(spec, start, expired, Reason.LATE))
            start = expired
    if start < last and policy.mode is CatchUp.LATEST:
        before = spec.previous_instant(last - 1)
        if before is not None and before > start:
            passed.append(_range(spec, start, before, Reason.SUPERSEDED))
            start = before
    nominals = spec.instants(start, last, limit)
    if nominals:
        start = nominals[-1]
    slots = _spread([Slot(n, at, at) for n in nominals for at in [fire(n)]], now, policy)
    following = spec.next_instant(start)
    next_fire = None if following is None else fire(following)
    return Due(tuple(slots), tuple(passed), start, next_fire)


def pass_over(spec: Spec, schedule_id: str, cursor: int, now: int, reason: Reason) -> Due:
    """All slots up to now, passed over for one reason: a pause that skips, a limit that was reached."""

    def fire(nominal: int) -> int:
        return fire_instant(spec, nominal, schedule_id)

    last = _last_before(spec, fire, now + 1)
    passed: tuple[Passed, ...] = ()
    if last is not None and last > cursor:
        passed = (_range(spec, cursor, last, reason),)
        cursor = last
    following = spec.next_instant(cursor)
    return Due((), passed, cursor, None if following is None else fire(following))


def fire_instant(spec: Spec, nominal: int, schedule_id: str) -> int:
    """When the slot of a nominal second fires, in milliseconds."""
    if spec.elements.jitter is None:
        return nominal * 1000
    moved = spec.fire_time(datetime.fromtimestamp(nominal, UTC), schedule_id)
    return round(moved.timestamp() * 1000)


def _last_before(spec: Spec, fire: Callable[[int], int], instant: int) -> int | None:
    """The last nominal time that fires strictly before an instant; jitter keeps the order."""
    jitter = spec.elements.jitter
    ahead = jitter.span if jitter is not None and jitter.centred else 0
    nominal = spec.previous_instant(instant // 1000 + ahead + 1)
    while nominal is not None and fire(nominal) >= instant:
        nominal = spec.previous_instant(nominal - 1)
    return nominal


def _range(spec: Spec, after: int, last: int, reason: Reason) -> Passed:
    first = spec.next_instant(after)
    return Passed(last if first is None else first, last, spec.count(after, last), reason)


def _spread(slots: list[Slot], now: int, policy: CatchUpPolicy) -> list[Slot]:
    """Distribute the late slots evenly over the time ahead; those on time start now."""
    if policy.mode is not CatchUp.SPREAD:
        return slots
    late = [slot for slot in slots if now - slot.fire_at > policy.grace]
    starts = {slot: now + policy.spread * n // len(late) for n, slot in enumerate(late)}
    return [Slot(slot.nominal, slot.fire_at, starts.get(slot, slot.fire_at)) for slot in slots]
