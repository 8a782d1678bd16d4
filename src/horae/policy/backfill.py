"""Backfill: which slots of a requested range become runs now, leaving room for automatic starts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from horae.model import Backfill, BackfillStatus, Limits
from horae.policy.slot_times import next_slot_ms, slots_ms
from horae.spec import Spec


class Step(msgspec.Struct, frozen=True):
    """A backfill after a step, and the nominal times that became runs in it."""

    backfill: Backfill
    nominals_ms: tuple[int, ...]

    @property
    def moved(self) -> bool:
        """Whether the step changed anything that must be written."""
        return bool(self.nominals_ms) or self.backfill.status is not BackfillStatus.OPEN


def capacity(buffered: int, retained: int, max_buffer: int, reserve: int, backfills: int) -> int:
    """How many starts each backfill may add: half of the buffer, less the waiting starts and the reserve for automatic ones.

    ``retained`` of the waiting starts do not count, because they waited before any backfill. The result never exceeds half of the buffer.
    """
    room = max_buffer // 2 - max(buffered - retained, 0) - reserve
    return max(room, 0) // max(backfills, 1)


def advance(
    backfills: Sequence[Backfill], spec: Spec, now: int, limits: Limits, *, waiting: int, reserve: int
) -> list[Step]:
    """Advance each backfill by one step, in the order of their requests; the first ones get the remainder of an uneven share."""
    room = capacity(waiting, 0, limits.max_buffer_size, reserve, 1)
    if not waiting and not reserve:
        room = max(room, 1)  # nothing waits: even the smallest buffer takes one start
    share, more = divmod(room, len(backfills))
    return [
        _step(backfill, spec, min(share + (place < more), limits.backfills_per_pass), now)
        for place, backfill in enumerate(backfills)
    ]


def _step(backfill: Backfill, spec: Spec, room: int, now: int) -> Step:
    nominals_ms = slots_ms(spec, backfill.cursor_ms, backfill.end_ms, room) if room else []
    cursor_ms = nominals_ms[-1] if nominals_ms else backfill.cursor_ms
    following = next_slot_ms(spec, cursor_ms)
    done = following is None or following > backfill.end_ms
    changed = msgspec.structs.replace(
        backfill,
        cursor_ms=cursor_ms,
        made=backfill.made + len(nominals_ms),
        status=BackfillStatus.DONE if done else backfill.status,
        ended_at_ms=now if done else None,
    )
    return Step(changed, tuple(nominals_ms))
