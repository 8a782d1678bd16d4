"""What people call schedules: the names that pages show, and the schedules that a shown name means."""

from __future__ import annotations

from collections.abc import Iterable

from horae.app import Filter, ScopedOperations
from horae.app.page import cursor_of
from horae.errors import HoraeError
from horae.face.console.rendering import HASHED, called
from horae.model import Run, Schedule, UnstartedRange

MAX_CALLED = 8
"""How many schedules of one name are told apart."""

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
    """The id that was given, if there is such a schedule, or else the ids of those that pages show by this name."""
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
    """What is searched for: a name as pages show it says more than is stored."""
    return name.lower().removesuffix(", by hand")
