"""The ledger of an app: what became of slots, and how to stop what goes on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from horae.errors import RunNotFoundError
from horae.model import Attempt, PassedOver, Reason, Run, Status
from horae.store.port import Store

MOST = 1000


class Runs:
    """The ledger: what became of slots."""

    def __init__(self, store: Store, now: Callable[[], int], wake: Callable[[], None]) -> None:
        self._store = store
        self._now = now
        self._wake = wake

    async def passed_over(self, schedule_id: str, limit: int = 20) -> list[PassedOver]:
        """The latest ranges of slots that did not run, newest first."""
        async with self._store.transaction() as transaction:
            return await transaction.passed_over(schedule_id, min(limit, MOST))

    async def get(self, run_id: str) -> Run:
        """One run."""
        async with self._store.transaction() as transaction:
            found = await transaction.runs_by_id([run_id])
        if not found:
            raise RunNotFoundError(run_id)
        return found[0]

    async def attempts(self, run_id: str) -> list[Attempt]:
        """The attempts of a run that were followed by another, in order."""
        async with self._store.transaction() as transaction:
            return await transaction.attempts(run_id)

    async def list(self, schedule_id: str, limit: int = 20) -> list[Run]:
        """The latest runs of a schedule, newest first."""
        async with self._store.transaction() as transaction:
            return await transaction.runs(schedule_id, min(limit, MOST))

    async def cancel(self, run_id: str) -> Run:
        """Ask a run to stop: it gets the time its schedule grants, and is then made to. One that waits never starts."""
        return await self._stop(run_id, "cancel", Reason.CANCELLED, Status.CANCELLED)

    async def terminate(self, run_id: str) -> Run:
        """Make a run stop. One that waits never starts."""
        return await self._stop(run_id, "terminate", Reason.TERMINATED, Status.TERMINATED)

    async def _stop(self, run_id: str, how: str, reason: Reason, status: Status) -> Run:
        run = await self.get(run_id)
        now = self._now()
        async with self._store.transaction() as transaction:
            await transaction.lock([run.schedule_id])
            (run,) = await transaction.runs_by_id([run_id])
            if run.status in {Status.PENDING, Status.STARTING}:
                run = msgspec.structs.replace(run, status=status, reason=reason, ended_at=now)
                await transaction.update_runs([run])
                await transaction.look_behind([run.schedule_id], now)
            elif run.status is Status.RUNNING:
                run = msgspec.structs.replace(run, stop=how, reason=reason)
                await transaction.ask_to_stop([run])
            await transaction.notify()
        self._wake()
        return run
