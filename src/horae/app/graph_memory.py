"""The states of graphs while they run, in the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from horae.store.transaction_limit import StoreAccess


class GraphMemoryTable:
    """Texts by run and key."""

    def __init__(self, store: StoreAccess, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now

    async def load(self, run_id: str) -> dict[str, str]:
        """All that is kept of a run."""
        async with self._store.reading() as transaction:
            return await transaction.graph_state(run_id)

    async def save(self, run_id: str, entries: Mapping[str, str], dropped: Collection[str] = ()) -> None:
        """Keep some texts and drop others."""
        async with self._store.transaction() as transaction:
            await transaction.put_graph_state(run_id, entries, dropped, self._now())
