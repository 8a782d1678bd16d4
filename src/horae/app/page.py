"""Pages: lists in parts that are neither too long nor too large."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from horae.errors import InvalidInputError

MOST = 1000
"""The most items that a page has."""
MAX_BYTES = 4 * 1024 * 1024
"""The size in bytes at which a page ends: the item that exceeds it is the last one."""
T = TypeVar("T")


class Page(list[T]):
    """A part of a list; ``next`` is the cursor of the next page, or ``None`` at the end."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002 - the API's word
        super().__init__(items)
        self.next = next


def fitting(sizes: Sequence[int], limit: int) -> tuple[int, bool]:
    """How many of up to ``limit`` items, by their sizes in bytes, a page has, and whether there may be more.

    A page has at least one item, however large, if there is any: so paging always advances.
    """
    number = size = 0
    while number < len(sizes) and size < MAX_BYTES:
        size += sizes[number]
        number += 1
    return number, number > 0 and (number < len(sizes) or number == limit)


def numbers_of(cursor: str, count: int) -> tuple[int, ...]:
    """The numbers that a cursor encodes."""
    parts = cursor.split(".")
    if len(parts) != count or not all(re.fullmatch(r"[0-9]{1,18}", each) for each in parts):
        raise InvalidInputError("cursor", "is none that a page gave", hint="leave it out to begin anew")
    return tuple(map(int, parts))
