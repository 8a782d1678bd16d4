"""Checkpoints: what attempts of a run saved, so that the next attempt need not repeat it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from horae.errors import InvalidInputError
from horae.executor.stored_output import kept_json
from horae.model import Checkpoint

MAX_KEY_LENGTH = 200
MAX_VALUE_LENGTH = 256 * 1024
"""Bytes of JSON of one value."""
MAX_CHECKPOINTS = 1000
"""How many a run may have."""
MAX_TOTAL_LENGTH = 1024 * 1024
"""Bytes of all keys and values of a run: all of them are read for its next attempt."""

Save = Callable[[str, str], Awaitable[None]]
"""Saves a value, as JSON, under its key and the claim of the attempt; or raises: the claim is stale."""


class Checkpoints(Mapping[str, Any]):
    """The checkpoints of a run by key. Each read decodes a new value: changing it does not change what is saved."""

    def __init__(self, earlier: Iterable[Checkpoint], save: Save) -> None:
        self._texts = {each.key: each.value for each in earlier}
        self._save = save
        self._saving = asyncio.Lock()

    async def save(self, key: str, value: object) -> None:
        """Save a value, one at a time; the mapping has it once it is durable."""
        async with self._saving:
            text = self._checked(key, value)
            await self._save(key, text)
            self._texts[key] = text

    def _checked(self, key: str, value: object) -> str:
        """The value as JSON, if it and its key are within bounds."""
        if not 1 <= len(key) <= MAX_KEY_LENGTH or not key.isprintable():
            raise InvalidInputError("key", f"must be 1 to {MAX_KEY_LENGTH} printable characters")
        try:
            text = kept_json(value, "it", MAX_VALUE_LENGTH)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            reason = f'of the checkpoint "{key}" must be JSON of at most {MAX_VALUE_LENGTH} bytes: {error}'
            raise InvalidInputError("value", reason) from None
        others = {each: length for each, length in self._lengths() if each != key}
        if len(others) >= MAX_CHECKPOINTS:
            raise InvalidInputError(
                "key", f'"{key}" is one too many: a run has at most {MAX_CHECKPOINTS} checkpoints'
            )
        if sum(others.values()) + _length(key, text) > MAX_TOTAL_LENGTH:
            reason = (
                f'of the checkpoint "{key}" is too large: all of a run have at most {MAX_TOTAL_LENGTH} bytes'
            )
            raise InvalidInputError("value", reason)
        return text

    def _lengths(self) -> Iterator[tuple[str, int]]:
        return ((key, _length(key, text)) for key, text in self._texts.items())

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - any JSON
        return msgspec.json.decode(self._texts[key])

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._texts))

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Checkpoints({list(self)})"


def _length(key: str, text: str) -> int:
    return len(key.encode()) + len(text.encode())
