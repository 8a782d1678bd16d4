"""Transaction methods for runs, and for reports of external workers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from horae.model import OPEN, Outcome, Reason, Run, ScheduleKey, Status, UnstartedRange
from horae.store.row_mapping import Row, Table
from horae.store.statement_execution import LAST, NEWEST, Statements
from horae.store.tables import RUN, RUN_WITHOUT_INPUT, UNSTARTED_RANGE

_asdict = msgspec.structs.asdict


class LedgerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the runs and unstarted ranges that match every field."""

    owner: str | None = None
    """The owner of their schedules; ``None`` is any."""
    schedule_key: ScheduleKey | None = None
    tag: str | None = None
    """A tag of their schedules; deleted schedules have none."""
    statuses: tuple[Status, ...] = tuple(Status)
    reason: str | None = None
    without_reasons: tuple[Reason, ...] = ()
    """Reasons to leave out."""
    since: int = 0
    """The earliest time at which they were decided."""
    until: int = LAST
    """The time before which they were decided."""


class ReportableRun(NamedTuple):
    """A run that an external worker may report on, the hash of its report token, and when a report is due."""

    run: Run
    token_hash: str | None
    report_by_ms: int | None


class RunQueries(Statements):
    """Statements on runs."""

    async def open_runs(self, keys: Collection[ScheduleKey]) -> list[Run]:
        """The open runs of the given schedules, oldest first, without their inputs (``NOT_READ``)."""
        return await self.find(RUN_WITHOUT_INPUT, "open_runs", keys=list(keys))

    async def runs(self, key: ScheduleKey, limit: int, before: int = NEWEST[0]) -> list[Run]:
        """The latest runs of a schedule, newest first; only those with a number below ``before``."""
        return await self.find(RUN, "runs", key=key, limit=limit, before=before)

    async def recent_runs(self, keys: Collection[ScheduleKey], limit: int) -> dict[ScheduleKey, list[Run]]:
        """The latest runs of each of the given schedules, newest first."""
        found: dict[ScheduleKey, list[Run]] = {each: [] for each in keys}
        for run in await self.find(RUN, "recent_runs", keys=list(keys), limit=limit):
            found[run.schedule_key].append(run)
        return found

    async def run_sizes(self, key: ScheduleKey, limit: int, before: int = NEWEST[0]) -> list[tuple[int, int]]:
        """The numbers of those runs, and how many bytes of text each has."""
        return await self.tuples("run_sizes", key=key, limit=limit, before=before)

    async def runs_by_id(self, ids: Collection[str]) -> list[Run]:
        """The runs with the given ids."""
        return await self.find(RUN, "runs_by_id", ids=list(ids))

    async def claims_of(self, ids: Collection[str]) -> list[Run]:
        """The runs with the given ids, without their inputs: for their claims and stop requests."""
        return await self.find(RUN_WITHOUT_INPUT, "claims_of", ids=list(ids))

    async def search_runs(
        self, only: LedgerFilter, before: int, least: int, limit: int
    ) -> list[tuple[int, int, int | None]]:
        """The latest runs with a number below ``before``: their numbers, when they were decided, and how many bytes of text each has.

        Runs that do not match are among them, with ``None`` as size, so that a search limits how many it examines.
        """
        return await self.tuples(
            _along(only, "search_runs", "search_owned_runs", "search_runs_of_schedule"),
            before=before, least=least, limit=limit, **_ledger_parameters(only),
        )  # fmt: skip

    async def search_ranges(
        self, only: LedgerFilter, before: tuple[int, int], limit: int
    ) -> list[tuple[UnstartedRange, bool]]:
        """The latest unstarted ranges before a place (when it was decided, its number), and whether each matches."""
        before_ms, number = before
        found = await self.rows(
            _along(only, "search_ranges", "search_owned_ranges", "search_ranges_of_schedule"),
            before_ms=before_ms, before=number, limit=limit, **_ledger_parameters(only),
        )  # fmt: skip
        return [(UNSTARTED_RANGE.decode(columns), bool(matches)) for *columns, matches in found]

    async def runs_numbered(self, numbers: Collection[int]) -> list[Run]:
        """The runs with the given numbers, newest first."""
        return await self.find(RUN, "runs_numbered", numbers=list(numbers))

    async def run_number_at(self, moment: int) -> int:
        """The number of the first run that was decided at a moment or later.

        Nodes decide at the same time, by clocks that differ a little: the runs of the seconds around it may be on either side.
        """
        return int(await self.value("run_number_at", moment=moment))

    async def runs_at(self, key: ScheduleKey, beginning: str) -> list[Run]:
        """The runs of a schedule at a nominal time, oldest first: those whose ids begin as the ids of that time do.

        ``started_at_ms`` is the start of their first attempt that began.
        """
        # The rest of an id is hexadecimal: in every collation, none of its characters comes after an f.
        found = await self.rows("runs_at", key=key, from_id=beginning, to_id=f"{beginning}g")
        return [
            msgspec.structs.replace(RUN.decode(columns), started_at_ms=started_at_ms)
            for *columns, started_at_ms in found
        ]

    async def claimed(self, epochs: Collection[int], limit: int) -> list[Run]:
        """The runs that the given nodes have claimed and not finished, oldest first, without their inputs."""
        return await self.find(RUN_WITHOUT_INPUT, "claimed", epochs=list(epochs), limit=limit)

    async def stopping(self, epoch: int) -> list[Run]:
        """The runs of a node that were asked to stop, without their inputs."""
        return await self.find(RUN_WITHOUT_INPUT, "stopping", epoch=epoch)

    async def waiting_for_node(self, before: int, limit: int) -> list[tuple[ScheduleKey, str]]:
        """Schedules and actions whose runs have waited for a node since before a moment."""
        return await self.tuples("waiting_for_node", before=before, limit=limit)

    async def is_node(self, epoch: int, now: int) -> bool:  # noqa: ARG002 - a store with a clock of its own compares it
        """Whether a node is registered and alive; it cannot be removed until the end. Raises if its clock is off."""
        return bool(await self.rows("is_node", epoch=epoch))

    async def open_counts(self, keys: Collection[ScheduleKey]) -> dict[tuple[ScheduleKey, Status], int]:
        """How many open runs the given schedules have, by schedule and status."""
        found = await self.rows("open_counts", keys=list(keys))
        return {(key, Status(status)): count for key, status, count in found}

    async def count_open(self, limit: int) -> dict[Status, int]:
        """How many runs are open, by status, counted up to a limit."""
        return {Status(status): count for status, count in await self.rows("count_open", limit=limit)}

    async def count_triggers(self, key: ScheduleKey, limit: int) -> int:
        """How many triggers of a schedule wait, counted up to a limit."""
        return int(await self.value("count_triggers", key=key, limit=limit))

    async def count_waiting(self, key: ScheduleKey, limit: int) -> int:
        """How many automatic starts of a schedule wait, counted up to a limit."""
        return int(await self.value("count_waiting", key=key, limit=limit))

    async def insert_runs(self, runs: Iterable[Run]) -> None:
        """Insert new runs. A slot is unique: inserting it twice is an error."""
        created = list(runs)
        await self.insert(RUN, created)
        self._note_ended(created)

    async def update_runs(self, runs: Iterable[Run]) -> None:
        """Update runs that no node works on: released, claimed, or ended without a start."""
        changed = list(runs)
        await self.write(
            "update_run",
            [
                {
                    "id": run.id, "status": run.status, "reason": run.reason, "attempt": run.attempt,
                    "epoch": run.epoch, "started_at_ms": run.started_at_ms, "ended_at_ms": run.ended_at_ms,
                }
                for run in changed
            ],
        )  # fmt: skip
        self._note_ended(changed)

    def _note_ended(self, runs: Iterable[Run]) -> None:
        if self.unstarted is not None:
            self.unstarted += [run for run in runs if run.status not in OPEN]

    async def ask_to_stop(self, runs: Iterable[Run]) -> int:
        """Ask runs to stop; their nodes will see it. Returns how many of them are running."""
        return await self.write(
            "ask_to_stop", [{"id": run.id, "stop": run.stop, "reason": run.reason} for run in runs]
        )

    async def finish(self, outcomes: Iterable[Outcome]) -> int:
        """Write the outcomes of attempts under their claims. A stale claim writes nothing; return how many were written."""
        succeeded: list[dict[str, Any]] = []
        handed_off: list[dict[str, Any]] = []
        others: list[dict[str, Any]] = []
        for each in outcomes:
            if each.status is Status.SUCCEEDED:
                succeeded.append(
                    {
                        "run_id": each.run_id, "epoch": each.epoch, "attempt": each.attempt,
                        "started_at_ms": each.started_at_ms, "ended_at_ms": each.ended_at_ms, "result": each.result,
                    }
                )  # fmt: skip
            else:
                row = _asdict(each)
                row["ended_at_ms"] = None if each.status is Status.RETRYING else each.ended_at_ms
                (handed_off if each.status is Status.RUNNING else others).append(row)
        return (
            await self.write("succeed", succeeded)
            + await self.write("hand_off", handed_off)
            + await self.write("finish", others)
        )

    # Reports of external workers

    async def keep_token(self, run: Run, token_hash: str) -> bool:
        """Accept reports on an attempt with a token; ``False`` if its claim is stale."""
        row = {"run_id": run.id, "epoch": run.epoch, "attempt": run.attempt, "token_hash": token_hash}
        return bool(await self.write("keep_token", [row]))

    async def reportable_run(self, run_id: str) -> ReportableRun | None:
        """A run, with the token hash that a report on it must match."""
        found = await self.rows("reportable_run", id=run_id)
        return _reportable(RUN, found[0]) if found else None

    async def overdue_reports(self, now: int, limit: int) -> list[ReportableRun]:
        """Runs whose external worker should have reported, the longest overdue first, without their inputs."""
        found = await self.rows("overdue_reports", now=now, limit=limit)
        return [_reportable(RUN_WITHOUT_INPUT, row) for row in found]

    async def expect_reports(self, runs: Iterable[tuple[Run, int]]) -> None:
        """Set when reports on runs are due; a run that was asked to stop gets no more time."""
        rows = [{"id": run.id, "attempt": run.attempt, "report_by_ms": by} for run, by in runs]
        await self.write("expect_report", rows)


def _along(only: LedgerFilter, everything: str, of_owner: str, of_schedule: str) -> str:
    """The statement that reads the part of the ledger that a search is about, along an index."""
    if only.schedule_key is not None:
        return of_schedule
    return of_owner if only.owner else everything


def _ledger_parameters(only: LedgerFilter) -> dict[str, Any]:
    return _asdict(only) | {"statuses": list(only.statuses), "without_reasons": list(only.without_reasons)}


def _reportable(table: Table[Run], row: Row) -> ReportableRun:
    *columns, token_hash, report_by_ms = row
    return ReportableRun(table.decode(columns), token_hash, report_by_ms)
