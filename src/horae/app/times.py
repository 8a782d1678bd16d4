"""The times ahead of a schedule, and those that its spec names."""

from __future__ import annotations

from datetime import UTC, datetime

from horae.errors import SpecTooCostlyError
from horae.model import Schedule
from horae.policy.due import fire_instant
from horae.policy.undecided import undecided
from horae.policy.upcoming import fire_times, next_slot
from horae.spec import Spec


def instant(milliseconds: int) -> datetime:
    """A time of the ledger."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def fire_time(spec: Spec, nominal: int, schedule_id: str) -> datetime:
    """When the slot of a nominal second fires."""
    return instant(fire_instant(spec, nominal, schedule_id))


def next_nominal(schedule: Schedule) -> int | None:
    """The nominal second of the next slot; ``None`` while the schedule is paused, and when nothing is left."""
    return next_slot(schedule, Spec.parse(schedule.spec))


def next_time(schedule: Schedule) -> datetime | None:
    """When a schedule fires next; ``None`` while it is paused, and when nothing is left."""
    nominal = next_nominal(schedule)
    spec = undecided(schedule, Spec.parse(schedule.spec))
    return None if nominal is None else fire_time(spec, nominal, schedule.id)


def times_ahead(schedule: Schedule, now: int, limit: int, waiting: int = 0) -> tuple[datetime, ...]:
    """When the next slots that start fire, ``waiting`` starts before them; none if the spec costs too much to evaluate."""
    try:
        fires = fire_times(schedule, Spec.parse(schedule.spec), now, limit, waiting)
    except SpecTooCostlyError:
        return ()
    return tuple(instant(each) for each in fires)


def nominal_seconds(spec: Spec, after: int, until: int | None, limit: int) -> list[int]:
    """The nominal seconds that a spec names later than ``after``, up to and including ``until``."""
    found: list[int] = []
    nominal = spec.next_instant(after)
    while nominal is not None and len(found) < limit and (until is None or nominal <= until):
        found.append(nominal)
        nominal = spec.next_instant(nominal)
    return found
