"""Moves the phase of running flow runs forward: writes what must be durable before the next part of a handler is called.

Runs that move at the same time are written in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from horae.clock import Clock
from horae.engine.flow_host import FlowHost
from horae.engine.membership import Membership
from horae.errors import StaleClaimError, StoreUnavailableError
from horae.store.flow_queries import FlowRecords, RunMove
from horae.store.port import Store

RETRY_SECONDS = 0.2


class ReservationLostError(Exception):
    """An event that a run reserves is no longer pending: it was skipped after the run read it."""


class FlowJournal:
    """Writes moves of runs, in groups."""

    def __init__(self, store: Store, membership: Membership, clock: Clock, host: FlowHost) -> None:
        self._store = store
        self._host = host
        self._membership = membership
        self._clock = clock
        self._waiting: list[tuple[RunMove, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    @property
    def holds_lease(self) -> bool:
        """Whether what begins now can be stopped before another node takes over."""
        return self._membership.holds_lease

    async def move(self, move: RunMove) -> None:
        """Move a run forward under its claim; durable when this returns.

        Raises ``StaleClaimError`` if another node has taken the run over, ``ReservationLostError`` if it cannot reserve its events.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((move, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all(), name="horae:flow-journal")
        with self._host.using_store():
            await written

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                await self._write(group)
        finally:
            self._writing = None

    async def _write(self, group: list[tuple[RunMove, asyncio.Future[None]]]) -> None:
        group = [(move, written) for move, written in group if not written.done()]
        while group:
            try:
                error = await self._attempt([move for move, _ in group])
            except StoreUnavailableError as unavailable:
                # Whether it was written is not known; the same again does no harm. Without a lease it is for others.
                if not self._membership.holds_lease:
                    _answer(group, unavailable)
                    return
                await self._clock.wait(asyncio.Event(), RETRY_SECONDS)
                continue
            except Exception as fault:
                _answer(group, fault)
                return
            if error is not None and len(group) > 1:
                for each in group:
                    await self._write([each])
                return
            _answer(group, error)
            return

    async def _attempt(self, moves: Sequence[RunMove]) -> Exception | None:
        """Write moves in one transaction. If one cannot be written, write none and return the reason."""
        try:
            async with self._store.transaction() as transaction:
                records = FlowRecords(transaction)
                moved, reserved = await records.move_runs(moves)
                _require(moved, StaleClaimError(moves[0].run_id, 1))
                _require(reserved, ReservationLostError("an event that it reserves was skipped"))
        except _RefusedError as refused:
            return refused.why
        return None


def _require(written: bool, why: Exception) -> None:  # noqa: FBT001
    """Roll the transaction back unless all of it was written."""
    if not written:
        raise _RefusedError(why)


class _RefusedError(Exception):
    def __init__(self, why: Exception) -> None:
        self.why = why


def _answer(group: list[tuple[RunMove, asyncio.Future[None]]], error: Exception | None) -> None:
    for _, written in group:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
