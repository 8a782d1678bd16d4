"""Rerun: which ended runs may be run again, and the new run that does so."""

from __future__ import annotations

import msgspec

from horae.model import UNREADABLE, Origin, OriginKind, Overlap, Run, Schedule
from horae.policy.catch_up import Slot
from horae.policy.ledger_changes import new_run
from horae.policy.lifecycle import ENDED


def rerun_refusal(run: Run, schedule: Schedule | None) -> str | None:
    """Why a run cannot be run again; ``None`` if it can. Every ended run of an existing schedule can."""
    if run.status not in ENDED:
        return f"it has not ended, and is {run.status.value}"
    if run.reason == UNREADABLE:
        return "its row in the database cannot be read"
    if schedule is None:
        return f'its schedule "{run.schedule_id}" was deleted'
    if schedule.generation != run.generation:
        return f'its schedule "{run.schedule_id}" was deleted, and another one has its id'
    if schedule.unreadable:
        return f"its schedule cannot be read: {'; '.join(schedule.unreadable.values())}"
    return None


def run_again(run: Run, schedule: Schedule, number: int, overlap: Overlap, now: int) -> Run:
    """Create a new run of the same slot, with the schedule's current action and the earlier run's input; it is due now.

    ``number`` distinguishes the reruns of one run.
    """
    origin = Origin(OriginKind.RERUN, f"{run.id}.{number}")
    again = new_run(schedule, Slot(run.nominal_ms, now, now), origin, overlap, now)
    return msgspec.structs.replace(again, input=run.input)
