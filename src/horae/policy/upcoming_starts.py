"""Which slots ahead will start, within the limit and without those that are to be skipped.

Due slots and waiting starts come first and use up the limit. For a paused schedule these are the slots that start once it is resumed.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from horae.model import Limits, Overlap, Schedule
from horae.policy.catch_up import fire_instant, last_fired
from horae.policy.decide import due_at
from horae.policy.pause import pause_skips
from horae.policy.slot_times import END_MS, next_slot_ms, slots_ms
from horae.policy.undecided_spec import undecided
from horae.spec import Spec

_LIMITS = Limits(catch_up_per_pass=Limits().max_buffer_size)
_CHUNK = 10_000


class Outlook(msgspec.Struct, frozen=True):
    """The cursor before the slots ahead, how many of them are skipped on request, and how many start after these."""

    cursor_ms: int
    skip: int
    left: int | None
    """``None`` is unlimited."""


def outlook(schedule: Schedule, spec: Spec, now: int, waiting: int = 0) -> Outlook:
    """The outlook for the slots ahead of a schedule; ``waiting`` automatic starts come before them."""
    spec = undecided(schedule, spec)
    state, policies = schedule.state, schedule.policies
    skips = state.paused and pause_skips(policies)
    moment = max(now, state.paused_until_ms or now) if state.paused else now
    last = last_fired(spec, schedule.id, moment)
    cursor_ms = schedule.cursor_ms if last is None else max(schedule.cursor_ms, last)
    skip, left = state.skip_next, state.remaining_actions
    if not skips and (skip or left):
        resumed = msgspec.structs.replace(schedule, state=msgspec.structs.replace(state, paused=False))
        due = len(due_at(resumed, spec, moment, _LIMITS).slots)
        unstarted = min(skip, due)
        skip, due = skip - unstarted, due - unstarted
        if policies.max_concurrent is None:
            due = _starting_of(due, policies.overlap)
        left = None if left is None else max(left - due - waiting, 0)
    return Outlook(cursor_ms, skip, left)


def _starting_of(due: int, overlap: Overlap) -> int:
    """How many starts that are due together will start, in parallel or one after the other."""
    match overlap:
        case Overlap.SKIP | Overlap.CANCEL_OTHER | Overlap.TERMINATE_OTHER:
            return min(due, 1)
        case Overlap.BUFFER_ONE:
            return min(due, 2)
        case Overlap.BUFFER_ALL | Overlap.ALLOW_ALL:
            return due
        case _:
            assert_never(overlap)


def upcoming(
    schedule: Schedule, spec: Spec, now: int, limit: int, waiting: int = 0, *, until_ms: int = END_MS
) -> list[int]:
    """The nominal times of the next slots that start, at most ``limit`` and none after ``until_ms``."""
    ahead = outlook(schedule, spec, now, waiting)
    number = limit if ahead.left is None else min(limit, ahead.left)
    spec = undecided(schedule, spec)
    start = _after(spec, ahead.cursor_ms, ahead.skip) if number else None
    return [] if start is None else slots_ms(spec, start, until_ms, number)


def skipped_fire_times(schedule: Schedule, spec: Spec, now: int, limit: int) -> list[int]:
    """When the next slots that a caller asked to skip would fire, in milliseconds; at most ``limit``."""
    ahead, spec = outlook(schedule, spec, now), undecided(schedule, spec)
    skipped = slots_ms(spec, ahead.cursor_ms, END_MS, min(ahead.skip, limit)) if ahead.skip else []
    return [fire_instant(spec, each, schedule.id) for each in skipped]


def next_slot(schedule: Schedule, spec: Spec) -> int | None:
    """The nominal time of the first undecided slot that is not to be skipped; ``None`` while paused or at the limit."""
    if schedule.state.paused or schedule.state.remaining_actions == 0:
        return None
    spec = undecided(schedule, spec)
    start = _after(spec, schedule.cursor_ms, schedule.state.skip_next)
    return None if start is None else next_slot_ms(spec, start)


def next_fire_of(schedule: Schedule) -> int | None:
    """When a schedule fires next, in milliseconds; ``None`` while it is paused, and when no slot is left."""
    spec = Spec.parse(schedule.spec)
    nominal_ms = next_slot(schedule, spec)
    return None if nominal_ms is None else fire_instant(undecided(schedule, spec), nominal_ms, schedule.id)


def _after(spec: Spec, cursor_ms: int, skip: int) -> int | None:
    """Move a cursor forward by ``skip`` slots; ``None`` if there are fewer."""
    while skip:
        found = slots_ms(spec, cursor_ms, END_MS, min(skip, _CHUNK))
        if not found:
            return None
        cursor_ms, skip = found[-1], skip - len(found)
    return cursor_ms


def fire_times(
    schedule: Schedule, spec: Spec, now: int, limit: int, waiting: int = 0, *, until_ms: int = END_MS
) -> list[int]:
    """When the next slots that start fire, in milliseconds: at most ``limit``, none of a nominal time after ``until_ms``."""
    ahead, spec = upcoming(schedule, spec, now, limit, waiting, until_ms=until_ms), undecided(schedule, spec)
    return [fire_instant(spec, each, schedule.id) for each in ahead]
