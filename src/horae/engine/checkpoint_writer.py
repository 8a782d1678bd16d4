"""Saves checkpoints under the claims of attempts."""

from __future__ import annotations

from collections.abc import Callable

from horae.errors import StaleClaimError
from horae.model import Run
from horae.store.transaction_limit import StoreAccess


async def save_checkpoint(store: StoreAccess, now: Callable[[], int], run: Run, key: str, value: str) -> None:
    """Save a value, as JSON, for the next attempts of a run: durable when this returns, unless the claim is stale."""
    async with store.transaction() as transaction:
        if not await transaction.save_checkpoint(run, key, value, now()):
            raise StaleClaimError(run.id, run.attempt)
