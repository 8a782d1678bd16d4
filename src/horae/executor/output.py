"""What others wrote, as it is kept: text that can be stored, and not more of it than there is room for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

HIDDEN = b"***"
SHORTEST_SECRET = 8
"""Shorter texts are found everywhere, and hide nothing."""


def text_of(data: bytes, most: int) -> str:
    """Bytes as text that is at most so many bytes of JSON; what is no text is marked."""
    text = data.decode("utf-8", "replace")
    while len(msgspec.json.encode(text)) > most:
        text = text[: len(text) // 2]
    return text


def secrets_in(values: Iterable[str]) -> list[bytes]:
    """What must not be found in an output: some values, and the words that they are made of."""
    words = {word for value in values for word in (value, *value.split())}
    return sorted(
        (word.encode() for word in words if len(word) >= SHORTEST_SECRET), key=len, reverse=True
    )  # the longest first: others may be part of it


def without(data: bytes, secrets: Iterable[bytes]) -> bytes:
    """An output with no secret in it, should somebody have sent one back."""
    for secret in secrets:
        data = data.replace(secret, HIDDEN)
    return data
