"""Where usage is recorded: a port, and the table that ships."""

from __future__ import annotations

from typing import Protocol

from horae.grant_model import Usage
from horae.store.transaction_concurrency import StoreAccess


class UsagePort(Protocol):
    """Where usage is recorded. Give another implementation to ``App.use_usage``."""

    async def record(self, usage: Usage) -> None:
        """Record usage, unless the same ``run_id``, ``attempt`` and ``unit`` was recorded before. It is durable when this returns."""


class UsageTable:
    """Usage in a table; what it costs is added to what its account has spent."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    async def record(self, usage: Usage) -> None:
        async with self._store.transaction() as transaction:
            await transaction.insert_usage(usage)
