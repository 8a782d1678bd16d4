"""Chance that repeats itself: numbers that follow from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Each throw is a hash of the seed and the number of the throw."""

    def __init__(self, seed: object) -> None:
        self._seed = seed
        self._thrown = 0

    def below(self, limit: int) -> int:
        self._thrown += 1
        digest = sha256(f"{self._seed}:{self._thrown}".encode()).digest()
        return int.from_bytes(digest[:8]) % limit

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent
