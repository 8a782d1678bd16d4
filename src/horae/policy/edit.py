"""What an edit leaves due: no slot is lost that the new spec names too, wherever between its nominal and its fire time it is."""

from __future__ import annotations

import msgspec

from horae.model import Carried, Reason, Schedule
from horae.policy.due import Unstarted, all_but, fire_instant, leave_behind, window_ms_of
from horae.policy.undecided import UndecidedSpec, undecided
from horae.spec import Spec

MAX_CARRIED = 1000
"""How many undecided slots an edit leaves due at most, the latest. As many starts of a schedule may wait."""


class Edited(msgspec.Struct, frozen=True):
    """Where a schedule stands after its spec has changed: the slots that stay due, and those that never start."""

    cursor: int
    since: int
    carried: tuple[Carried, ...]
    unstarted: tuple[Unstarted, ...] = ()


def change_spec(schedule: Schedule, old: Spec, new: Spec, now: int, *, recompute: bool = False) -> Edited:
    """A new spec from now on. Slots whose time has come, and which are not decided, stay due if it names them too.

    Those that are too late to start do not, for they would be missed; to ``recompute``, none that has fired does.
    """
    before, since = undecided(schedule, old), max(now // 1000, schedule.cursor)
    window_ms = -1 if recompute else window_ms_of(schedule.policies.catch_up)
    kept = [
        nominal
        for nominal in _latest(before, schedule.cursor, since)
        if new.next_instant(nominal - 1) == nominal
        and (window_ms is None or now - fire_instant(before, nominal, schedule.id) <= window_ms)
    ]
    unstarted: list[Unstarted] = []
    after = schedule.cursor
    for nominal in [*kept, since + 1]:
        unstarted += leave_behind(before, after, nominal - 1, Reason.EDITED)
        after = nominal
    carried = _carried(schedule, kept, before, new, now)
    return Edited(kept[0] - 1 if kept else since, since, carried, tuple(unstarted))


def change_jitter(schedule: Schedule, old: Spec, new: Spec, now: int) -> Edited:
    """A new jitter moves when slots fire, and nothing else: never to before now."""
    before, since = undecided(schedule, old), schedule.state.spec_since
    kept = before.carried(schedule.cursor, since) if isinstance(before, UndecidedSpec) else []
    kept += _latest(before, max(schedule.cursor, since), now // 1000)
    return Edited(schedule.cursor, since, _carried(schedule, kept, before, new, now))


def _carried(schedule: Schedule, kept: list[int], old: Spec, new: Spec, now: int) -> tuple[Carried, ...]:
    """Slots that stay due. What was late stays as late as it was, at most; what was not is not late now."""
    found = [Carried(each, min(fire_instant(old, each, schedule.id), now)) for each in kept]
    ahead = new.next_instant(max(now // 1000, schedule.cursor))
    if (
        ahead is not None and fire_instant(new, ahead, schedule.id) < now
    ):  # its jitter would have had it fire before
        found.append(Carried(ahead, now))
    return tuple(found)


def _latest(spec: Spec, after: int, until: int) -> list[int]:
    """The last slots of a range."""
    found = spec.instants(after, until, MAX_CARRIED + 1)
    if len(found) <= MAX_CARRIED:
        return found
    start = all_but(spec, after, until, MAX_CARRIED)
    return spec.instants(after if start is None else start, until, MAX_CARRIED)
