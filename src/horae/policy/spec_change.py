"""What an edit leaves due: no slot is lost that the new spec names too, wherever between its nominal and its fire time it is."""

from __future__ import annotations

import msgspec

from horae.model import Carried, Reason, Schedule
from horae.policy.catch_up import Unstarted, fire_instant, leave_behind, window_ms_of
from horae.policy.times import all_but, is_slot, next_slot_ms, slots_ms
from horae.policy.undecided import UndecidedSpec, undecided
from horae.spec import Spec

MAX_CARRIED = 1000
"""How many undecided slots an edit leaves due at most, the latest. As many starts of a schedule may wait."""


class Edited(msgspec.Struct, frozen=True):
    """Where a schedule stands after its spec has changed: the slots that stay due, and those that never start."""

    cursor_ms: int
    since_ms: int
    carried: tuple[Carried, ...]
    unstarted: tuple[Unstarted, ...] = ()


def change_spec(schedule: Schedule, old: Spec, new: Spec, now: int, *, recompute: bool = False) -> Edited:
    """A new spec from now on. Slots whose time has come, and which are not decided, stay due if it names them too.

    Those that are too late to start do not, for they would be missed; to ``recompute``, none that has fired does.
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
    """A new jitter moves when slots fire, and nothing else: never to before now."""
    before, since_ms = undecided(schedule, old), schedule.state.spec_since_ms
    kept = before.carried_ms(schedule.cursor_ms, since_ms) if isinstance(before, UndecidedSpec) else []
    kept += _latest(before, max(schedule.cursor_ms, since_ms), now)
    return Edited(schedule.cursor_ms, since_ms, _carried(schedule, kept, before, new, now))


def _carried(schedule: Schedule, kept: list[int], old: Spec, new: Spec, now: int) -> tuple[Carried, ...]:
    """Slots that stay due. What was late stays as late as it was, at most; what was not is not late now."""
    found = [Carried(each, min(fire_instant(old, each, schedule.id), now)) for each in kept]
    ahead = next_slot_ms(new, max(now, schedule.cursor_ms))
    if (
        ahead is not None and fire_instant(new, ahead, schedule.id) < now
    ):  # its jitter would have had it fire before
        found.append(Carried(ahead, now))
    return tuple(found)


def _latest(spec: Spec, after: int, until: int) -> list[int]:
    """The last slots of a range."""
    found = slots_ms(spec, after, until, MAX_CARRIED + 1)
    if len(found) <= MAX_CARRIED:
        return found
    start = all_but(spec, after, until, MAX_CARRIED)
    return slots_ms(spec, after if start is None else start, until, MAX_CARRIED)
