"""The states of graphs while they run, in the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from horae.executor.secret_sealing import Sealer
from horae.store.transaction_limit import StoreAccess

FIELD = "the state of the graph"


class GraphMemoryTable:
    """Texts by run and key, sealed if a secret key is set: a graph may keep what it knows about its caller in its state."""

    def __init__(self, store: StoreAccess, now: Callable[[], int], sealer: Sealer, *, seals: bool) -> None:
        self._store = store
        self._now = now
        self._sealer = sealer
        self._seals = seals

    async def load(self, run_id: str) -> dict[str, str]:
        """All stored texts of a run."""
        async with self._store.reading() as transaction:
            found = await transaction.graph_state(run_id)
        return await asyncio.to_thread(self._opened, found) if self._seals else found

    def _opened(self, found: Mapping[str, str]) -> dict[str, str]:
        return {key: self._sealer.open(text, FIELD) for key, text in found.items()}

    async def save(self, run_id: str, entries: Mapping[str, str], dropped: Collection[str] = ()) -> None:
        """Keep some texts and drop others."""
        if self._seals:
            entries = {key: self._sealer.seal(text, FIELD) for key, text in entries.items()}
        async with self._store.transaction() as transaction:
            await transaction.put_graph_state(run_id, entries, dropped, self._now())
