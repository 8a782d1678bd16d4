"""The line that a program prints when it begins to keep time."""

from __future__ import annotations

import logging
import sys
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from horae.app.database import shown_address
from horae.errors import HoraeError
from horae.model import Limits, Schedule, instant, owner_and_id
from horae.policy.decide import due_at
from horae.policy.undecided_spec import undecided
from horae.spec import Spec
from horae.store.port import Filter

if TYPE_CHECKING:
    from horae.app import App
    from horae.app.schedule_views import Description

LOOKED_AT = 20
"""Of how many schedules that are due soonest the times are asked for: some are due for a decision only, or never fire."""
_log = logging.getLogger("horae")


async def tell_start(app: App) -> None:
    """Tell what an open app keeps, where, and what comes next: in the program's log if it has one, otherwise on standard error."""
    if not _log.hasHandlers() and _log.level > logging.INFO:  # the program wants to hear nothing
        return
    try:
        line = await _line(app)
    except HoraeError:  # keeping time tries again, and tells what is wrong
        return
    if _log.hasHandlers():
        _log.info(line)
    else:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


async def _line(app: App) -> str:
    count = await app.schedules.count(Filter(orphaned=False))
    kept = f"{count or 'no'} schedule{'' if count == 1 else 's'}"
    return f"Horae keeps {kept} in {shown_address(app.database)}{await _next(app) if count else ''}"


async def _next(app: App) -> str:
    """What is due next, and when by the clocks of its zone."""
    now, soonest = instant(app.now()), await app.schedules.soonest(LOOKED_AT)
    first: tuple[datetime, str, Schedule] | None = None
    for key, due in soonest.items():
        if first is not None and due >= first[0]:
            break
        owner, schedule_id = owner_and_id(key)
        named = f'; next is "{schedule_id}"' + (f' of "{owner}"' if owner else "")
        described = await app.owned_by(owner).schedules.describe(schedule_id)
        if described.schedule.state.orphaned:
            continue
        if due <= now and _starts_now(described, app.now()):
            return f"{named}, now"
        if (times := described.next_times) and (first is None or times[0] < first[0]):
            first = times[0], named, described.schedule
    if first is not None:
        at, named, schedule = first
        offset = Spec.parse(schedule.spec).zone.offset_at(int(at.timestamp()))
        there = at.astimezone(timezone(timedelta(seconds=offset)))
        return f"{named} at {there:%a} {there.isoformat(' ', 'seconds')}"
    return "; none will fire by itself" if len(soonest) < LOOKED_AT else ""


def _starts_now(described: Description, now_ms: int) -> bool:
    """Whether a run waits or a slot is due; a schedule may also be due only for its next decision."""
    schedule = described.schedule
    if described.pending or described.retrying:
        return True
    return bool(due_at(schedule, undecided(schedule, Spec.parse(schedule.spec)), now_ms, Limits()).slots)
