"""Pause: when one is over, and what becomes of the slots that fell due in it and of the starts that waited."""

from __future__ import annotations

from typing import assert_never

import msgspec

from horae.model import OnResume, Policies, Reason, Schedule, State
from horae.policy.catch_up import Unstarted, skip_due
from horae.spec import Spec


class Resumed(msgspec.Struct, frozen=True):
    """A schedule that goes on: its state, where it goes on from, and what it leaves behind."""

    state: State
    cursor_ms: int
    unstarted: tuple[Unstarted, ...] = ()


def pause_skips(policies: Policies) -> bool:
    """Whether what falls due in a pause is skipped; else it is caught up with when the pause ends."""
    match policies.on_resume:
        case OnResume.SKIP:
            return True
        case OnResume.CATCH_UP:
            return False
        case _:
            assert_never(policies.on_resume)


def is_over(state: State, now: int) -> bool:
    """Whether a pause that has an end has come to it."""
    return state.paused and state.paused_until is not None and state.paused_until <= now


def resume(schedule: Schedule, spec: Spec, until: int, note: str = "") -> Resumed:
    """Go on: what fell due until then is caught up with like what is late, or skipped, by policy.

    What waited when the pause began goes the same way, also if no node decided anything during the pause. A pause in which more fell
    due than one decision may count goes on, and ends with a later decision.
    """
    if schedule.state.skip_waiting:  # it was resumed before, and there was too much to pass over at once
        note = note or schedule.state.note
    state = msgspec.structs.replace(schedule.state, paused=False, paused_until=None, note=note)
    if not schedule.state.paused or not pause_skips(schedule.policies):
        return Resumed(state, schedule.cursor_ms)
    due = skip_due(spec, schedule.id, schedule.cursor_ms, until, Reason.PAUSED)
    if due.next_fire is not None and due.next_fire <= until:
        state = msgspec.structs.replace(schedule.state, paused_until=until, note=note, skip_waiting=True)
        return Resumed(state, due.cursor_ms, due.unstarted)
    return Resumed(msgspec.structs.replace(state, skip_waiting=True), due.cursor_ms, due.unstarted)
