"""The next fire times of a schedule, and the times that its spec names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from horae.errors import SpecError
from horae.model import Schedule, UnstartedRange, instant
from horae.policy.catch_up import fire_instant
from horae.policy.slot_times import END_MS, count_slots, is_slot, next_slot_ms, previous_slot_ms
from horae.policy.upcoming_starts import fire_times, next_slot, skipped_fire_times
from horae.spec import Spec


def fire_time(spec: Spec, nominal_ms: int, schedule_id: str) -> datetime:
    """When a slot fires."""
    return instant(fire_instant(spec, nominal_ms, schedule_id))


def next_nominal_ms(schedule: Schedule) -> int | None:
    """The nominal time of the next slot; ``None`` while the schedule is paused, and when no slot is left."""
    return next_slot(schedule, Spec.parse(schedule.spec))


def times_ahead(
    schedule: Schedule, now: int, limit: int, waiting: int = 0, *, until_ms: int = END_MS
) -> tuple[datetime, ...]:
    """The fire times of the next slots that will start, up to a nominal time, once ``waiting`` starts have used up their part of
    the limit. Empty if the spec cannot be read or costs too much to evaluate.
    """
    try:
        fires = fire_times(schedule, Spec.parse(schedule.spec), now, limit, waiting, until_ms=until_ms)
    except SpecError:
        return ()
    return tuple(instant(each) for each in fires)


def skipped_times(schedule: Schedule, now: int, limit: int) -> tuple[datetime, ...]:
    """The fire times of the next slots that a caller asked to skip. Empty if the spec cannot be read or costs too much to evaluate."""
    try:
        fires = skipped_fire_times(schedule, Spec.parse(schedule.spec), now, limit)
    except SpecError:
        return ()
    return tuple(instant(each) for each in fires)


def nominal_times(spec: Spec, after_ms: int, until_ms: int | None, limit: int) -> list[int]:
    """The times that a spec names later than ``after_ms``, up to and including ``until_ms``, in milliseconds."""
    found: list[int] = []
    nominal_ms = next_slot_ms(spec, after_ms)
    while nominal_ms is not None and len(found) < limit and (until_ms is None or nominal_ms <= until_ms):
        found.append(nominal_ms)
        nominal_ms = next_slot_ms(spec, nominal_ms)
    return found


def spec_of_range(unstarted: UnstartedRange, specs: Iterable[Spec]) -> Spec | None:
    """The first spec that fits an unstarted range: it names both ends, and as many slots."""
    start_ms, end_ms = unstarted.start_ms, unstarted.end_ms
    for spec in specs:
        named = is_slot(spec, start_ms) and is_slot(spec, end_ms)
        if named and count_slots(spec, start_ms - 1, end_ms) == unstarted.count:
            return spec
    return None


def slots_of_range(unstarted: UnstartedRange, spec: Spec | None) -> Iterator[int]:
    """The nominal times of an unstarted range, the last one first; only both ends if its spec is unknown."""
    if spec is None:
        yield from sorted({unstarted.start_ms, unstarted.end_ms}, reverse=True)
        return
    nominal_ms: int | None = unstarted.end_ms
    while nominal_ms is not None and nominal_ms >= unstarted.start_ms:
        yield nominal_ms
        nominal_ms = previous_slot_ms(spec, nominal_ms - 1)
