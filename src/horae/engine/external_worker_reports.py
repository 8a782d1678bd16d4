"""Runs of external workers: checks and applies their reports, and ends runs without one.

No node holds such a run, so it depends on none. A report is written under the claim in the run's row, even if it arrives
before the node that handed the run over has recorded that.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import msgspec

from horae.engine.attempt_results import Recorded, record
from horae.errors import InvalidInputError, ReportRefusedError
from horae.executor.attempt_context import hash_of
from horae.executor.stored_output import MAX_RESULT_LENGTH, kept_failure, kept_result
from horae.model import AttemptEnd, AttemptResult, Limits, Run, Status, Timeouts
from horae.policy.outcome import overdue, report_by
from horae.spec.duration import milliseconds
from horae.store.port import ReportableRun, Transaction
from horae.store.transaction_limit import StoreAccess

PAGE = 500
STARTED, HEARTBEAT, SUCCEEDED, FAILED = "started", "heartbeat", "succeeded", "failed"
_SIGNS_OF_LIFE = {STARTED, HEARTBEAT}
_LIMITS = Limits()  # they limit crashes, and nothing here is one


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report of an external worker on a run, with the run's report token."""

    run_id: str
    token: str
    what: str
    result: object = None
    failure: str | None = None

    def __repr__(self) -> str:
        """The kind of report and its run, without the token."""
        return f"Report({self.what} of {self.run_id})"


async def keep_token(store: StoreAccess, run: Run, token_hash: str) -> None:
    """Store the hash of a report token, so that its bearer may report on an attempt, even after this process has ended."""
    async with store.transaction() as transaction:
        if not await transaction.keep_token(run, token_hash):
            raise ReportRefusedError(run.id, "this attempt is not the run's present one any more")


async def check_report(store: StoreAccess, report: Report) -> ReportableRun:
    """The run of a report that has the token of the run's present attempt; nothing else is checked.

    This only reads, so that a caller without a token cannot delay writers.
    """
    async with store.reading() as transaction:
        return await _known(transaction, report)


async def take_report(store: StoreAccess, report: Report, now: int) -> Run:
    """Apply a report; returns the run as it is afterwards."""
    reportable = await check_report(store, report)
    result = _checked_result(report)
    async with store.transaction() as transaction:
        await transaction.lock([reportable.run.schedule_key])
        run = (await _known(transaction, report)).run  # locked: no other node decides for it now
        if run.status is not Status.RUNNING:
            return _accept_repeated(run, report)
        if report.what in _SIGNS_OF_LIFE:
            timeouts = await _timeouts(transaction, [run])
            await transaction.expect_reports([(run, report_by(run, timeouts[run.id], now))])
            return run
        await record(transaction, [_ended(run, report, result)], now, _LIMITS)
        await transaction.notify()
        (run,) = await transaction.runs_by_id([run.id])
        return run


def _checked_result(report: Report) -> str | None:
    """The result in a report, as JSON; refuses an unknown kind of report, and a result that cannot be stored."""
    if report.what not in {*_SIGNS_OF_LIFE, SUCCEEDED, FAILED}:
        raise InvalidInputError("what", "must be started, heartbeat, succeeded or failed")
    if report.what != SUCCEEDED or report.result is None:
        return None
    try:
        return kept_result(report.result)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        reason = f"must be JSON of at most {MAX_RESULT_LENGTH} bytes, and nothing was recorded: {error}"
        raise InvalidInputError("result", reason) from None


def _ended(run: Run, report: Report, result: str | None) -> AttemptResult:
    if report.what == SUCCEEDED:
        return AttemptResult(run=run, ending=AttemptEnd.RETURNED, result=result)
    failure = kept_failure(report.failure or "it was reported as failed")
    return AttemptResult(run=run, ending=AttemptEnd.RAISED, failure=failure)


async def _known(transaction: Transaction, report: Report) -> ReportableRun:
    """The run of a report. Without its token a caller does not learn whether the run exists."""
    is_an_id = report.run_id.isprintable()  # some databases reject other characters
    reportable = await transaction.reportable_run(report.run_id) if is_an_id else None
    token_hash = hash_of(report.token)
    if reportable is None or not hmac.compare_digest(token_hash, reportable.token_hash or ""):
        raise ReportRefusedError(report.run_id, "it brought no token of the run's present attempt")
    return reportable


def _accept_repeated(run: Run, report: Report) -> Run:
    """Accept a repeated report, which changes nothing; refuse any other, because the attempt is over."""
    failed_before = report.what == FAILED and run.status is Status.RETRYING  # and another attempt follows
    if run.status == report.what or failed_before:
        return run
    raise ReportRefusedError(run.id, f"this attempt is over, and the run is {run.status.replace('_', ' ')}")


async def end_overdue(store: StoreAccess, now: int) -> Recorded:
    """End the runs whose external workers did not report in time; returns them."""
    ended: Recorded = []
    while True:
        async with store.transaction() as transaction:
            late = await transaction.overdue_reports(now, PAGE)
            keys = {each.run.schedule_key for each in late}
            if keys:
                await transaction.lock(keys)
                # A report may have arrived before the lock.
                late = [
                    each
                    for each in await transaction.overdue_reports(now, PAGE)
                    if each.run.schedule_key in keys
                ]
                ended += await _end(transaction, late, now)
        if len(late) < PAGE:
            return ended


async def _end(transaction: Transaction, late: Sequence[ReportableRun], now: int) -> Recorded:
    timeouts = await _timeouts(transaction, [each.run for each in late])
    ends = [overdue(each.run, each.report_by_ms or now, timeouts[each.run.id]) for each in late]
    await transaction.notify()
    return await record(transaction, ends, now, _LIMITS)


async def stop_reported(transaction: Transaction, runs: Sequence[Run], now: int) -> Recorded:
    """Stop runs of external workers: cancelled ones get `timeouts.cancel` to report their end, terminated ones end at once."""
    await transaction.lock({run.schedule_key for run in runs})
    timeouts = await _timeouts(transaction, runs)
    cancelled = [run for run in runs if run.stop == "cancel"]
    await transaction.expect_reports((run, now + milliseconds(timeouts[run.id].cancel)) for run in cancelled)
    terminated = [
        AttemptResult(run=run, ending=AttemptEnd.STOPPED) for run in runs if run.stop == "terminate"
    ]
    if terminated:
        await transaction.notify()
    return await record(transaction, terminated, now, _LIMITS)


async def _timeouts(transaction: Transaction, runs: Sequence[Run]) -> dict[str, Timeouts]:
    """The timeouts of runs, by id; the defaults for a deleted schedule, even if a new one has its id."""
    schedules = await transaction.schedules({run.schedule_key for run in runs}) if runs else []
    known = {(each.key, each.generation): each.policies.timeouts for each in schedules}
    return {run.id: known.get((run.schedule_key, run.generation), Timeouts()) for run in runs}
