"""The ledger of an app: runs and unstarted ranges, and how to stop runs."""

from __future__ import annotations

import msgspec

from horae.app.owner_scope import OwnerScope
from horae.app.page import Page, numbers_of
from horae.engine.external_reports import Report, check_report, stop_reported, take_report
from horae.model import WAITING, Attempt, Checkpoint, Reason, Run, Status, UnstartedRange
from horae.store.port import NEWEST


class Runs:
    """The ledger: runs and unstarted ranges."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope
        self._store, self._now, self._wake = scope.store, scope.now, scope.wake

    async def unstarted_ranges(
        self, schedule_id: str, limit: int = 20, *, cursor: str | None = None
    ) -> Page[UnstartedRange]:
        """The latest ranges of slots that did not run, newest first."""
        before = NEWEST[0] if cursor is None else numbers_of(cursor, 1)[0]
        return await self._scope.ledger(
            schedule_id, limit, None,
            lambda transaction, number: transaction.unstarted_ranges(schedule_id, number, before),
            lambda last: str(last.number),
        )  # fmt: skip

    async def get(self, run_id: str) -> Run:
        """One run."""
        async with self._store.reading() as transaction:
            return await self._scope.run(transaction, run_id)

    async def attempts(self, run_id: str) -> list[Attempt]:
        """The earlier attempts of a run, each followed by another, in order."""
        async with self._store.reading() as transaction:
            await self._scope.run(transaction, run_id)
            return await transaction.attempts(run_id)

    async def checkpoints(self, run_id: str) -> list[Checkpoint]:
        """The checkpoints of a run, in the order in which they were saved."""
        async with self._store.reading() as transaction:
            await self._scope.run(transaction, run_id)
            return await transaction.checkpoints([run_id])

    async def list(self, schedule_id: str, limit: int = 20, *, cursor: str | None = None) -> Page[Run]:
        """The latest runs of a schedule, newest first."""
        return await self._scope.ledger(
            schedule_id, limit,
            lambda transaction, number: transaction.run_sizes(schedule_id, number, cursor),
            lambda transaction, number: transaction.runs(schedule_id, number, cursor),
            lambda last: last.id,
        )  # fmt: skip

    async def cancel(self, run_id: str) -> Run:
        """Ask a run to stop: it may finish within ``timeouts.cancel``; then it is terminated. A waiting run never starts."""
        return await self._stop(run_id, "cancel", Reason.CANCELLED, Status.CANCELLED)

    async def terminate(self, run_id: str) -> Run:
        """Terminate a run. A waiting run never starts."""
        return await self._stop(run_id, "terminate", Reason.TERMINATED, Status.TERMINATED)

    async def report(
        self, run_id: str, token: str, what: str, *, result: object = None, failure: str | None = None
    ) -> Run:
        """Take a report of an external worker with the run's report token: ``started``, ``heartbeat``, ``succeeded`` or ``failed``.

        ``stop`` of the returned run says whether the worker must stop.
        """
        report = Report(run_id=run_id, token=token, what=what, result=result, failure=failure)
        run = await take_report(self._store, report, self._now())
        self._wake()
        return run

    async def check_token(self, run_id: str, token: str) -> None:
        """Refuse a report token that does not belong to the run's current attempt; check nothing else."""
        await check_report(self._store, Report(run_id=run_id, token=token, what="heartbeat"))

    async def _stop(self, run_id: str, how: str, reason: Reason, status: Status) -> Run:
        run = await self.get(run_id)
        now = self._now()
        async with self._store.transaction() as transaction:
            await transaction.lock([run.schedule_id])
            (run,) = await transaction.runs_by_id([run_id])
            if run.status in {*WAITING, Status.STARTING}:
                run = msgspec.structs.replace(run, status=status, reason=reason, ended_at=now)
                await transaction.update_runs([run])
                await transaction.wake_waiting([run.schedule_id], now)
            elif run.status is Status.RUNNING:
                run = msgspec.structs.replace(run, stop=how, reason=reason)
                await transaction.ask_to_stop([run])
                if run.epoch == 0:  # an external worker does it
                    await stop_reported(transaction, [run], now)
                    (run,) = await transaction.runs_by_id([run_id])
            await transaction.notify()
        self._wake()
        return run
