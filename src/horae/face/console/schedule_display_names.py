"""The names of schedules that pages show, and the schedules that such a name means."""

from __future__ import annotations

from collections.abc import Iterable

from horae.app import Filter, ScopedOperations
from horae.app.page import cursor_of
from horae.errors import HoraeError
from horae.face.console.rendering import HASHED, called
from horae.model import Run, Schedule, UnstartedRange

MAX_CALLED = 8
"""How many schedules of the same name are distinguished."""

Names = dict[tuple[str, str], str]
"""Names by owner and id."""


async def names_of(operations: ScopedOperations, entries: Iterable[Run | UnstartedRange]) -> Names:
    """The names of the schedules of some entries of the ledger. A run has its name in its input; for a range, its schedule is read."""
    names: Names = {}
    asked = set()
    for each in entries:
        names.setdefault((each.owner, each.schedule_id), called(each, each.schedule_id))
        if isinstance(each, UnstartedRange) and each.schedule_id.startswith(HASHED):
            asked.add(each.schedule_key)
    found = await operations.schedules.get_many(asked) if asked else ()
    return names | {(each.owner, each.id): called(each.action, each.id) for each in found}


async def ids_called(operations: ScopedOperations, name: str) -> list[str]:
    """The given id if a schedule has it, or else the ids of the schedules that pages show under this name."""
    try:
        if await operations.schedules.exists(name):
            return [name]
    except HoraeError:  # several owners have one, or it is no id
        return [name]
    found: list[Schedule] = []
    for beginning in HASHED:
        only = Filter(prefix=beginning, text=_searched(name))
        found += await operations.schedules.search(only, cursor=cursor_of("", beginning), limit=MAX_CALLED)
    return [each.id for each in found if called(each.action, each.id).casefold() == name.casefold()]


def _searched(name: str) -> str:
    """The text to search for: without what pages add to a stored name."""
    return name.lower().removesuffix(", by hand")
