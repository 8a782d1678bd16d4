"""Describe what clock changes do to fire times."""

from __future__ import annotations

from datetime import datetime

from horae.spec import load_zone
from horae.spec.clock_change import timeline
from horae.spec.duration import duration_text


def clock_note(zone: str, previous: datetime, time: datetime) -> str:
    """Describe the clock changes of a zone between two times, and which of two equal local times this is; empty if there is nothing to
    say.
    """
    instant, offsets = int(time.timestamp()), load_zone(zone)
    offset = offsets.offset_at(instant)
    moved = offset - offsets.offset_at(int(previous.timestamp()))
    notes = []
    if moved:
        notes.append(f"clocks went {'forward' if moved > 0 else 'back'} {duration_text(abs(moved) * 1000)}")
    same = timeline(zone).instants(instant + offset)
    if len(same) > 1:
        notes.append("first of two" if instant == same[0] else "second of two")
    return ", ".join(notes)
