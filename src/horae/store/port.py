"""The port: what the engine asks of a store. All of it happens in transactions.

A store brings two things, :meth:`Transaction.rows` and :meth:`Transaction.write`, and a text for each query that is named
here; the names are the same in every dialect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import msgspec

from horae.model import (
    OPEN,
    Attempt,
    AttemptResult,
    Backfill,
    Checkpoint,
    Counts,
    LastOutcome,
    Node,
    Outcome,
    Reason,
    Run,
    Schedule,
    State,
    Status,
    StoredCalendar,
    UnstartedRange,
    Version,
)
from horae.store.rows import (
    RawSchedule,
    Row,
    attempt_of,
    backfill_of,
    calendar_of,
    change_row,
    checkpoint_of,
    fields,
    optional_json,
    run_of,
    run_row,
    schedule_of,
    schedule_row,
    to_json,
    unstarted_of,
    version_of,
)

NO_COUNTS = Counts()
NEWEST = (2**62, 2**62)
"""What every version and every number of the ledger comes before."""
_FILLER = "-" * 32 * 1024
"""More than the free room of any page."""


class Advance(NamedTuple):
    """Where a schedule's cursor stands after a decision, when to look at it again, and what to count."""

    schedule_id: str
    cursor: int
    next_at: int | None
    state: State | None = None
    """The new state; ``None`` if it did not change."""
    counts: Counts = NO_COUNTS
    attempted_at: int | None = None
    """When an attempt began, if one did."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which schedules: those that are so in every way that is named."""

    prefix: str | None = None
    """How their ids begin."""
    owner: str | None = None
    action: str | None = None
    tag: str | None = None
    paused: bool | None = None
    completed: bool | None = None
    attention: bool | None = None
    search_key: str | None = None
    """A search attribute, and its value as a text."""
    search_value: str | None = None


class ReportableRun(NamedTuple):
    """A run that somebody else may report on: the hash of the token for it, and when something must have been heard."""

    run: Run
    token_hash: str | None
    report_by: int | None


class Past(msgspec.Struct, frozen=True):
    """What of a schedule's ledger is too old, by age and by number."""

    schedule_id: str
    before: int
    count: int
    most: int = 500
    """How many rows of each kind are removed at once."""


class Transaction(ABC):
    """One transaction: all of it is written, or nothing."""

    recorded: list[tuple[AttemptResult, Outcome]] | None = None
    """The ends of attempts that it writes, for whoever watches; ``None`` while nobody does."""
    unstarted: list[Run | UnstartedRange] | None = None
    """The slots that it passes over, and the runs that it ends while nobody works on them, likewise."""

    @abstractmethod
    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """What a query answers."""

    @abstractmethod
    async def write(self, name: str, rows: list[dict[str, Any]]) -> int:
        """Do something for each of many rows, at once; how many there were."""

    @abstractmethod
    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """Execute a statement on tables that are not Horae's own, and return its rows; parameters are named ``:name``."""

    @abstractmethod
    async def notify(self) -> None:
        """Wake the other nodes when this transaction commits."""

    # Schedules

    async def due(self, now: int, limit: int) -> list[Schedule]:
        """The schedules that must be looked at, the longest overdue first; locked until the end."""
        return [schedule_of(row) for row in await self.rows("due", now=now, limit=limit)]

    async def unclaimed(self, actions: Sequence[str], limit: int) -> list[Schedule]:
        """The schedules of released runs that no node has claimed and that need one of some actions; locked."""
        return [schedule_of(row) for row in await self.rows("unclaimed", actions=list(actions), limit=limit)]

    async def schedules(self, ids: Collection[str]) -> list[Schedule]:
        """Some schedules, locked until the end, in the order of their ids."""
        return [schedule_of(row) for row in await self.rows("schedules", ids=list(ids))]

    async def read_schedules(self, ids: Collection[str]) -> list[Schedule]:
        """Some schedules, not locked, in the order of their ids."""
        return [schedule_of(row) for row in await self.rows("read_schedules", ids=list(ids))]

    async def find_schedules(self, only: Filter, after: str, limit: int) -> list[Schedule]:
        """A page of schedules in the order of their ids, those after one."""
        name = "find_schedules" if only.owner is None else "find_owned"
        return [schedule_of(row) for row in await self.rows(name, after=after, limit=limit, **_asked(only))]

    async def schedule_sizes(self, only: Filter, after: str, limit: int) -> list[tuple[str, int]]:
        """The same, but only the ids and how many bytes people gave each."""
        name = "schedule_sizes" if only.owner is None else "owned_sizes"
        found = await self.rows(name, after=after, limit=limit, **_asked(only))
        return [(row[0], row[1]) for row in found]

    async def count_schedules(self, only: Filter) -> int:
        """How many schedules a filter lets through."""
        name = "count_schedules" if only.owner is None else "count_owned"
        return int((await self.rows(name, **_asked(only)))[0][0])

    async def excluding(self, needle: str, owner: str, after: str, limit: int) -> list[str]:
        """A page of the ids of schedules whose specs contain a text; of one owner, or of all if that is empty."""
        name, whose = ("excluding_owned", {"owner": owner}) if owner else ("excluding", {})
        found = await self.rows(name, needle=needle, after=after, limit=limit, **whose)
        return [row[0] for row in found]

    async def owned(self, owner: str, after: str, limit: int) -> list[RawSchedule]:
        """A page of an owner's schedules as they are stored, not decoded, in the order of their ids."""
        return [RawSchedule(*row) for row in await self.rows("owned", owner=owner, after=after, limit=limit)]

    async def counts_of(self, ids: Collection[str]) -> dict[str, Counts]:
        """How often what became of the starts of some schedules."""
        started: dict[str, int] = {}
        unstarted: dict[str, dict[Reason, int]] = defaultdict(dict)
        for schedule_id, number, reason, count in await self.rows("counts_of", ids=list(ids)):
            started[schedule_id] = number
            if reason is not None:
                unstarted[schedule_id][Reason(reason)] = count
        return {each: Counts(started=number, unstarted=unstarted[each]) for each, number in started.items()}

    async def insert_schedules(self, schedules: Iterable[tuple[Schedule, int | None]]) -> None:
        """Write schedules that did not exist, each with the time to look at it."""
        rows = [schedule_row(schedule, next_at) for schedule, next_at in schedules]
        await self.write("insert_schedule", rows)
        await self.write("insert_due", rows)

    async def update_schedules(self, schedules: Iterable[tuple[Schedule, int | None]]) -> None:
        """Write schedules that were edited, each with the time to look at it."""
        rows = [schedule_row(schedule, next_at) for schedule, next_at in schedules]
        await self.write("update_schedule", rows)
        await self.write("update_due", rows)

    async def delete_schedules(self, ids: Iterable[str]) -> None:
        """Remove schedules; their runs stay."""
        rows = [{"id": each} for each in ids]
        for name in ("delete_schedule", "delete_due", "delete_last_outcome", "delete_unstarted_counts"):
            await self.write(name, rows)

    async def next_generations(self, ids: Collection[str]) -> dict[str, int]:
        """The numbers for schedules that are created now; nobody else can create them until the end."""
        return {row[0]: row[1] for row in await self.rows("next_generation", ids=list(ids))}

    async def insert_versions(self, versions: Iterable[Version]) -> None:
        """Keep what schedules were before an edit."""
        rows = [fields(each) | {"policies": to_json(each.policies)} for each in versions]
        await self.write("insert_version", rows)

    async def versions(self, schedule_id: str, limit: int, before: tuple[int, int] = NEWEST) -> list[Version]:
        """What a schedule was before its edits, newest first; those before one, by its generation and token."""
        generation, version = before
        found = await self.rows(
            "versions", id=schedule_id, limit=limit, generation=generation, version=version
        )
        return [version_of(row) for row in found]

    async def version_sizes(
        self, schedule_id: str, limit: int, before: tuple[int, int] = NEWEST
    ) -> list[int]:
        """The same, but only how many bytes each has."""
        generation, version = before
        found = await self.rows(
            "version_sizes", id=schedule_id, limit=limit, generation=generation, version=version
        )
        return [row[0] for row in found]

    async def version_at(self, schedule_id: str, moment: int) -> Version | None:
        """What a schedule was at a moment, if it was edited or deleted at or after it."""
        found = await self.rows("version_at", id=schedule_id, at=moment)
        return version_of(found[0]) if found else None

    async def version_before(self, schedule_id: str, moment: int) -> Version | None:
        """What a schedule was before the last edit, or deletion, before a moment."""
        found = await self.rows("version_before", id=schedule_id, at=moment)
        return version_of(found[0]) if found else None

    async def advance(self, steps: Iterable[Advance]) -> None:
        """Move cursors, say when to look again, and count; each schedule once."""
        prepared = list(steps)
        await self.write(
            "advance",
            [
                {
                    "schedule_id": s.schedule_id, "cursor": s.cursor, "next_at": s.next_at,
                    "attempted_at": s.attempted_at, "started": s.counts.started,
                }
                for s in prepared
            ],
        )  # fmt: skip
        changed = [{"schedule_id": s.schedule_id, "state": to_json(s.state)} for s in prepared if s.state]
        await self.write("put_state", changed)
        await self.write(
            "count_unstarted",
            [
                {"schedule_id": s.schedule_id, "reason": reason, "count": number}
                for s in prepared
                for reason, number in s.counts.unstarted.items()
            ],
        )

    async def lock(self, schedule_ids: Collection[str]) -> None:
        """Let nobody else decide for these schedules until the end."""
        await self.rows("lock", ids=sorted(schedule_ids))

    async def mark_due(self, schedule_ids: Collection[str], now: int) -> None:
        """Something happened to these schedules: make them due."""
        await self.rows("mark_due", ids=list(schedule_ids), now=now)

    async def wake_waiting(self, schedule_ids: Collection[str], now: int) -> None:
        """Runs of these schedules ended: make those due where something waits, or that nobody would look at."""
        await self.rows("wake_waiting", ids=list(schedule_ids), now=now)

    async def without_next_time(self, after: str, limit: int) -> list[str]:
        """A page of the schedules that nobody will look at by themselves, in the order of their ids."""
        return [row[0] for row in await self.rows("without_next_time", after=after, limit=limit)]

    async def count_due(self, now: int, limit: int) -> int:
        """How many schedules are due, counted up to a limit."""
        return int((await self.rows("count_due", now=now, limit=limit))[0][0])

    async def wake_at(self) -> int | None:
        """The earliest time at which a schedule must be looked at."""
        found: int | None = (await self.rows("wake_at"))[0][0]
        return found

    async def next_number(self) -> int:
        """A number that was never given before: for nodes, triggers and backfills."""
        return int((await self.rows("next_number"))[0][0])

    # Runs

    async def open_runs(self, schedule_ids: Collection[str]) -> list[Run]:
        """The runs of some schedules that have not ended, oldest first."""
        return [run_of(row) for row in await self.rows("open_runs", ids=list(schedule_ids))]

    async def runs(self, schedule_id: str, limit: int, before: str | None = None) -> list[Run]:
        """The latest runs of a schedule, newest first; those before one."""
        found = await self.rows("runs", id=schedule_id, limit=limit, before=before)
        return [run_of(row) for row in found]

    async def run_sizes(self, schedule_id: str, limit: int, before: str | None = None) -> list[int]:
        """The same, but only how many bytes people and actions gave each."""
        found = await self.rows("run_sizes", id=schedule_id, limit=limit, before=before)
        return [row[0] for row in found]

    async def open_counts(self, schedule_ids: Collection[str]) -> dict[tuple[str, Status], int]:
        """How many runs of some schedules wait, and how many go on."""
        found = await self.rows("open_counts", ids=list(schedule_ids))
        return {(row[0], Status(row[1])): row[2] for row in found}

    async def count_open(self, limit: int) -> dict[Status, int]:
        """How many runs have not ended, by status, counted up to a limit."""
        return {Status(row[0]): row[1] for row in await self.rows("count_open", limit=limit)}

    async def count_triggers(self, schedule_id: str, limit: int) -> int:
        """How many triggers of a schedule wait, counted up to a limit."""
        return int((await self.rows("count_triggers", id=schedule_id, limit=limit))[0][0])

    async def count_waiting(self, schedule_id: str, limit: int) -> int:
        """How many automatic starts of a schedule wait, counted up to a limit."""
        return int((await self.rows("count_waiting", id=schedule_id, limit=limit))[0][0])

    async def runs_by_id(self, ids: Collection[str]) -> list[Run]:
        """Some runs."""
        return [run_of(row) for row in await self.rows("runs_by_id", ids=list(ids))]

    async def runs_at(self, schedule_id: str, beginning: str) -> list[Run]:
        """The runs of a schedule at a nominal time, oldest first: those whose ids begin as the ids of that time do.

        ``started_at`` is when the first of their attempts began that did.
        """
        # The rest of an id is hexadecimal: whatever the collation, none of its characters comes after an f.
        found = await self.rows("runs_at", id=schedule_id, from_id=beginning, to_id=f"{beginning}g")
        return [run_of(row) for row in found]

    async def claimed(self, epochs: Collection[int], limit: int) -> list[Run]:
        """The runs that some nodes have claimed and not finished, oldest first."""
        return [run_of(row) for row in await self.rows("claimed", epochs=list(epochs), limit=limit)]

    async def stopping(self, epoch: int) -> list[Run]:
        """The runs of a node that were asked to stop."""
        return [run_of(row) for row in await self.rows("stopping", epoch=epoch)]

    async def is_node(self, epoch: int) -> bool:
        """Whether a node is there, and nobody can bury it until the end."""
        return bool(await self.rows("is_node", epoch=epoch))

    async def waiting_for_node(self, before: int, limit: int) -> list[tuple[str, str]]:
        """Schedules, and their actions, whose runs have waited for a node since before a moment."""
        return [(row[0], row[1]) for row in await self.rows("waiting_for_node", before=before, limit=limit)]

    async def insert_runs(self, runs: Iterable[Run]) -> None:
        """Write runs that did not exist. A slot is unique: the same one twice is an error."""
        runs = list(runs)
        await self.write("insert_run", [run_row(run) for run in runs])
        self._note_ended(runs)

    async def update_runs(self, runs: Iterable[Run]) -> None:
        """Write runs that nobody works on: released, claimed, or ended without a start."""
        runs = list(runs)
        await self.write("update_run", [change_row(run) for run in runs])
        self._note_ended(runs)

    def _note_ended(self, runs: Iterable[Run]) -> None:
        if self.unstarted is not None:
            self.unstarted += [run for run in runs if run.status not in OPEN]

    async def ask_to_stop(self, runs: Iterable[Run]) -> int:
        """Write the wish that runs stop, for their nodes to see; how many of them are running."""
        return await self.write(
            "ask_to_stop", [{"id": run.id, "stop": run.stop, "reason": run.reason} for run in runs]
        )

    async def finish(self, outcomes: Iterable[Outcome]) -> int:
        """Write outcomes under their claims. A stale claim writes nothing; how many were not stale."""
        succeeded: list[dict[str, Any]] = []
        handed_off: list[dict[str, Any]] = []
        others: list[dict[str, Any]] = []
        for each in outcomes:
            if each.status is Status.SUCCEEDED:
                succeeded.append(
                    {
                        "run_id": each.run_id, "epoch": each.epoch, "attempt": each.attempt,
                        "started_at": each.started_at, "ended_at": each.ended_at, "result": each.result,
                    }
                )  # fmt: skip
            else:
                (handed_off if each.status is Status.RUNNING else others).append(fields(each))
        return (
            await self.write("succeed", succeeded)
            + await self.write("hand_off", handed_off)
            + await self.write("finish", others)
        )

    async def keep_token(self, run: Run, token_hash: str) -> bool:
        """Let whoever has a token report on an attempt; ``False`` if its claim is stale."""
        row = {"id": run.id, "epoch": run.epoch, "attempt": run.attempt, "token_hash": token_hash}
        return bool(await self.write("keep_token", [row]))

    async def reported(self, run_id: str) -> ReportableRun | None:
        """A run, with what a report on it must bring."""
        found = await self.rows("reported", id=run_id)
        return _reported_of(found[0]) if found else None

    async def overdue_reports(self, now: int, limit: int) -> list[ReportableRun]:
        """Runs that others go on with and of which something should have been heard, the longest overdue first."""
        return [_reported_of(row) for row in await self.rows("overdue_reports", now=now, limit=limit)]

    async def expect_reports(self, runs: Iterable[tuple[Run, int]]) -> None:
        """Say until when something must be heard of runs; those that were asked to stop never get more time."""
        rows = [{"id": run.id, "attempt": run.attempt, "report_by": by} for run, by in runs]
        await self.write("expect_report", rows)

    async def insert_attempts(self, attempts: Iterable[Attempt]) -> None:
        """Keep attempts that are followed by another."""
        await self.write("insert_attempt", [fields(each) for each in attempts])

    async def attempts(self, run_id: str) -> list[Attempt]:
        """The attempts of a run that were followed by another, in order."""
        return [attempt_of(row) for row in await self.rows("attempts", id=run_id)]

    async def save_checkpoint(self, run: Run, key: str, value: str, now: int) -> bool:
        """Save a value of an attempt, as JSON; ``False``, and nothing saved, if its claim is stale."""
        saved = await self.rows(
            "save_checkpoint", run_id=run.id, epoch=run.epoch, attempt=run.attempt, key=key, value=value, saved_at=now
        )  # fmt: skip
        return bool(saved)

    async def checkpoints(self, run_ids: Collection[str]) -> list[Checkpoint]:
        """What attempts of some runs saved, each run's in the order in which it was saved."""
        return [checkpoint_of(row) for row in await self.rows("checkpoints", run_ids=list(run_ids))]

    async def last_outcomes(self, schedule_ids: Collection[str]) -> dict[str, LastOutcome]:
        """What the latest runs of some schedules left to the next; those that left nothing are not there."""
        return {row[0]: LastOutcome(*row) for row in await self.rows("last_outcomes", ids=list(schedule_ids))}

    async def keep_last_outcomes(self, ended: Iterable[tuple[Run, Outcome]]) -> None:
        """Keep what runs left to the next ones of their schedules; one that was created anew inherits nothing."""
        successes: dict[tuple[str, int], str | None] = {}
        failures: dict[tuple[str, int], str] = {}
        for run, outcome in ended:
            whose = (run.schedule_id, run.generation)
            if outcome.status is Status.SUCCEEDED:
                successes[whose] = outcome.result if outcome.result != "null" else None
                failures.pop(whose, None)
            else:
                failures[whose] = outcome.failure or outcome.reason
        await self._keep_results(successes)
        await self.write(  # what failed after a success has the last word, and leaves its result
            "put_last_failure",
            [{"schedule_id": s, "generation": i, "failure": text} for (s, i), text in failures.items()],
        )

    async def _keep_results(self, results: dict[tuple[str, int], str | None]) -> None:
        await self.write(
            "put_last_result",
            [{"schedule_id": s, "generation": i, "result": text} for (s, i), text in results.items() if text],
        )
        if nothing := [whose for whose, text in results.items() if text is None]:
            ids, generations = zip(*nothing, strict=True)
            await self.rows("clear_last_outcome", ids=list(ids), generations=list(generations))

    async def insert_unstarted(self, ranges: Iterable[UnstartedRange]) -> None:
        """Write ranges of slots that did not run; one that continues the last is joined to it."""
        ranges = list(ranges)
        rows = [fields(each) for each in ranges]
        await self.write("continue_unstarted_range", rows)
        await self.write("insert_unstarted_range", rows)
        if self.unstarted is not None:
            self.unstarted += ranges

    async def unstarted_ranges(
        self, schedule_id: str, limit: int, before: int = NEWEST[0]
    ) -> list[UnstartedRange]:
        """The latest ranges of slots of a schedule that did not run, newest first; those before one, by its number."""
        found = await self.rows("unstarted_ranges", id=schedule_id, limit=limit, before=before)
        return [unstarted_of(row) for row in found]

    async def unstarted_at(self, schedule_id: str, nominal: int) -> UnstartedRange | None:
        """The latest range of a schedule that a nominal time lies in, whether or not it is one of its slots."""
        found = await self.rows("unstarted_at", id=schedule_id, nominal=nominal)
        return unstarted_of(found[0]) if found else None

    # Backfills

    async def insert_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Write backfills that were asked for."""
        await self.write("insert_backfill", [_backfill_row(each) for each in backfills])

    async def update_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Write how far backfills have come; what has ended stays as it is."""
        await self.write("update_backfill", [_backfill_row(each) for each in backfills])

    async def open_backfills(self, schedule_ids: Collection[str]) -> list[Backfill]:
        """The backfills of some schedules that go on, in the order in which they were asked for."""
        return [backfill_of(row) for row in await self.rows("open_backfills", ids=list(schedule_ids))]

    async def count_open_backfills(self, schedule_id: str, limit: int) -> int:
        """How many backfills of a schedule go on, counted up to a limit."""
        return int((await self.rows("count_open_backfills", id=schedule_id, limit=limit))[0][0])

    async def backfills(self, schedule_id: str, limit: int, before: str | None = None) -> list[Backfill]:
        """The latest backfills of a schedule, newest first; those before one."""
        found = await self.rows("backfills", id=schedule_id, limit=limit, before=before)
        return [backfill_of(row) for row in found]

    async def backfill_sizes(self, schedule_id: str, limit: int, before: str | None = None) -> list[int]:
        """The same, but only how many bytes people gave each."""
        found = await self.rows("backfill_sizes", id=schedule_id, limit=limit, before=before)
        return [row[0] for row in found]

    async def backfill(self, backfill_id: str) -> Backfill | None:
        """One backfill."""
        found = await self.rows("backfill", id=backfill_id)
        return backfill_of(found[0]) if found else None

    # Shared calendars

    async def calendars(self, owner: str | None, after: tuple[str, str], limit: int) -> list[StoredCalendar]:
        """A page of shared calendars after a name and an owner: an owner's and everybody's, or all of them."""
        found = await self.rows(
            "calendars", owner=owner, after_name=after[0], after_owner=after[1], limit=limit
        )
        return [calendar_of(row) for row in found]

    async def calendar_sizes(self, owner: str | None, after: tuple[str, str], limit: int) -> list[int]:
        """The same, but only how many bytes each has."""
        found = await self.rows(
            "calendar_sizes", owner=owner, after_name=after[0], after_owner=after[1], limit=limit
        )
        return [row[0] for row in found]

    async def calendars_named(self, names: Collection[str], owner: str) -> list[StoredCalendar]:
        """The shared calendars of some names that an owner can use: everybody's, then his own."""
        return [
            calendar_of(row) for row in await self.rows("calendars_named", names=list(names), owner=owner)
        ]

    async def keep_calendars(self, names: Collection[str], owner: str) -> list[StoredCalendar]:
        """The same, and nobody can change or remove them until the end."""
        return [calendar_of(row) for row in await self.rows("keep_calendars", names=list(names), owner=owner)]

    async def count_calendars(self, owner: str, limit: int) -> int:
        """How many shared calendars an owner has, counted up to a limit."""
        return int((await self.rows("count_calendars", owner=owner, limit=limit))[0][0])

    async def put_calendar(self, calendar: StoredCalendar) -> None:
        """Write a shared calendar, new or changed."""
        await self.write("put_calendar", [fields(calendar) | {"document": to_json(calendar.document)}])

    async def delete_calendar(self, owner: str, name: str) -> int:
        """Remove a shared calendar; whether there was one."""
        return await self.write("delete_calendar", [{"owner": owner, "name": name}])

    # Retention

    async def known_ids(self, after: str, limit: int) -> list[str]:
        """A page of all ids that schedules ever had, in order; the ledger of deleted ones is kept too."""
        return [row[0] for row in await self.rows("known_ids", after=after, limit=limit)]

    async def prune(self, past: Iterable[Past]) -> int:
        """Remove what is past the retention of some schedules, a few rows each; how many rows."""
        rows = [fields(each) for each in past]
        names = ("prune_runs", "prune_unstarted_ranges", "prune_backfills", "prune_versions")
        return sum([await self.write(name, rows) for name in names])


def _asked(only: Filter) -> dict[str, Any]:
    """What a filter asks, for the query that takes it."""
    asked = fields(only)
    if only.owner is None:
        del asked["owner"]
    return asked


def _reported_of(row: Row) -> ReportableRun:
    return ReportableRun(run_of(row), row[25], row[26])


def _backfill_row(backfill: Backfill) -> dict[str, Any]:
    return fields(backfill) | {"input": optional_json(backfill.input)}


HasClaims = Callable[[Transaction, int], Awaitable[bool]]
"""Whether a node has claimed attempts that have no result yet, by its epoch."""
S = TypeVar("S", bound="Store")
Watch = Callable[
    [], AbstractContextManager[tuple[list[tuple[AttemptResult, Outcome]], list[Run | UnstartedRange]]]
]


def watched(
    begin: Callable[[S], AsyncIterator[Transaction]],
) -> Callable[[S], AbstractAsyncContextManager[Transaction]]:
    """A way to begin a transaction, with whoever watches the store around it; it costs nothing when nobody does."""
    plain = asynccontextmanager(begin)

    @asynccontextmanager
    async def around(store: S, watch: Watch) -> AsyncIterator[Transaction]:
        with watch() as gathered:
            async with plain(store) as transaction:
                transaction.recorded, transaction.unstarted = gathered
                yield transaction

    @wraps(begin)
    def transaction(store: S) -> AbstractAsyncContextManager[Transaction]:
        return plain(store) if store.watch is None else around(store, store.watch)

    return transaction


class Store(ABC):
    """A database. It is opened once, and closed."""

    watch: Watch | None = None
    """What is put around every transaction, if somebody wants to know how long they take and what becomes durable."""
    lease: float | None = None
    """How many seconds a node lives without renewing; ``None`` if its life needs no renewing."""
    parallel_batches: int = 1
    """How many batches a node decides at the same time; with 1, transactions wait for each other."""
    batch: int = 1000
    """How many schedules are decided in one transaction."""

    @abstractmethod
    async def open(self, wake: Callable[[], None]) -> None:
        """Connect, and bring the schema up to date; ``wake`` is called when another node changed something."""

    @abstractmethod
    async def close(self) -> None:
        """Release everything."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that writes; it commits at the end, or is undone by an exception."""

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that only reads: it waits for no writer, and no writer waits for it."""
        return self.transaction()

    @abstractmethod
    async def register_node(self, node: Node) -> bool:
        """Begin to live as a node, or go on; ``False``, and nothing done, if another living node has the name."""

    @abstractmethod
    async def renew(self, epoch: int) -> bool:
        """Go on living; ``False`` if others may think this node dead, and have taken its runs."""

    @abstractmethod
    async def nodes(self) -> list[Node]:
        """All nodes, and whether they live; the dead until they are buried."""

    @abstractmethod
    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        """Forget nodes that are dead, or end; except those that have claims, as long as they do."""

    @property
    def gone(self) -> bool:
        """Whether the database that was opened is not there any more, so that nothing can be decided on it."""
        return False

    async def has_newer_schema(self) -> bool:
        """Whether a newer program has changed the schema since this one opened it."""
        return False

    async def prove(self, epoch: int) -> None:
        """Write something that takes room, and undo it, to know that it can be done."""
        async with self.transaction() as transaction:
            await transaction.write("widen_node", [{"epoch": epoch, "filler": _FILLER}])
            await transaction.write("narrow_node", [{"epoch": epoch, "filler": len(_FILLER)}])

    @abstractmethod
    async def time(self) -> int | None:
        """The store's own time, in milliseconds, which all nodes share; ``None`` if it has none."""
