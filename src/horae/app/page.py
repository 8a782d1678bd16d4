"""Pages: lists in parts that are neither too long nor too large."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar, cast

import msgspec

from horae.app.field_checks import check_text
from horae.errors import InvalidInputError
from horae.store.port import LAST

MOST = 1000
"""The most items that a page has."""
MAX_BYTES = 4 * 1024 * 1024
"""The size in bytes at which a page ends: the item that exceeds it is the last one."""
FIRST_READ = 10
"""How many entries are read before their sizes are known."""
T = TypeVar("T")
N = TypeVar("N", bound="Numbered")


class Page(list[T]):
    """A part of a list; ``next`` is the cursor of the next page, or ``None`` at the end."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002 - the API's word
        super().__init__(items)
        self.next = next


def page_limit(limit: int) -> int:
    """How many items a page may have, if a caller asks for ``limit``."""
    if limit < 1:
        raise InvalidInputError("limit", f"must be at least 1, and is {limit}")
    return min(limit, MOST)


def fitting(sizes: Sequence[int], limit: int) -> tuple[int, bool]:
    """How many items, of up to ``limit`` with these sizes in bytes, fit a page, and whether there may be more.

    If there is an item, a page has at least one, however large: so paging always advances.
    """
    number = size = 0
    while number < len(sizes) and size < MAX_BYTES:
        size += sizes[number]
        number += 1
    return number, number > 0 and (number < len(sizes) or number == limit)


class Numbered(Protocol):
    """An entry that is numbered in the order in which it was stored."""

    @property
    def number(self) -> int: ...


def number_before(cursor: str | None) -> int:
    """The number before which a page of entries begins, newest first."""
    (before,) = (LAST,) if cursor is None else place_of(cursor, tuple[int])
    return before


async def read_newest(
    read: Callable[[int, int], Awaitable[Sequence[N]]], limit: int, before: int, size_of: Callable[[N], int]
) -> Page[N]:
    """A page of entries, newest first. ``read`` takes the number before which to begin, and how many to read.

    Entries are read in growing chunks until the page is long or large enough, so that the reading is bounded too.
    """
    limit = page_limit(limit)
    found: list[N] = []
    sizes: list[int] = []
    chunk, more = FIRST_READ, True
    while more and len(found) < limit and sum(sizes) < MAX_BYTES:
        wanted = min(chunk, limit - len(found))
        some = await read(found[-1].number if found else before, wanted)
        found += some
        sizes += map(size_of, some)
        chunk, more = chunk * 2, len(some) == wanted
    number, _ = fitting(sizes, limit)
    more = more or number < len(found)
    return Page(found[:number], cursor_of(found[number - 1].number) if more else None)


def cursor_of(*place: str | int) -> str:
    """The cursor of a place in a list, as an opaque text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_of(cursor: str, kind: type[T]) -> T:
    """The place that a cursor stands for; refuse any other text, and the cursor of another list."""
    try:
        padded = cursor.replace("-", "+").replace("_", "/") + "=" * (-len(cursor) % 4)
        place = msgspec.json.decode(binascii.a2b_base64(padded, strict_mode=True), type=kind)
        for part in cast("tuple[str | int, ...]", place):
            _check(part)
    except ValueError:  # of any of these
        raise InvalidInputError(
            "cursor",
            "does not come from a page of this list",
            hint="leave it out to start from the beginning",
        ) from None
    return place


def _check(part: str | int) -> None:
    """Refuse a value that no database stores."""
    if isinstance(part, str):
        check_text("cursor", part)
    elif not 0 <= part < 2**63:
        raise ValueError(part)
