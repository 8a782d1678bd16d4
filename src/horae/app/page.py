"""Pages: lists in parts that are neither too long nor too large."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from horae.errors import InvalidInputError

MOST = 1000
"""How many items a page has at most."""
MAX_BYTES = 4 * 1024 * 1024
"""How large a page becomes: with the item that makes it larger, it ends."""
T = TypeVar("T")


class Page(list[T]):
    """Some of a list, and in ``next`` the cursor that asks for what follows; ``None`` if this is the end."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002 - the API's word
        super().__init__(items)
        self.next = next


def fitting(sizes: Sequence[int], limit: int) -> tuple[int, bool]:
    """How many of up to ``limit`` items, by their sizes in bytes, a page has, and whether there may be more.

    If there is one, the page has one, however large it is: so the next page goes on.
    """
    number = size = 0
    while number < len(sizes) and size < MAX_BYTES:
        size += sizes[number]
        number += 1
    return number, number > 0 and (number < len(sizes) or number == limit)


def numbers_of(cursor: str, count: int) -> tuple[int, ...]:
    """The numbers that a cursor stands for."""
    parts = cursor.split(".")
    if len(parts) != count or not all(re.fullmatch(r"[0-9]{1,18}", each) for each in parts):
        raise InvalidInputError("cursor", "is none that a page gave", hint="leave it out to begin anew")
    return tuple(map(int, parts))
