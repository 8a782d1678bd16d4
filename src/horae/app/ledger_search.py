"""Search the ledger across schedules: runs and unstarted ranges together, newest first, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from horae.app.page import MAX_BYTES, Page, cursor_of, page_limit, place_of
from horae.model import Run, UnstartedRange
from horae.store.port import LAST, LedgerFilter, Transaction

MAX_EXAMINED = 10_000
"""How many runs and ranges one page examines: it then ends, with a cursor, however few of them match."""
CHUNK = 1000
"""How many runs or ranges one statement reads."""
SKEW_MS = 60_000
"""How far the moments of two runs may be out of the order of their numbers: nodes decide at the same time."""


class _Examined(NamedTuple):
    """A run, by its number, or a range; with its place in its own order."""

    decided_at_ms: int
    place: tuple[int, ...]
    entry: int | UnstartedRange
    size: int | None
    """How many bytes it has; ``None`` if it does not match."""


class _Reader:
    """Reads the runs or the ranges that come after a place, a chunk at a time."""

    def __init__(
        self,
        read: Callable[[tuple[int, ...], int], Awaitable[list[_Examined]]],
        place: tuple[int, ...],
        chunk: int,
    ) -> None:
        self._read, self._chunk = read, chunk
        self._waiting: deque[_Examined] = deque()
        self._last = self.place = place
        self._ended = False

    async def head(self) -> _Examined | None:
        """The next run or range, if there is one."""
        if not self._waiting and not self._ended:
            found = await self._read(self._last, self._chunk)
            self._ended = len(found) < self._chunk
            self._waiting.extend(found)
            self._last = found[-1].place if found else self._last
            self._chunk = CHUNK
        return self._waiting[0] if self._waiting else None

    def take(self) -> None:
        """Move past the head."""
        self.place = self._waiting.popleft().place


async def search_ledger(
    transaction: Transaction, only: LedgerFilter, limit: int, cursor: str | None
) -> Page[Run | UnstartedRange]:
    """A page of the runs and ranges that match, the latest decided first.

    Runs are read in the order of their numbers and ranges in the order of their moments, each from its own place: what is
    added meanwhile changes no later page. A range that grows meanwhile is new again.
    """
    limit = page_limit(limit)
    runs, ranges = await _readers(transaction, only, limit, cursor)
    found: list[int | UnstartedRange] = []
    examined = size = 0
    more = True
    while more and len(found) < limit and size < MAX_BYTES and examined < MAX_EXAMINED:
        run, unstarted = await runs.head(), await ranges.head()
        reader, head = runs, run
        if run is None or (unstarted is not None and unstarted.decided_at_ms > run.decided_at_ms):
            reader, head = ranges, unstarted
        if more := head is not None:
            reader.take()
            examined += 1
            if head.size is not None:
                found.append(head.entry)
                size += head.size
    more = more and not (await runs.head() is await ranges.head() is None)
    numbers = [each for each in found if isinstance(each, int)]
    loaded = iter(await transaction.runs_numbered(numbers) if numbers else ())
    entries = (next(loaded) if isinstance(each, int) else each for each in found)
    return Page(entries, cursor_of(*runs.place, *ranges.place) if more else None)


async def _readers(
    transaction: Transaction, only: LedgerFilter, limit: int, cursor: str | None
) -> tuple[_Reader, _Reader]:
    """The readers of runs and of ranges, at the places that a cursor names."""
    number, *range_place = (
        (LAST, only.until, LAST) if cursor is None else place_of(cursor, tuple[int, int, int])
    )
    least = await transaction.run_number_at(only.since - SKEW_MS) if only.since else 0
    if only.until < LAST:
        number = min(number, await transaction.run_number_at(only.until + SKEW_MS))

    async def runs(place: tuple[int, ...], chunk: int) -> list[_Examined]:
        found = await transaction.search_runs(only, place[0], least, chunk)
        return [_Examined(decided_at_ms, (number,), number, size) for number, decided_at_ms, size in found]

    async def ranges(place: tuple[int, ...], chunk: int) -> list[_Examined]:
        found = await transaction.search_ranges(only, (place[0], place[1]), chunk)
        return [
            _Examined(each.decided_at_ms, (each.decided_at_ms, each.number or 0), each, 0 if matches else None)
            for each, matches in found
        ]  # fmt: skip

    chunk = min(limit + 1, CHUNK)
    return _Reader(runs, (number,), chunk), _Reader(ranges, tuple(range_place), chunk)
