"""Pause: when it is over, and what happens to the slots that fell due in it and to the starts that waited."""

from __future__ import annotations

from typing import assert_never

import msgspec

from horae.model import OnResume, Policies, Reason, Schedule, State
from horae.policy.catch_up import Unstarted, skip_due
from horae.spec import Spec


class Resumed(msgspec.Struct, frozen=True):
    """A resumed schedule: its state, its cursor, and the slots that never start."""

    state: State
    cursor_ms: int
    unstarted: tuple[Unstarted, ...] = ()


def pause_skips(policies: Policies) -> bool:
    """Whether slots that fall due in a pause are skipped; otherwise they are caught up when the pause ends."""
    return _skips(policies.on_resume)


def _skips(way: OnResume) -> bool:
    match way:
        case OnResume.SKIP:
            return True
        case OnResume.CATCH_UP:
            return False
        case _:
            assert_never(way)


def is_over(state: State, now: int) -> bool:
    """Whether a pause has reached its end; a pause without an end never does."""
    return state.paused and state.paused_until_ms is not None and state.paused_until_ms <= now


def resume(
    schedule: Schedule, spec: Spec, until: int, note: str = "", *, way: OnResume | None = None
) -> Resumed:
    """Resume a schedule: by policy, or by another ``way`` for this once, slots that fell due up to ``until`` are skipped or
    caught up like late ones.

    Starts that waited when the pause began are treated alike, even if no node decided anything during the pause. If more slots fell
    due than one decision may count, the schedule stays paused, and a later decision ends the pause.
    """
    skips = pause_skips(schedule.policies) if way is None else _skips(way)
    if schedule.state.skip_waiting:  # it was resumed before, with more slots than one decision may skip
        skips, note = skips or is_over(schedule.state, until), note or schedule.state.note
    state = msgspec.structs.replace(schedule.state, paused=False, paused_until_ms=None, note=note)
    if not schedule.state.paused or not skips:
        return Resumed(state, schedule.cursor_ms)
    due = skip_due(spec, schedule.id, schedule.cursor_ms, until, Reason.PAUSED)
    if due.next_fire is not None and due.next_fire <= until:
        state = msgspec.structs.replace(schedule.state, paused_until_ms=until, note=note, skip_waiting=True)
        return Resumed(state, due.cursor_ms, due.unstarted)
    return Resumed(msgspec.structs.replace(state, skip_waiting=True), due.cursor_ms, due.unstarted)
