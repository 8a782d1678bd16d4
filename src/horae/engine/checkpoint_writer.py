"""Saves checkpoints under the claims of attempts: those that come while others are being written share a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from horae.errors import StaleClaimError
from horae.model import Run
from horae.store.transaction_limit import StoreAccess

MAX_TOGETHER = 500
"""How many attempts share a transaction at most."""


class _Waiting(NamedTuple):
    run: Run
    values: Mapping[str, str]
    saved: asyncio.Future[None]


class CheckpointWriter:
    """Writes what attempts save. A save returns when it is durable."""

    def __init__(self, store: StoreAccess, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def save(self, run: Run, values: Mapping[str, str]) -> None:
        """Save values, as JSON, for the next attempts of a run; raises ``StaleClaimError`` if the attempt is not its present one."""
        loop = asyncio.get_running_loop()
        saved: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(run, values, saved))
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write(), name="horae:checkpoints")
        await saved

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
            try:
                async with self._store.transaction() as transaction:
                    fresh = await transaction.save_checkpoints(
                        [(each.run, each.values) for each in batch], self._now()
                    )
            except BaseException as error:
                _tell(batch, [error] * len(batch))
                if not isinstance(error, Exception):
                    raise
                continue
            _tell(
                batch,
                [None if saved else StaleClaimError(each.run.id, each.run.attempt) for each, saved in zip(batch, fresh, strict=True)],
            )  # fmt: skip


def _tell(batch: Sequence[_Waiting], errors: Sequence[BaseException | None]) -> None:
    for each, error in zip(batch, errors, strict=True):
        if each.saved.done():  # its attempt was cancelled meanwhile
            continue
        if error is None:
            each.saved.set_result(None)
        else:
            each.saved.set_exception(error)
