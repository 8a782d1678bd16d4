"""Pages: lists in parts that are neither too long nor too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

MOST = 1000
"""How many items a page has at most."""
MAX_BYTES = 4 * 1024 * 1024
"""How large a page becomes: with the item that makes it larger, it ends."""
T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some of a list, and whether there may be more after the last of them."""

    items: list[T]
    more: bool


def fitting(sizes: Sequence[int], limit: int) -> tuple[int, bool]:
    """How many of up to ``limit`` items, by their sizes in bytes, a page has, and whether there may be more.

    If there is one, the page has one, however large it is: so the next page goes on.
    """
    number = size = 0
    while number < len(sizes) and size < MAX_BYTES:
        size += sizes[number]
        number += 1
    return number, number > 0 and (number < len(sizes) or number == limit)
