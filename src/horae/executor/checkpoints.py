"""Checkpoints: values that attempts of a run save, so that the next attempt need not repeat the work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

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
"""Bytes of all keys and values of a run. The next attempt reads all of them."""

Save = Callable[[Mapping[str, str]], Awaitable[None]]
"""Saves values, as JSON by key, under the claim of the attempt, all or none; raises if the claim is stale."""


class CheckpointBounds(NamedTuple):
    """How much a run may save."""

    key_length: int = MAX_KEY_LENGTH
    value_bytes: int = MAX_VALUE_LENGTH
    number: int = MAX_CHECKPOINTS
    total_bytes: int = MAX_TOTAL_LENGTH


DEFAULT_BOUNDS = CheckpointBounds()


class Checkpoints(Mapping[str, Any]):
    """The checkpoints of a run by key. Each read decodes a new value: changing it does not change what is saved."""

    def __init__(
        self, earlier: Iterable[Checkpoint], save: Save, bounds: CheckpointBounds = DEFAULT_BOUNDS
    ) -> None:
        self._texts = {each.key: each.value for each in earlier}
        self._total = sum(_length(key, text) for key, text in self._texts.items())
        self._save = save
        self._bounds = bounds
        self._saving = asyncio.Lock()

    async def save(self, values: Mapping[str, object]) -> None:
        """Save values, one call at a time, all or none; the mapping has them once they are durable."""
        async with self._saving:
            texts = {key: self._checked(key, value) for key, value in values.items()}
            total = self._total + sum(self._growth(key, text) for key, text in texts.items())
            self._check_room(texts, total)
            await self._save(texts)
            self._texts |= texts
            self._total = total

    def _growth(self, key: str, text: str) -> int:
        before = self._texts.get(key)
        return _length(key, text) - (0 if before is None else _length(key, before))

    def _checked(self, key: str, value: object) -> str:
        """The value as JSON, if it and its key are within bounds."""
        most = self._bounds.key_length
        if not 1 <= len(key) <= most or not key.isprintable():
            raise InvalidInputError("key", f"must be 1 to {most} printable characters")
        most = self._bounds.value_bytes
        try:
            return kept_json(value, "it", most)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            reason = f'of the checkpoint "{key}" must be JSON of at most {most} bytes: {error}'
            raise InvalidInputError("value", reason) from None

    def _check_room(self, texts: Mapping[str, str], total: int) -> None:
        """Refuse values with which the run would have too many checkpoints, or too many bytes."""
        key = list(texts)[-1] if texts else ""
        if len(self._texts.keys() | texts.keys()) > self._bounds.number:
            reason = f'"{key}" is one too many: a run has at most {self._bounds.number} checkpoints'
            raise InvalidInputError("key", reason)
        if total > self._bounds.total_bytes:
            reason = f'of the checkpoint "{key}" is too large: all of a run have at most {self._bounds.total_bytes} bytes'
            raise InvalidInputError("value", reason)

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - any JSON
        return msgspec.json.decode(self._texts[key])

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._texts))

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Checkpoints({list(self)})"


def _length(key: str, text: str) -> int:
    return sum(len(each) if each.isascii() else len(each.encode()) for each in (key, text))
