"""The connection over which a thread renews the lease of a node: its own, which no pool and no event loop of others holds up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import asyncpg

from horae.errors import StoreUnavailableError
from horae.store.postgres.connection_errors import LOST, connection_reason
from horae.store.postgres.dialect import prepared
from horae.store.postgres.schema_setup import set_session


class PostgresLeaseConnection:
    """Belongs to the event loop that uses it. It connects when it is needed, and again after an error."""

    def __init__(self, url: str, schema: str, lease: float) -> None:
        self._url = url
        self._schema = schema
        self._lease = lease
        self._answer_within = max(lease / 4, 0.5)
        self._connection: Any = None  # asyncpg has no types

    async def renew(self, epoch: int) -> bool:
        """Renew the lease of a node; ``False`` if it has expired."""
        text, names = prepared("renew")
        values = {"epoch": epoch, "lease": self._lease}
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(self._url, timeout=self._answer_within)
                session = set_session(
                    self._connection, self._schema, tcp_user_timeout=str(int(self._lease * 1000))
                )
                await self._answer(session)
            return bool(await self._answer(self._connection.fetch(text, *(values[each] for each in names))))
        except LOST as error:
            self._drop()
            raise StoreUnavailableError(connection_reason(error)) from error

    async def _answer(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
        """What the server answers in time. A request that it does not answer ends with the connection: the driver would ask to cancel
        it over one more connection, and wait for that.
        """
        asked = asyncio.ensure_future(work)
        try:
            await asyncio.wait({asked}, timeout=self._answer_within)
            if not asked.done():
                raise TimeoutError
            return asked.result()
        finally:
            if not asked.done():
                self._drop()
                with contextlib.suppress(*LOST):
                    await asked

    def _drop(self) -> None:
        """Give the connection up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Close the connection; one that is in use is given up."""
        if self._connection is not None:
            with contextlib.suppress(*LOST):
                await self._connection.close(timeout=1)
        self._connection = None
