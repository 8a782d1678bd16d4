"""The ledger of an app: runs and unstarted ranges, and how to stop runs and to run them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from horae.app.attempt_logs import log_page
from horae.app.field_checks import window_ms
from horae.app.ledger_search import search_ledger
from horae.app.operation_arguments import checks_arguments, hint_if_missing
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import Page, page_limit, place_of
from horae.app.triggers_and_backfills import Trigger, start_trigger
from horae.app.views import RunHistory
from horae.checked import converted
from horae.engine.external_worker_reports import Report, check_report, stop_reported, take_report
from horae.errors import RerunRefusedError
from horae.model import (
    WAITING,
    Attempt,
    Checkpoint,
    LogLine,
    Overlap,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    Status,
    UnstartedRange,
)
from horae.policies import OverlapName
from horae.policy.rerun import rerun_refusal
from horae.store.port import NEWEST, LatestOutcome, LedgerFilter, Transaction


@checks_arguments
class Runs:
    """The ledger: runs and unstarted ranges."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def unstarted_ranges(
        self, schedule_id: str, limit: int = 20, *, cursor: str | None = None
    ) -> Page[UnstartedRange]:
        """The latest ranges of slots that did not run, newest first."""
        (before,) = NEWEST[:1] if cursor is None else place_of(cursor, tuple[int])

        async def sizes(transaction: Transaction, key: ScheduleKey, number: int) -> Sequence[tuple[int, ...]]:
            found = await transaction.unstarted_ranges(key, number, before)
            return [(each.number or 0, 0) for each in found]

        return await self._scope.ledger(
            schedule_id, limit, sizes,
            lambda transaction, key, number: transaction.unstarted_ranges(key, number, before),
        )  # fmt: skip

    async def get(self, run_id: str) -> Run:
        """One run."""
        async with self._scope.store.reading() as transaction:
            return await self._scope.run(transaction, run_id)

    async def history(self, run_id: str, limit: int = 100) -> RunHistory:
        """One run, its latest attempts that did not succeed, and their checkpoints."""
        limit = page_limit(limit)
        async with self._scope.store.reading() as transaction:
            return RunHistory(
                await self._scope.run(transaction, run_id),
                await transaction.attempts(run_id, limit),
                await transaction.checkpoints([run_id]),
            )

    async def attempts(self, run_id: str, limit: int = 100) -> list[Attempt]:
        """The latest attempts of a run that did not succeed, in order, each with its failure and traceback."""
        async with self._scope.store.reading() as transaction:
            await self._scope.run(transaction, run_id)
            return await transaction.attempts(run_id, page_limit(limit))

    async def checkpoints(self, run_id: str) -> list[Checkpoint]:
        """The checkpoints of a run, in the order in which they were saved."""
        async with self._scope.store.reading() as transaction:
            await self._scope.run(transaction, run_id)
            return await transaction.checkpoints([run_id])

    async def logs(
        self, run_id: str, attempt: int | None = None, *, cursor: str | None = None
    ) -> Page[LogLine]:
        """A page of what the attempts of a run logged, or one of them, in order.

        ``next`` is ``None`` when no more lines can come; while the run is open, it leads to the later lines.
        """
        async with self._scope.store.reading() as transaction:
            run = await self._scope.run(transaction, run_id)
            return await log_page(transaction, run, attempt, cursor)

    @hint_if_missing("app.runs.search() lists the runs of all schedules")
    async def list(self, schedule_id: str, limit: int = 20, *, cursor: str | None = None) -> Page[Run]:
        """The latest runs of a schedule, newest first."""
        (before,) = NEWEST[:1] if cursor is None else place_of(cursor, tuple[int])
        return await self._scope.ledger(
            schedule_id, limit,
            lambda transaction, key, number: transaction.run_sizes(key, number, before),
            lambda transaction, key, number: transaction.runs(key, number, before),
        )  # fmt: skip

    async def latest(self, schedules: Iterable[Schedule]) -> Mapping[ScheduleKey, LatestOutcome]:
        """The outcome of the latest slot of each schedule, by schedule key; schedules that have had no slot are missing."""
        keys = [each.key for each in schedules]
        async with self._scope.store.reading() as transaction:
            return await transaction.latest_outcomes(keys) if keys else {}

    async def search(
        self,
        *,
        status: str | Iterable[str] | None = None,
        reason: str | None = None,
        without_reasons: Iterable[str] = (),
        schedule_id: str | None = None,
        tag: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Run | UnstartedRange]:
        """The runs and unstarted ranges of all schedules that match every given parameter, the latest decided first.

        ``without_reasons`` leaves out those that ended for one of the reasons. ``since`` and ``until`` bound the time of the
        decision: at or after ``since``, before ``until``. A page examines at most 10,000 entries, so it may have fewer than
        ``limit`` items, or none, and still a ``next``.
        """
        statuses = [status] if isinstance(status, str) else list(Status) if status is None else status
        since_ms, until_ms = window_ms(since, until)
        only = LedgerFilter(
            owner=self._scope.owner, tag=tag,
            statuses=tuple(converted(each, Status, "status") for each in statuses),
            reason=None if reason is None else converted(reason, Reason, "reason"),
            without_reasons=tuple(converted(each, Reason, "without_reasons") for each in without_reasons),
            since=since_ms, until=until_ms,
        )  # fmt: skip
        async with self._scope.store.reading() as transaction:
            if schedule_id is not None:
                key = await self._scope.key(transaction, schedule_id)
                only = msgspec.structs.replace(only, schedule_key=key)
            found = await search_ledger(transaction, only, limit, cursor)
            if schedule_id is not None and not found:
                await self._scope.known(transaction, schedule_id)
        return found

    async def rerun(
        self,
        run_id: str,
        *,
        overlap: Overlap | OverlapName | None = None,
        input: Any = msgspec.UNSET,  # noqa: A002, ANN401 - the word that users know; any JSON
        author: str = "",
        note: str = "",
    ) -> Run:
        """Run the slot of an ended run again, as a new run that names the old one in ``rerun_of``. The input is the same unless given.

        The new run executes the schedule's current action, even while the schedule is paused.
        """
        trigger = Trigger(overlap=overlap, input=input, author=author, note=note)
        seen = await self.get(run_id)

        async def start(work: UnitOfWork) -> Run:
            schedules = await work.transaction.schedules([seen.schedule_key])
            run = await self._scope.run(work.transaction, run_id)
            schedule = schedules[0] if schedules else None
            refusal = rerun_refusal(run, schedule)
            if schedule is None or refusal is not None:
                raise RerunRefusedError(run_id, str(refusal))
            return await start_trigger(work, schedule, trigger, rerun=run)

        return await self._scope.change(start)

    async def cancel(self, run_id: str) -> Run:
        """Ask a run to stop: it may finish within ``timeouts.cancel``; then it is terminated. A waiting run never starts."""
        return await self._stop(run_id, "cancel", Reason.CANCELLED, Status.CANCELLED)

    async def terminate(self, run_id: str) -> Run:
        """Terminate a run. A waiting run never starts."""
        return await self._stop(run_id, "terminate", Reason.TERMINATED, Status.TERMINATED)

    async def report(
        self, run_id: str, token: str, what: str, *, result: object = None, failure: str | None = None
    ) -> Run:
        """Accept a report of an external worker with the run's report token: ``started``, ``heartbeat``, ``succeeded`` or ``failed``.

        ``stop`` of the returned run says whether the worker must stop.
        """
        report = Report(run_id=run_id, token=token, what=what, result=result, failure=failure)
        run = await take_report(self._scope.store, report, self._scope.now())
        self._scope.wake()
        return run

    async def check_token(self, run_id: str, token: str) -> None:
        """Refuse a report token that is not that of the run's current attempt; check nothing else."""
        await check_report(self._scope.store, Report(run_id=run_id, token=token, what="heartbeat"))

    async def _stop(self, run_id: str, how: str, reason: Reason, status: Status) -> Run:
        seen = await self.get(run_id)

        async def stop(work: UnitOfWork) -> Run:
            transaction, now = work.transaction, work.now
            await transaction.lock([seen.schedule_key])
            run = await self._scope.run(transaction, run_id)
            if run.status in {*WAITING, Status.STARTING}:
                run = msgspec.structs.replace(run, status=status, reason=reason, ended_at_ms=now)
                await transaction.update_runs([run])
                await transaction.wake_waiting([run.schedule_key], now)
            elif run.status is Status.RUNNING:
                run = msgspec.structs.replace(run, stop=how, reason=reason)
                await transaction.ask_to_stop([run])
                if run.epoch == 0:  # an external worker does it
                    await stop_reported(transaction, [run], now)
                    run = await self._scope.run(transaction, run_id)
            await transaction.notify()
            return run

        return await self._scope.change(stop)
