"""The line that a program prints when it begins to keep time."""

from __future__ import annotations

import logging
import sys
from datetime import timedelta, timezone
from typing import TYPE_CHECKING

from horae.app.database import shown_address
from horae.errors import HoraeError
from horae.model import instant, owner_and_id
from horae.spec import Spec

if TYPE_CHECKING:
    from horae.app import App

LOOKED_AT = 5
"""Of how many schedules that are due soonest the times are asked for: what is due may be the end of one."""
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
    count = await app.schedules.count()
    kept = f"{count or 'no'} schedule{'' if count == 1 else 's'}"
    return f"Horae keeps {kept} in {shown_address(app.database)}{await _next(app) if count else ''}"


async def _next(app: App) -> str:
    """What is due next, and when by the clocks of its zone."""
    for key, due in (await app.schedules.soonest(LOOKED_AT)).items():
        owner, schedule_id = owner_and_id(key)
        named = f'; next is "{schedule_id}"' + (f' of "{owner}"' if owner else "")
        if due <= instant(app.now()):
            return f"{named}, now"
        described = await app.owned_by(owner).schedules.describe(schedule_id)
        if times := described.next_times:
            offset = Spec.parse(described.schedule.spec).zone.offset_at(int(times[0].timestamp()))
            there = times[0].astimezone(timezone(timedelta(seconds=offset)))
            return f"{named} at {there:%a} {there.isoformat(' ', 'seconds')}"
    return "; none is due"
