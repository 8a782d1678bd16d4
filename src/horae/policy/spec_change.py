"""The slots that an edit leaves due: undecided slots that the new spec also names, even between their nominal time and their fire time."""

from __future__ import annotations

import msgspec

from horae.model import Carried, Reason, Schedule
from horae.policy.catch_up import Unstarted, fire_instant, leave_behind, window_ms_of
from horae.policy.slot_times import all_but, is_slot, next_slot_ms, slots_ms
from horae.policy.undecided_spec import UndecidedSpec, undecided
from horae.spec import Spec

MAX_CARRIED = 1000
"""The maximum number of undecided slots that an edit leaves due (the latest); by default as many starts of a schedule may wait."""


class Edited(msgspec.Struct, frozen=True):
    """The cursor of a schedule after a change of its spec, the slots that stay due, and those that never start."""

    cursor_ms: int
    since_ms: int
    carried: tuple[Carried, ...]
    unstarted: tuple[Unstarted, ...] = ()


def change_spec(schedule: Schedule, old: Spec, new: Spec, now: int, *, recompute: bool = False) -> Edited:
    """Apply a new spec from now on. Undecided slots whose time has come stay due if the new spec names them too.

    Slots that are too late to start do not stay due; they would be missed. With ``recompute``, no slot that has fired stays due.
    """
    before, since_ms = undecided(schedule, old), max(now // 1000 * 1000, schedule.cursor_ms)
    window_ms = -1 if recompute else window_ms_of(schedule.policies.catch_up)
    kept = [
        nominal_ms
        for nominal_ms in _latest(before, schedule.cursor_ms, since_ms)
        if is_slot(new, nominal_ms)
        and (window_ms is None or now - fire_instant(before, nominal_ms, schedule.id) <= window_ms)
    ]
    unstarted: list[Unstarted] = []
    after = schedule.cursor_ms
    for nominal_ms in [*kept, since_ms + 1000]:
        unstarted += leave_behind(before, after, nominal_ms - 1, Reason.EDITED)
        after = nominal_ms
    carried = _carried(schedule, kept, before, new, now)
    return Edited(kept[0] - 1000 if kept else since_ms, since_ms, carried, tuple(unstarted))


def change_jitter(schedule: Schedule, old: Spec, new: Spec, now: int) -> Edited:
    """Apply a new jitter: it changes only when slots fire, and never to a time before now."""
    before, since_ms = undecided(schedule, old), schedule.state.spec_since_ms
    kept = before.carried_ms(schedule.cursor_ms, since_ms) if isinstance(before, UndecidedSpec) else []
    kept += _latest(before, max(schedule.cursor_ms, since_ms), now)
    return Edited(schedule.cursor_ms, since_ms, _carried(schedule, kept, before, new, now))


def _carried(schedule: Schedule, kept: list[int], old: Spec, new: Spec, now: int) -> tuple[Carried, ...]:
    """The slots that stay due. A late slot does not become later, and a slot that was not late is not late now."""
    found = [Carried(each, min(fire_instant(old, each, schedule.id), now)) for each in kept]
    ahead = next_slot_ms(new, max(now, schedule.cursor_ms))
    # Under the new jitter, the next slot might have fired already.
    if ahead is not None and fire_instant(new, ahead, schedule.id) < now:
        found.append(Carried(ahead, now))
    return tuple(found)


def _latest(spec: Spec, after: int, until: int) -> list[int]:
    """The last slots of a range."""
    found = slots_ms(spec, after, until, MAX_CARRIED + 1)
    if len(found) <= MAX_CARRIED:
        return found
    start = all_but(spec, after, until, MAX_CARRIED)
    return slots_ms(spec, after if start is None else start, until, MAX_CARRIED)
