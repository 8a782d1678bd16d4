"""Transaction methods for attempts, checkpoints, logs, last outcomes, unstarted ranges and retention."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from horae.model import (
    Attempt,
    Checkpoint,
    LastOutcome,
    LogBatch,
    LogChunk,
    Outcome,
    Run,
    ScheduleKey,
    Status,
    UnstartedRange,
    instant,
)
from horae.store.run_queries import RunQueries
from horae.store.statement_execution import NEWEST
from horae.store.tables import ATTEMPT, ATTEMPT_LOG, CHECKPOINT, LAST_OUTCOME, UNSTARTED_RANGE


class LatestOutcome(NamedTuple):
    """The outcome of the latest slot of a schedule, run or not."""

    status: Status
    nominal_ms: int
    decided_at_ms: int
    run_id: str | None
    """The run of the slot; ``None`` if the slot did not start."""

    @property
    def nominal(self) -> datetime:
        """The nominal time of the slot."""
        return instant(self.nominal_ms)


class RetentionBounds(msgspec.Struct, frozen=True):
    """The retention of a schedule's ledger: it keeps rows that ended since ``before``, if they are among the latest ``count`` of their kind."""

    schedule_key: ScheduleKey
    before: int
    count: int
    max_rows: int = 500
    """How many rows of each kind one transaction removes."""


class LedgerQueries(RunQueries):
    """Statements on what belongs to runs, and on slots that did not start."""

    async def insert_attempts(self, attempts: Iterable[Attempt]) -> None:
        """Store attempts that did not succeed."""
        await self.write("insert_attempt", [ATTEMPT.parameters(each) for each in attempts])

    async def attempts(self, run_id: str, limit: int) -> list[Attempt]:
        """The latest attempts of a run that did not succeed, in order."""
        return await self.find(ATTEMPT, "attempts", id=run_id, limit=limit)

    async def save_checkpoints(self, saved: Sequence[tuple[Run, Mapping[str, str]]], now: int) -> list[bool]:
        """Save values of attempts by key, as JSON. Returns for each attempt whether its claim holds; a stale claim saves nothing.

        If an attempt saves a key more than once, the last value is kept. Runs are locked in the order of their ids.
        """
        rows: dict[tuple[str, int, str], dict[str, Any]] = {}
        for run, values in sorted(saved, key=lambda each: each[0].id):
            for key, value in values.items():
                rows[run.id, run.attempt, key] = {
                    "run_id": run.id, "epoch": run.epoch, "attempt": run.attempt, "key": key, "value": value, "saved_at_ms": now,
                }  # fmt: skip
        if await self.write("save_checkpoints", list(rows.values())) == len(rows):
            return [True] * len(saved)
        found = await self.claims_of({run.id for run, _ in saved})
        held = {(each.id, each.epoch, each.attempt) for each in found if each.status is Status.RUNNING}
        return [(run.id, run.epoch, run.attempt) in held for run, _ in saved]

    async def checkpoints(self, run_ids: Collection[str]) -> list[Checkpoint]:
        """The checkpoints of the given runs, each run's in the order in which they were saved."""
        return await self.find(CHECKPOINT, "checkpoints", ids=list(run_ids))

    async def write_logs(self, batches: Iterable[LogBatch]) -> None:
        """Write the logs of attempts; a stale claim writes nothing. Chunks that were written before do not change."""
        written = list(batches)
        for of_flows, statement in ((False, "append_log"), (True, "append_flow_log")):
            rows = [
                {**ATTEMPT_LOG.parameters(chunk), "epoch": each.epoch}
                for each in written
                if each.flow is of_flows
                for chunk in each.chunks
            ]
            await self.write(statement, rows)
        for each in written:
            if each.dropped:
                await self.rows(
                    "drop_flow_log" if each.flow else "drop_log", run_id=each.run_id, epoch=each.epoch,
                    attempt=each.attempt, numbers=list(each.dropped),
                )  # fmt: skip

    async def log(self, run_id: str, after: tuple[int, int], last: int, limit: int) -> list[LogChunk]:
        """A page of a run's log up to the attempt ``last``, after the line of the given attempt and number."""
        attempt, number = after
        return await self.find(
            ATTEMPT_LOG, "log", run_id=run_id, attempt=attempt, number=number, last=last, limit=limit
        )

    async def log_sizes(self, run_id: str, after: tuple[int, int], last: int, limit: int) -> list[int]:
        """How many bytes of text each chunk of that page has."""
        attempt, number = after
        return await self.column(
            "log_sizes", run_id=run_id, attempt=attempt, number=number, last=last, limit=limit
        )

    async def last_outcomes(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, LastOutcome]:
        """The last outcomes of the given schedules, for their next runs; schedules without one may be missing."""
        found = await self.find(LAST_OUTCOME, "last_outcomes", keys=list(keys))
        return {each.schedule_key: each for each in found}

    async def keep_last_outcomes(self, ended: Iterable[tuple[Run, Outcome]]) -> None:
        """Store last outcomes for the next runs; a schedule that was created again inherits none."""
        successes: dict[tuple[ScheduleKey, int], str | None] = {}
        failures: dict[tuple[ScheduleKey, int], str] = {}
        for run, outcome in ended:
            key = (run.schedule_key, run.generation)
            if outcome.status is Status.SUCCEEDED:
                successes[key] = outcome.result if outcome.result != "null" else None
                failures.pop(key, None)
            else:
                failures[key] = outcome.failure or outcome.reason
        results = [_left(key, result=text) for key, text in successes.items() if text is not None]
        await self.write("put_last_result", results)
        await self.write(
            "clear_last_outcome", [_left(key) for key, text in successes.items() if text is None]
        )
        # After the results: a failure that follows a success is stored too, and keeps the success's result.
        await self.write("put_last_failure", [_left(key, failure=text) for key, text in failures.items()])

    async def insert_unstarted_ranges(self, ranges: Iterable[UnstartedRange]) -> None:
        """Store ranges of slots that did not start; a range that continues the latest one of its schedule extends it."""
        added = list(ranges)
        rows = [UNSTARTED_RANGE.parameters(each) | {"before_ms": each.before_ms} for each in added]
        await self.write("continue_unstarted_range", rows)
        await self.write("insert_unstarted_range", rows)
        if self.unstarted is not None:
            self.unstarted += added

    async def unstarted_ranges(
        self, key: ScheduleKey, limit: int, before: int = NEWEST[0]
    ) -> list[UnstartedRange]:
        """The latest ranges of a schedule's slots that did not start, newest first; only those with a number below ``before``."""
        return await self.find(UNSTARTED_RANGE, "unstarted_ranges", key=key, limit=limit, before=before)

    async def unstarted_at(self, key: ScheduleKey, nominal_ms: int) -> UnstartedRange | None:
        """The latest unstarted range of a schedule around a nominal time, which need not be one of its slots."""
        return await self.find_one(UNSTARTED_RANGE, "unstarted_at", key=key, nominal_ms=nominal_ms)

    async def latest_outcomes(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, LatestOutcome]:
        """The outcome of the latest decided slot of each of the given schedules; schedules without one are missing."""
        latest: dict[ScheduleKey, LatestOutcome] = {}
        for key, status, *rest in await self.rows("latest_outcomes", keys=list(keys)):
            found = LatestOutcome(Status(status), *rest)
            if key not in latest or found.decided_at_ms > latest[key].decided_at_ms:
                latest[key] = found
        return latest

    # Retention

    async def known_keys(self, after: ScheduleKey, limit: int) -> list[ScheduleKey]:
        """A page of the keys of all schedules, including deleted ones, which have a ledger too."""
        return await self.column("known_keys", after=after, limit=limit)

    async def prune(self, bounds: Iterable[RetentionBounds]) -> int:
        """Delete what is past the given retentions; return how many rows were deleted."""
        rows = [msgspec.structs.asdict(each) for each in bounds]
        names = ("prune_runs", "prune_unstarted_ranges", "prune_backfills", "prune_versions")
        return sum([await self.write(name, rows) for name in names])


def _left(lane: tuple[ScheduleKey, int], **outcome: str) -> dict[str, Any]:
    key, generation = lane
    return {"schedule_key": key, "generation": generation, **outcome}
