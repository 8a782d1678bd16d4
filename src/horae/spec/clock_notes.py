"""What clock changes do to fire times, in words."""

from __future__ import annotations

from datetime import datetime

from horae.spec import load_zone
from horae.spec.clock_change import timeline
from horae.spec.duration import duration_text


def clock_note(zone: str, previous: datetime, time: datetime) -> str:
    """What the clocks of a zone did between two times, and which of two equal local times this is; empty if nothing."""
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
